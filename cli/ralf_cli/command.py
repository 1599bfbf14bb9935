"""Commands with shared options, which the help of a group lists once, and which are accepted anywhere in the line."""

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

_HARMLESS = "root"  # accepted before any command


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value:
        ctx.meta[f"{__name__}.{param.name}"] = value


_HIDDEN: dict[str, click.Option] = {}  # shared options, as a command takes them
_GROUPS: dict[str, str] = {}  # the groups whose help describes them


def shared(name: str, *names: str, of: str = "ralf", **more: Any) -> click.Option:
    """Declare a shared option: return it for the group `of`, whose help lists it; commands take it by its `name`.

    names  as it is typed
    """
    visible, _HIDDEN[name] = (
        click.Option((*names, name), expose_value=False, is_eager=True, callback=_keep, hidden=hidden, **more)
        for hidden in (False, True)
    )
    _GROUPS[name] = of
    return visible


GLOBAL = (
    shared("root", "--root", metavar="DIR", help="Project directory. Default: nearest enclosing project."),
    shared("json", "--json", is_flag=True, help="Print JSON with the field names of the Python API."),
    shared("dry_run", "--dry-run", is_flag=True, help="Show what would be done; change nothing."),
    shared("yes", "--yes", is_flag=True, help="Skip confirmation (never enables paid features)."),
)
"""The options in the help of `ralf` itself."""


def given(name: str) -> Any:
    """The value of a shared option, from anywhere in the command line; None for none."""
    return click.get_current_context().meta.get(f"{__name__}.{name}")


def root() -> str | None:
    """The project directory of --root, None for none."""
    found: str | None = given("root")
    return found


def project() -> Project:
    """The project of this command."""
    from ralf import project as projects

    return projects.find(root())


def is_json() -> bool:
    """Whether the answer is JSON."""
    return bool(given("json"))


def is_read_by_an_agent() -> bool:
    """Whether an agent reads the output: the shell of a client or a loop, which may be a terminal, too."""
    return environment.is_agent()


@contextmanager
def handed_over() -> Iterator[None]:
    """Put the output of a block in a fence if an agent reads it, even if the block raises. JSON, and the output for a
    person or a script, stays as it is. An outer block does it for inner ones.
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
    is_fenced  whether all its output is in one fence if an agent reads it; else the command does that itself
    """

    def __init__(self, *arguments: Any, takes: tuple[str, ...] = (), is_fenced: bool = True, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.takes = takes
        self._is_fenced = is_fenced

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The remaining arguments; an error names this command, wherever it occurred."""
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, and the shared ones, which are hidden in its help."""
        return [*super().get_params(ctx), *(_HIDDEN[name] for name in self.takes)]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the names of the shared options that it takes."""
        with formatter.section("Shared options"):
            for group in dict.fromkeys(_GROUPS[name] for name in self.takes):
                options = (_HIDDEN[name] for name in self.takes if _GROUPS[name] == group)
                named = (f"{option.opts[-1]} {option.metavar or ''}".rstrip() for option in options)
                formatter.write_text(f"{', '.join(named)}: see {group} --help")

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; UsageError for an option before it that it does not take, as in `ralf --dry-run decide`."""
        for name, option in _HIDDEN.items():
            if given(name) and name not in (_HARMLESS, *self.takes):
                raise click.UsageError(f"No such option {option.opts[-1]!r}.", ctx)
        with handed_over() if self._is_fenced else nullcontext():
            return super().invoke(ctx)


def command(*takes: str, name: str | None = None, **more: Any) -> Callable[[F], Command]:
    """Make a function a command.

    takes  its shared options besides `root` and `json`; beginning with "root": exactly these
    """
    all_ = takes if takes[:1] == ("root",) else ("root", "json", *takes)
    return click.command(name, cls=Command, takes=all_, **more)
