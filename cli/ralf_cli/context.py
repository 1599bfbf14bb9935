"""`ralf context`: checkpoint, read and correct routes."""

from __future__ import annotations

from typing import ClassVar

import click

from ralf_cli.main import LazyGroup


class _Context(LazyGroup):
    sections: ClassVar[dict[str, dict[str, str]]] = {
        "Read": {
            "list": "ralf_cli.reading:list_",
            "show": "ralf_cli.reading:show",
            "search": "ralf_cli.searching:search",
            "why": "ralf_cli.history:why",
            "log": "ralf_cli.history:log",
            "diff": "ralf_cli.history:diff",
            "export": "ralf_cli.export:export",
        },
        "Write": {
            "checkpoint": "ralf_cli.writing:checkpoint",
            "watch": "ralf_cli.writing:watch",
            "decide": "ralf_cli.writing:decide",
            "edit": "ralf_cli.writing:edit",
            "drop": "ralf_cli.writing:drop",
            "revert": "ralf_cli.history:revert",
        },
        "Maintenance": {
            "verify": "ralf_cli.maintenance:verify",
            "forget": "ralf_cli.maintenance:forget",
            "trust": "ralf_cli.trust:trust",
        },
    }


@click.pass_context
def _help(ctx: click.Context) -> None:
    """Alone it is its help."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


context = _Context(
    name="context",
    short_help="All commands on routes: also checkpoint, edit, drop, revert, forget.",
    help="""Checkpoint, read and correct routes. `list`, `show`, `search`, `why`, `log`, `diff` and `decide` are also
    commands of `ralf` itself.

    \b
    Examples:
      ralf context checkpoint TASK-001 --transcript session.jsonl
      ralf context edit TASK-001
      ralf context revert TASK-001 cp-002

    \b
    Exit status: that of the command
    """,
    invoke_without_command=True,
    callback=_help,
)
