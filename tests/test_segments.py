"""Segments: nothing is lost or moved, none passes the limit that need not, none parts a call from its result."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from contexts import quick
from examples import examples
from ralf.checkpointing.due import BudgetWatcher, Piece, cut
from ralf.config import Limits
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


# ---- the budget watcher ----


class Session:
    """Makes events one after another, each in a record of 100 bytes."""

    def __init__(self) -> None:
        self.at = Position()

    def event(self, kind: Kind = "result", text: str = "", **fields: Any) -> Event:
        """The next record, with one event."""
        start, self.at = self.at, Position(self.at.byte + 100, self.at.line + 1)
        return Event(kind, text, start, self.at, **fields)

    def todos(self, *states: str) -> Event:
        """A to-do list with steps in these states."""
        todos = [{"content": f"step {n}", "status": status} for n, status in enumerate(states)]
        return self.event("call", tool="TodoWrite", input={"todos": todos})

    def update(self, task: str, status: str) -> Event:
        """One task gets this state."""
        return self.event("call", tool="TaskUpdate", input={"taskId": task, "status": status})


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("user", "<promise>COMPLETE</promise>"),
        ("result", "<promise>COMPLETE</promise>"),
        ("thinking", "<promise>COMPLETE</promise>"),
        ("assistant", "I will say `<promise>COMPLETE</promise>`"),
        ("assistant", "```\n<promise>COMPLETE</promise>\n```"),
        ("assistant", "I say <promise>COMPLETE</promise> when the tests pass."),
        ("assistant", "<promise>BLOCKED</promise>"),
    ],
)
def test_a_promise_that_is_quoted_or_someone_else_s_or_another_completes_nothing(
    session: Session, kind: Kind, text: str
) -> None:
    assert BudgetWatcher().see(session.event(kind, text), 5) is None


@pytest.mark.parametrize(
    ("command", "failed", "reason"),
    [
        ("ralf task done 'It works'", False, "task-completed"),
        ("cd src && RALF_LEASE=TASK-1:3 /opt/ralf --root .. task done - < summary.md", False, "task-completed"),
        ("ralf task done 'It works'", True, None),
        ("echo 'type ralf task done'", False, None),
        ("ralf task claim", False, None),
    ],
)
def test_the_command_that_completes_a_task_completes_it_when_it_succeeded(
    session: Session, command: str, failed: bool, reason: str | None
) -> None:
    watcher = BudgetWatcher()
    call = replace(session.event("call", command), call_id="c1", input={"command": command})
    assert watcher.see(call, 5) is None
    result = replace(session.event("result", "TASK-1: completed"), call_id="c1", failed=failed)
    assert watcher.see(result, 5) == reason


def test_a_plan_with_every_step_completed_is_a_list_that_is_done(session: Session) -> None:
    plan = [{"step": "one", "status": "completed"}]
    event = session.event("call", tool="update_plan", input={"plan": plan})
    assert BudgetWatcher().see(event, 5) == "todos-done"


def test_closing_the_last_open_item_is_a_list_that_is_done(session: Session) -> None:
    watcher = BudgetWatcher()
    for number in (1, 2):
        watcher.see(session.event("result", f"Task #{number} created successfully: x", tool="TaskCreate"), 5)
    assert watcher.see(session.update("1", "in_progress"), 5) is None
    assert watcher.see(session.update("1", "completed"), 5) is None
    assert watcher.see(session.update("2", "completed"), 5) == "todos-done"


steps = st.lists(
    st.tuples(
        st.sampled_from(("user", "assistant", "result", "call", "compaction", "clear", "again")),
        st.integers(0, 70_000),
        st.one_of(st.none(), st.integers(0, 250_000)),
    ),
    max_size=60,
)


@pytest.mark.ci
@settings(max_examples=examples(300), deadline=None)
@given(steps, st.sampled_from(("50000", "25%", "1000")))
def test_in_any_session_each_50_000_tokens_give_a_checkpoint_and_no_byte_gives_two(
    moves: list[tuple[Any, int, int | None]], threshold: str
) -> None:
    limits = Limits.parse(threshold)
    watcher, made, past = BudgetWatcher(limits), Session(), list[tuple[Event, int]]()
    unsaved, saved = 0, 0
    for kind, tokens, window in moves:
        if kind == "clear":
            made, past, unsaved, saved = Session(), [], 0, 0
            watcher = BudgetWatcher(limits)
            reason = None
        elif kind == "again":
            last = past[-1][0].start.byte if past else 0
            for event, old in past:
                if event.end.byte <= saved or event.start.byte < last:
                    assert watcher.see(event, old) is None
            assert watcher.tokens == unsaved
            reason = None
        else:
            tokens = 0 if kind == "compaction" else tokens
            event = made.event(kind, window=window)
            past.append((event, tokens))
            unsaved += tokens
            reason = watcher.see(event, tokens)
            if kind == "compaction" and unsaved:
                assert reason == "compaction"
        if reason:
            assert unsaved > 0
            assert made.at.byte > saved
            unsaved, saved = 0, made.at.byte
            watcher.taken(made.at)
        assert unsaved < watcher.threshold <= max(limits.tokens, 50_000)
        assert watcher.tokens == unsaved
