"""What the brief of a route leaves out, or shortens, at a budget."""

from __future__ import annotations

from dataclasses import dataclass

from ralf.brief.filling import Piece
from ralf.brief.views import RESUMED, shown_of
from ralf.model import RouteContext
from ralf.text.cleaning import FENCE_TOKENS, one_line, trimmed

_MOST = 120  # items that are shown of what falls out

_LONGEST = 220  # characters of one of these


@dataclass(frozen=True, slots=True)
class Group:
    """What a heading of the brief has at a budget: how many items are kept whole, shortened, and left out.

    fallen  the first items that are not kept whole, on a line, each with whether it is only shortened
    """

    name: str
    kept: int
    shortened: int
    left_out: int
    fallen: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Brief:
    """A brief at a budget.

    text    as it would be handed over, without its fence
    groups  by heading, what is kept and what falls out
    more    how many items that fall out, or are shortened, no group shows
    """

    budget: int
    text: str
    groups: tuple[Group, ...]
    more: int

    @property
    def lost(self) -> int:
        """How many items fall out."""
        return sum(group.left_out for group in self.groups)

    @property
    def shortened(self) -> int:
        """How many items are shortened."""
        return sum(group.shortened for group in self.groups)


def brief(context: RouteContext, budget: int) -> Brief:
    """The brief of a route for who goes on with it, as hooks hand it over, and what falls out at this budget."""
    section = RESUMED if not context.wholly_foreign else None
    text, pieces = shown_of(context, max(0, budget - FENCE_TOKENS), section)
    named: dict[str, list[Piece]] = {}
    for piece in sorted((pieces[key] for key in pieces if not key.startswith("gap-")), key=lambda one: one.place):
        heading = piece.heads[0][1] if piece.heads else "Above all"
        named.setdefault(heading.partition("\n")[0].lstrip("# "), []).append(piece)
    groups, left, more = [], _MOST, 0
    for name, found in named.items():
        fallen = [(_line(piece), piece.level >= 0) for piece in found if not piece.is_whole]
        shortened = sum(is_shortened for _, is_shortened in fallen)
        counts = len(found) - len(fallen), shortened, len(fallen) - shortened
        groups.append(Group(name, *counts, tuple(fallen[:left])))
        more += max(0, len(fallen) - left)
        left = max(0, left - len(fallen))
    return Brief(budget, text, tuple(groups), more)


def _line(piece: Piece) -> str:
    return trimmed(one_line(piece.levels[-1]).removeprefix("- ").removeprefix("> "), _LONGEST)
