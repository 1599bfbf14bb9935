"""What may reach a terminal: text and our own colours, whatever a file of somebody else's holds."""

from __future__ import annotations

import re
import sys
from io import TextIOWrapper

import click

from ralf.text import clean

_OURS = re.compile(r"(\x1b\[(?:0|1|3[0-7])(?:;(?:0|1|3[0-7]))*m)")
"""Bold, the eight colours, and back: what this command uses."""


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
    """Say on stderr what is wrong and what to type next."""
    click.echo(f"error: {clean(message)}", err=True)
    if hint:
        click.echo(f"hint: {clean(hint)}", err=True)


class _Guarded(TextIOWrapper):
    def write(self, text: str, /) -> int:
        super().write(shown(text))
        return len(text)
