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
