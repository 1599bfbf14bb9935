"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

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
    """Add `--json`; the command gets `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, with the field names of the Python API.")(
        command
    )
