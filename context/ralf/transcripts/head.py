"""The first bytes of a file: what tells its format, its session and its working directory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path

from ralf.errors import DamagedTranscript
from ralf.transcripts.content import Record
from ralf.transcripts.lines import HEAD, Line, open_regular, restored

_HINT = "name a session log of a client, or a list of messages"


@dataclass(frozen=True)
class Head:
    """At most HEAD bytes of a file from its start; `whole` where that is all of it."""

    path: Path
    data: bytes
    whole: bool

    @classmethod
    def read(cls, path: Path) -> Head:
        """Read it; raises what `open_regular` raises."""
        with open_regular(path) as file:
            data = file.read(HEAD + 1)
        return cls(path, data[:HEAD].removeprefix(b"\xef\xbb\xbf"), len(data) <= HEAD)

    @cached_property
    def opening(self) -> bytes:
        """The first bytes that are no white space."""
        return self.data.lstrip()[:64]

    @cached_property
    def _lines(self) -> list[bytes]:
        complete = self.data.split(b"\n")[:-1]
        return [line for line in complete if line.strip()]

    @cached_property
    def records(self) -> Records:
        """The JSON objects that stand on a complete line each; the first line may have lost its beginning."""
        begins = self.opening.startswith(b"{") or self._follows_a_cut
        return Records(self._lines if begins else [])

    @cached_property
    def document(self) -> Record:
        """The JSON object that the file is or begins with, as far as it lies in the head."""
        if not self.opening.startswith(b"{"):
            return {}
        try:
            return restored(Line(self.data.lstrip(), 0, len(self.data), 0))
        except (ValueError, RecursionError):
            return {}

    @cached_property
    def in_lines(self) -> bool:
        """Whether the file is JSON lines: its first line is an object, or, where that was cut, the second."""
        return bool(self.records) and any(_object(line) is not None for line in self._lines[: 1 + self._follows_a_cut])

    @cached_property
    def _follows_a_cut(self) -> bool:
        """Whether only the first line is other than those of a log of JSON lines."""
        others = self._lines[1:]
        return bool(others) and all(line.startswith(b"{") for line in others) and _object(others[0]) is not None

    def is_text(self) -> bool:
        """Whether this is text: no zero bytes, and hardly any that are not UTF-8."""
        if b"\0" in self.data:
            return False
        text = self.data.decode("utf-8", "replace")
        return text.count("\ufffd") * 10 <= len(text) + 10

    def damaged(self, what: str) -> DamagedTranscript:
        """The error that says so of this file."""
        return DamagedTranscript(self.path, what, _HINT)

    def first_bad_line(self) -> int:
        """The number of the first complete line that is no JSON object, from 1; 0 if there is none."""
        for number, line in enumerate(self.data.split(b"\n")[:-1], 1):
            if line.strip() and _object(line) is None:
                return number
        return 0


class Records:
    """The JSON objects among lines, each read when it is asked for: mostly the first tells all."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._new = (record for line in lines if (record := _object(line)) is not None)
        self._read: list[Record] = []

    def __iter__(self) -> Iterator[Record]:
        for number in count():
            if number == len(self._read):
                record = next(self._new, None)
                if record is None:
                    return
                self._read.append(record)
            yield self._read[number]

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None


def _object(line: bytes) -> Record | None:
    try:
        record = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
