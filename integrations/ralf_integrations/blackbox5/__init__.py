"""BlackBox5 and its RALF loop: drop-ins for its own tools, and what puts routes into its loop.

Each module is a command, too: `python -m ralf_integrations.blackbox5.context_budget`. No code of that project is used.
"""
