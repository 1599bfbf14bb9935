"""What stands in the fields of a document's notes: decisions, facts, and where the work stands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf.document.tree import BadTree, from_tree, to_tree
from ralf.model import SHA256_DIGITS, ActiveWork, Decision, Facts, Source
from ralf.text.cleaning import trimmed
from ralf.transcripts.events import Event

_TEXT, _REASON, _OPTION = 600, 1_000, 300  # characters of a decision, its reason, an option: the file is capped

_MOST_OPTIONS = 12

_KINDS = ("decision", "rule", "failed-approach")

_DECISION_STATUSES = ("active", "superseded", "reversed", "done", "dropped")

_KINDS_OF_IMPORTS = ("decision", "failed-approach")

_OURS = ("id", "pinned", "supersedes", "superseded_by", "source", "further_sources")

_COUNTED = ("attempts", "last_progress", "last_runs")


def decisions(events: Iterable[Event], session: str, origin: str) -> tuple[Decision, ...]:
    """The decisions in the fields of notes, in order, each with the place of its note."""
    made = (_decision(event, session, origin) for event in events if event.kind == "note")
    return tuple(one for one in made if one.decision)


def work(event: Event, known: ActiveWork) -> ActiveWork:
    """The work, with what a note says of it; how often it was tried is not for a note to say."""
    told = _fields(event, "work", ActiveWork, _COUNTED)
    return from_tree(ActiveWork, {**to_tree(known), **told}) if told else known


def facts(event: Event) -> Facts:
    """The facts in the fields of a note."""
    return replace(from_tree(Facts, _fields(event, "facts", Facts)), extra={})


def place(event: Event) -> dict[str, Any]:
    """The document in which a note stands, and its first line there; {} where it does not say."""
    told = {key: event.input.get(key) for key in ("path", "line", "file_sha256")}
    return {key: value for key, value in told.items() if value and told["path"]}


def _decision(event: Event, session: str, origin: str) -> Decision:
    made = from_tree(Decision, _fields(event, "decision", Decision, _OURS))
    digest = hashlib.sha256(event.text.encode("utf-8", "replace")).hexdigest()[:SHA256_DIGITS]
    extra = {key: value for key, value in made.extra.items() if value not in (None, "", [], {})}
    by = "import" if made.origin == "import" else origin  # no document speaks as the user
    return replace(
        made,
        kind=made.kind if made.kind in (_KINDS if by != "import" else _KINDS_OF_IMPORTS) else "decision",
        status=made.status if made.status in _DECISION_STATUSES else "active",
        timestamp=made.timestamp or event.timestamp,
        decision=trimmed(made.decision.strip(), _TEXT),
        rationale=trimmed(made.rationale.strip(), _REASON),
        alternatives=tuple(trimmed(text, _OPTION) for text in made.alternatives if text.strip())[:_MOST_OPTIONS],
        source=Source(session, event.start.line + 1, event.end.line, digest, extra=place(event)),
        origin=by,
        extra=extra,
    )


def _fields(
    event: Event, key: str, cls: type[ActiveWork | Decision | Facts], ours: Sequence[str] = ()
) -> dict[str, Any]:
    """What a note says of a class under a key, without fields that are `ours`, and without those that do not fit."""
    told = event.input.get(key)
    fields = told.items() if isinstance(told, Mapping) else ()
    return {name: value for name, value in fields if name not in ours and _fits(cls, name, value)}


def _fits(cls: type[ActiveWork | Decision | Facts], key: str, value: object) -> bool:
    try:
        from_tree(cls, {key: value})
    except BadTree:
        return False
    return True
