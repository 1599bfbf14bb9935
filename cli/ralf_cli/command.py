"""A command, and the options that many share: each stands in the help of its group once, and is typed anywhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import augment_usage_errors

from ralf import environment
from ralf.text import cleaning

if TYPE_CHECKING:
    from ralf.project import Project

F = TypeVar("F", bound=Callable[..., Any])

_HARMLESS = "root"  # before a command that has no use for it


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value:
        ctx.meta[f"{__name__}.{param.name}"] = value


_HIDDEN: dict[str, click.Option] = {}  # shared options, as a command takes them
_GROUPS: dict[str, str] = {}  # the groups whose help describes them


def shared(name: str, *names: str, of: str = "ralf", **more: Any) -> click.Option:
    """An option that commands take by its name, whose value `given` tells: as the help of the group `of` describes it.

    names  as it is typed
    """
    visible, _HIDDEN[name] = (
        click.Option((*names, name), expose_value=False, is_eager=True, callback=_keep, hidden=hidden, **more)
        for hidden in (False, True)
    )
    _GROUPS[name] = of
    return visible


GLOBAL = (
    shared("root", "--root", metavar="DIR", help="The project directory. Default: nearest enclosing project."),
    shared("json", "--json", is_flag=True, help="Print JSON with the field names of the Python API."),
    shared("dry_run", "--dry-run", is_flag=True, help="Only show what would be done; change nothing."),
    shared("yes", "--yes", is_flag=True, help="Skip confirmation (never enables paid features)."),
)
"""The options that stand once, in the help of `ralf` itself."""


def given(name: str) -> Any:
    """The value of a shared option, wherever in the command line it stands; None for none."""
    return click.get_current_context().meta.get(f"{__name__}.{name}")


def root() -> str | None:
    """The project directory that was named, None for none."""
    found: str | None = given("root")
    return found


def project() -> Project:
    """The project that is meant."""
    from ralf import project as projects

    return projects.find(root())


def is_json() -> bool:
    """Whether the answer is wanted as JSON."""
    return bool(given("json"))


def is_read_by_an_agent() -> bool:
    """Whether what is printed is read in the shell of a client or a loop, and not at a terminal."""
    return environment.is_agent() and not sys.stdout.isatty()


@contextmanager
def handed_over() -> Iterator[None]:
    """What is printed within goes to stdout in a fence where an agent reads, the part that was printed before an error,
    too; as it is as JSON, for a person and a script. Within another such block: as that says.
    """
    if is_json() or not is_read_by_an_agent() or isinstance(sys.stdout, StringIO):
        yield
        return
    held = StringIO()
    try:
        with redirect_stdout(held):
            yield
    finally:
        click.echo(cleaning.fenced(cleaning.shown(held.getvalue())), nl=False)


class Command(click.Command):
    """A command that takes shared options.

    takes      their names
    is_fenced  whether all that it prints as text stands in the fence where an agent reads; else it sees to that itself
    """

    def __init__(self, *arguments: Any, takes: tuple[str, ...] = (), is_fenced: bool = True, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.takes = takes
        self._is_fenced = is_fenced

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are left; an error names this command, wherever in the line it was found."""
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, and the shared ones, which its help does not list."""
        return [*super().get_params(ctx), *(_HIDDEN[name] for name in self.takes)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Name the shared options that it takes."""
        with formatter.section("Shared options"):
            for group in dict.fromkeys(_GROUPS[name] for name in self.takes):
                options = (_HIDDEN[name] for name in self.takes if _GROUPS[name] == group)
                named = (f"{option.opts[-1]} {option.metavar or ''}".rstrip() for option in options)
                formatter.write_text(f"{', '.join(named)}: see {group} --help")

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; UsageError where an option was typed before it that it does not take, as `ralf --dry-run decide`."""
        for name, option in _HIDDEN.items():
            if given(name) and name not in (_HARMLESS, *self.takes):
                raise click.UsageError(f"No such option {option.opts[-1]!r}.", ctx)
        with handed_over() if self._is_fenced else nullcontext():
            return super().invoke(ctx)


def command(*takes: str, name: str | None = None, **more: Any) -> Callable[[F], Command]:
    """Make a function a command.

    takes  the shared options that it takes, with `root` and `json`; "root" alone: only that
    """
    all_ = takes if takes[:1] == ("root",) else ("root", "json", *takes)
    return click.command(name, cls=Command, takes=all_, **more)
