"""Other names of commands: the group `context` of the proposal, Aqua's, and those that scripts are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_Change = Callable[[list[str]], list[str]]


def _same(*words: str) -> _Change:
    return lambda args: [*words, *args]


def _first(command: str, *options: str) -> _Change:
    """An option's value is the first argument here: `nudge TEXT --session ID` is `send ID TEXT`."""

    def changed(args: list[str]) -> list[str]:
        for option in options:
            if option in args[:-1]:
                place = args.index(option)
                args = [args[place + 1], *args[:place], *args[place + 2 :]]
        return [*command.split(), *args]

    return changed


def _completed(args: list[str]) -> list[str]:
    """`done --summary TEXT`: the summary is the argument here."""
    return ["task", "done", *(one.removeprefix("--summary=") for one in args if one != "--summary")]


def _compared(args: list[str]) -> list[str]:
    """`diff ROUTE A B` is `log ROUTE A..B`."""
    moments = [one for one in args if _is_moment(one)]
    return ["log", *(one for one in args if one not in moments), "..".join([*moments, "", ""][: max(2, len(moments))])]


def _reverted(args: list[str]) -> list[str]:
    """`revert ROUTE MOMENT` is `undo ROUTE --to MOMENT`."""
    moments = [one for one in args if _is_moment(one)][-1:]
    return ["undo", *(one for one in args if one not in moments), *(("--to", *moments) if moments else ())]


def _is_moment(text: str) -> bool:
    from ralf_cli.options import LABEL

    return LABEL.fullmatch(text) is not None


_OF_CONTEXT = {  # beside the names that commands have anyway
    "why": _same("show"),
    "diff": _compared,
    "drop": _same("undo"),
    "revert": _reverted,
    "verify": _same("doctor", "--store"),
    "watch": _same("checkpoint", "--watch"),
}

_NAMES: dict[str, dict[str, _Change]] = {
    "": {
        "serialize": _same("plan"),
        "refresh": _first("task show --fresh", "--task"),
        "claim": _same("task", "claim"),
        "done": _completed,
        "why": _same("show"),
        "message": _same("send"),
        "nudge": _first("send", "--session", "--route"),
    },
    "context": _OF_CONTEXT,
    "config": {name: _same("config") for name in ("list", "get", "set")},
    "memory": {"why": _same("memory", "show")},
    "route": {
        "use": _same("route"),
        "rename": lambda args: ["route", *args[:1], "--rename", *args[1:]],
        "close": lambda args: ["route", *args, "--close"],
    },
}
"""Names behind a group, "" for those that stand alone: what a command line with one of them stands for."""


def resolved(args: Sequence[str]) -> list[str]:
    """The arguments of the command line with an alias as what it stands for."""
    first, second = [*args, "", ""][:2]
    if change := _NAMES[""].get(first):
        return change([*args[1:]])
    if change := _NAMES.get(first, {}).get(second) if first else None:
        return change([*args[2:]])
    return [*args[1:]] or ["help"] if first == "context" else [*args]
