"""Fills a budget: pieces of text are shown in one fixed order, whatever the budget, until one does not fit.

So a larger budget never shows less, and nearly nothing of it stays unused as long as anything is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ralf.text import tokens


@dataclass
class Piece:
    """A text that can be shown at several lengths.

    place   where it stands: section, then order within it
    levels  the text at each length, shortest first
    heads   (key, text) of headings that are shown above it, each once
    """

    place: tuple[float, ...]
    levels: Sequence[str]
    heads: Sequence[tuple[str, str]] = ()
    level: int = -1

    @property
    def text(self) -> str:
        """What is shown of it."""
        return self.levels[self.level] if self.level >= 0 else ""

    @property
    def is_whole(self) -> bool:
        """Whether all of it is shown."""
        return self.level >= 0 and len(self.text) >= len(self.levels[-1])


@dataclass
class Budget:
    """At most `most` tokens, by `o200k_base` and at four characters a token; None: no limit."""

    most: int | None
    tokens: int = 0
    characters: int = 0

    def take(self, texts: Iterable[str], instead_of: str = "") -> bool:
        """Take these texts, each with a line end behind it, in the place of another, if they fit."""
        new, old = [size(text) for text in texts], size(instead_of)
        count = self.tokens + sum(count for count, _ in new) - old[0]
        length = self.characters + sum(length for _, length in new) - old[1]
        if self.most is not None and (count > self.most or length > self.most * tokens.CHARACTERS_PER_TOKEN):
            return False
        self.tokens, self.characters = count, length
        return True


@lru_cache(20_000)
def size(text: str) -> tuple[int, int]:
    """The tokens and characters of a text with its line end."""
    return (tokens.count(f"{text}\n"), len(text) + 1) if text else (0, 0)


def fill(budget: Budget, pieces: Mapping[str, Piece], grants: Iterable[tuple[str, int]]) -> bool:
    """Show pieces at a length, grant by grant, until one does not fit; whether all did.

    A piece that has no such length is shown at its longest one; one that does not fit, at the longest that does.
    """
    shown: set[str] = set()
    for key, most in grants:
        piece = pieces.get(key)
        if piece is None:
            continue
        last = min(most, len(piece.levels) - 1)
        levels = [level for level in range(piece.level + 1, last + 1) if len(piece.levels[level]) > len(piece.text)]
        level = next((level for level in reversed(levels) if _show(budget, piece, level, shown)), None)
        if levels and level != levels[-1]:
            return False
    return True


def _show(budget: Budget, piece: Piece, level: int, shown: set[str]) -> bool:
    """Show a piece at a level, with those of its heads that are not shown yet, if that fits."""
    heads = [(name, words) for name, words in piece.heads if name not in shown]
    if not budget.take([piece.levels[level], *(words for _, words in heads)], instead_of=piece.text):
        return False
    piece.level = level
    shown.update(name for name, _ in heads)
    return True


def joined(pieces: Iterable[Piece]) -> str:
    """The pieces that are shown, each below its headings, in the order of their places."""
    lines: list[str] = []
    shown: set[str] = set()
    for piece in sorted(pieces, key=lambda piece: piece.place):
        if piece.text:
            lines += [*(words for name, words in piece.heads if name not in shown), piece.text]
            shown.update(name for name, _ in piece.heads)
    return "\n".join(lines)
