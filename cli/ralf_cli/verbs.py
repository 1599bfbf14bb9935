"""The right command for a wrong one: of another group, by another name, or with a letter amiss."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence

import click

from ralf_cli.aliases import CONTEXT
from ralf_cli.options import Misused

_OTHER_NAMES: Mapping[str, Mapping[str, str]] = {
    "ralf": {
        **dict.fromkeys(("add", "decision", "record"), "decide"),
        **dict.fromkeys(("cat", "get", "load", "open", "print", "read", "resume", "view", "why"), "show"),
        **dict.fromkeys(("delete", "drop", "remove", "restore", "revert", "rm"), "undo"),
        **dict.fromkeys(("diff", "history"), "log"),
        **dict.fromkeys(("find", "grep"), "search"),
        **dict.fromkeys(("hand-over", "hand_over", "handoff"), "handover"),
        **dict.fromkeys(("ls", "routes"), "list"),
        **dict.fromkeys(("health", "sessions"), "status --all"),
        **dict.fromkeys(("message", "nudge", "signal"), "send"),
        **dict.fromkeys(("save", "watch"), "checkpoint"),
        **dict.fromkeys(("check", "repair", "verify"), "doctor"),
        **dict.fromkeys(("enable", "install", "on", "setup"), "init"),
        **dict.fromkeys(("disable", "off"), "init --off"),
        **dict.fromkeys(("archive", "prune", "tidy"), "gc"),
        "migrate": "import",
        "orchestrator": "loop handover",
        "purge": "forget",
        "uninstall": "init --uninstall",
    },
    "ralf memory": {
        **dict.fromkeys(("delete", "forget", "purge", "remove", "rm"), "drop"),
        **dict.fromkeys(("get", "list", "ls", "status", "view", "why"), "show"),
        **dict.fromkeys(("restore", "revert", "undo"), "edit --to"),
    },
    "ralf task": {
        **dict.fromkeys(("abandon", "give-back", "unclaim"), "release"),
        **dict.fromkeys(("cancel", "delete", "drop", "forget", "remove", "rm"), "edit --status cancelled"),
        **dict.fromkeys(("reopen", "retry"), "edit --status pending"),
        **dict.fromkeys(("close", "complete", "finish"), "done"),
        **dict.fromkeys(("create", "new"), "add"),
        **dict.fromkeys(("get", "refresh", "view"), "show"),
        **dict.fromkeys(("log", "note"), "progress"),
        **dict.fromkeys(("next", "start", "take"), "claim"),
        "ls": "list",
        "ready": "list --ready",
        "split": "edit --into",
        "update": "edit",
    },
    "ralf run": {
        **dict.fromkeys(("abort", "end", "kill", "stop"), "cancel"),
        **dict.fromkeys(("attach", "follow", "log", "logs", "output", "stream", "tail"), "show --output"),
        **dict.fromkeys(("get", "list", "ls", "status"), "show"),
        **dict.fromkeys(("reopen", "restart", "resume"), "retry"),
    },
    "ralf loop": {**dict.fromkeys(("attach", "follow", "list", "log", "logs", "ps", "show"), "status"), "kill": "stop"},
}
"""What people and agents type behind a group, and what it is called there."""

_ELSEWHERE = {
    "ralf memory": {
        **dict.fromkeys(("archive", "gc", "prune", "tidy"), "ralf gc --memory main"),
        "export": "ralf export --memory",
    },
    "ralf task": {"import": "ralf import"},
    "ralf run": dict.fromkeys(("delete", "drop", "forget", "rm"), "ralf forget --run"),
}
"""The same, where the command stands elsewhere."""

_GROUPS = ("task", "memory", "loop", "run")

_IRREVERSIBLE = frozenset(("cancel", "drop", "forget"))
"""Commands that nothing takes back, or not wholly: a hint names one of another group only to who named no group."""


def wrong(ctx: click.Context, name: str, rest: Sequence[str]) -> Misused:
    """The error for a command that a group does not have: what to type instead stands in its hint."""
    path, lower = ctx.command_path, name.casefold()
    if path == "ralf" and lower == "context":
        return _of_context(ctx, rest)
    hint = ""
    if elsewhere := _ELSEWHERE.get(path, {}).get(lower):
        hint = _found(elsewhere, rest)
    elif other := _OTHER_NAMES.get(path, {}).get(lower):
        hint = _found(f"{path} {other}", rest)
    else:
        names = {group: _names(ctx, group) for group in ("", *_GROUPS)}
        hint = _in_groups(lower, rest, path, names) or _near(lower, rest, path, names)
    return Misused(ctx, f"No such command {name!r}.", hint or f"{path} --help")


def _of_context(ctx: click.Context, rest: Sequence[str]) -> Misused:
    verb = rest[0] if rest else ""
    if other := _OTHER_NAMES["ralf"].get(verb.casefold()):
        return Misused(ctx, f"No such command {verb!r}.", _found(f"ralf {other}", rest[1:]))
    near = difflib.get_close_matches(verb, CONTEXT, n=1, cutoff=0.7)
    what = f"No such command {verb!r}." if verb else "ralf context needs a verb: its commands are those of ralf itself"
    return Misused(ctx, what, _found(f"ralf context {near[0]}", rest[1:]) if near else "ralf help all")


def _in_groups(name: str, rest: Sequence[str], path: str, names: Mapping[str, Sequence[str]]) -> str:
    """The command of this name in another group."""
    for group, commands in names.items():
        if name in commands and not (name in _IRREVERSIBLE and path != "ralf"):
            return _found(f"ralf {group} {name}", rest)
    return ""


def _near(name: str, rest: Sequence[str], path: str, names: Mapping[str, Sequence[str]]) -> str:
    """The command of nearly this name, of the group that was named first."""
    group = path.removeprefix("ralf").strip()
    for where in dict.fromkeys((group, "", *_GROUPS)):
        for near in difflib.get_close_matches(name, names.get(where, ()), n=1, cutoff=0.7):
            if where == group or near not in _IRREVERSIBLE or path == "ralf":
                return _found(f"ralf {where} {near}", rest)
    return ""


def _names(ctx: click.Context, group: str) -> Sequence[str]:
    """The commands of a group, "" for the one that holds all."""
    root = ctx.find_root()
    found: click.Command | None = root.command
    if group and isinstance(found, click.Group):
        found = found.get_command(root, group)
    return found.list_commands(root) if isinstance(found, click.Group) else ()


def _found(command: str, rest: Sequence[str]) -> str:
    """A command as it is typed, with what stood behind the wrong one; options that belong to the right one go last."""
    words, dash, options = command.partition(" -")
    return " ".join(filter(None, (words, shlex.join(rest), f"{dash}{options}".strip())))
