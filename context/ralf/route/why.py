"""Why a route has a decision or a checkpoint: the record that made it, its words, its turn, and what was said after."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ralf import routing
from ralf.brief import lines
from ralf.document.tree import Tree, from_tree
from ralf.errors import BlobNotFound, NotFound
from ralf.model import SHA256_DIGITS, Decision, Source
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

_MOST_MESSAGES = 8  # that one claim rests on

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

    id         DEC-003 or cp-002; `kind`: decision, rule, failed-approach, checkpoint or revert
    status     of a decision: active, superseded, reversed, done, proposed, dropped
    supersedes  labels of the decisions that it replaced; `superseded_by`: of the one that replaced it, "" for none
    recorded   how it came into the route: "checkpoint cp-002", "by hand", "edit of the route file", "import"; FOREIGN
               where it did not: this user's ralf has not written it; "in another clone" that shares it
    revision   of the journal's record that brought it, 0 where the journal has none
    edited     a person has put the claim in other words since: the quotes are what it was taken from
    source     where it was found; None for what no transcript holds
    evidence   kept; purged: kept, but some of its words were forgotten (`ralf.forgetting`); pruned: it is known which
               lines, but their words are gone; none: there are no lines behind it
    matches    whether the words are those that the claim was taken from, by their hash; None where nobody can tell
    quotes     those words, oldest first; where they do not match, all that stands in these lines
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
        if label.startswith("cp-"):
            return _checkpoint(project, found, label, records)
        return _decision(project, found, label, records)


# ---- decisions ----


def _decision(project: Project, route: str, label: str, records: Sequence[tuple[str, Record]]) -> Reason:
    state = load_state(project, route)
    present = state.context.decisions if state is not None else ()
    decision = by_label(present, label)
    label = decision.id if decision is not None else label
    foreign = state is not None and state.context.wholly_foreign
    recorded, revision = FOREIGN if foreign else "edit of the route file", 0
    tree: Tree = {}
    said = ""  # at first
    for name, record in records:
        before = tree
        tree = history.decision_after(tree, label, record)
        if tree and not before:
            recorded, revision = _HOW.get(record.kind, record.kind), record.revision
            recorded += f" {name}" if name else ""
        said = said or str(tree.get("decision", ""))
    if decision is None and not tree:
        return _of_clone(project, route, label)
    decision = decision or from_tree(Decision, tree)
    source = decision.source or from_tree(Decision, tree).source
    replaced = [item.id for item in present if item.superseded_by == decision.id]
    successors = (item.id for item in present if item.supersedes == decision.id)
    reason = Reason(
        route=route,
        id=decision.id,
        kind=decision.kind,
        claim=decision.decision,
        rationale=decision.rationale or str(tree.get("rationale", "")),  # the file may have folded it
        alternatives=decision.alternatives or tuple(map(str, tree.get("alternatives", ()))),
        status=decision.status,
        origin=decision.origin,
        timestamp=decision.timestamp,
        recorded=recorded,
        revision=revision,
        edited=said not in ("", decision.decision),
        source=source,
        supersedes=tuple(filter(None, dict.fromkeys((decision.supersedes, *replaced)))),
        superseded_by=decision.superseded_by or (next(successors, "") if decision.status != "active" else ""),
    )
    if foreign:
        return reason
    sessions = sessions_of(project, route)
    command, turn, after = _around(sessions, source, decision)
    reason = replace(reason, quotes=tuple(command), turn=tuple(turn), after=tuple(after))
    if source is None:
        return reason
    if (message := _said_at(sessions, source)) is not None:
        return replace(reason, evidence="kept", matches=True, quotes=(message,))
    return _quoted(project, reason, source, records)


def _of_clone(project: Project, route: str, label: str) -> Reason:
    """What another clone has shared of a decision of its own, and this user has accepted."""
    decision = shared.decision_of(project, route, label)
    if decision is None:
        raise NotFound(route, f"has no decision {label}", f"ralf context show {route} --section decisions")
    return Reason(
        route=route,
        id=decision.id,
        kind=decision.kind,
        claim=decision.decision,
        rationale=decision.rationale,
        alternatives=decision.alternatives,
        status=decision.status,
        origin=str(decision.extra["by"]),
        timestamp=decision.timestamp,
        recorded="in another clone",
        supersedes=tuple(filter(None, [decision.supersedes])),
        superseded_by=decision.superseded_by,
    )


FOREIGN = "foreign: came with the repository"

_HOW = {"decision": "by hand", "edit": "edit of the route file", "import": "import"}


def _quoted(project: Project, reason: Reason, source: Source, records: Iterable[tuple[str, Record]]) -> Reason:
    """The reason with the words behind it, from the segment that its lines lie in; the newest that has them."""
    reason = replace(reason, evidence="pruned")
    spans = [record.payload for name, record in records if name and _covers(record.payload, source)]
    for payload in reversed(spans):
        try:
            found = [
                line
                for line in read_evidence(project.store, str(payload.get("evidence", "")))
                if source.first_line <= line.line and line.last <= source.last_line
            ]
        except BlobNotFound:
            continue
        said = _hashed(found, source.sha256)
        if said or reason.evidence == "pruned":
            quotes = tuple(said or map(_quote, found))
            purged = not said and any(MARK in line.text for line in found)
            matches = None if purged else bool(said)
            reason = replace(reason, evidence="purged" if purged else "kept", matches=matches, quotes=quotes)
        if said:
            break
    return reason


def _covers(payload: Mapping[str, Any], source: Source) -> bool:
    span = payload.get("source", {})
    within = int(span.get("from_line", 0)) < source.first_line and source.last_line <= int(span.get("to_line", 0))
    return within and span.get("session", "") == source.session


def _hashed(lines: Sequence[EvidenceLine], sha256: str) -> list[Quote]:
    """The messages that, joined by line breaks, have this hash; [] where there are none.

    An approved plan and an answered question stand in a call and its result.
    """
    spoken = [_quote(line) for line in lines if line.kind in _SPEECH]
    called = [_quote(line) for line in lines if line.kind in ("call", "result")]
    for said in (spoken, called):
        for some in _some_of(said):
            if _hash("\n".join(quote.text for quote in some)) == sha256[:SHA256_DIGITS]:
                return list(some)
    return []


def _some_of(said: Sequence[Quote]) -> Iterator[Sequence[Quote]]:
    """Messages that follow one another."""
    for first in range(len(said)):
        yield from (said[first:end] for end in range(first + 1, min(first + _MOST_MESSAGES, len(said)) + 1))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:SHA256_DIGITS]


# ---- the turn ----


def _around(
    sessions: Sequence[SessionEntries], source: Source | None, decision: Decision
) -> tuple[list[Quote], list[Quote], list[Quote]]:
    """The command that recorded a decision without lines, the turn in which it stands, and the next two messages."""
    for session in sessions:
        if source is not None and source.session != session.session:
            continue
        turns = thread(session.entries).turns
        for number, turn in enumerate(turns):
            made = [_called(step) for step in turn.steps if _records(step, decision)] if source is None else []
            if made or (source is not None and _has(turn, source)):
                following = [one.message for one in turns[number + 1 :] if one.message is not None]
                return made[:1], list(_whole(turn)), [_of(message) for message in following[:_AFTER]]
    return [], [], []


def _has(turn: Turn, source: Source) -> bool:
    """Whether a decision's first line lies in a turn."""
    lines = [entry.line for entry in ([turn.message] if turn.message else []) + turn.entries if entry.line]
    return bool(lines) and min(lines) <= source.first_line <= max(lines)


_GIVEN = 60  # first characters of a decision that a command was given

_VERBS = ("decide", "handover", "record_decision", "hand_over")


def _records(step: Step, decision: Decision) -> bool:
    """Whether a call is one of ralf's that recorded a decision: it was given its words, or printed its label."""
    named = step.object if step.kind == "command" else step.tool
    if step.outcome != "ok" or "ralf" not in named or not any(verb in named for verb in _VERBS):
        return False
    label = re.compile(rf"\b{re.escape(decision.id)}\b")
    is_given = one_line(decision.decision)[:_GIVEN] in one_line(step.object)
    return is_given or any(map(label.search, (*step.lines, step.output)))


def _called(step: Step) -> Quote:
    return Quote(step.line, step.line, f"agent, calling {step.tool}", step.object)


def _whole(turn: Turn) -> Iterator[Quote]:
    """A turn: the message, what was done, and what the agent said."""
    message = turn.message
    if message is not None:
        yield _of(message)
        if answers := about(message, turn.before):
            yield Quote(message.line, message.line, "it answers", answers)
    if did := lines.did(turn).removeprefix("did: "):
        yield Quote(turn.steps[0].line, turn.steps[-1].line, "done", did)
    yield from (Quote(said.line, said.line, "agent", said.text) for said in turn.texts)


def _of(message: Message) -> Quote:
    return Quote(message.line, message.line, "user", message.text)


def _said_at(sessions: Iterable[SessionEntries], source: Source) -> Quote | None:
    """The message of the person's that a decision was taken from, by its lines and its hash."""
    for session in sessions:
        for entry in session.entries if session.session == source.session else ():
            is_there = isinstance(entry, Message) and source.first_line <= entry.line <= source.last_line
            if isinstance(entry, Message) and is_there and _hash(entry.text) == source.sha256[:SHA256_DIGITS]:
                return _of(entry)
    return None


# ---- checkpoints ----


def _checkpoint(project: Project, route: str, label: str, records: Sequence[tuple[str, Record]]) -> Reason:
    record = next((record for name, record in records if name == label), None)
    if record is None:
        raise NotFound(route, f"has no checkpoint {label}", f"ralf context show {route} --section history")
    payload = record.payload
    if record.kind == "revert":
        claim = f"{payload.get('title', '')}\n{payload.get('text', '')}".strip()
        when = str(payload.get("timestamp", ""))
        return Reason(route, label, "revert", claim, timestamp=when, recorded="by hand", revision=record.revision)
    span = payload.get("source", {})
    digest = str(payload.get("evidence", ""))
    source = Source(
        str(span.get("session", "")), int(span.get("from_line", 0)) + 1, int(span.get("to_line", 0)), digest
    )
    text = str(payload.get("text", ""))
    reason = Reason(
        route=route,
        id=label,
        kind="checkpoint",
        claim=f"{payload.get('title', '')}\n{text}".strip(),
        timestamp=str((*payload.get("period", ()), "", "")[1]),
        recorded=f"summarizer {payload.get('summarizer', '')}",
        revision=record.revision,
        source=source if digest else None,
        evidence="pruned" if digest else "none",  # an orchestrator's own has no transcript
    )
    if not digest:
        return reason
    try:
        evidence = list(read_evidence(project.store, digest))
    except BlobNotFound:
        return reason
    quotes = tuple(_quote(line) for line in evidence if line.kind in _SPEECH)
    return replace(reason, evidence="kept", matches=True, quotes=quotes)


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
