"""What the commands print: data on stdout, as text or as JSON; everything else on stderr."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

import click

from ralf import config
from ralf.errors import NotFound, RalfError, UsageError
from ralf.text import cleaning
from ralf_cli.command import is_json, project, root
from ralf_cli.tables import aligned, as_json, bounded

_MOST = 200_000  # bytes that are read from standard input or a file


def answer(value: Any, *lines: str) -> None:
    """Print what a command came to: lines of text, or with --json the value; a dataclass as its fields."""
    if is_json():
        emit_json(value)
    else:
        for line in lines:
            click.echo(line, nl=not line.endswith("\n"))


def emit_json(value: Any) -> None:
    """Print a value as JSON on stdout; a dataclass as its fields."""
    click.echo(as_json(value))


def fields_of(value: Any, **more: Any) -> dict[str, Any]:
    """A dataclass as a dict, with more fields."""
    return asdict(value) | more


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> None:
    """Print rows as aligned columns. `right`: columns that are aligned right."""
    click.echo(aligned(headings, rows, right))


def say(text: str) -> None:
    """Print something that is not data, as one line."""
    click.echo(bounded(typed(text)), err=True)


def warn(warnings: Iterable[str]) -> None:
    """Say what is wrong and stops nothing, a line each."""
    for warning in warnings:
        say(f"warning: {warning}")


def complain(message: str, hint: str = "") -> None:
    """Say on stderr what is wrong and what to type next: a line each, whatever stands in a name or a file."""
    click.echo(f"error: {bounded(message)}", err=True)
    if hint:
        click.echo(f"hint: {bounded(typed(hint))}", err=True)


def check_shown(damage: str) -> None:
    """Complain and exit with status 4 where a file could not be made to show what was written; "": it was."""
    if damage:
        complain(
            damage,
            "what was typed is recorded, in the journal; mend the file, or move it away: the next write shows it",
        )
        click.get_current_context().exit(4)


def typed(text: str) -> str:
    """A text of ours with the commands in it as they are typed in the project that is meant."""
    from ralf_integrations.blackbox5 import installing

    if "ralf " in text and "--root" not in text and click.get_current_context(silent=True) is not None:
        with suppress(RalfError, OSError):
            return config.typed(text, with_root(installing.command(project())))
    return text


def with_root(command: str) -> str:
    """`command`, which stands for `ralf`, as it is typed for a project that was named by --root."""
    return command if root() is None else f"{command} --root {shlex.quote(str(root()))}"


@contextmanager
def given_back(*words: str) -> Iterator[None]:
    """Print on stderr the words that a block could not record, where the journal lies on servers: whoever has typed
    them into a pipe has them nowhere else.
    """
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
    """A bar on a terminal; gets how much is done, of how much, and perhaps the name of what is next."""
    if is_json() or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def told(done: int, total: int, name: str = "") -> None:
            bar.length, bar.label = total, name[-40:] or label
            bar.update(done - bar.pos)

        yield told


def given_text(text: str) -> str:
    """The text itself, or for `-` what stands on standard input; UsageError where that is too long."""
    return _decoded("standard input", sys.stdin.buffer.read(_MOST + 1)) if text == "-" and sys.stdin else text


def text_of(path: Any) -> str:
    """What stands in a file; NotFound where it is not there, UsageError where it is too long."""
    from ralf.storage.files import open_regular

    try:
        with open_regular(path, follow=True) as stream:
            return _decoded(path, stream.read(_MOST + 1))
    except FileNotFoundError:
        raise NotFound(path, "no such file", "name one that is there, or pipe it in") from None


def _decoded(where: object, data: bytes) -> str:
    if len(data) > _MOST:
        raise UsageError(where, f"has more than {_MOST:,} bytes: nothing was recorded", "shorten it")
    return data.decode("utf-8", "replace")


def price(tokens: int, usd: float | None, *, is_estimated: bool = False) -> str:
    """Tokens and, where it is known, money."""
    told = f"about {tokens:,} tokens (estimate)" if is_estimated else f"{tokens:,} tokens"
    return told if usd is None else f"{told}, ${usd:.4f}"
