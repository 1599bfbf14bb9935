"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

F = TypeVar("F", bound=Callable[..., Any])


def with_root(command: F) -> F:
    """Add `--root DIR`; the command gets `root`, which falls back to the one given before the command."""

    def fall_back(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
        root: str | None = value if value is not None else ctx.find_root().obj
        if not ctx.resilient_parsing and ctx.info_name not in _KEEPS_TO_ITSELF:
            _exchange(ctx, root)
        return root

    return click.option(
        "--root", metavar="DIR", callback=fall_back, help="The project directory. Default: nearest enclosing project."
    )(command)


_KEEPS_TO_ITSELF = ("doctor", "hook", "init", "mcp", "off", "on", "web")
"""Commands beside which no records are exchanged with other machines."""


def _exchange(ctx: click.Context, root: str | None) -> None:
    """Take in other machines' records before a command of a project that has a store for that, and deliver after it."""
    from ralf import project as projects
    from ralf.errors import RalfError
    from ralf_integrations.stores import beside

    try:
        project = projects.find(root)
    except (RalfError, OSError):  # the command meets it, too
        return
    if not beside.is_wanted(project):
        return
    beside.before(project, insist=ctx.info_name == "status")

    def deliver() -> None:
        found = beside.after(projects.find(root))
        if found is not None and found.problem and ctx.info_name == "forget":
            from ralf_cli.output import say

            say("the NATS servers have it still: it is forgotten there with the next command that reaches them")

    ctx.find_root().call_on_close(deliver)


def with_json(command: F) -> F:
    """Add `--json`; the command gets `as_json`. Without it, what the command prints in a pipe stands in the fence."""

    @wraps(command)
    def handing_over(*arguments: Any, **options: Any) -> Any:
        if options["as_json"]:
            return command(*arguments, **options)
        from ralf_cli.output import handed_over

        with handed_over():
            return command(*arguments, **options)

    return with_json_alone(cast("F", handing_over))


def with_json_alone(command: F) -> F:
    """Add `--json`; the command gets `as_json`, and sees to the fence itself: it prints bit by bit, or asks."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON with the field names of the Python API.")(
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


def with_route(following: str = "", metavar: str = "") -> Callable[[F], F]:
    """Add the argument ROUTE; the command gets `route`: without one the route that is meant, which is said.

    following  a required argument behind it, which stands alone where ROUTE is left out; `metavar`: its name in help
    """

    def alone(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        return value if value is not None or ctx.resilient_parsing else _meant(ctx, param)

    def behind(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if value is None and not ctx.resilient_parsing:
            value = _not_missing(ctx, param, ctx.params["route"])
            ctx.params["route"] = _meant(ctx, param)
        return value

    def adding(command: F) -> F:
        if following:
            name = metavar or following.upper()
            command = click.argument(following, required=False, metavar=name, callback=behind)(command)
        return click.argument("route", required=False, metavar="[ROUTE]", callback=None if following else alone)(
            command
        )

    return adding


def _not_missing(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """What stands alone; MissingParameter where that is nothing, or the name of a route."""
    from ralf import project as projects, routing
    from ralf.text import cleaning

    if value is None or (cleaning.is_valid(value) and routing.known(projects.find(_root(ctx)), value) is not None):
        raise click.MissingParameter(ctx=ctx, param=param)
    return value


def _meant(ctx: click.Context, param: click.Parameter) -> str:
    """The route that is meant, said on stderr; MissingParameter where nothing says which."""
    from ralf import project as projects, routing
    from ralf.checkpointing.progress import meant
    from ralf_cli.output import say

    project = projects.find(_root(ctx))
    choice = meant(project)
    found = routing.known(project, choice.route)
    if choice.rule == routing.DEFAULT and found is None:
        raise click.MissingParameter(ctx=ctx, param=param, param_hint="'ROUTE'")
    say(f"route {choice.route} ({choice.rule})")
    return found or choice.route


def _root(ctx: click.Context) -> str | None:
    root: str | None = ctx.params.get("root") or ctx.find_root().obj
    return root
