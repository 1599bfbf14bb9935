"""A project's routes for any agent that speaks the Model Context Protocol: `ralf mcp`."""
