"""A part of a context's text that is kept or left out as a whole, and its rank: what is left out before what.

Pieces begin with a letter, `#`, `-`, `>` or `*` and end with a line break: that keeps the sum of their tokens from
ever being below the tokens of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

# Ranks: what is left out last comes first.
(
    STANDING, REQUEST, RULE, NEXT, FAILED_APPROACH, DECISION, STATEMENT, SEEN, CHANGED, NAMED, UNSOLVED, REASON, NEWEST,
    DONE, READ, ASKED, OLDER_REASON, SECTION, ASKED_WHOLE, FAILED_COMMAND, PASSED, RETIRED, FOREIGN,
) = range(23)  # fmt: skip
REORDERED_FROM = FAILED_APPROACH
"""What has a lower rank is not reordered by a query."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text that is kept or left out as a whole.

    group    heading under which it stands
    rank     when it is left out
    order    within a rank, smaller is kept longer
    noun     what it is called where the left out ones are counted
    cuttable whether its beginning is worth something
    short    a shorter form, which has the rank; the whole then takes its place at the rank `whole`
    tag      what is said at its end, known only at a read
    """

    text: str
    group: str
    rank: int
    order: int = 0
    noun: str = "line"
    cuttable: bool = False
    short: str = ""
    whole: int = 0
    tag: str = ""
