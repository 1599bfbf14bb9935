"""Why the memory holds an item: the records that made it what it is, and the transcript lines behind them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ralf.document.record import decoded
from ralf.errors import NotFound, RalfError
from ralf.memory import records, writing
from ralf.memory.model import Item, check_agent
from ralf.memory.records import Delta, stream_of
from ralf.model import entries
from ralf.project import Project
from ralf.route import why as provenance
from ralf.route.entries import sessions_of
from ralf.route.why import Quote
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

_REFERENCE = regex(
    r"(?P<route>\S+) (?:(?P<label>(?:cp|DEC)-\d{1,9})|(?P<session>\S+))"
    r"(?: lines? (?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?)?"
)

_MOST_QUOTES = 20  # of one reference


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
    """What made an item, oldest first, and the transcript lines of its evidence. NotFound for one that never was;
    DamagedJournal, UsageError.
    """
    check_agent(agent)
    label = id.strip().strip("[]").casefold()
    item = writing.load(project, agent).get(label)
    found: list[Step] = []
    evidence: dict[str, None] = dict.fromkeys(item.evidence if item is not None else ())
    labels = {label}
    steps = list(_deltas(project, agent))
    for _, _, delta in reversed(steps):  # what was merged into it is part of it
        if isinstance(delta, records.Merged) and delta.id in labels:
            labels |= set(delta.ids)
    for revision, at, delta in steps:
        own = _label_of(delta)
        if own in labels:
            what = _told(delta)
            found.append(Step(revision, at, what if own == label else f"{own}: {what}"))
            evidence |= dict.fromkeys(_evidence_of(delta))
    if item is None and not found:
        raise NotFound(id[:80], "no such item in the memory", "ralf memory show")
    sources = tuple(_source(project, reference) for reference in evidence)
    return Provenance(label, item, tuple(found), sources)


def _deltas(project: Project, agent: str) -> Iterator[tuple[int, str, Delta]]:
    stream = stream_of(agent)
    for entry in project.store.read(stream):
        record = decoded(stream, entry)
        for delta in records.deltas_of(record.body) if record is not None else ():
            yield record.revision if record else 0, record.at if record else "", delta


def _label_of(delta: Delta) -> str:
    if isinstance(delta, records.Added):
        return delta.item.id
    return str(getattr(delta, "id", ""))


def _evidence_of(delta: Delta) -> tuple[str, ...]:
    if isinstance(delta, records.Added):
        return delta.item.evidence
    return tuple(getattr(delta, "evidence", ()))


def _told(delta: Delta) -> str:
    """What a delta did, in words."""
    if isinstance(delta, records.Added):
        item = delta.item
        how = "put back" if delta.again else "offered" if item.status == "offered" else "added"
        return f"{how} by {item.by or _WHO.get(item.origin, item.origin)}" + (f": {item.source}" if item.source else "")
    if isinstance(delta, records.Edited):
        return f"edited by {delta.by or _WHO.get(delta.origin, delta.origin)}: {', '.join(delta.values)}"
    if isinstance(delta, records.Dropped):
        return "dropped" + (f": {delta.reason}" if delta.reason else "")
    if isinstance(delta, records.Used):
        return f"occurred {delta.times:,} more time{'s' * (delta.times != 1)}"
    if isinstance(delta, records.Outcome):
        return delta.verdict + (f": {delta.reason}" if delta.reason else "")
    if isinstance(delta, records.Accepted):
        return f"accepted by {delta.by or _WHO.get(delta.origin, delta.origin)}"
    if isinstance(delta, records.Merged):
        return f"merged with {', '.join(delta.ids)}"
    return delta.kind


_WHO = {"mechanical": "rules over transcripts", "person": "a person", "agent": "the agent", "model": "a model"}


def _source(project: Project, reference: str) -> Source:
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        return Source(reference)
    first = int(found["first"] or 0)
    last = int(found["last"] or first) or sys.maxsize
    try:
        if found["label"]:
            quotes = list(provenance.why(found["route"], found["label"], root=project.root).quotes)
        else:
            logs = [log.entries for log in sessions_of(project, found["route"]) if log.session == found["session"]]
            steps = [one for log in logs for one in log if isinstance(one, entries.Step)]
            quotes = [Quote(one.line, one.line, one.tool, "\n".join((one.object, *one.lines))) for one in steps]
    except RalfError as error:
        return Source(reference, problem=str(error))
    within = tuple(quote for quote in quotes if first <= quote.last and quote.line <= last)
    return Source(reference, within[:_MOST_QUOTES])
