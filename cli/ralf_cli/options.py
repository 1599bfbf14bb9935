"""Arguments and options of several commands: the route, its items, points in time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from click.shell_completion import CompletionItem

from ralf import environment, routing
from ralf.errors import RalfError
from ralf.text import cleaning
from ralf_cli.command import F, project
from ralf_cli.output import say

_ONE = r"(?:(?:cp-?|r|dec-?)?[0-9]{1,9}|now)"

LABEL = re.compile(_ONE, re.IGNORECASE)
"""The name of a moment or an item of a route: `cp-003`, `3`, `r12`, `DEC-007`, `now`."""

_SPAN = re.compile(rf"{_ONE}?\.\.{_ONE}?", re.IGNORECASE)
"""The name of a span of a route: `cp-2..cp-5`, `r3..`, `..`."""


class Misused(click.UsageError):
    """A wrong command line; `hint`: the command to type instead."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, click.get_current_context())
        self.hint = hint


# ---- the route ----


def complete_route(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The matching routes, for a shell."""
    with ctx.scope(cleanup=False), suppress(RalfError, OSError):
        names = routing.names_of(project())
        return [CompletionItem(name) for name in names if name.casefold().startswith(incomplete.casefold())]
    return []


def route_argument(name: str = "route", **more: Any) -> Callable[[F], F]:
    """The optional argument ROUTE."""
    return click.argument(name, required=False, metavar="[ROUTE]", shell_complete=complete_route, **more)


def with_route(command: F) -> F:
    """Add the argument ROUTE; the command gets `route`, see `named_or_meant`."""

    def named(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
        return value if ctx.resilient_parsing else named_or_meant(value)

    return route_argument(callback=named)(command)


def with_words(metavar: str) -> Callable[[F], F]:
    """Add arguments of which the first may be a route; the command gets `words`, see `route_and_label`."""
    return click.argument("words", nargs=-1, metavar=metavar, shell_complete=complete_route)


def with_new(command: F) -> F:
    """Add `--new`; the command gets `is_new`: create the route even if its name is similar to another's."""
    return click.option("--new", "is_new", is_flag=True, help="Create ROUTE even if a similar name exists.")(command)


def named_or_meant(route: str | None) -> str:
    """The named route, else the current one; printed on stderr unless it is what was typed."""
    if route is None:
        return meant()
    found = called_now(route)
    if found.casefold() != route.casefold():
        say(f"route {found} (renamed from {route})")
    return route


def route_and_label(words: Sequence[str], *, spans: bool = False) -> tuple[str, str]:
    """The route and the label, "" for none, of optional words. A first word that is a label and no route's name refers
    to the current route. UsageError for more words. `spans`: a span is a label, too.
    """
    found = list(words)
    is_named = bool(found) and not (is_label(found[0]) or (spans and _SPAN.fullmatch(found[0])))
    route = named_or_meant(found.pop(0) if is_named else None)
    if len(found) > 1 and spans and all(map(LABEL.fullmatch, found)):
        what = f"Got unexpected extra argument ({found[1]})"
        raise Misused(what, f"{click.get_current_context().command_path} {route} {found[0]}..{found[1]}")
    if len(found) > 1:
        raise click.UsageError(f"Got unexpected extra argument ({found[1]})", click.get_current_context())
    return route, "".join(found)


def called_now(route: str) -> str:
    """The current name of a renamed route; any other name as it is."""
    found = project()
    if not cleaning.is_valid(route) or not routing.moves_of(found):
        return route
    return routing.known(found, route) or route


def is_label(text: str) -> bool:
    """Whether a text is the name of an item or a moment, and not of a route."""
    return LABEL.fullmatch(text) is not None and routing.known(project(), text) is None


def meant() -> str:
    """The current route, or for a person the only one, for a command without ROUTE; printed on stderr with its rule.
    Misused if there is none.
    """
    from ralf.checkpointing.progress import meant as current

    ctx, here = click.get_current_context(), project()
    choice = current(here)
    found = routing.known(here, choice.route)
    if choice.rule != routing.DEFAULT or found is not None:
        say(f"route {choice.route} ({choice.rule})")
        return found or choice.route
    names = routing.names_of(here)
    # An agent's session has its own route, and a whole session needs more than a guess.
    if len(names) == 1 and not environment.is_agent() and ctx.info_name != "checkpoint":
        say(f"route {names[0]} (the only one)")
        return names[0]
    name = names[0] if names else "NAME"
    instead = f"{ctx.command_path} {name if names else 'ROUTE'} …, or make a route current: ralf route {name}"
    raise Misused("no ROUTE was named, and there is no current one", instead)


# ---- points in time ----

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def with_since(command: F) -> F:
    """Add `--since WHEN`; the command gets `since`: a time in UTC as in records, or None."""
    text = "Only newer items. WHEN: an age (30m, 12h, 2d, 3w) or a local date (2026-11-20, yesterday)."
    return click.option("--since", metavar="WHEN", callback=_since, help=text)(command)


def _since(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    found = moment(value, datetime.now().astimezone())
    if found is None:
        what = f"{value!r} is neither an age such as 2d or 12h nor a date such as 2026-11-20."
        raise click.BadParameter(what, ctx, param)
    return found


def moment(text: str, now: datetime) -> str | None:
    """The time of a text, in UTC as `2026-11-20T14:03:05Z`; None if it is not a time.

    text  an age before `now` (`30m`, `12h`, `2d`, `3w`), `today`, `yesterday`, or a date, with or without a time, in
          the zone of `now` unless it names another
    """
    said = text.strip().lower()
    if age := re.fullmatch(r"([0-9]{1,5}) ?([mhdw])", said):
        when = now - timedelta(**{_UNITS[age[2]]: int(age[1])})
    elif said in ("today", "yesterday"):
        when = (now - timedelta(days=said == "yesterday")).replace(hour=0, minute=0, second=0, microsecond=0)
    else:
        try:
            when = datetime.fromisoformat(said.upper())
        except ValueError:
            return None
        when = when if when.tzinfo is not None else when.astimezone()
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
