"""Keeps an agent's conversation within its budget: cuts it, sums up what is cut, and keeps large results elsewhere."""
