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
        return value if value is not None else ctx.find_root().obj

    return click.option(
        "--root", metavar="DIR", callback=fall_back, help="The project directory. Default: found from here upwards."
    )(command)


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
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, with the field names of the Python API.")(
        command
    )


def with_route(following: str = "", metavar: str = "") -> Callable[[F], F]:
    """Add the argument ROUTE; the command gets `route`: without one the route that is meant, which is said.

    following  a required argument behind it, which stands alone where ROUTE is left out; `metavar`: its name in help
    """

    def adding(command: F) -> F:
        @wraps(command)
        def on_route(*arguments: Any, **options: Any) -> Any:
            if following and options[following] is None:
                options[following], options["route"] = options["route"], None
                _check_not_missing(options[following], options["root"], metavar or following.upper())
            if options["route"] is None:
                options["route"] = _meant(options["root"])
            return command(*arguments, **options)

        made = cast("F", on_route)
        if following:
            made = click.argument(following, required=False, metavar=metavar or following.upper())(made)
        return click.argument("route", required=False, metavar="[ROUTE]")(made)

    return adding


def _check_not_missing(value: str | None, root: str | None, name: str) -> None:
    """UsageError where what stands alone is no such thing: nothing, or the name of a route."""
    from ralf import names, project as projects, routing

    if value is None or (names.is_valid(value) and routing.known(projects.find(root), value) is not None):
        raise click.UsageError(f"Missing argument '{name}'.", click.get_current_context())


def _meant(root: str | None) -> str:
    """The route that is meant, said on stderr."""
    from ralf import project as projects, routing
    from ralf.status import meant
    from ralf_cli.output import say

    project = projects.find(root)
    choice = meant(project)
    say(f"route {choice.route} ({choice.rule})")
    return routing.known(project, choice.route) or choice.route
