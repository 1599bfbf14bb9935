"""Second names of commands, and the hint for a name that only another tool has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import click

_AQUA: dict[str, tuple[tuple[str, ...], str | None]] = {
    "serialize": (("plan",), None),
    "refresh": (("task", "show", "--fresh"), "--task"),
    "claim": (("task", "claim"), None),
    "done": (("task", "done"), "--summary"),
}
"""Second names: the command that each stands for, and an option of Aqua's whose value is an argument here."""

_HINTS = {
    "ralf": {
        **dict.fromkeys(("decision", "record"), "decide"),
        **dict.fromkeys(("cat", "get", "load", "open", "read", "resume", "view", "why"), "show"),
        **dict.fromkeys(("delete", "drop", "remove", "rm"), "undo ID"),
        **dict.fromkeys(("restore", "revert", "rollback"), "undo --to CHECKPOINT"),
        **dict.fromkeys(("events", "history"), "log"),
        **dict.fromkeys(("find", "grep"), "search"),
        **dict.fromkeys(("handoff", "hand-over"), "handover"),
        **dict.fromkeys(("ls", "routes"), "list"),
        **dict.fromkeys(("health", "sessions", "ps"), "status --all"),
        **dict.fromkeys(("message", "msg", "notify", "nudge", "signal"), "send"),
        **dict.fromkeys(("set", "settings"), "config"),
        **dict.fromkeys(("close", "finish"), "route --close"),
        **dict.fromkeys(("create", "new", "todo"), "task add TITLE"),
        **dict.fromkeys(("archive", "prune", "tidy"), "gc"),
        **dict.fromkeys(("enable", "install", "setup"), "init"),
        **dict.fromkeys(("disable", "off"), "init --off"),
        **dict.fromkeys(("spawn", "start", "work"), "loop --agent claude"),
        "diff": "log ROUTE A..B",
        "migrate": "import",
        "orchestrator": "loop handover NAME",
        "purge": "forget",
        "rename": "route ROUTE --rename NAME",
        "repair": "doctor --repair",
        "save": "checkpoint",
        "uninstall": "init --uninstall",
        "watch": "loop status",
        "verify": "doctor --store",
    },
    "ralf task": {
        **dict.fromkeys(("cancel", "delete", "drop", "remove", "rm"), "edit --status cancelled"),
        **dict.fromkeys(("reopen", "retry"), "edit --status pending"),
        **dict.fromkeys(("close", "complete", "finish"), "done"),
        **dict.fromkeys(("create", "new"), "add"),
        **dict.fromkeys(("next", "start", "take"), "claim"),
        **dict.fromkeys(("fresh", "refresh"), "show --fresh"),
        "ls": "list",
        "update": "edit",
    },
    "ralf memory": {
        **dict.fromkeys(("delete", "forget", "remove", "rm"), "drop ID"),
        **dict.fromkeys(("restore", "revert", "undo"), "edit --to REVISION"),
        "why": "show ID",
    },
    "ralf decide": {
        **dict.fromkeys(("--rejected", "--alternative", "--not", "--over"), "--instead-of TEXT"),
        **dict.fromkeys(("--rationale", "--reason", "--why"), "--because TEXT"),
    },
    "ralf doctor": {"--fix": "--repair"},
    "ralf task done": dict.fromkeys(("--result", "--summary", "--text"), '"SUMMARY"'),
    "ralf task fail": dict.fromkeys(("--message", "--reason", "--why"), '"REASON"'),
    "ralf task progress": dict.fromkeys(("--message", "--note", "--text"), '"TEXT"'),
}
"""Names and options of other tools after a command, and what to type here."""

_EXTRA = re.compile(r"Got unexpected extra argument \(([^ ]+)\)")

_NO_SUCH = re.compile(r"No such command '([^']*)'\.(?: Did you mean '([^']*)')?")

_NO_CHOICE = re.compile(r"'([^']*)' is not one of ")


def resolved(args: Sequence[str]) -> list[str]:
    """Return the arguments of a command line with a second name replaced. `context` may precede any command."""
    if args[:1] == ["context"]:
        return [*args[1:]] or ["help"]
    if not args or args[0] not in _AQUA:
        return [*args]
    command, option = _AQUA[args[0]]
    return [*command, *(one.removeprefix(f"{option}=") for one in args[1:] if one != option)]


def of_another_tool(words: Sequence[str]) -> str:
    """The command here for a command line of Aqua, "" for any other."""
    name, rest = words[0].casefold(), words[1:]
    if name not in ("add", "fail", "progress"):
        return ""
    if name == "fail":
        rest = [one.removeprefix("--reason=") for one in rest if one != "--reason"]
    return f"ralf task {name} {shlex.join(rest)}".rstrip()


def meant(error: click.UsageError) -> str:
    """The command to type instead, "" if none is near."""
    path = error.ctx.command_path if error.ctx is not None else ""
    param = error.param.name if isinstance(error, click.BadParameter) and error.param is not None else ""
    if (path, param) == ("ralf task edit", "status"):
        return "ralf task done TEXT --task ID, or ralf task fail REASON --task ID"
    if path == "ralf checkpoint" and error.ctx is not None and (extra := _EXTRA.fullmatch(error.format_message())):
        return f"{path} {error.ctx.params['route']} --transcript {shlex.quote(extra[1])}"
    if isinstance(error, click.BadParameter) and (choice := _choice(error)):
        return f"{path} {choice}"
    command = _NO_SUCH.match(error.format_message())
    name = error.option_name if isinstance(error, click.NoSuchOption) else command[1].casefold() if command else ""
    found = _HINTS.get(path, {}).get(name) or (command[2] if command else "")
    if path == "ralf task" and name in ("plan", "serialize"):
        return "ralf plan"
    return f"{path} {found}" if found else ""


def _choice(error: click.BadParameter) -> str:
    """An option with the choice that is nearest to the one that was typed, "" where none is near."""
    wrong, param = _NO_CHOICE.match(error.message), error.param
    if wrong is None or not isinstance(param, click.Option) or not isinstance(param.type, click.Choice):
        return ""
    import difflib  # only for who mistypes one

    near = difflib.get_close_matches(wrong[1].casefold(), param.type.choices, n=1)
    return " ".join([param.opts[0], *near]) if near else ""
