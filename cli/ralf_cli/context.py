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
        "edit": "ralf_cli.writing:edit",
        "drop": "ralf_cli.writing:drop",
        "forget": "ralf_cli.maintenance:forget",
        "why": "ralf_cli.history:why",
        "verify": "ralf_cli.maintenance:verify",
        "export": "ralf_cli.export:export",
        "archive": "ralf_cli.maintenance:archive",
        "log": "ralf_cli.history:log",
        "diff": "ralf_cli.history:diff",
        "revert": "ralf_cli.history:revert",
        "trust": "ralf_cli.trust:trust",
        "prune": "ralf_cli.maintenance:prune",
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
