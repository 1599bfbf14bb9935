"""What tests share: the command, projects, session logs, git and the clock, one module each."""
