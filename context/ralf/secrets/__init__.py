"""Secrets: found, and replaced by tags, before anything is made of a text."""
