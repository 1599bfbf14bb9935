"""Writes the reference of the command line from the commands themselves; run by cog in docs/cli.md."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ralf_cli.main import main


def markdown() -> str:
    """Every command with its usage and help, as `--help` prints it, 100 columns wide."""
    return "\n".join(_command(click.Context(main, info_name="ralf", **_SETTINGS), main))


_SETTINGS = {"max_content_width": 100, "terminal_width": 100}


def _command(ctx: click.Context, command: click.Command) -> Iterator[str]:
    """A command and those of its group."""
    yield f"## `{ctx.command_path}`\n"
    yield f"```text\n{command.get_help(ctx)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            if inner is not None:
                yield from _command(click.Context(inner, info_name=name, parent=ctx, **_SETTINGS), inner)
