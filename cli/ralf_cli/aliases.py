"""Other names of commands: the group `context` of the proposal, Aqua's, and those that scripts are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_DONE_SUMMARY = "--summary"


def _same(*words: str) -> Callable[[list[str]], list[str]]:
    return lambda args: [*words, *args]


def _completed(args: list[str]) -> list[str]:
    """`done --summary TEXT`: the summary is the argument here."""
    return ["task", "done", *(one.removeprefix(f"{_DONE_SUMMARY}=") for one in args if one != _DONE_SUMMARY)]


def _compared(args: list[str]) -> list[str]:
    """`diff ROUTE A B` is `log ROUTE A..B`."""
    places = [place for place, one in enumerate(args) if not one.startswith("-") and _is_moment(one)]
    moments = [args[place] for place in places]
    rest = [one for place, one in enumerate(args) if place not in places]
    return ["log", *rest, "..".join([*moments, ""][:2]) if moments else ".."]


def _reverted(args: list[str]) -> list[str]:
    """`revert ROUTE MOMENT` is `undo ROUTE --to MOMENT`."""
    places = [place for place, one in enumerate(args) if not one.startswith("-") and _is_moment(one)]
    if not places:
        return ["undo", *args]
    return ["undo", *args[: places[-1]], "--to", args[places[-1]], *args[places[-1] + 1 :]]


def _is_moment(text: str) -> bool:
    from ralf_cli.options import LABEL

    return LABEL.fullmatch(text) is not None


def _shown_fresh(args: list[str]) -> list[str]:
    """`refresh --task ID` is `task show ID --fresh`."""
    if "--task" in args[:-1]:
        place = args.index("--task")
        args = [args[place + 1], *args[:place], *args[place + 2 :]]
    return ["task", "show", "--fresh", *args]


def _renamed(args: list[str]) -> list[str]:
    """`route rename OLD NEW` is `route OLD --rename NEW`."""
    return ["route", *args[:1], "--rename", *args[1:]]


def _sent(args: list[str]) -> list[str]:
    """`nudge TEXT --session ID` is `send ID TEXT`."""
    for option in ("--session", "--route"):
        if option in args[:-1]:
            place = args.index(option)
            args = [args[place + 1], *args[:place], *args[place + 2 :]]
    return ["send", *args]


_ALIASES = {
    "serialize": _same("plan"),
    "refresh": _shown_fresh,
    "claim": _same("task", "claim"),
    "done": _completed,
    "why": _same("show"),
    "message": _same("send"),
    "nudge": _sent,
}
"""As Aqua calls them, and scripts."""

_BEHIND = {
    "config": {"list": _same("config"), "get": _same("config"), "set": _same("config")},
    "memory": {"why": _same("memory", "show")},
    "route": {"use": _same("route"), "rename": _renamed, "close": lambda args: ["route", *args, "--close"]},
}
"""What scripts type behind a command."""

_OF_CONTEXT = {
    **{
        name: _same(name)
        for name in (
            *("list", "show", "search", "log", "decide", "undo", "edit", "handover"),
            *("checkpoint", "trust", "forget", "export"),
        )
    },
    "why": _same("show"),
    "diff": _compared,
    "drop": _same("undo"),
    "revert": _reverted,
    "verify": _same("doctor", "--store"),
    "watch": _same("checkpoint", "--watch"),
}
"""The verbs of `ralf context`, as the proposal has them."""

CONTEXT = tuple(_OF_CONTEXT)
"""What may stand behind `ralf context`."""


def resolved(args: Sequence[str]) -> list[str]:
    """The arguments of the command line with an alias as what it stands for."""
    first, second = [*args, "", ""][:2]
    if first in _ALIASES:
        return _ALIASES[first]([*args[1:]])
    if first == "context" and second in _OF_CONTEXT:
        return _OF_CONTEXT[second]([*args[2:]])
    if second in _BEHIND.get(first, ()):
        return _BEHIND[first][second]([*args[2:]])
    return [*args]
