"""A command, and the options that many share: each stands in the help of its group once, and is typed anywhere."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click
from click.core import augment_usage_errors

F = TypeVar("F", bound=Callable[..., Any])

_TAKES = "takes"  # the attribute of a command's function that names the shared options that it takes
_HARMLESS = ("root", "no_pager", "plain")  # before a command that has no use for it


class _Elsewhere(click.Option):
    """An option that the help of another command describes."""

    def get_help_record(self, ctx: click.Context) -> None:
        """Nothing."""


SHARED: dict[str, click.Option] = {}
"""The shared options by the name under which a command gets their values."""

_ELSEWHERE: dict[str, click.Option] = {}
_GROUP_OF: dict[str, str] = {}


def shared(name: str, *names: str, of: str = "ralf", **more: Any) -> click.Option:
    """An option that commands of a group take by `taking`.

    name   under which a command gets its value: False or None where it is not given
    names  as it is typed
    of     the group whose help describes it
    """

    SHARED[name], _ELSEWHERE[name] = (
        kind((*names, name), expose_value=False, is_eager=True, callback=_keep, **more)
        for kind in (click.Option, _Elsewhere)
    )
    _GROUP_OF[name] = of
    return SHARED[name]


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value:
        ctx.meta[_key(str(param.name))] = value


def _key(name: str) -> str:
    return f"{__name__}.{name}"


GLOBAL = (
    shared("root", "--root", metavar="DIR", help="The project directory. Default: nearest enclosing project."),
    shared("as_json", "--json", is_flag=True, help="Print JSON with the field names of the Python API."),
    shared("dry_run", "--dry-run", is_flag=True, help="Only show what would be done; change nothing."),
    shared("yes", "--yes", is_flag=True, help="Skip confirmation (never enables paid features)."),
    shared("plain", "--plain", is_flag=True, help="Print Markdown as it is on a terminal, too."),
    shared("no_pager", "--no-pager", is_flag=True, help="Print at once, even if it is long."),
)
"""The options that stand once, in the help of `ralf` itself."""


def given(ctx: click.Context, name: str) -> Any:
    """The value of a shared option, wherever in the command line it stands; None for none."""
    return ctx.meta.get(_key(name))


def root_of(ctx: click.Context) -> str | None:
    """The project directory that was named, None for none."""
    root: str | None = given(ctx, "root")
    return root


def with_root_named(command: str, root: str | None) -> str:
    """`command`, which stands for `ralf`, as it is typed for a project that was named by --root."""
    return command if root is None else f"{command} --root {shlex.quote(root)}"


def taking(name: str) -> Callable[[F], F]:
    """Have the function of a command get a shared option under its name."""

    def deciding(command: F) -> F:
        nothing = False if SHARED[name].is_flag else None

        @wraps(command)
        def with_it(*arguments: Any, **options: Any) -> Any:
            options.setdefault(name, given(click.get_current_context(), name) or nothing)
            return command(*arguments, **options)

        setattr(with_it, _TAKES, {*getattr(command, _TAKES, ()), name})
        return cast("F", with_it)

    return deciding


class TakesShared(click.Command):
    """A command that is given the shared options which its function takes. Its help names them in one line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are left; an error names this command, wherever in the line it was found."""
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, and the shared ones, which its help does not list."""
        return [*super().get_params(ctx), *(option for name, option in _ELSEWHERE.items() if name in self.takes())]

    def takes(self) -> set[str]:
        """The names of the shared options that are not its own."""
        return getattr(self.callback, _TAKES, set()) - {str(param.name) for param in self.params}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Name the shared options that it takes."""
        super().format_epilog(ctx, formatter)
        taken: dict[str, list[str]] = {}
        for name in (name for name in SHARED if name in self.takes()):
            taken.setdefault(_GROUP_OF[name], []).append(_named(SHARED[name]))
        if taken:
            with formatter.section("Global options"):
                for group, names in taken.items():
                    formatter.write_text(f"{', '.join(names)}: see {group} --help")


def _named(option: click.Option) -> str:
    return f"{option.opts[-1]} {option.metavar or ''}".strip()


class Command(TakesShared):
    """A command without others below it."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; UsageError where an option was typed before it that it does not take, as `ralf --dry-run decide`."""
        for name, option in SHARED.items():
            if given(ctx, name) and name not in (*_HARMLESS, *getattr(self.callback, _TAKES, ())):
                raise click.UsageError(f"No such option {option.opts[-1]!r}.", ctx)
        return super().invoke(ctx)


def command(*arguments: Any, **options: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """As `click.command`."""
    made: Callable[[Callable[..., Any]], click.Command] = click.command(*arguments, **{"cls": Command, **options})
    return made
