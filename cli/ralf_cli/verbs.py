"""The right command for a wrong one: of another group, by another name, or with a letter amiss."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence

import click

_OTHER_NAMES = {
    "add": "decide",
    "cat": "show",
    "decision": "decide",
    "delete": "drop",
    "find": "search",
    "get": "show",
    "grep": "search",
    "history": "log",
    "load": "show",
    "ls": "list",
    "open": "edit",
    "print": "show",
    "read": "show",
    "record": "decide",
    "remove": "drop",
    "restore": "revert",
    "resume": "show",
    "rm": "drop",
    "routes": "list",
    "save": "checkpoint",
    "undo": "revert",
    "view": "show",
    "check": "verify",
    "install": "init",
    "setup": "init",
    "enable": "on",
    "disable": "off",
    "sessions": "health",
    "import": "migrate",
    "purge": "forget",
}
"""What people and agents type, and what it is called here."""


class WrongCommand(click.UsageError):
    """A command that is none; `hint`: what to type in its place."""

    def __init__(self, name: str, hint: str, ctx: click.Context) -> None:
        super().__init__(f"No such command {name!r}.", ctx)
        self.hint = hint


def wrong(ctx: click.Context, name: str, rest: Sequence[str], hint: str = "") -> WrongCommand:
    """The error for a command that a group does not have; `hint`: what to type where no other command is near."""
    path = ctx.command_path
    groups = [("ralf context", _names(ctx, "context")), ("ralf", _names(ctx)), ("ralf route", _names(ctx, "route"))]
    groups.sort(key=lambda group: group[0] != path)
    near = _right(name, rest, groups) or hint or _near(name, rest, groups)
    return WrongCommand(name, near or f"{path} --help", ctx)


def _names(ctx: click.Context, group: str = "") -> Sequence[str]:
    """The commands of a group, "" for the one that holds all."""
    root = ctx.find_root()
    found: click.Command | None = root.command
    if group and isinstance(found, click.Group):
        found = found.get_command(root, group)
    return found.list_commands(root) if isinstance(found, click.Group) else ()


def _right(name: str, rest: Sequence[str], groups: Sequence[tuple[str, Sequence[str]]]) -> str:
    """What to type in place of `name`, with what stood behind it: the command of this name in another group, or what we
    call it; "" for none.

    groups  the commands that there are, by what stands before them, those of the group that was meant first
    """
    for wanted in (name, _OTHER_NAMES.get(name.casefold())):
        for path, names in groups:
            if wanted in names:
                return _typed(path, str(wanted), rest)
    return ""


def _near(name: str, rest: Sequence[str], groups: Sequence[tuple[str, Sequence[str]]]) -> str:
    """The command of nearly this name, "" for none."""
    for path, names in groups:
        if near := difflib.get_close_matches(name, names, n=1, cutoff=0.7):
            return _typed(path, near[0], rest)
    return ""


def _typed(path: str, name: str, rest: Sequence[str]) -> str:
    return " ".join(filter(None, (path, name, shlex.join(rest))))
