"""The user's pager, for output that is longer than the screen."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import wraps
from io import StringIO
from typing import TYPE_CHECKING, Any, cast

import click

from ralf_cli.command import taking

if TYPE_CHECKING:
    from ralf_cli.options import F


def with_pager(command: F) -> F:
    """Have the command take `--no-pager`: without it, what it prints goes through the pager where it is longer than the
    screen of a person at a terminal.
    """

    @wraps(command)
    def paging(*arguments: Any, no_pager: bool, **options: Any) -> Any:
        if no_pager or not _is_watched():
            return command(*arguments, **options)
        with _paged():
            return command(*arguments, **options)

    return taking("no_pager")(cast("F", paging))


def _is_watched() -> bool:
    """Whether a person sits at a terminal with a pager and a known size; in a client's shell a pager would hang."""
    from ralf import environment

    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()) or environment.is_agent():
        return False
    return bool(environment.pager()) and _rows_and_columns()[0] > 0


class _Held(StringIO):
    """What is printed, kept for the pager; to the command it is the terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def _paged() -> Iterator[None]:
    held = _Held()
    try:
        with redirect_stdout(held):
            yield
    finally:
        text = held.getvalue()
        if not (_is_longer_than_screen(text) and _page(text)):
            sys.stdout.write(text)
            sys.stdout.flush()


def _rows_and_columns() -> tuple[int, int]:
    """The size of the terminal behind stdout; (0, 0) where that does not say."""
    try:
        size = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1)
    except (OSError, ValueError):
        return 0, 0
    return size.lines, size.columns


def _is_longer_than_screen(text: str) -> bool:
    rows, columns = _rows_and_columns()
    lines = (len(click.unstyle(line)) for line in text.splitlines())
    return sum(max(1, -(-length // max(1, columns))) for length in lines) >= rows


def _page(text: str) -> bool:
    """Show a text in the pager and wait for it; False where it cannot be started."""
    import subprocess

    from ralf import environment
    from ralf_cli.terminal import shown

    try:
        words = shlex.split(environment.pager())
        pager = subprocess.Popen(words, stdin=subprocess.PIPE, env=environment.of_a_pager())
    except (OSError, ValueError):
        return False
    with suppress(BrokenPipeError):  # left before the end
        pager.communicate(shown(text).encode("utf-8", "backslashreplace"))
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:  # it is the pager's to answer
            continue
        return True
