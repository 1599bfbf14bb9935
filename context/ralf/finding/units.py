"""Puts a route into units that search finds: turns, texts, failed commands, decisions, and what tools printed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from ralf.brief import lines
from ralf.document.index import Index
from ralf.document.tree import from_tree
from ralf.errors import NotFound
from ralf.model import Decision, Header, RouteContext, Section
from ralf.model.context import BODY
from ralf.model.entries import Entry, Mark, Message, Said, SessionEntries, Step
from ralf.project import Project
from ralf.route import cap, history, shared
from ralf.route.entries import sessions_of
from ralf.route.load import load_state
from ralf.route.shared import Others
from ralf.storage.journal import Record, Store, understood
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
    the lines of the transcript, 0 where there are none, and its number and that of its route in the index.
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
    id: int = 0
    route: int = 0


class Taken(NamedTuple):
    """What a route has to be found, as it is now.

    kept        keys of evidence that the index has and keeps
    new         units that it has not, each with its key: what evidence depends on, "" for all else
    is_foreign  whether the route has what came from elsewhere and nobody has accepted: that is not found
    """

    kept: list[str]
    new: list[tuple[str, Unit]]
    is_foreign: bool


def of_route(project: Project, route: str, others: Others, held: Container[str], index: Index | None = None) -> Taken:
    """The units of a route, oldest first; of evidence those whose key the tables do not hold. DamagedJournal.

    index  where the state of the route is, if it is open
    """
    state = load_state(project, route, index)
    labelled = list(history.records(project, route))
    if not labelled:  # a file that nobody has accepted, or only what other clones have shared
        theirs = shared.with_others(project, RouteContext(context_checkpoint=Header(route=route)), others)
        return Taken([], [("", unit) for unit in map(_decision, theirs.decisions)], state is not None)
    recorded = state.recorded if state is not None else RouteContext()
    with understood(route):
        undone = history.undone(project, route) if any(record.kind == "revert" for _, record in labelled) else set()
        checkpoints = [(label, one.payload) for label, one in labelled if label and one.kind == "checkpoint"]
        kept, new = list[str](), list[tuple[str, Unit]]()
        for label, payload in checkpoints:
            key = f"{payload.get('evidence', '')} {REVERTED if label in undone else label}"
            if key in held:
                kept.append(key)
            else:
                evidence = _of_evidence(project.store, label, payload, is_undone=label in undone)
                new += [(key, unit) for unit in evidence]
        known = shared.with_others(project, recorded, others)
        rest = (
            _notes(recorded),
            _of_records(labelled, undone),
            *(_of_session(session, checkpoints) for session in sessions_of(project, route)),
            _decisions(known, [record for _, record in labelled], {item.id for item in recorded.decisions}),
        )
        new += [("", unit) for unit in chain.from_iterable(rest)]
    return Taken(kept, new, False)


def _of_evidence(store: Store, label: str, payload: Mapping[str, Any], *, is_undone: bool) -> Iterator[Unit]:
    """What a checkpoint's evidence has beyond its entries: calls, what they printed, and the texts of sub-agents."""
    session = str((payload.get("source") or {}).get("session", ""))
    trees = [tree for tree in payload.get("entries") or () if tree.get("entry") in ("message", "said")]
    told = set() if is_undone else {int(tree.get("line", 0)) for tree in trees}
    digest, at, status = str(payload.get("evidence", "")), _end(payload), REVERTED if is_undone else ""
    with suppress(NotFound):  # pruned
        for line in read_evidence(store, digest) if digest else ():
            is_said = line.kind in _SPOKEN
            if line.text.strip() and not (is_said and line.line in told):
                kind = "text" if is_said else "evidence"
                yield Unit(kind, label, line.text, status, "", at, session, line.line, line.last)


def chunks(text: str) -> Iterator[str]:
    """The text in pieces of whole lines, each of at most `CHUNK` characters."""
    start = 0
    while start < len(text):
        end = start + CHUNK
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end


# ---- the talk ----


def _of_session(session: SessionEntries, checkpoints: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Unit]:
    """The turns of a session, each followed by what else the agent said in it and by the commands that failed."""
    talk = thread(session.entries)
    sources = [(label, payload.get("source") or {}) for label, payload in checkpoints]
    ends = [(label, int(one.get("to_line", 0))) for label, one in sources if one.get("session") == session.session]

    def unit(kind: str, text: str, at: str, first: int, last: int = 0, status: str = "") -> Unit:
        inside = (label for label, end in ends if first <= end)
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
        elif record.kind == "edit":
            changed = [one.get("value") for one in payload.get("changes", ()) if one["at"][0] in _EDITED]
            yield from [Unit("note", "", text, "", "", at) for text in filter(None, ["\n".join(_texts(changed))])]
        told = (payload.get("moment"), payload.get("kept")) if record.kind == "handover" else payload.get("handover")
        if handover := "\n".join(_texts(told)):
            label = str(next(reversed(payload.get("checkpoints", [name]))))
            yield Unit("handover", label, handover, status, "", at)
    yield from sections.values()


_EDITED = ("handover", BODY)  # parts of a file whose words are found as a person changed them

_NO_TEXT = (
    "timestamp",
    "at",
    "session",
    "author",
    "by",
    "id",
    "kind",
    "line",
    "model",
    "tokens",
    "origin",
    "status",
    "evidence",
)


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
    found = {label: one for label, one in history.decisions_ever(records).items() if one.decision not in ("", MARK)}
    for decision in known.decisions:  # as edits have left them
        plain = decision.id.rpartition("-")[0]
        before = found.pop(plain if plain in own else decision.id, None)
        if before is not None and cap.is_bare(decision) and before.decision == decision.decision:
            over = decision.superseded_by
            found[decision.id] = replace(before, id=decision.id, status=decision.status, superseded_by=over)
        else:
            found[decision.id] = decision
    yield from map(_decision, found.values())


def _decision(decision: Decision) -> Unit:
    """A decision with its reason and what was rejected for it."""
    rejected = f"Rejected: {'; '.join(decision.alternatives)}" if decision.alternatives else ""
    further = decision.extra.get("further_labels")
    labels = [decision.extra.get("label"), *(further if isinstance(further, list | tuple) else ())]  # of a document
    by = f"by {decision.extra['by']}" if decision.origin == shared.ORIGIN else ""
    parts = [decision.decision, decision.rationale, rejected, *labels, by]
    text = "\n".join(part for part in parts if part and isinstance(part, str))
    source = decision.source
    place = (source.session, source.first_line, source.last_line) if source is not None else ()
    return Unit("decision", decision.id, text, decision.status, decision.superseded_by, decision.timestamp, *place)
