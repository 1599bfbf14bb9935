"""`ralf mcp`: a project's routes for any agent that speaks the Model Context Protocol."""

from __future__ import annotations

from importlib.util import find_spec

from ralf_cli.command import command
from ralf_cli.options import with_root


@command(short_help="Run an MCP server for this project's routes.")
@with_root
def mcp(root: str | None) -> None:
    """Run an MCP (Model Context Protocol) server for this project's routes on standard input and output.

    Tools: get_context, search, list_routes, get_memory, record_decision, hand_over, propose_memory, checkpoint,
    use_route, send_message, receive_messages. Resources: ralf://routes and ralf://route/ROUTE. Prompt: resume. Exits on
    EOF. Requires the extra `mcp`.

    \b
    Examples:
      pipx install '.[mcp]'                   # in a clone of ralf
      claude mcp add ralf -- ralf mcp
      ralf --root /srv/tide mcp

    \b
    Exit status: 0 end of input · 1 the extra is not installed · 2 no such directory
    """
    from ralf import project
    from ralf.errors import RalfError
    from ralf_integrations.mcp import caller

    if find_spec("mcp") is None:
        raise RalfError(
            "ralf mcp", "the MCP SDK is not installed here", "in a clone of ralf: pipx install --force '.[mcp]'"
        )
    if root is None:
        caller.go_to_project()
    project.find(root)  # what is wrong with it is said before the client waits for an answer
    from ralf_integrations.mcp import server  # as late as can be: it takes a second

    server.run(root)
