"""Whose store is it: what this user's ralf wrote, and what came with a repository, an archive or another person."""
