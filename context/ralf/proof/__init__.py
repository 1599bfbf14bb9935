"""Whether a checkpoint holds what its segment says, and what it lost."""
