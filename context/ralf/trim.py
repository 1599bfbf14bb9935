"""Shortens texts without breaking the names in them: a cut says "…" and leaves no backtick without its partner."""

from __future__ import annotations

import re

_LONE = re.compile(r"(?<!`)`(?!`)")  # a fence is no mark of a name
_MARK = "…"


def trimmed(text: str, most: int) -> str:
    """The text with its end cut, after a whole word, so that it has at most `most` characters."""
    if len(text) <= most:
        return text
    return _head(text, most - 1) + _MARK


def without_middle(text: str, head: int, tail: int) -> tuple[str, int]:
    """The text with its middle cut, and how many characters were left out; about `head` and `tail` are kept."""
    if len(text) <= head + tail + 3:
        return text, 0
    first = _head(text, head)
    start = text.find(" ", len(text) - tail, len(text) - tail // 2) + 1 or len(text) - tail
    lone = [match.start() for match in _LONE.finditer(text, start)]
    if len(lone) % 2:
        start = lone[0] + 1
    last = text[start:].lstrip()
    return f"{first} {_MARK} {last}", len(text) - len(first) - len(last)


def _head(text: str, most: int) -> str:
    kept = text[:most]
    space = max(kept.rfind(" "), kept.rfind("\n"))
    if space > most // 2:
        kept = kept[:space]
    lone = [match.start() for match in _LONE.finditer(kept)]
    if len(lone) % 2:
        within = lone[-1]
        # A text that is one long name in backticks keeps its beginning, without the sign.
        kept = kept[:within] if within > most * 2 // 3 else kept[:within] + kept[within + 1 :]
    return kept.rstrip()
