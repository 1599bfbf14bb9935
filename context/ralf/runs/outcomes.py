"""How a run ended, in one of five words: COMPLETE, PARTIAL, BLOCKED, RETRY, FAILED."""

from __future__ import annotations

import re

_PROMISE = re.compile(r"<promise>\s*([A-Za-z][A-Za-z _-]{1,38}?)\s*</promise>")
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
    """The last promise tag of an output, as it stands there in capitals; "" for none."""
    found = _PROMISE.findall(text)
    return found[-1].strip().upper() if found else ""


def outcome_of(status: str) -> str:
    """What a status as documents have it says of a run's end; "" where the run is under way, or nobody can tell."""
    if len(status) > _LONGEST or _UNDER_WAY.search(status):
        return ""
    for outcome in ("FAILED", "BLOCKED", "RETRY", "PARTIAL", "COMPLETE"):
        if _WORDS[outcome].search(status.replace("_", " ")):
            return outcome
    return ""
