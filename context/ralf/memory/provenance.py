"""Why the memory holds an item: the records that made it what it is, and the lines of logs behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ralf.document.access import BY_AGENT
from ralf.document.record import decoded
from ralf.errors import NotFound, RalfError
from ralf.memory import writing
from ralf.memory.family import apply, by_agent, stream_of
from ralf.memory.model import Item, Memory, check_agent
from ralf.model import entries
from ralf.project import Project
from ralf.route.entries import sessions_of
from ralf.route.why import Quote
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

_LINES = regex(r"(?P<route>\S+) (?P<session>\S+) lines? (?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")

_MOST_QUOTES = 20  # of one reference

_WHO = {
    "mechanical": "rules over transcripts",
    "person": "a person",
    "file": "hand in the file",
    "agent": "the agent",
    "model": "a model",
}

_WORDS = {
    "add": "added",
    "edit": "edited",
    "drop": "dropped",
    "use": "occurred again",
    "accept": "accepted",
    "restore": "restored",
}


@dataclass(frozen=True, slots=True)
class Step:
    """What one record did to an item: revision of the memory, time, and what in words."""

    revision: int
    at: str
    what: str


@dataclass(frozen=True, slots=True)
class Source:
    """A reference to evidence: its quotes, or why there are none."""

    reference: str
    quotes: tuple[Quote, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an item comes from. `item` is None for one that was dropped, or that is in the file alone."""

    id: str
    item: Item | None
    steps: tuple[Step, ...] = ()
    sources: tuple[Source, ...] = ()


def why(project: Project, agent: str, id: str) -> Provenance:  # noqa: A002
    """What made an item, oldest first, and the lines of its evidence. NotFound for one that never was; DamagedJournal,
    UsageError.
    """
    label, stream = id.casefold(), stream_of(check_agent(agent))
    item = writing.load(project, agent).get(label)
    steps: list[Step] = []
    evidence: dict[str, None] = dict.fromkeys(item.evidence if item is not None else ())
    memory = Memory(agent)
    records = (decoded(stream, entry) for entry in project.store.read(stream))
    for record in filter(None, records):
        for each in record.body.get("deltas", ()):
            delta = by_agent(each) if record.by == BY_AGENT else each
            before, memory = memory, apply(memory, delta, record.at)
            added = delta.get("item", {})
            is_changed = before.entries.get(label) != memory.entries.get(label)
            if is_changed or label in (delta.get("id"), added.get("id")):
                what = _described(delta) + ("" if memory is not before else " (a person said so: it stays)")
                steps.append(Step(record.revision, record.at, what))
                evidence |= dict.fromkeys((*delta.get("evidence", ()), *added.get("evidence", ())))
    if item is None and not steps:
        raise NotFound(id[:80], "no such item in the memory", "ralf memory show")
    return Provenance(label, item, tuple(steps), tuple(_source(project, reference) for reference in evidence))


def _described(delta: Mapping[str, Any]) -> str:
    """What a delta did, in words."""
    kind, about = delta["kind"], delta.get("item", delta)
    origin = about.get("origin", "person" if kind == "accept" else "agent")
    word = "offered" if about.get("status") == "offered" else _WORDS.get(kind, delta.get("verdict", kind))
    who = f" by {_WHO.get(origin, origin)}" if kind in ("add", "edit", "accept") else ""
    why = delta.get("reason") or about.get("source") or ", ".join(delta.get("values", ()))
    return f"{word}{who}" + (f": {why}" if why else "")


def _source(project: Project, reference: str) -> Source:
    lines = _LINES.fullmatch(reference)
    if lines is None:
        return Source(reference)
    first, last = int(lines["first"]), int(lines["last"] or lines["first"])
    try:
        logs = [log.entries for log in sessions_of(project, lines["route"]) if log.session == lines["session"]]
    except RalfError as error:
        return Source(reference, problem=str(error))
    steps = [one for log in logs for one in log if isinstance(one, entries.Step) and first <= one.line <= last]
    quotes = [Quote(one.line, one.line, one.tool, "\n".join((one.object, *one.lines))) for one in steps]
    return Source(reference, tuple(quotes[:_MOST_QUOTES]))
