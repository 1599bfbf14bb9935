"""Makes checkpoints from a transcript: decides when one is due, cuts segments, writes records."""
