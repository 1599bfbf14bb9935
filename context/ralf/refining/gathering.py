"""Gathers what a model is shown of a route when it is asked about a checkpoint, and what its answer is held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ralf.errors import BlobNotFound, DamagedBlob, NotFound
from ralf.format.codec import from_tree, to_tree
from ralf.model import ActiveWork, Decision, Facts, HandOver, RouteContext
from ralf.project import Project
from ralf.proof.loss import answered
from ralf.route import history
from ralf.route.fold import entry_of
from ralf.storage.journal import Record
from ralf.summarize.command import NoAnswer
from ralf.summarize.listed import Listed
from ralf.summarize.prompting import Held
from ralf.text import tokens
from ralf.text.cleaning import trimmed
from ralf.transcripts.events import EvidenceLine, leaves, read_evidence

MOST_EVIDENCE = 8
"""Earlier segments against which an answer is held, the newest."""

_LITTLE = 8  # tokens of messages below which a segment without decisions and edits says nothing

_FEW = 8  # names and refusals that a model is told of

_ITEM = 200  # characters of one


@dataclass(frozen=True)
class Shown:
    """What a model is asked about.

    segment   the evidence of the checkpoint's segment
    evidence  texts that an answer may name things from: the segment, earlier ones, and what was taken from them
    ended     time of the segment's last record
    """

    segment: Sequence[EvidenceLine]
    evidence: Sequence[str]
    listed: Listed
    held: Held
    session: str
    ended: str
    imported: bool
    has_substance: bool
    tokens_stored: int


def gathered(project: Project, route: str, context: RouteContext, checkpoint_id: str) -> Shown:
    """What a model is shown of a checkpoint. NotFound, BlobNotFound, DamagedBlob, DamagedJournal; NoAnswer where the
    journal does not have it.
    """
    if entry_of(context, checkpoint_id) is None:
        raise NotFound(route, f"has no checkpoint {checkpoint_id}", f"ralf context show {route}")
    read = _Journal(project, route, checkpoint_id)
    payload = read.payload
    source, period = payload.get("source", {}), payload.get("period", ("", ""))
    session, last = str(source.get("session", "")), int(source.get("to_line", 0))
    segment = list(read_evidence(project.store, str(payload.get("evidence", ""))))
    is_newest = context.checkpoint_history[-1].checkpoint_id == checkpoint_id
    then = from_tree(ActiveWork, payload.get("active_work", {}))
    decisions = [item for item in context.decisions if _is_known_by(item, session, last)]
    own = from_tree(Facts, payload.get("facts", {})).errors
    errors = [error for error in context.facts.errors if is_newest or _is_among(error.error, own)]
    work = context.active_work if is_newest else then
    held = Held(
        goal=context.goal if is_newest else str(payload.get("goal") or context.goal),
        work=work,
        facts=payload.get("facts", {}),
        handover=read.handover,
        keep=[str(hint) for hint in payload.get("keep", ())],
        told=read.told,
    )
    return Shown(
        segment=segment,
        evidence=list(_evidence(project, segment, read.before, payload, context, read.handover)),
        listed=Listed.of(decisions, work if is_newest else ActiveWork(), errors, read.edited),
        held=held,
        session=session,
        ended=str(period[1]),
        imported=payload.get("origin") == "import",
        has_substance=_has_substance(payload, segment),
        tokens_stored=int(payload.get("tokens_stored", 0)),
    )


class _Journal:
    """What the journal tells of a checkpoint, and of what came before it.

    before    evidence of the segments before it, oldest first
    handover  the newest one before its end
    told      what became of the last answer before it, for the model
    edited    decisions that a person changed in the file
    """

    def __init__(self, project: Project, route: str, checkpoint_id: str) -> None:
        self.payload: Mapping[str, Any] = {}
        self.before: list[str] = []
        self.handover: HandOver | None = None
        self.told: tuple[str, ...] = ()
        self.edited: set[str] = set()
        number, found, newest = 0, False, -1.0
        wanted = _number(checkpoint_id)
        for label, record in history.records(project, route):
            if record.foreign:
                continue
            if record.kind == "edit" and record.payload.get("origin", "human-edit") == "human-edit":
                self.edited.update(_changed_decisions(record))
            number = _number(label) if label else number
            place = _place(record, number)
            if label == checkpoint_id and record.kind == "checkpoint":
                self.payload, found = record.payload, True
            elif record.kind == "checkpoint" and number < wanted and not found:
                self.before.append(str(record.payload.get("evidence", "")))
            if place < wanted and record.kind in ("refinement", "unrefined") and record.payload.get("called"):
                self.told = tuple(_told(record))
            within = label == checkpoint_id  # what the segment holds the model reads there
            if (
                newest <= place <= wanted
                and not within
                and (made := from_tree(HandOver, record.payload.get("handover") or {}))
            ):
                self.handover, newest = made, place
        if not found:
            raise NoAnswer("the journal has no record of this checkpoint: it was imported")


_WORDS = ("decision", "rationale", "alternatives", "status", "pinned")


def _changed_decisions(record: Record) -> Iterator[str]:
    """The decisions of which an edit changes what they say."""
    for change in record.payload.get("changes", ()):
        at = [str(key) for key in change.get("at", ())]
        if len(at) > 2 and at[0] == "decisions" and at[2] in _WORDS:
            yield at[1]


def _number(label: str) -> int:
    digits = label.removeprefix("cp-")
    return int(digits) if digits.isdecimal() else 0


def _place(record: Record, number: int) -> float:
    """Where in the route's work a record belongs: an answer behind its checkpoint, however late it came."""
    if record.kind in ("refinement", "unrefined"):
        return _number(str(record.payload.get("refines", ""))) + 0.5
    return number + (0.75 if record.kind == "handover" else 0)


def _told(record: Record) -> Iterator[str]:
    """What became of an answer, in words for the model."""
    last = answered(record.payload)
    if last.failure:
        yield f"It could not be used: {trimmed(last.failure, _ITEM)}."
    names = list(dict.fromkeys(name for _, missing in last.unborne for name in missing))
    if names:
        count = len(last.unborne)
        what = ", ".join(trimmed(name, 60) for name in names[:_FEW])
        yield f"{count} sentence{'s were' if count > 1 else ' was'} dropped, since this stands nowhere: {what}."
    if last.refused:
        yield f"Not done: {'; '.join(trimmed(line, _ITEM) for line in last.refused[:_FEW])}."
    made = {name: count for name, count in last.verdicts.items() if name != "unmentioned"}
    if made:
        yield f"Taken: {', '.join(f'{count} {name}' for name, count in made.items())}."
    if unmentioned := last.verdicts.get("unmentioned", 0):
        yield f"It said nothing of {unmentioned} listed items."


def _is_known_by(item: Decision, session: str, last: int) -> bool:
    """Whether a decision was there when a segment ended."""
    return item.source is None or item.source.session != session or item.source.first_line <= last


def _is_among(error: str, errors: Sequence[Any]) -> bool:
    return any(known.error == error for known in errors)


def _evidence(
    project: Project,
    segment: Sequence[EvidenceLine],
    before: Sequence[str],
    payload: Mapping[str, Any],
    context: RouteContext,
    handover: HandOver | None,
) -> Iterator[str]:
    """What has been seen and heard up to the end of a segment. A client's summary of what the route has as well tells
    nothing new, and may be wrong.
    """
    for digest in before[-MOST_EVIDENCE:]:
        with suppress(BlobNotFound, DamagedBlob):
            yield from (line.text for line in read_evidence(project.store, digest) if line.kind != "compaction")
    yield from (line.text for line in segment if line.kind != "compaction" or not before)
    yield "\n".join(
        dict.fromkeys(line.tool for line in segment)
    )  # each call stands in the prompt under its tool's name
    yield leaves({key: payload.get(key) for key in ("facts", "active_work", "goal", "keep", "decisions")})
    yield leaves([to_tree(item) for item in context.decisions])
    yield leaves([context.goal, context.began_as, to_tree(handover) if handover is not None else {}])


def _has_substance(payload: Mapping[str, Any], segment: Sequence[EvidenceLine]) -> bool:
    """Whether a segment holds anything that a model could add to."""
    facts = payload.get("facts", {})
    changed = any(set(fact.get("did", ())) - {"read"} for fact in facts.get("paths", ())) or facts.get("commits")
    if payload.get("decisions") or changed or payload.get("origin") == "import":
        return True
    said = sum(tokens.estimate(line.text) for line in segment if line.kind in ("user", "assistant", "note"))
    return said >= _LITTLE
