"""Cuts a stream of events into segments of at most so many tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ralf.transcripts.events import Event, Position

LAST_TENTH = 0.9


@dataclass(frozen=True, slots=True)
class Piece:
    """Events that belong together, between two places of a transcript, and their o200k_base tokens.

    rest  it ends where the transcript does, not where the next segment begins
    """

    events: tuple[Event, ...]
    start: Position
    end: Position
    tokens: int
    rest: bool = False


@dataclass(slots=True)
class _Record:
    """The events of one record, and whether a segment may end before it."""

    events: list[Event]
    tokens: int
    cuttable: bool
    asked: bool


def cut(events: Iterable[Event], limit: int, count: Callable[[str], int]) -> Iterator[Piece]:
    """The segments of a stream of events, in order; the last one is what remains.

    A segment ends before the record that would take it past `limit` tokens, or at a person's turn if one lies in its
    last tenth; never between a call and its result. A record that alone passes the limit, or a call with its result,
    is a segment of its own. Holds no more than one segment in memory.
    """
    held: list[_Record] = []
    total = 0
    for record in _records(events, count):
        held.append(record)
        total += record.tokens
        while total > limit and (end := _end(held, limit)):
            yield _piece(held[:end])
            held = held[end:]
            total = sum(rest.tokens for rest in held)
    if held:
        yield replace(_piece(held), rest=True)


def full(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The full segments; what remains waits for the next threshold, unless there is nothing else."""
    held = next(pieces, None)
    first = True
    for piece in pieces:
        if held is not None:
            yield held
        held, first = piece, False
    if held is not None and (first or not held.rest):
        yield held


def _end(held: list[_Record], limit: int) -> int:
    """How many of the held records make the next segment, 0 when that cannot be told yet."""
    total, best, turn = 0, 0, 0
    for number, record in enumerate(held):
        if number and record.cuttable:
            if total <= limit or not best:
                best = number
            if record.asked and LAST_TENTH * limit <= total <= limit:
                turn = number
            if total > limit:
                break
        total += record.tokens
    return turn or best


def _piece(records: list[_Record]) -> Piece:
    events = tuple(event for record in records for event in record.events)
    return Piece(events, events[0].start, events[-1].end, sum(record.tokens for record in records))


def _records(events: Iterable[Event], count: Callable[[str], int]) -> Iterator[_Record]:
    """The events by record. A record may begin a segment when no call before it waits for its result.

    An agent that speaks again has its results, or will never get them.
    """
    waiting: set[str] = set()
    record: _Record | None = None
    for event in events:
        if record is None or event.start != record.events[0].start:
            if record is not None:
                yield record
            if event.kind in ("assistant", "thinking"):
                waiting.clear()
            record = _Record([], 0, not waiting, False)
        record.events.append(event)
        if event.kind not in ("compaction", "other") and not event.agent:
            record.tokens += count(event.text)
        record.asked = record.asked or event.kind == "user"
        if event.kind == "call":
            waiting.add(event.call_id)
        elif event.kind == "result":
            waiting.discard(event.call_id)
    if record is not None:
        yield record
