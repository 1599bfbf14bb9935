"""What the end of a session's log shows, however long the log is: reads a bounded part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from ralf.allocation.gauge import growth_of
from ralf.checkpointing.completion import Completion
from ralf.text import tokens
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.reader import Transcript, counted, open_transcript
from ralf_integrations.hooks.usage import IN_LINES

LIMIT = 96 << 10
"""Bytes at the end that are read, or more that no checkpoint has; the reader looks at 64 KiB before them, too."""

_UNSAVED = 1 << 20  # bytes since the last checkpoint that are read: how much of a log is text differs from part to part
_FURTHER = 2 << 20  # where those do not say how full the window is
_MOST_WHOLE = 1 << 20  # bytes of a log that can only be read from its beginning
_ASKS = frozenset({"AskUserQuestion", "ExitPlanMode", "request_user_input"})
_SPEECH = ("user", "assistant", "thinking", "call", "result")
_DIGITS = regex(r"\d+")
_SAME = 500  # characters of an output by which two are known to be the same


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a log; None for what it does not say. Times are seconds since 1970."""

    session: str = ""
    filled: int | None = None  # tokens in the client's window
    capacity: int | None = None  # of the window
    growth: float | None = None  # tokens that the window gains in a minute
    speech: float | None = None  # tokens of text that are added in a minute, an estimate
    unsaved: int = 0  # tokens after the place that was asked for, an estimate
    last: float | None = None  # when the last record was written
    open: bool = False  # whether the agent's turn goes on
    asks: bool = False  # whether it waits for an answer of the person
    said: str = ""  # by the agent, if that is the last thing that happened
    stopped: str = ""  # the client's words for the failure that ended the last turn
    failed: float | None = None  # when that was
    repeats: int = 0  # how often the last failing call has failed with the same output
    repeated: str = ""  # that call
    compaction: int = 0  # the byte at which the last compaction stands that was seen
    compactions: int = 0  # how many were seen
    compacted: float | None = None  # when the last one was
    task: int | None = None  # tokens since the last task was complete, or the window compacted: an estimate


def read(path: Path, after: Position = START) -> Tail:
    """The end of a log; `after`: up to where it was taken into a route. Errors: `open_transcript`, OSError."""
    seen = path.stat()
    return _read(path, after, (seen.st_ino, seen.st_size, seen.st_mtime_ns))


@lru_cache(maxsize=256)  # who looks again and again reads only what has changed
def _read(path: Path, after: Position, _stamp: tuple[int, ...]) -> Tail:
    source = open_transcript(path)
    size = path.stat().st_size
    behind = size - after.byte
    start, events = _events(source, size, max(LIMIT, behind) if behind <= _UNSAVED else LIMIT)
    if start.byte and not any(event.window is not None for event in events):
        start, events = _events(source, size, _FURTHER)
    if not events:
        return Tail(source.session, unsaved=max(0, behind) // 4)
    sizes = [tokens.estimate(counted(event)) for event in events]
    if after.byte >= start.byte:
        unsaved = sum(size for event, size in zip(events, sizes, strict=True) if event.start.byte >= after.byte)
    else:  # by what was read
        unsaved = round(sum(sizes) * behind / max(1, size - start.byte))
    times = [when for event in events if (when := seconds(event.timestamp)) is not None]
    minutes = (times[-1] - times[0]) / 60 if times else 0
    answered = {event.call_id for event in events if event.kind == "result"}
    pending = [event for event in events if event.kind == "call" and event.call_id not in answered]

    def newest(fits: Callable[[Event], object], *, main: bool = False) -> Event | None:
        return next((event for event in reversed(events) if fits(event) and not (main and event.agent)), None)

    last = newest(lambda event: event.kind in _SPEECH)
    spoke = newest(lambda event: event.kind in ("user", "assistant", "call"), main=True)
    ends = newest(lambda event: event.kind in _SPEECH or event.form == "stopped", main=True)
    cut = ends if ends is not None and ends.kind == "mark" else None
    compactions = [event for event in events if event.kind == "compaction"]
    window = newest(lambda event: event.window is not None or event.kind == "compaction")
    capacity = newest(lambda event: event.capacity)
    repeats, repeated = _repeats(events)
    return Tail(
        session=source.session,
        filled=window.window if window is not None else None,
        capacity=capacity.capacity if capacity is not None else None,
        growth=_growth(events),
        speech=sum(sizes) / minutes if minutes > 0 else None,
        unsaved=unsaved,
        last=times[-1] if times else None,
        open=bool(pending) or (last is not None and last.kind != "assistant"),
        asks=bool(pending) and pending[-1].tool in _ASKS,
        said=spoke.text if spoke is not None and spoke.kind == "assistant" else "",
        stopped=cut.text if cut is not None else "",
        failed=seconds(cut.timestamp) if cut is not None else None,
        repeats=repeats,
        repeated=repeated,
        compaction=compactions[-1].start.byte if compactions else 0,
        compactions=len(compactions),
        compacted=seconds(compactions[-1].timestamp) if compactions else None,
        task=_task(zip(events, sizes, strict=True), is_whole=not start.byte),
    )


def seconds(timestamp: str) -> float | None:
    """An ISO 8601 time as seconds since 1970, None for what is none."""
    with suppress(ValueError):
        found = datetime.fromisoformat(timestamp)
        return found.timestamp() if found.tzinfo is not None else None
    return None


def _events(source: Transcript, size: int, limit: int) -> tuple[Position, list[Event]]:
    """The events in the last bytes of a log, and where they begin."""
    if source.format not in IN_LINES:
        return START, list(source.events()) if size <= _MOST_WHOLE else []
    start = START
    if size > limit:
        with source.path.open("rb") as file:
            file.seek(size - limit)
            found = file.read(limit).find(b"\n")
        if found < 0:
            return START, []
        start = Position(size - limit + found + 1)
    return start, list(source.events(start))


def _task(sized: Iterator[tuple[Event, int]], *, is_whole: bool) -> int | None:
    """Tokens of the task at hand: of the session's own events since the last one was complete; None where that was not
    seen, and they are not the `whole` log.
    """
    completion, total = Completion(), 0
    for event, size in sized:
        if not event.agent:
            is_over = event.kind == "compaction" or completion.by(event)
            total, is_whole = (0, True) if is_over else (total + size, is_whole)
    return total if is_whole else None


def _growth(events: Sequence[Event]) -> float | None:
    points: list[tuple[float, int]] = []
    for event in events:
        when = seconds(event.timestamp)
        if event.kind == "compaction":
            points = []
        elif event.window is not None and when is not None:
            points.append((when, event.window))
    growth = growth_of(points)
    return None if growth is None else max(0.0, growth)


def _repeats(events: Sequence[Event]) -> tuple[int, str]:
    """How often the last call that failed has failed with the same output since it last did otherwise."""
    calls = {event.call_id: event for event in events if event.kind == "call"}
    results = [event for event in events if event.kind == "result" and event.call_id in calls]
    if not results or not results[-1].failed:
        return 0, ""

    def came_to(result: Event) -> tuple[bool, str]:
        return bool(result.failed), _DIGITS.sub("0", result.text[:_SAME])

    last, outcome, count = calls[results[-1].call_id], came_to(results[-1]), 0
    for result in reversed(results):
        call = calls[result.call_id]
        if (call.tool, call.text) == (last.tool, last.text):
            if came_to(result) != outcome:
                break
            count += 1
    return count, trimmed(one_line(f"{last.tool} {last.text}"), 120)
