"""Has a model improve checkpoints, and accounts for its cost."""
