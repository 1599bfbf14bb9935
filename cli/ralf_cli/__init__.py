"""The command `ralf`: a thin skin over the core that parses, calls, prints and sets the exit status."""
