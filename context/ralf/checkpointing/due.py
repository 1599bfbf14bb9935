"""Decides when a checkpoint is due, and cuts the events that it covers into segments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from ralf.checkpointing.completion import Completion
from ralf.config import DEFAULT_WINDOW, Limits
from ralf.text.frozen import dataclass, replace
from ralf.transcripts.events import START, Event, Position

Reason = Literal["threshold", "pressure", "compaction", "task-completed", "todos-done", "session-end", "manual"]

_REARM_BELOW = 0.10

# Compiled where it is first needed: most hooks meet none of what it looks for.
_CREATED = r"Task #(\w+) created"

_DONE = ("completed", "cancelled", "deleted")

_LISTS = {"TodoWrite": "todos", "update_plan": "plan"}
"""By a client's tool the argument that holds its to-do list."""


class BudgetWatcher:
    """Fed with the events of one session, says at which of them a checkpoint falls due, and why.

    The rules, in the order in which they win when several hold at one event:

    compaction      The client compacted its window.
    task-completed  The agent promises completion in its own words (`<promise>COMPLETE</promise>` at the end of a line,
                    outside code), or its call of `ralf task done` succeeded.
    todos-done      The agent's to-do list has no open item left (TodoWrite, update_plan) or the last open one was
                    closed (TaskUpdate), once for each time that this happens: a good border, no word about the task.
    pressure        The client's window is at or above the mark (60 %) for the first time. Armed again by a
                    compaction, or once it has fallen a tenth of the window below the mark. Its size is the client's
                    figure, else the configured one, else 200,000. After a compaction the pressure is what the client
                    says it is, else unknown until its next answer.
    threshold       Nine tenths of 50,000 tokens, or of what `Limits` says, were seen since the last checkpoint.

    Nothing falls due while nothing was seen since the last checkpoint. What has fallen due is said once, and stays in
    `due` until `taken`. Bytes before the last checkpoint, and records before the last one seen, are not counted
    again. A figure that falls only ever arms a rule; no rule looks at the difference of two figures.

    session     the transcript that the places belong to
    tokens      seen since the last checkpoint
    filled      tokens in the client's window, None where unknown (before the first answer, after a compaction)
    capacity    size of the client's window, where it told it
    armed       the pressure mark has not been crossed yet
    finished    the to-do list was complete when last seen; open_tasks: ids of the tasks that are open
    due         what has fallen due and has not been taken yet, or ""
    """

    def __init__(
        self,
        limits: Limits | None = None,
        position: Position = START,
        *,
        session: str = "",
        filled: int | None = None,
        capacity: int | None = None,
        open_tasks: Iterable[str] = (),
        finished: bool = False,
    ) -> None:
        """A watcher that stands at the last checkpoint of a session: a mark that is passed there, or a list that is
        complete there, does not count again.
        """
        self.limits = limits or Limits()
        self.session, self.tokens = session, 0
        self.filled, self.capacity = filled, capacity
        self.open_tasks, self.finished = set(open_tasks), finished
        self.armed = not self._is_pressed()
        self.due: Reason | Literal[""] = ""
        self._checkpoint, self._record = position.byte, -1
        self._completion = Completion()

    @property
    def threshold(self) -> int:
        """Tokens after which the next checkpoint falls due."""
        return self.limits.due_of(self.window)

    @property
    def window(self) -> int:
        """Size of the client's window, in tokens."""
        return self.capacity or self.limits.window or DEFAULT_WINDOW

    @property
    def pressure(self) -> float | None:
        """How full the client's window is, 1.0 for full; None where unknown."""
        return None if self.filled is None else self.filled / self.window

    def see(self, event: Event, tokens: int) -> Reason | None:
        """Takes in one event, whose text has so many tokens; the reason if a checkpoint falls due with it.

        What a sub-agent did counts for nothing: it stood in no window but its own.
        """
        if event.start.byte < self._record or event.agent:
            return None
        is_fresh = event.end.byte > self._checkpoint
        self._record = event.start.byte
        self.tokens += tokens if is_fresh else 0
        self.capacity = event.capacity or self.capacity
        is_complete, is_ticked = self._completion.by(event), self._ticks_off(event)
        is_crossed = self._crosses(event)
        reason: Reason
        if event.kind == "compaction" and is_fresh:
            reason = "compaction"
        elif is_complete and is_fresh:
            reason = "task-completed"
        elif is_ticked and is_fresh:
            reason = "todos-done"
        elif is_crossed and is_fresh:
            reason = "pressure"
        elif self.tokens >= self.threshold:
            reason = "threshold"
        else:
            return None
        if self.due or not self.tokens:
            return None
        self.due = reason
        return reason

    def taken(self, position: Position, *, left: int = 0) -> None:
        """A checkpoint was made of all that lies before `position`; `left` tokens of what was seen lie after it."""
        self._checkpoint = max(self._checkpoint, position.byte)
        self.tokens, self.due = left, ""

    def _is_pressed(self) -> bool:
        pressure = self.pressure
        return pressure is not None and pressure >= self.limits.pressure

    def _crosses(self, event: Event) -> bool:
        """Keeps the window's figure; whether the mark is crossed with it."""
        if event.kind == "compaction":
            self.filled, self.armed = event.window, True
            return False
        if event.window is None:
            return False
        self.filled, was_armed = event.window, self.armed
        is_low = event.window < (self.limits.pressure - _REARM_BELOW) * self.window
        self.armed = not self._is_pressed() and (was_armed or is_low)
        return was_armed and self._is_pressed()

    def _ticks_off(self, event: Event) -> bool:
        """Keeps the state of the to-do list; whether its last open item is done with this event."""
        if event.kind == "result" and event.tool == "TaskCreate":
            self.open_tasks |= {*re.findall(_CREATED, event.text)}
            self.finished = False
        elif event.kind == "call" and event.tool == "TaskUpdate":
            return self._updates(str(event.input.get("taskId", "")), event.input.get("status"))
        elif event.kind == "call" and event.tool in _LISTS:
            items = event.input.get(_LISTS[event.tool])
            if isinstance(items, list) and items:
                before = self.finished
                self.finished = all(isinstance(item, Mapping) and item.get("status") in _DONE for item in items)
                return self.finished and not before
        return False

    def _updates(self, task: str, status: object) -> bool:
        """Keeps the status of a task; whether the last open one is completed."""
        if status in _DONE:
            had_open = bool(self.open_tasks)
            self.open_tasks.discard(task)
            return status == "completed" and had_open and not self.open_tasks
        if status:
            self.open_tasks.add(task)
        return False


# --------------------
# Segments


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


class _Record:
    """The events of one record, and whether a segment may end before it.

    completed  a task is complete with it
    """

    def __init__(self, *, cuttable: bool) -> None:
        self.events: list[Event] = []
        self.tokens = 0
        self.cuttable = cuttable
        self.asked = self.completed = False

    @property
    def closes(self) -> bool:
        """Whether it only says more of a task that is complete."""
        return not self.asked and all(event.kind not in ("call", "result", "note") for event in self.events)


def cut(events: Iterable[Event], limit: int, count: Callable[[str], int]) -> Iterator[Piece]:
    """The segments of a stream of events, in order; the last one is what remains.

    A segment ends before the record that would take it past `limit` tokens, or at a person's turn if one lies in its
    last tenth; never between a call and its result. It also ends where a task is complete, behind what the agent says
    of that, once more follows. A record that alone passes the limit, or a call with its result, is a segment of its
    own. Holds no more than one segment in memory.
    """
    held: list[_Record] = []
    total, completed = 0, False
    for record in _records(events, count):
        if completed and record.cuttable and not record.closes:
            yield _piece(held)
            held, total, completed = [], 0, False
        held.append(record)
        completed = completed or record.completed
        total += record.tokens
        while total > limit and (end := _end(held, limit)):
            yield _piece(held[:end])
            held = held[end:]
            total = sum(rest.tokens for rest in held)
            completed = any(rest.completed for rest in held)
    if held:
        yield replace(_piece(held), rest=True)


def full(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The full segments; what remains waits for the next threshold, unless there is nothing else."""
    held = first = next(pieces, None)
    for piece in pieces:
        if held is not None:
            yield held
        held = piece
    if held is not None and (held is first or not held.rest):
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
    """The events by record. A record may begin a segment when no call before it waits for its result, and no result,
    which some logs have before its call, for that.

    An agent that speaks again has its results, or will never get them.
    """
    waiting: set[str] = set()
    early: set[str] = set()
    completion = Completion()
    record: _Record | None = None
    for event in events:
        if record is None or event.start != record.events[0].start:
            if record is not None:
                yield record
            if event.kind in ("assistant", "thinking"):
                waiting.clear()
                early.clear()
            record = _Record(cuttable=not (waiting or early))
        record.events.append(event)
        if event.kind not in ("compaction", "other") and not event.agent:
            record.tokens += count(event.text)
        record.asked = record.asked or event.kind == "user"
        record.completed = completion.by(event) or record.completed
        if event.kind == "call":
            (early.discard if event.call_id in early else waiting.add)(event.call_id)
        elif event.kind == "result":
            (waiting.discard if event.call_id in waiting else early.add)(event.call_id)
    if record is not None:
        yield record
