"""The parts of a context's text, each with its share of a budget, and the pieces that stand in them."""

from __future__ import annotations

from typing import NamedTuple

from ralf.text.frozen import dataclass

# Pieces begin with a letter, `#`, `-`, `>` or `*` and end with a line break: so the sum of their tokens is never below
# the tokens of the whole.


class Part(NamedTuple):
    """A part of the text: its place, and the share of the budget that it gets before any part gets more."""

    place: int
    share: float


(
    HEADER, NOW, HANDOVER, GOAL, NEXT, RULES, DECISIONS, NOT_AGAIN, FILES, HISTORY, TOLD, NAMED,
    NEWEST, ASKED, DONE, SECTIONS_, FAILED_COMMANDS, READ, RETIRED, ASKED_WHOLE, PASSED, THOUGHT, FOREIGN,
) = (
    Part(place, share) for place, share in enumerate((
        1.0, 0.40, 0.32, 0.10, 0.12, 0.14, 0.28, 0.10, 0.06, 0.08, 0.20, 0.05,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ))
)  # fmt: skip
HANDED = Part(HANDOVER.place, 0.55)
"""The place of a hand-over that somebody wrote who knows the work: it tells what the parts behind it are about."""

"""The parts, the ones that shrink last first. Those without a share live on what the others leave."""

REORDERED_FROM = DECISIONS
"""What comes before it is not reordered by a query."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text that is kept or left out as a whole.

    group    heading under which it stands
    part     when it is left out
    order    within a part, smaller is kept longer
    noun     what it is called where the left out ones are counted
    cut      what may be left of it where there is no room for all: its beginning ("end" is cut), or its beginning and
             its end ("middle")
    most     share of its part's share that it gets before the others of its part
    short    a shorter form, which goes first; the whole takes its place where there is room
    whole    the part with which the whole takes the place of the shorter form; None: its own
    tag      what is said at its end, known only at a read
    """

    text: str
    group: str
    part: Part
    order: int = 0
    noun: str = "line"
    cut: str = ""
    most: float = 1.0
    short: str = ""
    whole: Part | None = None
    tag: str = ""
