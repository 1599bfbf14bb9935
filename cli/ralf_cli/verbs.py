"""The right command for a wrong one: of another group, by another name, or with a letter amiss."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence

import click

from ralf_cli.options import Misused

_OTHER_NAMES = {
    "add": "decide",
    "cat": "show",
    "decision": "decide",
    "delete": "drop",
    "find": "search",
    "get": "show",
    "hand-over": "handover",
    "hand_over": "handover",
    "handoff": "handover",
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
    "view": "show",
    "check": "verify",
    "install": "init",
    "setup": "init",
    "enable": "on",
    "disable": "off",
    "sessions": "health",
    "import": "migrate",
    "purge": "forget",
    "prune": "gc",
}
"""What people and agents type, and what it is called here."""

_IRREVERSIBLE = frozenset(("cancel", "drop", "forget"))
"""Commands that nothing takes back, or not wholly: a hint names one of another group only to who named no group."""

_OF_MEMORY = {
    "delete": "drop",
    "forget": "drop",
    "get": "show",
    "list": "show",
    "ls": "show",
    "prune": "tidy",
    "purge": "drop",
    "remove": "drop",
    "rm": "drop",
    "view": "show",
}
"""The same for what is typed behind `ralf memory`."""

_OF_TASKS = {
    "abandon": "release",
    "cancel": "edit --status cancelled",
    "close": "done",
    "complete": "done",
    "create": "add",
    "delete": "edit --status cancelled",
    "drop": "edit --status cancelled",
    "finish": "done",
    "forget": "edit --status cancelled",
    "get": "show",
    "give-back": "release",
    "log": "progress",
    "ls": "list",
    "new": "add",
    "next": "claim",
    "note": "progress",
    "ready": "list --ready",
    "remove": "edit --status cancelled",
    "rm": "edit --status cancelled",
    "start": "claim",
    "take": "claim",
    "unclaim": "release",
    "update": "edit",
    "view": "show",
}
"""The same for what is typed behind `ralf task`, with the options that it takes."""

_OF_RUNS = {
    "abort": "cancel",
    "attach": "stream",
    "delete": "forget",
    "drop": "forget",
    "end": "cancel",
    "follow": "stream",
    "get": "show",
    "kill": "cancel",
    "log": "stream",
    "logs": "stream",
    "ls": "list",
    "output": "stream",
    "reopen": "retry",
    "restart": "retry",
    "resume": "retry",
    "rm": "forget",
    "status": "show",
    "stop": "cancel",
    "tail": "stream",
    "view": "show",
}
"""The same for what is typed behind `ralf run`."""

_OF_ALL = {
    "plan": "serialize",
    "unserialize": "serialize",
    "settings": "config",
    "completions": "completion",
    "prime": "refresh",
    "onboard": "refresh",
    "runs": "run",
    "send": "signal",
}
"""The same for what is typed behind `ralf` alone."""


_OWN = {"ralf": _OF_ALL, "ralf memory": _OF_MEMORY, "ralf run": _OF_RUNS, "ralf task": _OF_TASKS}


def wrong(ctx: click.Context, name: str, rest: Sequence[str], hint: str = "") -> Misused:
    """The error for a command that a group does not have; `hint`: what to type where no other command is near."""
    path = ctx.command_path
    groups = [
        ("ralf context", _names(ctx, "context")),
        ("ralf", _names(ctx)),
        ("ralf route", _names(ctx, "route")),
        ("ralf task", _names(ctx, "task")),
        ("ralf loop", _names(ctx, "loop")),
        ("ralf run", _names(ctx, "run")),
        ("ralf config", _names(ctx, "config")),
        ("ralf memory", _names(ctx, "memory")),
    ]
    groups.sort(key=lambda group: group[0] != path)
    if any(name in names for _, names in groups):
        hint = ""  # it is a command all the same, of which none is named: not what `hint` takes it for
    groups = [(group, [one for one in names if _may_name(one, group, path)]) for group, names in groups]
    near = _right(name, rest, groups) or hint or _near(name, rest, groups)
    return Misused(ctx, f"No such command {name!r}.", near or f"{path} --help")


def _may_name(command: str, group: str, meant: str) -> bool:
    """Whether a hint may name a command of a group to who meant one of the group `meant`: what cannot be taken back
    there is another kind of thing, for which they never asked.
    """
    return command not in _IRREVERSIBLE or meant in ("ralf", group)


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
    lower = name.casefold()
    other = _OTHER_NAMES.get(lower)
    own = _OWN.get(groups[0][0], {}).get(lower, other)
    for wanted, found in ((own, groups[:1]), (name, groups), (other, groups)):
        if not wanted:
            continue
        command, *options = wanted.split()
        for path, names in found:
            if command in names:
                return _typed(path, command, [*(rest or ["ID"] * (command == "edit")), *options] if options else rest)
    return ""


def _near(name: str, rest: Sequence[str], groups: Sequence[tuple[str, Sequence[str]]]) -> str:
    """The command of nearly this name, "" for none."""
    for path, names in groups:
        if near := difflib.get_close_matches(name, names, n=1, cutoff=0.7):
            return _typed(path, near[0], rest)
    return ""


def _typed(path: str, name: str, rest: Sequence[str]) -> str:
    return " ".join(filter(None, (path, name, shlex.join(rest))))
