"""Segments: nothing is lost or moved, none passes the limit that need not, none parts a call from its result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from contexts import quick
from examples import examples
from ralf.checkpointing.due import LAST_TENTH, Piece, cut
from ralf.transcripts.events import Event, Kind, Position

LIMIT = 100


def stream(*records: tuple[tuple[Kind, int], ...] | tuple[Kind, int, str]) -> list[Event]:
    """Events: each argument is a record, `(kind, tokens)` pairs or one `(kind, tokens, call id)`."""
    events = []
    for line, record in enumerate(records):
        parts: Any = [record] if isinstance(record[0], str) else record
        for kind, count, *call in parts:
            start, end = Position(line * 10, line), Position(line * 10 + 10, line + 1)
            events.append(Event(kind, "x" * count, start, end, call_id=call[0] if call else ""))
    return events


def segments(events: list[Event], limit: int = LIMIT) -> list[Piece]:
    return list(cut(events, limit, len))


def sizes(*records: Any) -> list[int]:
    return [piece.tokens for piece in segments(stream(*records))]


# ---- any stream ----

_count = st.integers(0, 60) | st.integers(0, 150)
_said = st.tuples(st.sampled_from(["user", "assistant", "thinking", "compaction", "other"]), _count)


@st.composite
def _streams(draw: st.DrawFn) -> list[Any]:
    """Turns of an agent: it says something, calls tools, alone or several at once, and gets every result."""
    records: list[Any] = []
    calls = itertools.count()
    for _ in range(draw(st.integers(0, 12))):
        if draw(st.booleans()):
            records.append(tuple(draw(st.lists(_said, min_size=1, max_size=2))))
            continue
        names = [f"c{next(calls)}" for _ in range(draw(st.integers(1, 3)))]
        made = [("call", draw(_count), name) for name in names]
        if draw(st.booleans()):
            records.append((("assistant", draw(_count)), *made))
        else:
            records += made
        results = [("result", draw(_count), name) for name in draw(st.permutations(names))]
        ends_in_a_call = records[-1:] == made[-1:] and draw(st.booleans())  # some logs have a call behind its result
        records[-1:] = [*results, *records[-1:]] if ends_in_a_call else [*records[-1:], *results]
    return records


def groups(events: list[Event]) -> Iterator[list[Event]]:
    """The smallest stretches between which a segment may end: records, and calls with their results."""
    group: list[Event] = []
    waiting: set[str] = set()
    for _, record in itertools.groupby(events, key=lambda event: event.start):
        for event in record:
            group.append(event)
            if event.kind in ("call", "result"):
                waiting ^= {event.call_id}
        if not waiting:
            yield group
            group = []
    if group:
        yield group


def weight(events: list[Event]) -> int:
    return sum(len(event.text) for event in events if event.kind not in ("compaction", "other"))


@pytest.mark.ci
@given(_streams(), st.sampled_from([1, 10, 50, LIMIT, 1000]))
@settings(quick, max_examples=examples(120))
def test_segments_put_together_are_the_stream_and_each_says_where_it_lies(records: list[Any], limit: int) -> None:
    events = stream(*records)
    pieces = segments(events, limit)
    assert [event for piece in pieces for event in piece.events] == events
    for piece in pieces:
        assert piece.events
        assert (piece.start, piece.end) == (piece.events[0].start, piece.events[-1].end)
        assert piece.tokens == weight(list(piece.events))
    assert all(one.end == other.start for one, other in itertools.pairwise(pieces))


@given(_streams(), st.sampled_from([1, 10, 50, LIMIT, 1000]))
@settings(quick, max_examples=examples(120))
def test_no_segment_passes_the_limit_that_could_have_been_cut(records: list[Any], limit: int) -> None:
    events = stream(*records)
    whole = list(groups(events))
    for piece in segments(events, limit):
        if piece.tokens > limit:
            heavy = [group for group in groups(list(piece.events)) if weight(group)]
            assert len(heavy) == 1
            assert heavy[0] in whole


@given(_streams(), st.sampled_from([10, 50, LIMIT]))
@settings(quick, max_examples=examples(120))
def test_a_segment_ends_early_only_for_a_person_s_turn_or_for_what_would_not_fit(
    records: list[Any], limit: int
) -> None:
    events = stream(*records)
    pieces = segments(events, limit)
    for piece, following in itertools.pairwise(pieces):
        following_group = next(groups(list(following.events)))
        turn = any(event.kind == "user" for event in following.events if event.start == following.start)
        assert piece.tokens + weight(following_group) > limit or (turn and piece.tokens >= LAST_TENTH * limit)


# ---- by example ----


@pytest.mark.parametrize(("before", "expected"), [(90, [90, 15]), (100, [100, 15]), (89, [94, 10])])
def test_a_person_s_turn_in_the_last_tenth_begins_the_next_segment(before: int, expected: list[int]) -> None:
    assert sizes(("assistant", before), ("user", 5), ("assistant", 10)) == expected
