"""Tasks: what is to be done and in which order, who has it, and what says that it is done."""
