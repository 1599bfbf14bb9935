"""Why a route has a decision or a checkpoint: the record that made it, its words, its turn, and what was said after."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ralf import routing
from ralf.brief import lines
from ralf.errors import BlobNotFound, NotFound
from ralf.model import SHA256_DIGITS, Decision, RouteContext, Source
from ralf.model.entries import Message, SessionEntries, Step
from ralf.project import Project
from ralf.route import history, shared
from ralf.route.edits import by_label
from ralf.route.entries import sessions_of
from ralf.route.load import load_state
from ralf.storage.journal import Record, understood
from ralf.talk.answers import about
from ralf.talk.turns import Turn, thread
from ralf.text.cleaning import MARK, one_line
from ralf.transcripts.events import EvidenceLine, read_evidence

_SPEECH = ("user", "assistant", "note")

_AFTER = 2  # messages that are shown behind the turn


@dataclass(frozen=True, slots=True)
class Quote:
    """An event of the transcript: its first and last line, who is heard in it, and its words."""

    line: int
    last: int
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class Reason:
    """A claim of a route, and what stands behind it.

    id         DEC-003 or cp-002; `kind`: decision, rule, failed-approach or checkpoint
    status     of a decision: active, superseded, reversed, done, proposed, dropped
    supersedes  labels of the decisions that it replaced; `superseded_by`: of the one that replaced it, "" for none
    recorded   how it came into the route: "checkpoint cp-002", "by a command", "edit of the route file", "import";
               FOREIGN where it did not: this user's ralf has not written it; "in another clone" that shares it
    revision   of the journal's record that brought it, 0 where the journal has none
    edited     a person has put the claim in other words since: the quotes are what it was taken from
    source     where it was found; None for what no transcript holds
    evidence   kept; purged: kept, but some of its words were forgotten (`ralf.forgetting`); pruned: it is known which
               lines, but their words are gone; none: there are no lines behind it
    matches    whether the words are those that the claim was taken from, by their hash; None where nobody can tell
    quotes     those words, oldest first; where they do not match, all that stands in these lines
    dropped_by  whose clone has taken back a decision of this user's, "" for none; `because`: why it was dropped, ""
               where nobody said so
    turn       the turn in which it was decided, whole; () where no session has it
    after      the next two messages of the person: what was said against it is seen
    """

    route: str
    id: str
    kind: str
    claim: str
    rationale: str = ""
    alternatives: tuple[str, ...] = ()
    status: str = ""
    origin: str = ""
    timestamp: str = ""
    recorded: str = ""
    revision: int = 0
    edited: bool = False
    source: Source | None = None
    evidence: str = "none"
    matches: bool | None = None
    quotes: tuple[Quote, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: str = ""
    dropped_by: str = ""
    because: str = ""
    turn: tuple[Quote, ...] = ()
    after: tuple[Quote, ...] = ()


def why(route: str, id: str, *, root: str | os.PathLike[str] | None = None) -> Reason:  # noqa: A002
    """What stands behind a claim of a route, by its records and evidence: the transcript may be gone.

    id  a decision, also one that the file has folded away, or a checkpoint: `DEC-003`, `dec-3`, `cp-002`

    Raises RouteNotFound, NotFound (no such claim), UsageError (a refused name), DamagedJournal, DamagedBlob.
    """
    project, found = routing.find(route, root)
    label = history.label(id, "DEC")
    records = list(history.records(project, found))
    with understood(found):
        explained = _checkpoint if label.startswith("cp-") else _decision
        return explained(project, found, label, records)


# ---- decisions ----

FOREIGN = "foreign: came with the repository"

_HOW = {"decision": "by a command", "edit": "edit of the route file", "import": "import"}


def _decision(project: Project, route: str, label: str, records: Sequence[tuple[str, Record]]) -> Reason:
    state = load_state(project, route)
    context = state.context if state is not None else RouteContext()
    decision = history.decision_of(project, context, label)
    if decision is None:
        raise NotFound(route, f"has no decision {label}", f"ralf show {route} --section decisions")
    recorded, revision, claim = "edit of the route file", 0, decision.decision
    labels = {record.revision: name for name, record in records}
    for record, decisions in history.decided(record for _, record in records):
        if brought := by_label(decisions, decision.id):
            recorded = f"{_HOW.get(record.kind, record.kind)} {labels[record.revision]}".rstrip()
            revision, claim = record.revision, brought.decision
            break
    if context.wholly_foreign:
        recorded = FOREIGN
    elif decision.origin == shared.ORIGIN:
        recorded = "in another clone"
    dropped_by = shared.taken_back_by(project, route, decision.id) if decision.status == "active" else ""
    replaced = [item.id for item in context.decisions if item.superseded_by == decision.id]
    successors = (item.id for item in context.decisions if item.supersedes == decision.id)
    reason = Reason(
        route=route,
        id=decision.id,
        kind=decision.kind,
        claim=decision.decision,
        rationale=decision.rationale,
        alternatives=decision.alternatives,
        status="dropped" if dropped_by else decision.status,
        origin=str(decision.extra["by"]) if decision.origin == shared.ORIGIN else decision.origin,
        timestamp=decision.timestamp,
        recorded=recorded,
        revision=revision,
        edited=claim != decision.decision,
        source=decision.source,
        supersedes=tuple(filter(None, dict.fromkeys((decision.supersedes, *replaced)))),
        superseded_by=decision.superseded_by or (next(successors, "") if decision.status != "active" else ""),
        dropped_by=dropped_by,
        because=_because(decision, records),
    )
    if not revision:
        return reason
    sessions = sessions_of(project, route)
    command, turn, after = _around(sessions, decision)
    reason = replace(reason, quotes=tuple(command), turn=tuple(turn), after=tuple(after))
    if decision.source is None:
        return reason
    evidence, matches, quotes = _quoted(project, decision.source, sessions, records)
    return replace(reason, evidence=evidence, matches=matches, quotes=tuple(quotes) or reason.quotes)


def _because(decision: Decision, records: Sequence[tuple[str, Record]]) -> str:
    """Why a decision was dropped, as it was said last; "" where it was not, or nobody said so."""
    drops = (record.payload for _, record in reversed(records) if record.kind == "drop")
    said = (str(one.get("because", "")) for one in drops if one.get("tombstone", {}).get("id") == decision.id)
    return next(said, "") if decision.status == "dropped" else ""


def _quoted(
    project: Project, source: Source, sessions: Sequence[SessionEntries], records: Sequence[tuple[str, Record]]
) -> tuple[str, bool | None, list[Quote]]:
    """What is kept of the words that a decision was taken from, whether they are those, and the words: a message on
    record, or lines of the evidence.
    """
    entries = (entry for one in sessions if one.session == source.session for entry in one.entries)
    for entry in entries:
        is_there = isinstance(entry, Message) and source.first_line <= entry.line <= source.last_line
        if isinstance(entry, Message) and is_there and _is_of(entry.text, source):
            return "kept", True, [_of(entry)]
    for payload in (record.payload for name, record in records if name and _covers(record.payload, source)):
        with suppress(BlobNotFound):
            evidence = list(read_evidence(project.store, str(payload.get("evidence", ""))))
            there = [line for line in evidence if source.first_line <= line.line and line.last <= source.last_line]
            own = [line for line in there if _is_of(line.text, source)]
            if not own and any(MARK in line.text for line in there):
                return "purged", None, list(map(_quote, there))
            return "kept", bool(own), list(map(_quote, own or there))
    return "pruned", None, []


def _covers(payload: Mapping[str, Any], source: Source) -> bool:
    span = payload.get("source", {})
    within = int(span.get("from_line", 0)) < source.first_line and source.last_line <= int(span.get("to_line", 0))
    return within and span.get("session", "") == source.session


def _is_of(text: str, source: Source) -> bool:
    """Whether a text is the one that a source names."""
    if not source.sha256:
        return source.quote in text
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest().startswith(source.sha256[:SHA256_DIGITS])


# ---- the turn ----


def _around(sessions: Sequence[SessionEntries], decision: Decision) -> tuple[list[Quote], list[Quote], list[Quote]]:
    """The command that recorded a decision without lines, the turn in which it stands, and the next two messages."""
    source = decision.source
    for session in sessions:
        turns = thread(session.entries).turns if source is None or source.session == session.session else ()
        for number, turn in enumerate(turns):
            commands = [step for step in turn.steps if source is None and _records(step, decision)]
            there = [entry.line for entry in (turn.message, *turn.entries) if entry is not None and entry.line]
            if commands or (source is not None and there and min(there) <= source.first_line <= max(there)):
                called = [Quote(step.line, step.line, f"agent, calling {step.tool}", step.object) for step in commands]
                following = [_of(one.message) for one in turns[number + 1 :] if one.message is not None]
                return called[:1], list(_turn(turn)), following[:_AFTER]
    return [], [], []


_GIVEN = 60  # first characters of a decision that a command was given

_VERBS = ("decide", "handover", "record_decision", "hand_over")


def _records(step: Step, decision: Decision) -> bool:
    """Whether a call is one of ralf's that recorded a decision: it was given its words, or printed its label."""
    name = step.object if step.kind == "command" else step.tool
    if step.outcome != "ok" or "ralf" not in name or not any(verb in name for verb in _VERBS):
        return False
    label = re.compile(rf"\b{re.escape(decision.id)}\b")
    is_given = one_line(decision.decision)[:_GIVEN] in one_line(step.object)
    return is_given or any(map(label.search, (*step.lines, step.output)))


def _turn(turn: Turn) -> Iterator[Quote]:
    """A turn: the message, what was done, and what the agent said."""
    message = turn.message
    if message is not None:
        yield _of(message)
        if answers := about(message, turn.before):
            yield Quote(message.line, message.line, "it answers", answers)
    if did := lines.did(turn).removeprefix("did: "):
        yield Quote(turn.steps[0].line, turn.steps[-1].line, "done", did)
    yield from (Quote(text.line, text.line, "agent", text.text) for text in turn.texts)


def _of(message: Message) -> Quote:
    return Quote(message.line, message.line, "user", message.text)


# ---- checkpoints ----


def _checkpoint(project: Project, route: str, label: str, records: Sequence[tuple[str, Record]]) -> Reason:
    record = next((record for name, record in records if name == label), None)
    if record is None:
        raise NotFound(route, f"has no checkpoint {label}", f"ralf show {route} --section history")
    payload = record.payload
    span, digest = payload.get("source", {}), str(payload.get("evidence", ""))
    first, last = int(span.get("from_line", 0)) + 1, int(span.get("to_line", 0))
    evidence, quotes = ("pruned" if digest else "none"), tuple[Quote, ...]()  # an orchestrator's own has no transcript
    with suppress(BlobNotFound):
        found = list(read_evidence(project.store, digest)) if digest else []
        evidence, quotes = ("kept" if digest else "none"), tuple(_quote(one) for one in found if one.kind in _SPEECH)
    return Reason(
        route=route,
        id=label,
        kind="checkpoint",
        claim=f"{payload.get('title', '')}\n{payload.get('text', '')}".strip(),
        timestamp=str((*payload.get("period", ()), "", "")[1]),
        recorded=f"summarizer {payload.get('summarizer', '')}",
        revision=record.revision,
        source=Source(str(span.get("session", "")), first, last, digest) if digest else None,
        evidence=evidence,
        matches=True if evidence == "kept" else None,
        quotes=quotes,
    )


def _quote(line: EvidenceLine) -> Quote:
    who = {
        "user": "user",
        "assistant": "agent",
        "thinking": "agent, thinking",
        "call": f"agent, calling {line.tool}",
        "result": f"{line.tool or 'tool'}, answering",
        "compaction": "client, compacting",
        "note": "noted",
        "other": "client",
    }
    return Quote(line.line, line.last, who.get(line.kind, line.kind), line.text)
