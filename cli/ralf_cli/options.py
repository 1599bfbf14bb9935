"""Options that many commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from ralf_cli.command import root_of, taking

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ralf.project import Project

F = TypeVar("F", bound=Callable[..., Any])


def with_root(command: F) -> F:
    """Have the command get `root`, the project directory that was named, None for none."""
    return taking("root")(command)


def with_json(command: F) -> F:
    """Have the command get `as_json`. Without it, what the command prints in a pipe stands in the fence."""

    @wraps(command)
    def handing_over(*arguments: Any, **options: Any) -> Any:
        if options["as_json"]:
            return command(*arguments, **options)
        from ralf_cli.output import handed_over

        with handed_over():
            return command(*arguments, **options)

    return with_json_alone(cast("F", handing_over))


def with_json_alone(command: F) -> F:
    """Have the command get `as_json`; it sees to the fence itself: it prints bit by bit, or asks."""
    return taking("as_json")(command)


def with_new(command: F) -> F:
    """Add `--new`; the command gets `is_new`: a name that is nearly a route's is meant as it is."""
    return click.option("--new", "is_new", is_flag=True, help="Make the route, however near its name is to another's.")(
        command
    )


def as_priority(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A task's priority: 1 to 10, or one of the words that its file may hold, too; a usage error for anything else."""
    from ralf.tasks.model import PRIORITIES

    if value is None:
        return None
    words = value.strip().lower()
    found = PRIORITIES.get(words, int(words) if words.isdecimal() and len(words) < 3 else 0)
    if not 1 <= found <= 10:
        raise click.BadParameter(f"{value!r} is neither 1 to 10 nor {', '.join(PRIORITIES)}.", ctx, param)
    return found


def as_seconds(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """A duration in whole seconds, `900`, `45s`, `30m` or `2h30m`; a usage error for anything else."""
    from ralf.errors import UsageError
    from ralf_integrations.loop import caps

    try:
        seconds = caps.seconds_of(value, "", least=1.0)
    except UsageError:
        seconds = None
    if seconds is None:
        raise click.BadParameter(f"{value!r} is not a duration such as 900, 30m or 2h.", ctx, param)
    return int(seconds)


def with_route(command: F) -> F:
    """Add the argument ROUTE; the command gets `route`: without one the route that is meant, which is said."""

    def named(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        return value if ctx.resilient_parsing else named_or_meant(ctx, value)

    return click.argument("route", required=False, metavar="[ROUTE]", callback=named, shell_complete=complete_route)(
        command
    )


def with_route_and_text(instead: str) -> Callable[[F], F]:
    """Add the arguments `[ROUTE] TEXT`; the command gets `route` and `text`; TEXT may stand alone.

    instead  an eager option that takes the place of TEXT
    """

    def behind(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if ctx.resilient_parsing:
            return value
        if ctx.params.get(instead):
            if value is not None:
                from ralf.errors import UsageError

                raise UsageError(ctx.command_path, f"takes no text beside --{instead}", f"{ctx.command_path} --help")
            ctx.params["route"] = ctx.params["route"] or meant(ctx)
            return None
        if value is None:
            value = _not_missing(ctx, param, ctx.params["route"])
            ctx.params["route"] = meant(ctx)
        else:
            _tell_name(ctx, ctx.params["route"])
        return value

    def adding(command: F) -> F:
        command = click.argument("text", required=False, metavar="TEXT", callback=behind)(command)
        return click.argument("route", required=False, metavar="[ROUTE]", shell_complete=complete_route)(command)

    return adding


def named_or_meant(ctx: click.Context, route: str | None) -> str:
    """The route that was named, else the one that is meant; which is said where it is not what was typed."""
    if route is None:
        return meant(ctx)
    _tell_name(ctx, route)
    return route


def complete_route(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The routes that begin so, for a shell."""
    from ralf_cli import completion

    return completion.routes(_root(ctx), incomplete)


def complete_label(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The decisions and checkpoints of the route that is named, or meant, which begin so, for a shell."""
    from ralf_cli import completion

    first = next(iter(ctx.params.get("given") or ctx.args), "")  # behind an option without a value yet: `args`
    return completion.labels(_root(ctx), first if first and not LABEL.fullmatch(first) else None, incomplete)


_ONE = r"(?:(?:cp-?|r|dec-?)?[0-9]{1,9}|now)"

LABEL = re.compile(_ONE, re.IGNORECASE)
"""What names a moment of a route or an item of it: `cp-003`, `3`, `r12`, `DEC-007`, `now`."""

SPAN = re.compile(rf"{_ONE}?\.\.{_ONE}?", re.IGNORECASE)
"""What names a span of a route: `cp-2..cp-5`, `r3..`, `..`."""


def with_route_and_labels(metavar: str) -> Callable[[F], F]:
    """Add the arguments `[ROUTE]` and `metavar`, all optional; the command gets `given`: see `route_and_labels`."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        routes = [] if ctx.params.get("given") else complete_route(ctx, param, incomplete)
        return routes + complete_label(ctx, param, incomplete)

    return click.argument("given", nargs=-1, metavar=metavar, shell_complete=complete)


def route_and_labels(
    ctx: click.Context, given: Sequence[str], most: int, *, spans: bool = False
) -> tuple[str, list[str]]:
    """The route, and at most `most` labels, of arguments of which each may be left out: a first one that is a label and
    no route's name is about the route that is meant. UsageError for more arguments. `spans`: such labels are meant.
    """
    found = list(given)
    is_named = bool(found) and not (is_label(ctx, found[0]) or (spans and SPAN.fullmatch(found[0])))
    route = found.pop(0) if is_named else meant(ctx)
    if is_named:
        _tell_name(ctx, route)
    if len(found) > most:
        what = f"Got unexpected extra argument ({found[most]})"
        if spans and all(LABEL.fullmatch(one) for one in found):
            raise Misused(ctx, what, f"{ctx.command_path} {route} {found[0]}..{found[1]}")
        raise click.UsageError(what, ctx)
    return route, found


def _tell_name(ctx: click.Context, route: str) -> None:
    """Say how a route is called now that was renamed."""
    from ralf_cli.output import say

    found = called_now(_root(ctx), route)
    if found.casefold() != route.casefold():
        say(f"route {found} (called {route} before)")


def called_now(root: str | None, route: str) -> str:
    """A route as it is called now, where it was renamed; any other name as it is."""
    from ralf import project as projects, routing
    from ralf.text import cleaning

    project = projects.find(root)
    if not cleaning.is_valid(route) or not routing.moves_of(project):
        return route
    return routing.known(project, route) or route


def is_label(ctx: click.Context, text: str) -> bool:
    """Whether a text names an item or a moment of a route, and is no route's name itself."""
    from ralf import project as projects, routing

    return LABEL.fullmatch(text) is not None and routing.known(projects.find(_root(ctx)), text) is None


def _not_missing(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """What stands alone; MissingParameter where that is nothing, or the name of a route."""
    from ralf import project as projects, routing
    from ralf.text import cleaning

    if value is None or (cleaning.is_valid(value) and routing.known(projects.find(_root(ctx)), value) is not None):
        raise click.MissingParameter(ctx=ctx, param=param)
    return value


class Misused(click.UsageError):
    """A command that was typed wrongly; `hint`: what to type instead."""

    def __init__(self, ctx: click.Context, what: str, hint: str) -> None:
        super().__init__(what, ctx)
        self.hint = hint


def meant(ctx: click.Context) -> str:
    """The current route, for a command that named none, else the only one that a person has; it is said on stderr, with
    the rule that chose it. Misused where nothing says which.
    """
    from ralf import environment, project as projects, routing
    from ralf.checkpointing.progress import meant as current
    from ralf_cli.output import say

    project = projects.find(_root(ctx))
    choice = current(project)
    found = routing.known(project, choice.route)
    if choice.rule == routing.DEFAULT and found is None:
        names = routing.names_of(project)
        # An agent's session has a route of its own, and a whole session is not taken into one on a guess.
        if len(names) == 1 and not environment.is_agent() and ctx.info_name not in ("checkpoint", "watch"):
            say(f"route {names[0]} (the only one)")
            return names[0]
        raise Misused(ctx, "no ROUTE was named, and none is current here", _instead(ctx, project))
    say(f"route {choice.route} ({choice.rule})")
    return found or choice.route


def _instead(ctx: click.Context, project: Project) -> str:
    """What to type where no route is current: the same command with a route, the newest where there is one."""
    import ralf

    known = ralf.list_routes(root=project.root)
    name = known[0].route if known else "NAME"
    return f"{ctx.command_path} {name if known else 'ROUTE'} …, or make a route current: ralf route {name}"


def _root(ctx: click.Context) -> str | None:
    return root_of(ctx)
