"""A decision as an entry of a hand-over, and back: a route keeps each decision once, among its decisions."""

from __future__ import annotations

from ralf.model.handover import Author, Carried, Kept
from ralf.model.items import Decision, Source
from ralf.text.frozen import replace

_AUTHORS: dict[str, Author] = {
    "user": "person",
    "answer": "person",
    "agent": "agent",
    "model": "model",
    "import": "import",
}  # of an origin; else the file's, which no model ends

_ORIGINS: dict[Author, str] = {"person": "user", "file": "human-edit"}

_KINDS = {"avoid": "failed-approach", "decision": "decision"}


def of_decision(item: Decision) -> Kept:
    """A decision as an entry of a hand-over."""
    source = item.source or Source()
    return Kept(
        kind="avoid" if item.kind == "failed-approach" else "decision",
        text=item.decision,
        id=item.id,
        words=source.quote,
        by="person" if source.by == "person" else "agent" if source.by == "agent" else "",
        line=source.first_line,
        reason=item.rationale,
        rejected=item.alternatives,
        author=_AUTHORS.get(item.origin, "file"),
        model=item.model,
        at=item.timestamp,
        session=source.session,
        marks=item.not_found,
        ended=item.ended,
    )


def decision_of(entry: Kept) -> Decision:
    """An entry of a hand-over, a decision or what to avoid, as a decision without a label."""
    line = entry.line
    source = Source(entry.session, line, line, quote=entry.words, by=entry.by) if line and entry.session else None
    return Decision(
        kind=_KINDS[entry.kind],
        timestamp=entry.at,
        decision=entry.text,
        rationale=entry.reason,
        alternatives=entry.rejected,
        source=source,
        origin=_ORIGINS.get(entry.author, entry.author),
        model=entry.model,
        not_found=entry.marks,
    )


def with_decisions(carried: Carried, decisions: tuple[Decision, ...]) -> Carried:
    """What a route hands over with its decisions in force, newest first."""
    held = [item for item in reversed(decisions) if item.status == "active"]
    return replace(carried, kept=(*map(of_decision, held), *carried.kept))
