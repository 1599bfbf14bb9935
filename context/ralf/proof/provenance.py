"""The transcript lines behind a claim of a route: a decision, or a checkpoint's section."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from ralf import routing
from ralf.errors import BlobNotFound, NotFound
from ralf.format.codec import Tree, from_tree
from ralf.model import SHA256_DIGITS, Decision, Source
from ralf.project import Project
from ralf.proof.recall import Item, Words
from ralf.route import history
from ralf.route.edits import by_label
from ralf.route.load import load_state
from ralf.storage.journal import Record, understood
from ralf.text.cleaning import MARK
from ralf.transcripts.events import EvidenceLine, read_evidence

_SPEECH = ("user", "assistant", "note")

_MOST_MESSAGES = 8  # that one claim rests on

_MOST_APART, _MOST_LOOKED_AT = 4, 12  # where others stand between them, and of how many


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
               where it did not: this user's ralf has not written it
    revision   of the journal's record that brought it, 0 where it has not been taken in yet
    edited     a person has put the claim in other words since: the quotes are what it was taken from
    source     where it was found; None for what no transcript holds
    evidence   kept; purged: kept, but some of its words were forgotten (`ralf.forgetting`); pruned: it is known which
               lines, but their words are gone; none: there are no lines behind it
    matches    whether the words are those that the claim was taken from, by their hash; None where nobody can tell
    quotes     those words, oldest first; where they do not match, all that stands in these lines
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


def why(route: str, id: str, *, root: str | os.PathLike[str] | None = None) -> Reason:  # noqa: A002
    """What stands behind a claim of a route, by its evidence: the transcript may be gone.

    id  a decision, also one that the file has folded away, or a checkpoint: `DEC-003`, `dec-3`, `cp-002`

    Raises RouteNotFound, NotFound (no such claim), UsageError (a refused name), DamagedJournal, DamagedBlob.
    """
    project, found = routing.find(route, root)
    label = history.label_now(project, route, history.label(id, "DEC"))
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
        raise NotFound(route, f"has no decision {label}", f"ralf context show {route} --section decisions")
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
    return _quoted(project, reason, source, records) if source is not None and not foreign else reason


FOREIGN = "foreign: came with the repository"

_HOW = {"decision": "by hand", "edit": "edit of the route file", "import": "import"}


def _quoted(project: Project, reason: Reason, source: Source, records: Iterable[tuple[str, Record]]) -> Reason:
    """The reason with the words behind it, from the segment that its lines lie in; the newest that has them."""
    reason = replace(reason, evidence="pruned")
    spans = [record.payload for name, record in records if name and _covers(record.payload, source)]
    for payload in reversed(spans):
        try:
            lines = [
                line
                for line in read_evidence(project.store, str(payload.get("evidence", "")))
                if source.first_line <= line.line and line.last <= source.last_line
            ]
        except BlobNotFound:
            continue
        said = _hashed(lines, source.sha256)
        if said or reason.evidence == "pruned":
            quotes = tuple(said or map(_quote, lines))
            purged = not said and any(MARK in line.text for line in lines)
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

    A claim may rest on a message and the answer to it, so that not every line between its first and its last says it.
    An approved plan and an answered question stand in a call and its result.
    """
    spoken = [_quote(line) for line in lines if line.kind in _SPEECH]
    called = [_quote(line) for line in lines if line.kind in ("call", "result")]
    for said in (spoken, called):
        for some in _some_of(said):
            text = "\n".join(quote.text for quote in some)
            if hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:SHA256_DIGITS] == sha256[:SHA256_DIGITS]:
                return list(some)
    return []


def _some_of(said: Sequence[Quote]) -> Iterator[Sequence[Quote]]:
    """Messages that follow one another, then any few of them, in their order."""
    for first in range(len(said)):
        yield from (said[first:end] for end in range(first + 1, min(first + _MOST_MESSAGES, len(said)) + 1))
    for size in range(2, _MOST_APART + 1):
        yield from combinations(said[:_MOST_LOOKED_AT], size)


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
        lines = list(read_evidence(project.store, digest))
    except BlobNotFound:
        return reason
    return replace(reason, evidence="kept", matches=True, quotes=tuple(_behind(text, lines)))


def _behind(text: str, lines: Sequence[EvidenceLine]) -> Iterator[Quote]:
    """The messages whose words a section uses."""
    words = Words(text)
    for quote in (_quote(line) for line in lines if line.kind in _SPEECH):
        kinds = ("statements", "requests") if quote.who == "user" else ("statements",)
        if any(words.give_back(Item(kind, quote.text, quote.line)) for kind in kinds):
            yield quote


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
