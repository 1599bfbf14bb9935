"""Keeps an agent's window within its shares: completed segments give way to summaries, the current task stays."""
