"""What the end of a session's log shows, however long the log is: reads a bounded part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
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
_SAME = 500  # characters of an output by which two are told to be the same


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a log.

    session     as the log says
    filled      tokens in the client's window, None where unknown; `capacity`, its size where the log tells it
    growth      tokens that the window gains in a minute, None where that cannot be told
    speech      tokens of text that are added in a minute, an estimate, None as well
    unsaved     tokens after a place, an estimate
    last        when the last record was written, seconds since 1970, None where the log does not say
    open        the agent's turn goes on
    asks        it waits for an answer of the person
    said        by the agent, if that is the last thing that happened
    stopped     the client's words for the failure that ended the last turn, "" for none; `failed`: when that was
    repeats     how often the last failing call has failed with the same output, and `repeated`, what it is
    compaction  the byte at which the last compaction stands that was seen, 0 for none
    compactions how many were seen, and `compacted`, when the last one was, None where the log does not say
    task        tokens since the last task was complete or the window was compacted, an estimate; None where neither was
                seen, and the log begins before what was read
    """

    session: str = ""
    filled: int | None = None
    capacity: int | None = None
    growth: float | None = None
    speech: float | None = None
    unsaved: int = 0
    last: float | None = None
    open: bool = False
    asks: bool = False
    said: str = ""
    stopped: str = ""
    failed: float | None = None
    repeats: int = 0
    repeated: str = ""
    compaction: int = 0
    compactions: int = 0
    compacted: float | None = None
    task: int | None = None


def read(path: Path, after: Position = START) -> Tail:
    """The end of a log; `after`: up to where it was taken into a route. Errors: `open_transcript`."""
    source = open_transcript(path)
    size = path.stat().st_size
    unsaved = size - after.byte
    start, events = _events(source, size, max(LIMIT, unsaved) if unsaved <= _UNSAVED else LIMIT)
    if start.byte and not any(event.window is not None for event in events):
        start, events = _events(source, size, _FURTHER)
    if not events:
        return Tail(source.session, unsaved=max(0, size - after.byte) // 4)
    calls = [event for event in events if event.kind == "call"]
    answered = {event.call_id for event in events if event.kind == "result"}
    pending = [call for call in calls if call.call_id not in answered]
    main = [event for event in events if not event.agent]
    last = next((event.kind for event in reversed(events) if event.kind in _SPEECH), "")
    ends = next((event for event in reversed(main) if event.kind in _SPEECH or event.form == "stopped"), None)
    spoke = next((event for event in reversed(main) if event.kind in ("user", "assistant", "call")), None)
    is_cut = ends is not None and ends.kind == "mark"
    repeats, repeated = _repeats(events)
    times = [when for event in events if (when := seconds(event.timestamp)) is not None]
    sizes = [tokens.estimate(counted(event)) for event in events]
    return Tail(
        session=source.session,
        filled=_filled(events),
        capacity=next((event.capacity for event in reversed(events) if event.capacity), None),
        growth=_growth(events),
        speech=_speech(sum(sizes), times),
        unsaved=_unsaved(events, sizes, start, after, size),
        last=times[-1] if times else None,
        open=bool(pending) or last in ("user", "thinking", "call", "result"),
        asks=bool(pending) and pending[-1].tool in _ASKS,
        said=spoke.text if spoke is not None and spoke.kind == "assistant" else "",
        stopped=ends.text if ends is not None and is_cut else "",
        failed=seconds(ends.timestamp) if ends is not None and is_cut else None,
        repeats=repeats,
        repeated=repeated,
        compaction=next((event.start.byte for event in reversed(events) if event.kind == "compaction"), 0),
        compactions=sum(event.kind == "compaction" for event in events),
        compacted=next((seconds(event.timestamp) for event in reversed(events) if event.kind == "compaction"), None),
        task=_task(events, sizes, start),
    )


def seconds(timestamp: str) -> float | None:
    """An ISO 8601 time as seconds since 1970, None for what is none."""
    try:
        found = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo is not None else None


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


def _filled(events: Sequence[Event]) -> int | None:
    """The window's last figure; none counts that stands before a compaction."""
    for event in reversed(events):
        if event.window is not None or event.kind == "compaction":
            return event.window
    return None


def _task(events: Sequence[Event], sizes: Sequence[int], start: Position) -> int | None:
    """Tokens of the task at hand: of the session's own events since the last one was complete."""
    completion, total, is_whole = Completion(), 0, not start.byte
    for event, size in zip(events, sizes, strict=True):
        if event.agent:
            continue
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


def _speech(size: int, times: Sequence[float]) -> float | None:
    minutes = (times[-1] - times[0]) / 60 if times else 0
    return size / minutes if minutes > 0 else None


def _unsaved(events: Sequence[Event], sizes: Sequence[int], start: Position, after: Position, end: int) -> int:
    """Tokens after a place; where that lies before what was read, by what was read."""
    if after.byte >= start.byte:
        return sum(size for event, size in zip(events, sizes, strict=True) if event.start.byte >= after.byte)
    return round(sum(sizes) * (end - after.byte) / max(1, end - start.byte))


def _repeats(events: Sequence[Event]) -> tuple[int, str]:
    """How often the last call that failed has failed with the same output since it last did otherwise."""
    calls = {event.call_id: event for event in events if event.kind == "call"}
    results = [event for event in events if event.kind == "result" and event.call_id in calls]
    if not results or not results[-1].failed:
        return 0, ""
    last = calls[results[-1].call_id]
    same = (last.tool, last.text)
    said = _DIGITS.sub("0", results[-1].text[:_SAME])
    count = 0
    for result in reversed(results):
        call = calls[result.call_id]
        if (call.tool, call.text) == same:
            if not result.failed or _DIGITS.sub("0", result.text[:_SAME]) != said:
                break
            count += 1
    return count, trimmed(one_line(f"{last.tool} {last.text}"), 120)
