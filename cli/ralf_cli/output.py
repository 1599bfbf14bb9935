"""Output of commands: data on stdout, as text or JSON; everything else on stderr."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from typing import Any

import click

from ralf import config
from ralf.document.tree import to_tree
from ralf.errors import NotFound, RalfError, UsageError
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line, trimmed, without_middle
from ralf_cli.command import is_json, project, root

_MOST = 200_000  # bytes of standard input or a file

_ECHOED = 200  # characters of a command's input that are printed again

_LONGEST = 1_000  # characters of an error, which can quote a path of 4,096

_BRIEF = 44  # characters of a title or a request in a line


def answer(value: Any, *lines: str) -> None:
    """Print the result of a command: the lines, or with --json the value."""
    if is_json():
        emit_json(value)
    else:
        for line in lines:
            click.echo(line, nl=not line.endswith("\n"))


def emit_json(value: Any) -> None:
    """Print a value as JSON on stdout: a dataclass as its fields (of an item of a route only those that are not empty),
    a path as its text, a collection as a list.
    """
    import json

    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return to_tree(value) if type(value).__module__.startswith("ralf.model.") else fields_of(value)
    return list(value) if isinstance(value, Iterable) else str(value)


def fields_of(value: Any, **more: Any) -> dict[str, Any]:
    """A dataclass as a dict, with more fields."""
    return {field.name: getattr(value, field.name) for field in fields(value)} | more


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> None:
    """Print rows as aligned columns below their headings. `right`: columns that are aligned right."""
    lines = [headings, *([f"{one:,}" if type(one) is int else str(one) for one in row] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(headings))]
    for line in lines:
        cells = zip(line, widths, strict=True)
        placed = (text.rjust(width) if n in right else text.ljust(width) for n, (text, width) in enumerate(cells))
        click.echo("  ".join(placed).rstrip())


def say(text: str) -> None:
    """Print a line that is not data, on stderr."""
    click.echo(bounded(typed(text)), err=True)


def warn(warnings: Iterable[str]) -> None:
    """Print warnings, a line each."""
    for warning in warnings:
        say(f"warning: {warning}")


def complain(message: str, hint: str = "") -> None:
    """Print an error and the next command on stderr, a line each, whatever a name or a file contains."""
    click.echo(f"error: {bounded(message)}", err=True)
    if hint:
        click.echo(f"hint: {bounded(typed(hint))}", err=True)


def check_shown(damage: str) -> None:
    """Complain and exit with status 4 if the route file could not be written; "": it was."""
    if damage:
        complain(damage, "the change is recorded in the journal; repair or move the file: the next write updates it")
        click.get_current_context().exit(4)


def typed(text: str) -> str:
    """A text of ours, with its commands as they are typed in this project."""
    from ralf_integrations.blackbox5 import installing

    if "ralf " in text and "--root" not in text and click.get_current_context(silent=True) is not None:
        with suppress(RalfError, OSError):
            return config.typed(text, with_root(installing.command(project())))
    return text


def with_root(command: str) -> str:
    """`command`, typed in place of `ralf`, with the --root of this call."""
    return command if root() is None else f"{command} --root {shlex.quote(str(root()))}"


@contextmanager
def given_back(*words: str) -> Iterator[None]:
    """Print on stderr the words that a block could not record on a server: a pipe's text exists nowhere else."""
    from ralf_integrations.stores import choosing

    try:
        yield
    except RalfError:
        text = "\n".join(filter(None, words))
        if text and choosing.names_servers(project()):
            click.echo(f"not recorded: {cleaning.shown(text)}", err=True)
        raise


@contextmanager
def progress_of(label: str) -> Iterator[Callable[..., None] | None]:
    """A progress bar on a terminal; the function gets what is done, the total, and perhaps the next name."""
    if is_json() or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def update(done: int, total: int, name: str = "") -> None:
            bar.length, bar.label = total, name[-40:] or label
            bar.update(done - bar.pos)

        yield update


def given_text(text: str) -> str:
    """The text, or standard input for `-`; UsageError if it is too long."""
    return _decoded("standard input", sys.stdin.buffer.read(_MOST + 1)) if text == "-" and sys.stdin else text


def text_of(path: Any) -> str:
    """The text of a file; NotFound, or UsageError if it is too long."""
    from ralf.storage.files import open_regular

    try:
        with open_regular(path, follow=True) as stream:
            return _decoded(path, stream.read(_MOST + 1))
    except FileNotFoundError:
        raise NotFound(path, "no such file", "name an existing one, or use a pipe") from None


def _decoded(where: object, data: bytes) -> str:
    if len(data) > _MOST:
        raise UsageError(where, f"has more than {_MOST:,} bytes: nothing was recorded", "shorten it")
    return data.decode("utf-8", "replace")


def price(tokens: int, usd: float | None, *, is_estimated: bool = False) -> str:
    """Tokens and, if known, money."""
    text = f"about {tokens:,} tokens (estimate)" if is_estimated else f"{tokens:,} tokens"
    return text if usd is None else f"{text}, ${usd:.4f}"


# ---- texts ----


def in_brief(text: str) -> str:
    """A text on one line, shortened; `-` for none."""
    return trimmed(one_line(clean(text)), _BRIEF) or "-"


def so_many(count: int, noun: str) -> str:
    """A count: `1 route`, `2,000 routes`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def echoed(text: str) -> str:
    """The input, shortened: its writer has just typed it."""
    return text if len(text) <= _ECHOED else f"{text[:_ECHOED].rstrip()}…"


def bounded(text: str) -> str:
    """A message on one line, without control characters and without its middle if it is long."""
    text = one_line(clean(text))
    return without_middle(text, _LONGEST * 3 // 4, _LONGEST // 4)[0]
