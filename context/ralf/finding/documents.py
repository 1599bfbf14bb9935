"""Turns a route's records, or its file if it has no journal, into searchable documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ralf.brief import wording
from ralf.errors import NotFound
from ralf.format.codec import from_tree, to_tree
from ralf.model import Decision, HandOver, RouteContext, Section
from ralf.storage import journal
from ralf.storage.journal import Store
from ralf.text.cleaning import MARK
from ralf.transcripts.events import EvidenceLine, read_evidence

ROUTE_BITS = 32

FILE = "file:"  # begins the token of a route that has no journal

DECISION = "ralfdecision"
"""A word that stands around each decision, so that decisions can be asked for among many messages."""

CHUNK = 1_200  # characters of evidence in one document

_AROUND = 600  # characters of each message that was said around a decision

_SAID = frozenset(("user", "assistant", "thinking", "note", "other"))


class Document(NamedTuple):
    """A searchable document: kind, label, text, location, and a decision's status and successor.

    said         whether somebody said it (a decision, a section, a message), or a tool printed it
    around       words that were said around it
    by_user      whether it is a message of the user's
    session, first, last   the lines of the transcript, 0 where there are none
    """

    kind: str
    label: str
    text: str
    status: str = ""
    successor: str = ""
    said: bool = True
    around: str = ""
    by_user: bool = False
    session: str = ""
    first: int = 0
    last: int = 0


def span_of(number: int) -> tuple[int, int]:
    """Return the first and last number that a document of a route may have, by the route's number."""
    return number << ROUTE_BITS, ((number + 1) << ROUTE_BITS) - 1


def of_checkpoint(store: Store, payload: Mapping[str, Any], label: str) -> Iterator[Document]:
    """A checkpoint's section, facts, evidence, and its decisions with what was said around them."""
    source = payload.get("source", {})
    session = str(source.get("session", ""))
    first, last = int(source.get("from_line", 0)) + 1, int(source.get("to_line", 0))
    yield _section(label, payload)._replace(session=session, first=first, last=last)
    for text in _facts(payload.get("facts", {})):
        yield Document("fact", label, text, said=False, session=session, first=first, last=last)
    messages: list[EvidenceLine] = []
    digest = str(payload.get("evidence", ""))
    if digest:
        with suppress(NotFound):  # pruned
            for line in read_evidence(store, digest):
                said = line.kind in _SAID
                if said:
                    messages.append(line)
                for chunk in chunks(line.text):
                    asked = line.kind == "user"
                    yield Document("evidence", label, chunk, "", "", said, "", asked, session, line.line, line.last)
    for item in payload.get("decisions", ()):
        decision = from_tree(Decision, item)
        if decision.id:
            yield of_decision(decision, _said_around(decision, messages))


def of_decision(decision: Decision, around: str = "") -> Document:
    """A decision with its reason and what was rejected for it."""
    rejected = f"Rejected: {'; '.join(decision.alternatives)}" if decision.alternatives else ""
    further = decision.extra.get("further_labels")
    labels = [
        decision.extra.get("label"),
        *(further if isinstance(further, (list, tuple)) else ()),
    ]  # where it was written
    parts = [decision.decision, decision.rationale, rejected, *labels]
    text = "\n".join(part for part in parts if part and isinstance(part, str))
    document = Document("decision", decision.id, text, decision.status, decision.superseded_by, True, around)
    source = decision.source
    if source is None:
        return document
    return document._replace(session=source.session, first=source.first_line, last=source.last_line)


def of_sections(sections: Iterable[Section]) -> Iterator[Document]:
    """The sections of a route file that somebody brought."""
    for part in sections:
        label = f"cp-{part.number:03d}" if part.number is not None else ""
        yield Document("checkpoint", label, f"{part.title}\n{part.text}")


def of_context(context: RouteContext) -> Iterator[Document]:
    """Yield the documents of a route file, for a route without a journal."""
    for decision in context.decisions:
        yield of_decision(decision)
    yield from of_sections(context.body.sections)
    for text in _facts(to_tree(context.facts)):
        yield Document("fact", "", text, said=False)


def decisions(record: journal.Record) -> Iterator[Decision]:
    """The decisions that a record brings, with their labels."""
    payload = record.payload
    items = list(payload.get("decisions", ()))
    items += [payload["decision"]] if payload.get("decision") else []
    items += payload.get("document", {}).get("decisions", ())
    changes = (change for change in payload.get("changes", ()) if isinstance(change.get("value"), dict))
    items += [each["value"] for each in changes if len(each["at"]) == 2 and each["at"][0] == "decisions"]
    for item in items:
        decision = from_tree(Decision, item)
        if decision.id and decision.decision != MARK:
            yield decision


def of_record(record: journal.Record) -> Iterator[Document]:
    """The sections that a record brings beside a checkpoint's own: those of a file that came, a revert's, and what a
    model made of one; and what was handed over.
    """
    if record.kind == "import":
        yield from of_sections(from_tree(RouteContext, record.payload.get("document", {})).body.sections)
    elif record.kind == "revert":
        yield _section(f"cp-{int(record.payload.get('number', 0)):03d}", record.payload)
    elif record.payload.get("handover") and record.kind in ("handover", "refinement"):
        handover = from_tree(HandOver, record.payload["handover"])
        told, whose = "".join(wording.handover_lines(handover)), wording.handed_over_by(handover)
        label = str(record.payload.get("refines", ""))
        yield from (Document("fact", label, f"{whose}\n{piece}") for piece in chunks(told) if piece.strip())
    elif record.kind == "refinement" and record.payload.get("text") and not record.payload.get("above"):
        yield _section(str(record.payload.get("refines", "")), record.payload)


def statuses(record: journal.Record) -> Iterator[tuple[str | None, str, str]]:
    """The decisions that a record takes out of force, each with its status and successor: None for all, where the list
    as a whole was changed by hand.
    """
    for change in record.payload.get("changes", ()):
        if change["at"] == ["decisions"]:
            yield None, "dropped", ""
        elif len(change["at"]) == 2 and change["at"][0] == "decisions" and change.get("removed"):
            yield str(change["at"][1]), "dropped", ""
    stones = [record.payload["tombstone"]] if record.kind == "drop" else record.payload.get("tombstones", ())
    yield from ((str(stone["id"]), "dropped", "") for stone in stones)
    for item in record.payload.get("amended", ()):
        if item.get("status"):
            yield str(item.get("id", "")), str(item["status"]), str(item.get("superseded_by", ""))


def chunks(text: str) -> Iterator[str]:
    """The text in pieces of whole lines, each of about `CHUNK` characters at the most."""
    if len(text) <= CHUNK:
        yield text
        return
    piece: list[str] = []
    size = 0
    for line in text.split("\n"):
        for start in range(0, max(1, len(line)), CHUNK):
            part = line[start : start + CHUNK]
            if size + len(part) > CHUNK and piece:
                yield "\n".join(piece)
                piece, size = [], 0
            piece.append(part)
            size += len(part) + 1
    if piece:
        yield "\n".join(piece)


def _section(label: str, payload: Mapping[str, Any]) -> Document:
    return Document("checkpoint", label, f"{payload.get('title', '')}\n{payload.get('text', '')}")


def _said_around(decision: Decision, messages: Sequence[EvidenceLine]) -> str:
    """The messages in which a decision stands, the one before and the one after, each cut."""
    source = decision.source
    if source is None:
        return ""
    places = [n for n, line in enumerate(messages) if line.line <= source.last_line and line.last >= source.first_line]
    if not places:
        return ""
    return "\n".join(line.text[:_AROUND] for line in messages[max(0, places[0] - 1) : places[-1] + 2])


def _facts(facts: Mapping[str, Any]) -> Iterator[str]:
    for path in facts.get("paths", ()):
        yield f"{', '.join(path.get('did', ()))}: {path.get('path', '')}"
    for command in facts.get("commands", ()):
        status = command.get("status", "passed")
        ended = f"{status}, exit {command['exit']}" if command.get("exit") else status
        yield f"{command.get('command', '')} ({ended})"
    for error in facts.get("errors", ()):
        solved = f"\nsolved: {error['fixed_by']}" if error.get("fixed_by") else ""
        yield f"{error.get('error', '')}\nfrom: {error.get('command', '')}{solved}"
    for commit in facts.get("commits", ()):
        yield f"commit {commit.get('commit', '')} {commit.get('message', '')}"
    for test in facts.get("tests", ()):
        yield f"{test.get('result', '')}\nfrom: {test.get('command', '')}"
