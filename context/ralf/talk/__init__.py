"""The talk: the person's messages in order, each with what it answers, and what the agent said at the end of a turn."""
