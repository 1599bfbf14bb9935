"""`ralf context`: checkpoint, read and correct routes."""

from __future__ import annotations

from typing import ClassVar

import click

from ralf_cli.main import LazyGroup


class _Context(LazyGroup):
    lazy: ClassVar[dict[str, str]] = {
        "list": "ralf_cli.reading:list_",
        "show": "ralf_cli.reading:show",
        "search": "ralf_cli.reading:search",
        "checkpoint": "ralf_cli.writing:checkpoint",
        "watch": "ralf_cli.writing:watch",
        "decide": "ralf_cli.writing:decide",
        "edit": "ralf_cli.correcting:edit",
        "drop": "ralf_cli.correcting:drop",
        "forget": "ralf_cli.correcting:forget",
        "why": "ralf_cli.evidence:why",
        "verify": "ralf_cli.keeping:verify",
        "archive": "ralf_cli.keeping:archive",
        "log": "ralf_cli.changing:log",
        "diff": "ralf_cli.changing:diff",
        "revert": "ralf_cli.changing:revert",
        "trust": "ralf_cli.trust:trust",
        "prune": "ralf_cli.evidence:prune",
    }


@click.pass_context
def _help(ctx: click.Context) -> None:
    """Alone it is its help."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


context = _Context(
    name="context",
    help="""Checkpoint, read and correct routes.

    \b
    Examples:
      ralf context list
      ralf context show TASK-001 --max-tokens 2500
      ralf context search "why not asyncio"

    \b
    Exit status: that of the command
    """,
    invoke_without_command=True,
    callback=_help,
)
