"""What may reach a terminal: text and our own colours, whatever a file of somebody else's holds."""

from __future__ import annotations

import sys
from contextlib import suppress
from io import TextIOWrapper

import click

from ralf.errors import RalfError
from ralf.text.cleaning import clean
from ralf.text.patterns import regex
from ralf_cli.command import root_of, with_root_named
from ralf_cli.tables import bounded

_OURS = regex(r"(\x1b\[(?:[0-4]|3[0-7])(?:;(?:[0-4]|3[0-7]))*m)")
"""Bold, dim, italic, underlined, the eight colours, and back: what this command uses."""


def guard() -> None:
    """Let nothing but text and colours through to a terminal. What goes into a pipe or a file stays as it is.

    Data goes to stdout; stderr has our own messages and progress bars, which move the cursor.
    """
    out = sys.stdout
    sys.stdout = _Guarded(out.buffer, out.encoding, out.errors, line_buffering=True)


def shown(text: str) -> str:
    """`text` without control characters, bidirectional overrides and escape sequences other than colours."""
    if "\x1b" not in text:
        return clean(text)
    return "".join(part if number % 2 else clean(part) for number, part in enumerate(_OURS.split(text)))


def complain(message: str, hint: str = "") -> None:
    """Say on stderr what is wrong and what to type next: a line each, whatever stands in a name or a file."""
    click.echo(f"error: {bounded(message)}", err=True)
    if hint:
        click.echo(f"hint: {bounded(typed(hint))}", err=True)


def typed(text: str) -> str:
    """A text of ours with the commands in it as they are typed in the project that is meant."""
    context = click.get_current_context(silent=True)
    if context is None or "ralf " not in text or "--root" in text:
        return text
    from ralf import config, project
    from ralf_integrations.blackbox5 import installing

    with suppress(RalfError, OSError):
        root = root_of(context)
        return config.typed(text, with_root_named(installing.command(project.find(root)), root))
    return text


class _Guarded(TextIOWrapper):
    def write(self, text: str, /) -> int:
        super().write(shown(text))
        return len(text)
