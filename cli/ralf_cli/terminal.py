"""Output to a terminal: text and our own colours, whatever a foreign file contains."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from ralf.text.cleaning import clean
from ralf.text.patterns import regex

_OURS = regex(r"(\x1b\[(?:[0-4]|3[0-7])(?:;(?:[0-4]|3[0-7]))*m)")
"""Bold, dim, italic, underlined, the eight colours, and reset: all that this command uses."""


def guard() -> None:
    """Pass only text and colours to a terminal. Output into a pipe or a file stays as it is, and so does stderr, whose
    progress bars move the cursor.
    """
    out = sys.stdout
    sys.stdout = _Guarded(out.buffer, out.encoding, out.errors, line_buffering=True)


def shown(text: str) -> str:
    """`text` without control characters, bidirectional overrides and escape sequences other than colours."""
    if "\x1b" not in text:
        return clean(text)
    return "".join(part if number % 2 else clean(part) for number, part in enumerate(_OURS.split(text)))


class _Guarded(TextIOWrapper):
    def write(self, text: str, /) -> int:
        super().write(shown(text))
        return len(text)
