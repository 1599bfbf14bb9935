"""Keeps an agent's window within its shares: completed segments give way to their records, the current task stays."""
