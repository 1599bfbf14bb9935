"""Commands for programs: `ralf hook`, `ralf mcp`, `ralf completion`, `ralf schema`."""

from __future__ import annotations

from importlib.util import find_spec

import click

from ralf_cli.command import command, root

_CLIENTS = ("claude-code", "codex", "gemini", "opencode")


@command("root", is_fenced=False)
@click.argument("event")
@click.option("--client", type=click.Choice(_CLIENTS), default="claude-code", help="Calling client. [claude-code]")
def hook(event: str, client: str) -> None:
    """Handle a client hook: read the client's JSON from standard input, write JSON or nothing to standard output.

    EVENT is the client's name for the event. `ralf hook` does nothing in projects without `ralf init` or after
    `ralf init --off`. Errors never fail the hook: ralf logs them to hooks.log in the store's cache and shows each error
    once, in the answer to a later hook.

    \b
    Exit status: always 0, except 1 for an unknown client or a missing event (2 would block the client)
    """
    from ralf_integrations.hooks import instant

    if event == instant.LOG:
        raise SystemExit(instant.write_logs())
    try:
        instant.limit_time()
        data = instant.read()
        if not instant.is_idle(client, event, data):
            from ralf_integrations.hooks import entry

            entry.run(client, event, data, instant.say)
    except (instant.Late, OSError):  # the client has gone
        pass


@command("root", is_fenced=False)
def mcp() -> None:
    """Run an MCP (Model Context Protocol) server for this project's routes on standard input and output.

    Requires the extra `mcp`. docs/clients.md describes the tools.

    \b
    Examples:
      pipx install '.[mcp]'                   # in a clone of ralf
      claude mcp add ralf -- ralf mcp
      ralf --root /srv/tide mcp
    """
    from ralf import project
    from ralf.errors import RalfError
    from ralf_integrations.mcp import caller

    if find_spec("mcp") is None:
        raise RalfError(
            "ralf mcp", "the MCP SDK is not installed here", "in a clone of ralf: pipx install --force '.[mcp]'"
        )
    if root() is None:
        caller.go_to_project()
    project.find(root())  # report a wrong project before the client waits
    from ralf_integrations.mcp import server  # it takes a second to load

    server.run(root())


@command("root", is_fenced=False)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print the shell script that completes commands, options and routes.

    Add to ~/.bashrc: eval "$(ralf completion bash)"; to ~/.zshrc: eval "$(ralf completion zsh)"; to
    ~/.config/fish/config.fish: ralf completion fish | source.
    """
    from click.shell_completion import get_completion_class

    if (found := get_completion_class(shell)) is not None:
        main = click.get_current_context().find_root().command
        click.echo(found(main, {}, "ralf", "_RALF_COMPLETE").source())


@command("root", is_fenced=False)
@click.argument("file", type=click.Choice(("config", "config.local")))
def schema(file: str) -> None:
    """Print the JSON schema of config.yaml or config.local.yaml, for completion of keys in an editor."""
    from ralf.config import settings
    from ralf_cli.output import emit_json

    emit_json(settings.schema(local=file == "config.local"))
