"""Doors to clients: hooks, MCP, loops and other stores. They stand on `ralf` and know nothing of the command line."""
