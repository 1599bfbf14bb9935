"""A decision as somebody wrote it down in a document, and what it is as one of `ralf.model`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ralf.model import Decision
from ralf.text import NAMED, clean, prose
from ralf.tree import to_tree

_STATUSES = {
    "reversed": re.compile(r"\b(?:roll(?:ed)?[ _-]?back|revers(?:ed|al)|reverted|undone)\b", re.IGNORECASE),
    "superseded": re.compile(r"\b(?:supersed\w*|deprecated|replaced|obsolete|downgraded)\b", re.IGNORECASE),
    "dropped": re.compile(r"\b(?:rejected|declined|dropped|withdrawn|abandoned|cancell?ed)\b", re.IGNORECASE),
}
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?Z|[+-]\d\d:?\d\d)?)?")
_BOLD = re.compile(rf"(?P<name>{NAMED})|(?P<mark>\*\*|__)(?=\S)(?P<bold>(?:(?!\s(?P=mark)).)+?)(?<=\S)(?P=mark)")
_WORD = re.compile(r"\w+")
_NAMELESS = re.compile(
    r"(?:(?:the|final|meta|key|cycle|main)[ -])?decisions?(?: made| log)?$|decisions?\b.*\b(?:task|run)-", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class WrittenDecision:
    """One decision of a document.

    first_line, last_line  where it stands, counted from 1; its heading, row or bullet is the first line
    label         what the document calls it: `DEC-001`, `D-9`, `3`; "" where it has no name
    title         the words of its heading, "" where there are none
    text          the choice in its own words; "" where the title is all there is
    rationale     why, over as many lines as it was written
    alternatives  what was rejected, each "option: why not", or the option alone
    status, timestamp  as written
    fields        everything else, by the name that it has there: context, reversibility, consequences …
    """

    first_line: int
    last_line: int
    label: str = ""
    title: str = ""
    text: str = ""
    rationale: str = ""
    alternatives: tuple[str, ...] = ()
    status: str = ""
    timestamp: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


def statement_of(written: WrittenDecision) -> str:
    """What was decided, on one line: the title and the choice, each where the other does not say it already."""
    title, text = plain(written.title), plain(written.text)
    if not text or not title or _NAMELESS.match(title):
        return text or title
    if title.casefold() in text.casefold():
        return text
    return title if _words(text) in _words(title) else f"{title.rstrip(':.')}: {text}"


def decision_tree(written: WrittenDecision, session: str = "", *, origin: str = "") -> dict[str, Any]:
    """The tree of `ralf.model.Decision` that a written decision is.

    session  what its label is qualified by, since labels begin anew in every document; see `label` in the tree
    origin   who made it; "" where its transcript says that

    Beside the fields of a decision it has `label` (`SESSION#D-9`), and what was written of `reversibility`, `context`
    and `consequences`. Statuses become those of the model; what was written stays under `written_status` where the
    model has no word for it.
    """
    extra: dict[str, Any] = {}
    if written.label:
        extra["label"] = f"{session}#{written.label}" if session else written.label
    for name in ("reversibility", "context", "consequences"):
        value = written.fields.get(name)
        if value not in (None, "", [], {}):
            extra[name] = plain(value) if isinstance(value, str) else value
    status = status_of(written.status)
    if written.status and status == "active":
        extra["written_status"] = plain(written.status)
    return to_tree(
        Decision(
            decision=statement_of(written),
            rationale=clean(written.rationale).strip(),
            alternatives=tuple(plain(option) for option in written.alternatives),
            status=status,
            timestamp=time_of(written.timestamp),
            origin=origin,
            extra=extra,
        )
    )


def status_of(written: str) -> str:
    """A status as documents have them as one of the model's: what is not taken back is active."""
    return next((status for status, words in _STATUSES.items() if words.search(written)), "active")


def time_of(text: str) -> str:
    """The first ISO 8601 time or date in a text, as written; "" where it has none."""
    found = _TIME.search(text)
    return found[0].replace(" Z", "Z") if found else ""


def plain(text: str) -> str:
    """Markdown's words on one line: without the stars of bold text and the dashes of lists, and what cannot be kept."""
    return prose(_BOLD.sub(lambda found: found["name"] or found["bold"], clean(text)))


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "
