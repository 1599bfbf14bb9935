"""What a model adds to a checkpoint, and what it took."""
