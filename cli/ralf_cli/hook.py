"""`ralf hook`: what a client's settings and the plugin call."""

from __future__ import annotations

import click

from ralf_cli.command import command


@command(short_help="Handle a client hook (called by the client, not by you).")
@click.argument("event")
@click.option(
    "--client",
    type=click.Choice(["claude-code", "codex", "gemini", "opencode"]),
    default="claude-code",
    help="The calling client. Default: claude-code.",
)
def hook(event: str, client: str) -> None:
    """Handle a client hook: reads the client's JSON from standard input, writes JSON or nothing to standard output.

    EVENT is the client's name for the event. Shared settings and the plugin call this command; the command that
    `ralf init --client` writes into a project's local settings does the same faster. No-op in projects without
    `ralf init` or after `ralf init --off`. Errors never reach the client: they are logged to hooks.log in the store's
    cache, and each is shown once.

    \b
    Examples:
      ralf hook PostToolBatch --client claude-code

    \b
    Exit status: 0 always, except 1 for an unknown client or a missing event (2 would block the client)
    """
    from ralf_integrations.hooks import instant

    if event == instant.LOG:
        raise SystemExit(instant.write_logs())
    try:
        instant.limit_time()
        data = instant.read()
        if not instant.is_idle(client, event, data):
            from ralf_integrations.hooks import entry

            entry.run(client, event, data, instant.say, instant.is_idle)
    except (instant.Late, OSError):  # nobody listens any more
        pass
