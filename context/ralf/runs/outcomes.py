"""How a run ended, in one of five words: COMPLETE, PARTIAL, BLOCKED, RETRY, FAILED."""

from __future__ import annotations

import re
from itertools import pairwise

_PROMISE = re.compile(r"<promise>\s*([A-Za-z][A-Za-z _-]{1,38}?)\s*</promise>")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_WORDS_OR_MARKS = re.compile(r"[\w`'\"|/>\u2018-\u201f\u00ab\u00bb]")
_QUOTES = re.compile(r"[`'\"\u2018-\u201f\u00ab]")
_LEADS_UP = re.compile(
    r"(?!\s*[-+*•]\s)[\W_]*"
    r"|(?=.*?[^\W\d_])(?:\W*+\w++)*+(?=\W*?[.!?)\]…✅✓✔])\W*"
    r"|\W*(?:(?:final|exit|run|task) )?(?:promise|status|outcome|result|verdict)\W*",
    re.IGNORECASE,
)
_WORDS = {
    "COMPLETE": re.compile(
        r"\b(?:complete[d]?|success(?:ful(?:ly)?)?|succeeded|done|finished|passed|merged)\b", re.IGNORECASE
    ),
    "PARTIAL": re.compile(r"\bpartial(?:ly)?\b|\bincomplete\b", re.IGNORECASE),
    "BLOCKED": re.compile(r"\bblock(?:ed|ing)\b|\bwaiting\b|\bon hold\b", re.IGNORECASE),
    "RETRY": re.compile(r"\bretry\b|\btry again\b", re.IGNORECASE),
    "FAILED": re.compile(r"\bfail(?:ed|ure)?\b|\berrored\b|\baborted\b|\bcancel?led\b|\babandoned\b", re.IGNORECASE),
}
_UNDER_WAY = re.compile(
    r"\b(?:in[ _-]?progress|pending|started|active|running|claimed|queued|to ?do|open|not)\b", re.IGNORECASE
)
_LONGEST = 60  # characters of a status


def promised(text: str) -> str:
    """The last promise tag that an output makes, in capitals; "" for none.

    A tag is made where it stands for itself: on a line of its own, behind a whole sentence, or behind a name such as
    `Status:`. One in a fence, in code, in a quotation, or inside a sentence tells how to promise: the prompt does so.
    """
    made = shown = fence = ""
    for line in text.split("\n") if "<promise>" in text else ():
        if mark := _FENCE.match(line):
            if not fence:
                fence, shown = mark[1], ""
            elif mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence, shown = "", ""
        elif "<promise>" in line:
            shown = (_made_in(line) or shown) if fence else ""
            made = made if fence else _made_in(line) or made
    return shown or made  # a fence that never ends is none: an output may begin in the middle of one


def _made_in(line: str) -> str:
    tags = list(_PROMISE.finditer(line))
    if not tags or line.lstrip().startswith(">"):
        return ""
    between = "".join(line[one.end() : other.start()] for one, other in pairwise(tags))
    before, after = line[: tags[0].start()], line[tags[-1].end() :]
    if _WORDS_OR_MARKS.search(between + after) or _QUOTES.search(before[-1:]) or not _LEADS_UP.fullmatch(before):
        return ""
    return tags[-1][1].strip().upper()


def outcome_of(status: str) -> str:
    """What a status as documents have it says of a run's end; "" where the run is under way, or nobody can tell."""
    if len(status) > _LONGEST or _UNDER_WAY.search(status):
        return ""
    for outcome in ("FAILED", "BLOCKED", "RETRY", "PARTIAL", "COMPLETE"):
        if _WORDS[outcome].search(status.replace("_", " ")):
            return outcome
    return ""
