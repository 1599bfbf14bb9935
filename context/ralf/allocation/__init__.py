"""Divides an agent's context window among what it holds, and measures how full that is: figures only, no text."""
