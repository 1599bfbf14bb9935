"""A command, and the options that every command may have: they stand once in the help, and are typed anywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click
from click.core import augment_usage_errors

F = TypeVar("F", bound=Callable[..., Any])

_TAKES = "takes"  # the attribute of a command's function that names the global options that it takes


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value:
        ctx.meta[_key(str(param.name))] = value


def _key(name: str) -> str:
    return f"{__name__}.{name}"


def _option(*names: str, **more: Any) -> click.Option:
    return click.Option(names, expose_value=False, is_eager=True, callback=_keep, **more)


GLOBAL = {
    "root": _option("--root", metavar="DIR", help="The project directory. Default: nearest enclosing project."),
    "as_json": _option("--json", "as_json", is_flag=True, help="Print JSON with the field names of the Python API."),
    "no_pager": _option("--no-pager", is_flag=True, help="Print at once, even if it is long."),
}
"""The options that stand once, in the help of `ralf` itself."""


def given(ctx: click.Context, name: str) -> Any:
    """The value of a global option, wherever in the command line it stands; None for none."""
    return ctx.meta.get(_key(name))


def root_of(ctx: click.Context) -> str | None:
    """The project directory that was named, None for none."""
    root: str | None = given(ctx, "root")
    return root


def taking(command: F, name: str) -> F:
    """The function of a command that gets a global option under its name."""

    @wraps(command)
    def with_it(*arguments: Any, **options: Any) -> Any:
        options.setdefault(name, given(click.get_current_context(), name) or (None if name == "root" else False))
        return command(*arguments, **options)

    setattr(with_it, _TAKES, {*getattr(command, _TAKES, ()), name})
    return cast("F", with_it)


class TakesGlobal(click.Command):
    """A command that is given the global options which its function takes. Its help names them in one line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are left; an error names this command, wherever in the line it was found."""
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, and the global ones, which its help does not list."""
        return [*super().get_params(ctx), *(_HIDDEN[name] for name in _HIDDEN if name in self._takes())]

    def _takes(self) -> set[str]:
        return getattr(self.callback, _TAKES, set()) - {str(param.name) for param in self.params}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Name the global options that it takes."""
        super().format_epilog(ctx, formatter)
        if taken := [_named(option) for name, option in GLOBAL.items() if name in self._takes()]:
            with formatter.section("Global options"):
                formatter.write_text(f"{', '.join(taken)}: see ralf --help")


def _named(option: click.Option) -> str:
    return f"{option.opts[-1]} {option.metavar or ''}".strip()


class Command(TakesGlobal):
    """A command without others below it."""


def command(*arguments: Any, **options: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """As `click.command`."""
    made: Callable[[Callable[..., Any]], click.Command] = click.command(*arguments, **{"cls": Command, **options})
    return made


def _as_hidden(option: click.Option) -> click.Option:
    more: dict[str, Any] = {"is_flag": True} if option.is_flag else {"metavar": option.metavar}
    return _option(*option.opts, *([str(option.name)] if option.name == "as_json" else []), hidden=True, **more)


_HIDDEN = {name: _as_hidden(option) for name, option in GLOBAL.items()}
