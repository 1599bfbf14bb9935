"""The right command for a wrong one: of another group, by another name, or with a letter amiss.

A name stands for a command, with options that go last; an option that ends with `=` goes before the last word that was
typed, or, for `--into=`, before each but the first.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence

import click

from ralf_cli.aliases import CONTEXT, resolved
from ralf_cli.options import Misused

_OTHER_NAMES: Mapping[str, Mapping[str, str]] = {
    "ralf": {
        **dict.fromkeys(("add", "decision", "record"), "decide"),
        **dict.fromkeys(("cat", "get", "load", "open", "print", "read", "resume", "view"), "show"),
        **dict.fromkeys(("delete", "remove", "rm"), "undo"),
        **dict.fromkeys(("goto", "restore", "rollback"), "undo --to="),
        **dict.fromkeys(("events", "history"), "log"),
        **dict.fromkeys(("find", "grep"), "search"),
        **dict.fromkeys(("hand-over", "hand_over", "handoff"), "handover"),
        **dict.fromkeys(("ls", "routes"), "list"),
        **dict.fromkeys(("health", "sessions"), "status --all"),
        "notify": "send",
        **dict.fromkeys(("options", "set", "settings"), "config"),
        **dict.fromkeys(("close", "finish"), "route --close"),
        **dict.fromkeys(("retry", "reopen"), "task edit --status pending"),
        **dict.fromkeys(("add-task", "todo"), "task add"),
        "rename": "route --rename=",
        "repair": "doctor --repair",
        "save": "checkpoint",
        "split": "task edit --into=",
        "stream": "run show --output",
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
        **dict.fromkeys(("restore", "revert", "undo"), "edit --to="),
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
        "split": "edit --into=",
        "update": "edit",
    },
    "ralf run": {
        **dict.fromkeys(("abort", "end", "kill", "stop"), "cancel"),
        **dict.fromkeys(("attach", "follow", "log", "logs", "output", "stream", "tail"), "show --output"),
        **dict.fromkeys(("get", "list", "ls", "status"), "show"),
        **dict.fromkeys(("reopen", "restart", "resume"), "retry"),
    },
    "ralf loop": {
        **dict.fromkeys(("attach", "follow", "logs", "tail"), "status --follow"),
        **dict.fromkeys(("list", "log", "ps", "show"), "status"),
        "kill": "stop",
    },
}
"""What people and agents type behind a group, and what it is called there."""

_ELSEWHERE = {
    "ralf memory": {
        **dict.fromkeys(("archive", "gc", "prune", "tidy"), "ralf gc --memory main"),
        "export": "ralf export --memory=",
    },
    "ralf task": {"import": "ralf import"},
    "ralf run": dict.fromkeys(("delete", "drop", "forget", "rm"), "ralf forget --run="),
}
"""The same, where the command stands elsewhere."""

_OTHER_OPTIONS = {
    "ralf decide": {
        **dict.fromkeys(("--rejected", "--alternative", "--not", "--over"), "--instead-of"),
        **dict.fromkeys(("--rationale", "--reason", "--why"), "--because"),
    },
    "ralf doctor": {"--fix": "--repair"},
    "ralf task done": {"--message": "TEXT", "-m": "TEXT"},
}
"""Options that people and agents type, and what they are called there."""

_ALL = "ralf help all"

_GROUPS = ("task", "memory", "loop", "run")

_IRREVERSIBLE = frozenset(("cancel", "drop", "forget"))
"""Commands that nothing takes back, or not wholly: a hint names one of another group only to who named no group."""


def wrong(ctx: click.Context, name: str, rest: Sequence[str]) -> Misused:
    """The error for a command that a group does not have: what to type instead stands in its hint."""
    path, lower = ctx.command_path, name.casefold()
    if path == "ralf" and lower == "context":
        return _of_context(ctx, rest)
    if path == "ralf" and (hint := _of_aqua(lower, rest)):
        return Misused(ctx, f"No such command {name!r}.", hint)
    if path == "ralf" and lower in CONTEXT:
        return Misused(ctx, f"No such command {name!r}.", _of_verb(lower, rest))
    if path == "ralf" and lower == "signal":  # RUN NAME DATA
        return Misused(
            ctx, f"No such command {name!r}.", _found("ralf send --signal=", [*rest[:1], *rest[2:], *rest[1:2]])
        )
    hint = ""
    if elsewhere := _ELSEWHERE.get(path, {}).get(lower):
        hint = _found(elsewhere, rest)
    elif other := _OTHER_NAMES.get(path, {}).get(lower):
        hint = _found(f"{path} {other}", rest)
    else:
        names = {group: _names(ctx, group) for group in ("", *_GROUPS)}
        hint = _in_groups(lower, rest, path, names) or _near(lower, rest, path, names)
    return Misused(ctx, f"No such command {name!r}.", hint or f"{path} --help")


def right_option(error: click.UsageError) -> str:
    """The command with the option that was meant by one that it does not have, "" for none."""
    path = error.ctx.command_path if error.ctx is not None else ""
    name = error.option_name if isinstance(error, click.NoSuchOption) else ""
    if (
        path == "ralf task edit"
        and isinstance(error, click.BadParameter)
        and error.param
        and error.param.name == "status"
    ):
        return "ralf task done TEXT --task ID, or ralf task fail REASON --task ID"
    other = _OTHER_OPTIONS.get(path, {}).get(name, "")
    return f"{path} {other}" if other else ""


def _of_aqua(name: str, rest: Sequence[str]) -> str:
    """What a command of Aqua's is here, "" for none: its words and options are other ones (docs/tasks.md)."""
    if name == "add" and not _OF_A_TASK.isdisjoint(rest):
        return f"ralf task add {shlex.join(rest)}"
    if name == "fail":
        return f"ralf task fail {shlex.join(one.removeprefix('--reason=') for one in rest if one != '--reason')}"
    if name == "watch" and not rest:
        return "ralf loop status --follow"
    return _AQUA.get(name, "")


_OF_A_TASK = frozenset(("-p", "--priority", "-t", "--tag", "--after", "--verify", "--role"))

_AQUA = {"spawn": "ralf loop --agent claude --detach", "ps": "ralf status --all", "msg": "ralf send SESSION TEXT"}


def _of_context(ctx: click.Context, rest: Sequence[str]) -> Misused:
    verb = rest[0] if rest and not rest[0].startswith("-") else ""
    if not verb:
        return Misused(ctx, "the commands of context are those of ralf itself: ralf context list is ralf list", _ALL)
    what = f"No such command {verb!r}."
    if other := _OTHER_NAMES["ralf"].get(verb.casefold()):
        return Misused(ctx, what, _found(f"ralf {other}", rest[1:]))
    near = difflib.get_close_matches(verb, CONTEXT, n=1, cutoff=0.7)
    return Misused(ctx, what, _of_verb(near[0], rest[1:]) if near else _ALL)


def _of_verb(verb: str, rest: Sequence[str]) -> str:
    """What a verb of `ralf context` is called here."""
    return f"ralf {shlex.join(resolved(['context', verb, *rest]))}"


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
    """A command as it is typed, with what stood behind the wrong one."""
    words, dash, option = command.partition(" -")
    flags = next((place for place, one in enumerate(rest) if one.startswith("-")), len(rest))
    given, more = [*rest[:flags]], rest[flags:]
    if option.endswith("="):
        name = f"-{option[:-1]}"
        first = 1 if name == "--into" else max(len(given) - 1, 0)
        given[first:] = [word for value in given[first:] or [""] for word in (name, value) if word]
        dash = option = ""
    return " ".join(filter(None, (words, shlex.join(given), shlex.join(more), f"{dash}{option}".strip())))
