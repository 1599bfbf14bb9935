"""Forgetting: which words, where they stand, and that none is left."""
