"""Where decisions were said, as lines apart from the decisions: a session's name stands once, not with each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf.format.codec import ById, yaml_pieces
from ralf.model import Decision, Source
from ralf.text.patterns import regex

_LABEL = regex(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")

_SESSION = regex(r"[A-Za-z0-9][A-Za-z0-9_.@/:#+-]*\Z")

_DIGITS = regex(r"[0-9a-f]*\Z")

_BEGINS = "lines in session: "

TOKENS = 18
"""About how many tokens a place takes among the others of its session."""

Told = Mapping[str, tuple[Source, ...]]
"""Of each decision by its label: where it was said, the first time first."""


def of(decision: Decision) -> tuple[Source, ...]:
    """All places at which a decision was said."""
    return (decision.source, *decision.further_sources) if decision.source is not None else ()


def is_label(text: str) -> bool:
    """Whether it can stand as the first word of a line: letters, digits and `_.-`, as in `DEC-001`."""
    return _LABEL.match(text) is not None


def can_be_told(decision: Decision) -> bool:
    """Whether lines can tell where a decision was said: its label, and of each place session, lines and digest."""
    return is_label(decision.id) and decision.source is not None and all(map(_is_short, of(decision)))


def _is_short(source: Source) -> bool:
    numbers = 0 <= source.first_line < 10**15 and 0 <= source.last_line < 10**15
    is_bare = not (source.extra or source.quote or source.by)
    return is_bare and numbers and bool(_SESSION.match(source.session) and _DIGITS.match(source.sha256))


_tellable = ById(lambda decision: of(decision) if can_be_told(decision) else ())


def told(decisions: Sequence[Decision]) -> dict[str, tuple[Source, ...]]:
    """The places of those decisions of which lines can tell them."""
    labels = [decision.id for decision in decisions]
    found = {label: said for label, said in zip(labels, _tellable.of(decisions), strict=True) if said}
    if len(set(labels)) < len(labels):
        counts = Counter(labels)
        found = {label: said for label, said in found.items() if counts[label] == 1}
    return found


def lines(told: Told) -> Iterator[str]:
    """Lines of places: a new one where the session is another than that of the place before."""
    session, run = "", list[str]()
    for label, places in told.items():
        for place in places:
            if place.session != session and run:
                yield f"- {_BEGINS}{session}: {', '.join(run)}"
                run = []
            session = place.session
            run.append(f"{label} {_short(place)}")
    if run:
        yield f"- {_BEGINS}{session}: {', '.join(run)}"


def _short(place: Source) -> str:
    last = f"-{place.last_line}" if place.last_line != place.first_line else ""
    return f"{place.first_line}{last} {place.sha256}".rstrip()


# ---- decisions without their places ----


def bare(decision: Decision) -> Decision:
    """A decision without its places."""
    return (
        replace(decision, source=None, further_sources=()) if decision.source or decision.further_sources else decision
    )


_bare = ById(bare)


def without(decisions: Sequence[Decision], told: Mapping[str, Any]) -> list[Decision]:
    """The decisions, without the places that lines tell."""
    pairs = zip(_bare.of(decisions), decisions, strict=True)
    return [stripped if whole.id in told else whole for stripped, whole in pairs]


def _size(decision: Decision) -> int:
    from ralf.text import tokens  # here: a read needs no estimate

    apart = can_be_told(decision)
    lines = yaml_pieces({"decisions": [bare(decision) if apart else decision]})[1]
    return tokens.estimate(lines) + (TOKENS * len(of(decision)) if apart else 0)


sizes = ById(_size)
"""About how many tokens each decision takes in the front matter and among the """
