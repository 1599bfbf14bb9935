"""`ralf hook`: what a client's settings and the plugin call."""

from __future__ import annotations

import click


@click.command(short_help="Answer a client's hook; called by its settings.")
@click.argument("event")
@click.option(
    "--client",
    type=click.Choice(["claude-code", "codex", "gemini"]),
    help="Who calls. Default: told by what it sends, and by the environment.",
)
def hook(event: str, client: str | None) -> None:
    """Answer a client's hook: its JSON on standard input, ours (or nothing) on standard output.

    EVENT is the client's name of it. For settings that are shared, and for the plugin; what `ralf init --client` writes
    into a project's local settings does the same faster. Does nothing in projects that have not opted in (`ralf init`),
    and where `ralf off` was said. Errors never reach the client: they are in hooks.log in the store's cache, and
    each is shown once.

    \b
    Examples:
      ralf hook PostToolBatch --client claude-code

    \b
    Exit status: 0, whatever happens · 1 no such client, no event named (2 would block the client)
    """
    from ralf_integrations.hooks import instant

    try:
        instant.limit_time()
        data = instant.read()
        if not instant.is_idle(client or "", event, data):
            from ralf_integrations.hooks import entry

            entry.run(client or "", event, data, instant.say, instant.is_idle)
    except (instant.Late, OSError):  # nobody listens any more
        pass
