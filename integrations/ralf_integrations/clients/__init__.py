"""Installing ralf for a client: which entries go into which file, and how they come out of it again."""
