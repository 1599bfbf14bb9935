"""What the brief of a route leaves out, or shortens, at a budget."""

from __future__ import annotations

from typing import NamedTuple

from ralf.brief.views import RESUMED, shown_of
from ralf.model import RouteContext
from ralf.text.cleaning import FENCE_TOKENS, one_line, trimmed

_LONGEST = 220  # characters of an item


class LeftOut(NamedTuple):
    """An item of a brief that it does not show whole, on one line, under its heading."""

    heading: str
    line: str
    is_shortened: bool


def brief(context: RouteContext, budget: int) -> tuple[str, list[LeftOut]]:
    """The brief of a route as hooks pass it on, without its fence, and what this budget leaves out of it."""
    section = RESUMED if not context.wholly_foreign else None
    text, pieces = shown_of(context, max(0, budget - FENCE_TOKENS), section)
    found = []
    for piece in sorted(pieces.values(), key=lambda one: one.place):
        if not piece.is_whole:
            heading = piece.heads[0][1].partition("\n")[0].lstrip("# ") if piece.heads else "Above all"
            line = trimmed(one_line(piece.levels[-1]).removeprefix("- ").removeprefix("> "), _LONGEST)
            found.append(LeftOut(heading, line, piece.level >= 0))
    return text, found
