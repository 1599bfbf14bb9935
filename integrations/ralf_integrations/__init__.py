"""Doors to clients: hooks, MCP, loops and other stores. They stand on `ralf` and know nothing of the command line."""

try:
    from ralf import extensions
except ModuleNotFoundError:  # a Python without ralf runs a link to one of our files, which then says what to type
    pass
else:  # as pyproject.toml declares it: a checkout that is not installed has no metadata
    extensions.declare(extensions.TRANSCRIPTS, "blackbox5", "ralf_integrations.blackbox5.client:read")
    extensions.declare(extensions.ROUTE_RULES, "blackbox5", "ralf_integrations.blackbox5.client:route")
    extensions.declare(extensions.RUNS, "blackbox5", "ralf_integrations.blackbox5.client")
    extensions.declare(extensions.STORES, "nats", "ralf_integrations.stores.choosing:open_named")
