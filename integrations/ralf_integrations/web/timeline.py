"""How full a session's window was over time, and where its client compacted it: read from the end of its log, and then
only what has been added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ralf.errors import RalfError
from ralf.transcripts.events import START, Position
from ralf.transcripts.reader import open_transcript
from ralf_integrations.health.tail import seconds
from ralf_integrations.hooks.usage import IN_LINES
from ralf_integrations.loop import limits

FIRST_LOOK = 1 << 20
"""Bytes at the end of a log that the first look reads; a later one reads what is new, and at most as much."""

MOST_POINTS = 240
"""Of a longer line every second point goes."""

_MOST_COMPACTIONS = 60

_LAST = 64 << 10  # bytes of a log in which its last record is looked for


@dataclass(frozen=True, slots=True)
class Timeline:
    """A session's window over time.

    points       seconds since 1970, and tokens in the window then
    compactions  seconds since 1970
    whole        whether it begins with the log
    end          the place up to which the log was read
    """

    points: tuple[tuple[float, int], ...] = ()
    compactions: tuple[float, ...] = ()
    whole: bool = True
    end: Position = field(default=START)


def read(path: Path, before: Timeline | None = None) -> Timeline:
    """The timeline of a log, `before` with what was added since; as much as can be read."""
    known = before or Timeline()
    with suppress(RalfError, OSError):
        size = path.stat().st_size
        if size < known.end.byte:
            known = Timeline()
        source = open_transcript(path)
        start = known.end
        if size - start.byte > FIRST_LOOK:
            if source.format not in IN_LINES:
                return known
            start, known = _from_the_end(path, size), Timeline(whole=False)
        points, compactions = list(known.points), list(known.compactions)
        for event in source.events(start):
            when = seconds(event.timestamp)
            if when is not None and event.kind == "compaction":
                compactions.append(when)
            if when is not None and event.window is not None and (not points or points[-1][1] != event.window):
                points.append((when, event.window))
        while len(points) > MOST_POINTS:
            points = [*points[:-1:2], points[-1]]
        return Timeline(tuple(points), tuple(compactions[-_MOST_COMPACTIONS:]), known.whole, source.end)
    return known


def _from_the_end(path: Path, size: int) -> Position:
    with path.open("rb") as file:
        file.seek(size - FIRST_LOOK)
        found = file.read(FIRST_LOOK).find(b"\n")
    return Position(size - FIRST_LOOK + found + 1) if found >= 0 else Position(size)


def limit_of(path: Path) -> limits.Limit | None:
    """The usage limit at which a session stopped, by the last record of its log; None where that is another."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LAST))
            lines = file.read(_LAST).splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        with suppress(ValueError, RecursionError):
            record: Any = json.loads(line)
            if isinstance(record, dict):
                found, is_last = _limit_in(record)
                if found is not None or is_last:
                    return found
    return None


def _limit_in(record: Mapping[str, Any]) -> tuple[limits.Limit | None, bool]:
    """The limit that a record tells, and whether it is one in which somebody speaks."""
    if record.get("type") in ("user", "assistant"):
        return limits.of_claude_record(record), True
    payload = record.get("payload")
    if not isinstance(payload, dict):
        return None, False
    if payload.get("type") == "error":
        return limits.of_codex_error(payload, limits.time_of(record.get("timestamp"))), True
    return None, payload.get("type") == "message"
