"""A session log of JSON lines, read record by record: what every reader of such a log does in the same way."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ralf.briefing.fence import outside
from ralf.transcripts.content import Record, time_of, words
from ralf.transcripts.events import Event, Kind, Position
from ralf.transcripts.growing import Growing
from ralf.transcripts.lines import Line, lines_before, open_regular, read_lines, restored

MALFORMED_SHOWN = 20
"""How many of the lines that could not be read are named."""


class Pass(ABC):
    """One reading from a place to the end: what has to be remembered between records.

    waiting  events that are told, or not, by what follows them; the next reading begins with the record of the first
    """

    def __init__(self, skipped: Counter[str]) -> None:
        self.skipped = skipped
        self.waiting: list[Event] = []

    @abstractmethod
    def passed_over(self, line: Line) -> str:
        """What a finished line is that says nothing, told by its bytes; "" for one that has to be parsed."""

    @abstractmethod
    def events(self, record: Record, line: Line) -> Iterator[Event]:
        """The events of one record."""

    def recall(self, lines: Iterable[Line]) -> None:
        """Learn from the records just before that place."""
        skipped, self.skipped = self.skipped, Counter()
        for line in lines:
            if not self.passed_over(line) and (record := parsed(line.data)) is not None:
                deque(self.events(record, line), maxlen=0)
        self.waiting = []  # it lies before that place
        self.skipped = skipped

    def others(self, text: str) -> str:
        """The text without what ralf itself had printed there."""
        return others(text, self.skipped)


class Log(Growing):
    """A session log of JSON lines; see ralf.transcripts.Transcript for the fields."""

    def __init__(self, path: Path, *, session: str, cwd: str, branch: str) -> None:
        self.path = path
        self.session = session or words(path.stem)
        self.cwd = cwd
        self.branch = branch
        self.skipped: Counter[str] = Counter()
        self.malformed: list[int] = []
        self._end = (0, 0)

    @property
    def end(self) -> Position:
        """The place after the last record that was consumed."""
        return Position(*self._end)

    def _read(self, reading: Pass, after: Position) -> Iterator[Event]:
        """The events after a place. A last line without line end is taken when it is a whole record, else it waits."""
        self.skipped.clear()
        self.malformed.clear()
        self._end = (after.byte, after.line)
        with open_regular(self.path, after) as file:
            reading.recall(lines_before(file, after))
            for line in read_lines(file, after):
                record = self._record(line, reading)
                if record is None and not line.finished:
                    self.skipped["unfinished"] += 1
                    return
                if record is not None:
                    yield from reading.events(record, line)
                waits = reading.waiting[0].start if reading.waiting else None
                self._end = (waits.byte, waits.line) if waits else (line.end, line.number + 1)

    def _record(self, line: Line, reading: Pass) -> Record | None:
        if line.finished and (what := reading.passed_over(line)):
            self.skipped[what] += 1
            return None
        record: Record | None
        if line.cut:
            self.skipped["oversized"] += 1
            try:
                record = restored(line)
            except (ValueError, RecursionError):
                record = None
        else:
            record = parsed(line.data)
        if record is None and line.finished and not line.cut and not line.data.isspace():
            self.skipped["malformed"] += 1
            if len(self.malformed) < MALFORMED_SHOWN:
                self.malformed.append(line.number + 1)
        return record


class Base:
    """What the events of one record share; `cwd`: the working directory at that moment."""

    def __init__(self, record: Record, line: Line, cwd: str) -> None:
        self.start = Position(line.start, line.number)
        self.end = Position(line.end, line.number + 1)
        self.timestamp = time_of(record.get("timestamp"))
        self.cwd = cwd
        self.cut = line.cut

    def event(
        self, kind: Kind, text: str, *, start: Position | None = None, cwd: str | None = None, **fields: Any
    ) -> Event:
        """An event of this record."""
        where = self.cwd if cwd is None else cwd
        return Event(kind, text, start or self.start, self.end, self.timestamp, cwd=where, cut=self.cut, **fields)


def parsed(data: bytes) -> Record | None:
    """The JSON object that a line is, None for anything else."""
    try:
        record = json.loads(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def others(text: str, skipped: Counter[str]) -> str:
    """The text without what ralf itself had printed there, which is counted."""
    found = outside(text)
    if found != text:
        skipped["own output"] += 1
    return found
