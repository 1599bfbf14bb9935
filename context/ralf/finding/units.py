"""Puts a route into units that search finds: turns, texts, failed commands, decisions, and what tools printed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from ralf.brief import lines
from ralf.brief.handover import said
from ralf.errors import NotFound
from ralf.format.codec import from_tree
from ralf.model import EXTRACTED, Carried, Decision, Header, RouteContext, Section
from ralf.model.entries import Entry, Mark, Message, Said, SessionEntries, Step
from ralf.project import Project
from ralf.route import cap, extracted, history, shared
from ralf.route.entries import sessions_of
from ralf.route.load import load_state
from ralf.storage.journal import Record, Store
from ralf.talk.answers import about
from ralf.talk.turns import thread
from ralf.text.cleaning import MARK
from ralf.transcripts.events import read_evidence

CHUNK = 1_200
"""Characters of a text that are looked up as one."""

TAKEN_BACK, REVERTED = "taken back", "reverted"

_EMBEDDED = "extractive"  # the summarizer whose section has nothing but what the record has

_SPOKEN = ("user", "assistant")


class Unit(NamedTuple):
    """What one hit shows: `kind` and `label` as `SearchHit` has them, a decision's status and successor, when it was,
    and the lines of the transcript, 0 where there are none.
    """

    kind: str
    label: str
    text: str
    status: str = ""
    successor: str = ""
    at: str = ""
    session: str = ""
    first: int = 0
    last: int = 0


class Span(NamedTuple):
    """A checkpoint with evidence: its label, whether a revert took it back, and its record's payload."""

    label: str
    is_undone: bool
    payload: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What the units of its evidence depend on."""
        return f"{self.payload.get('evidence', '')} {REVERTED if self.is_undone else self.label}"


def spans(project: Project, route: str, records: Iterable[tuple[str, Record]]) -> list[Span]:
    """The checkpoints of a route, oldest first."""
    found = [(name, one) for name, one in records if not one.foreign]
    undone = history.undone(project, route) if any(one.kind == "revert" for _, one in found) else ()
    return [Span(name, name in undone, one.payload) for name, one in found if name and one.kind == "checkpoint"]


def of_route(
    project: Project, route: str, records: Sequence[tuple[str, Record]], checkpoints: Sequence[Span]
) -> Iterator[Unit]:
    """All of a route but its evidence, as it is now: what somebody said, did or recorded, oldest first."""
    state = load_state(project, route)
    own = state.recorded if state is not None else RouteContext()
    ours = [(name, record) for name, record in records if not record.foreign]
    theirs = shared.with_others(project, own)
    yield from _notes(own)
    yield from _of_records(ours, {one.label for one in checkpoints if one.is_undone})
    for session in sessions_of(project, route):
        yield from _of_session(session, checkpoints)
    yield from _decisions(theirs, [record for _, record in ours], {item.id for item in own.decisions})


def of_others(project: Project, route: str) -> Iterator[Unit]:
    """The units of a route of which there is only what other clones have shared, and this user has accepted."""
    known = shared.with_others(project, RouteContext(context_checkpoint=Header(route=route)))
    yield from map(_decision, known.decisions)


def of_context(context: RouteContext) -> Iterator[Unit]:
    """The units of a route that has a file and no journal."""
    yield from _notes(context)
    yield from map(_section, reversed(context.body.sections))
    yield from map(_decision, context.decisions)


def of_evidence(store: Store, span: Span) -> Iterator[Unit]:
    """What a checkpoint's evidence has beyond its entries: calls, what they printed, and the texts of sub-agents."""
    payload = span.payload
    session = str((payload.get("source") or {}).get("session", ""))
    trees = [tree for tree in payload.get("entries") or () if tree.get("entry") in ("message", "said")]
    told = set() if span.is_undone else {int(tree.get("line", 0)) for tree in trees}
    at, status = _end(payload), REVERTED if span.is_undone else ""
    digest = str(payload.get("evidence", ""))
    with suppress(NotFound):  # pruned
        for line in read_evidence(store, digest) if digest else ():
            is_said = line.kind in _SPOKEN
            if line.text.strip() and not (is_said and line.line in told):
                kind = "text" if is_said else "evidence"
                yield Unit(kind, span.label, line.text, status, "", at, session, line.line, line.last)


def chunks(text: str) -> Iterator[str]:
    """The text in pieces of whole lines, each of at most `CHUNK` characters."""
    piece: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        for start in range(0, len(line), CHUNK):
            part = line[start : start + CHUNK]
            if piece and size + len(part) > CHUNK:
                yield "".join(piece)
                piece, size = [], 0
            piece.append(part)
            size += len(part)
    if piece:
        yield "".join(piece)


# ---- the talk ----


def _of_session(session: SessionEntries, checkpoints: Sequence[Span]) -> Iterator[Unit]:
    """The turns of a session, each followed by what else the agent said in it and by the commands that failed."""
    talk = thread(session.entries)
    places = [one for one in checkpoints if (one.payload.get("source") or {}).get("session") == session.session]

    def unit(kind: str, text: str, at: str, first: int, last: int = 0, status: str = "") -> Unit:
        inside = (one.label for one in places if first <= int(one.payload["source"].get("to_line", 0)))
        return Unit(kind, next(inside, ""), text, status, "", at, session.session, first, max(first, last))

    items: Any = ()
    for turn in talk.turns:
        message, closing = turn.message, turn.closing
        asides = [lines.own_command(one) if one.form == "ran" else one.text for one in turn.asides]
        parts = [lines.did(turn), *asides, f"\u2192 {closing.text}" if closing is not None and message else ""]
        if message is not None:
            answers = about(message, turn.before, "", items)
            parts = [message.text, f"[{answers}]" if answers else "", *parts]
        first = message or next(iter(turn.entries), None)
        if any(parts) and first is not None:
            last = closing if closing is not None and message else first
            yield unit("turn", "\n".join(filter(None, parts)), last.at, first.line, last.line)
        for entry in turn.entries:
            if isinstance(entry, Said) and not (entry is closing and message is not None):
                yield unit("text", entry.text, entry.at, entry.line)
            elif isinstance(entry, Step) and entry.kind == "command" and entry.has_failed:
                yield unit("failure", _failure(entry), entry.at, entry.line)
            elif isinstance(entry, Mark) and entry.kind == "todos":
                items = entry.items
    there = set(map(id, talk.entries))
    gone = {message.id for message, _ in talk.taken_back}
    for message, texts in _taken_back(session.entries, gone, there):
        yield unit("turn", "\n".join([message.text, *texts]), message.at, message.line, status=TAKEN_BACK)


def _taken_back(entries: Iterable[Entry], gone: set[str], there: set[int]) -> list[tuple[Message, list[str]]]:
    """Each message that was taken back by rewinding, with what the agent said to it."""
    found: list[tuple[Message, list[str]]] = []
    is_gone = False
    for entry in entries:
        if isinstance(entry, Message) and entry.form not in ("ran", "unsent"):
            is_gone = entry.id in gone and entry.id not in {message.id for message, _ in found}
            found += [(entry, [])] if is_gone else []
        elif is_gone and isinstance(entry, Said) and id(entry) not in there:
            found[-1][1].append(entry.text)
    return found


def _failure(step: Step) -> str:
    return "\n".join([step.object, lines.outcome(step), *step.lines])


# ---- what was recorded ----


def _notes(context: RouteContext) -> Iterator[Unit]:
    """What a person wrote into the file."""
    if text := context.body.notes.strip():
        yield Unit("note", "", text)


def _of_records(records: Iterable[tuple[str, Record]], undone: Container[str]) -> Iterator[Unit]:
    """What records bring that is neither entry, evidence nor decision: sections that no entry tells, hand-overs."""
    sections: dict[str, Unit] = {}  # a later one, by a model, takes the place of the first
    for name, record in records:
        payload, status = record.payload, REVERTED if name in undone else ""
        at = str(payload.get("timestamp", "")) or _end(payload)
        if record.kind == "import":
            brought = from_tree(RouteContext, payload.get("document", {})).body.sections
            sections |= {one.label: one for one in map(_section, reversed(brought))}
        elif record.kind in ("checkpoint", "revert", "refinement") and payload.get("text"):
            is_told = (payload.get("entries") and payload.get("summarizer") == _EMBEDDED) or payload.get("above")
            if not is_told:
                label = str(payload.get("refines", "")) or name
                text = f"{payload.get('title', '')}\n{payload['text']}"
                sections[label] = Unit("checkpoint", label, text, status, "", at)
        if handover := "\n".join(_handed_over(record)):
            label = str(next(reversed(payload.get("checkpoints", [name]))))
            yield Unit("handover", label, handover, status, "", at)
    yield from sections.values()


def _handed_over(record: Record) -> Iterator[str]:
    """What a record hands over beside decisions; of earlier versions a client's own summary of its window, too."""
    payload = record.payload
    if "handover" in payload:
        yield from _texts(payload["handover"])
    elif record.kind == "handover":
        made = from_tree(Carried, {"last": payload.get("moment"), "kept": list(payload.get("kept", ()))})
        yield from (text for _, text in said(made))


_NO_TEXT = ("timestamp", "at", "session", "author", "id", "line", "tokens", "origin", "status", "evidence")


def _texts(tree: object) -> Iterator[str]:
    """The texts in a tree, in its order."""
    if isinstance(tree, Mapping):
        yield from chain.from_iterable(_texts(value) for key, value in tree.items() if key not in _NO_TEXT)
    elif isinstance(tree, list | tuple):
        yield from chain.from_iterable(map(_texts, tree))
    elif isinstance(tree, str) and tree.strip():
        yield tree


def _section(section: Section) -> Unit:
    label = f"cp-{section.number:03d}" if section.number is not None else ""
    return Unit("checkpoint", label, f"{section.title}\n{section.text}")


def _end(payload: Mapping[str, Any]) -> str:
    return str((*payload.get("period", ()), "", "")[1])


# ---- decisions ----


def _decisions(known: RouteContext, records: Iterable[Record], own: Container[str]) -> Iterator[Unit]:
    """Every decision that was ever recorded, with the status that it has now.

    known  the route with what other clones say of it: there a label has the tag of its clone; `own`: labels without
    """
    found: dict[str, Unit] = {}
    for record in records:
        by_rules = record.kind == "checkpoint" and extracted.is_by_rules(record.payload)
        for decision in _brought(record):
            if by_rules and decision.origin in extracted.BY_RULES:
                decision = replace(decision, origin=EXTRACTED)
            if record.kind != "checkpoint" or decision.id not in found:
                found[decision.id] = _decision(decision)
            _mark(found, decision.supersedes, "superseded", decision.id)
        for label, status, successor in _ended(record):
            for one in [*found] if label is None else [label]:
                _mark(found, one, status, successor)
    for decision in known.decisions:  # as edits have left them
        plain = decision.id.rpartition("-")[0]
        now, before = _decision(decision), found.pop(plain if plain in own else decision.id, None)
        if before is not None and cap.is_bare(decision) and before.text.startswith(now.text):
            now = before._replace(label=now.label, status=now.status, successor=now.successor)
        found[decision.id] = now
    yield from found.values()


def _mark(found: dict[str, Unit], label: str, status: str, successor: str) -> None:
    if label in found:
        found[label] = found[label]._replace(status=status, successor=successor)


def _decision(decision: Decision) -> Unit:
    """A decision with its reason and what was rejected for it."""
    rejected = f"Rejected: {'; '.join(decision.alternatives)}" if decision.alternatives else ""
    further = decision.extra.get("further_labels")
    labels = [decision.extra.get("label"), *(further if isinstance(further, list | tuple) else ())]  # of a document
    by = f"by {decision.extra['by']}" if decision.origin == shared.ORIGIN else ""
    parts = [decision.decision, decision.rationale, rejected, *labels, by]
    text = "\n".join(part for part in parts if part and isinstance(part, str))
    is_extracted = decision.origin == EXTRACTED and decision.status == "active"
    status = EXTRACTED if is_extracted else decision.status
    unit = Unit("decision", decision.id, text, status, decision.superseded_by, decision.timestamp)
    if (source := decision.source) is None:
        return unit
    return unit._replace(session=source.session, first=source.first_line, last=source.last_line)


def _brought(record: Record) -> Iterator[Decision]:
    """The decisions that a record brings."""
    payload = record.payload
    items = [*payload.get("decisions", ()), *payload.get("document", {}).get("decisions", ())]
    items += [payload["decision"]] if payload.get("decision") else []
    changes = (change for change in payload.get("changes", ()) if isinstance(change.get("value"), dict))
    items += [each["value"] for each in changes if len(each["at"]) == 2 and each["at"][0] == "decisions"]
    for item in items:
        decision = from_tree(Decision, item)
        if decision.id and decision.decision != MARK:
            yield decision


def _ended(record: Record) -> Iterator[tuple[str | None, str, str]]:
    """The decisions that a record takes out of force, each with its status and successor; None for all of them."""
    payload = record.payload
    for change in payload.get("changes", ()):
        if change["at"] == ["decisions"]:
            yield None, "dropped", ""
        elif len(change["at"]) == 2 and change["at"][0] == "decisions" and change.get("removed"):
            yield str(change["at"][1]), "dropped", ""
    stones = [payload["tombstone"]] if record.kind == "drop" else payload.get("tombstones", ())
    yield from ((str(stone["id"]), "dropped", "") for stone in stones)
    for item in payload.get("amended", ()):
        if item.get("status"):
            yield str(item.get("id", "")), str(item["status"]), str(item.get("superseded_by", ""))
