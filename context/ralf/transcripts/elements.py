"""The elements of a JSON list in a file, one at a time, and the sessions that are one such document."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator

from ralf.errors import TranscriptChanged
from ralf.text.patterns import regex
from ralf.transcripts.events import START, Event, Position, Record
from ralf.transcripts.lines import (
    FINGERPRINT_HEAD,
    FINGERPRINT_TAIL,
    LINE_LIMIT,
    PIECE,
    Fingerprint,
    Growing,
    Line,
    Pass,
    open_regular,
    parsed,
)

Accepts = Callable[[Record], bool]


class Document(Growing):
    """A session in one JSON document, which its client writes anew at each change.

    Places count from the first message, so that what stands before the list may change. Each reading goes through the
    whole list, and gives the events that begin after the place. A message that has changed makes another fingerprint.
    """

    @abstractmethod
    def _pass(self) -> Pass:
        """What reads the messages."""

    @abstractmethod
    def _accepts(self, record: Record) -> bool:
        """Whether an object is a message of this format."""

    def _after(self, line: Line) -> Iterator[Event]:
        """What the document says besides, told with its last message."""
        yield from ()

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events after a place. Messages over 8 MiB are counted, not read; an unfinished last one waits."""
        self._start(after)
        end, reading = START, self._pass()
        last: Line | None = None
        with open_regular(self.path) as file:
            for line in self._messages(file):
                is_new = line.start >= after.byte
                reading.skipped = self.skipped if is_new else Counter()
                record = None if line.cut else parsed(line.data)
                if record is None and not line.finished:
                    self.skipped["unfinished"] += 1
                    break
                end = Position(line.end, line.number + 1)
                events = [] if record is None else list(reading.events(record, line))
                if line.cut:
                    reading.skipped["oversized"] += 1
                    events = [Event("other", "", Position(line.start, line.number), end, cut=line.cut)]
                elif record is None and is_new:
                    self._skip_malformed(line.number)
                if is_new:
                    yield from events
                    self.end, last = end, line
        if last is not None:
            yield from self._after(last)
        if end == START:
            self.refuse_unread()
        if end.byte < after.byte:
            what = f"its messages end at byte {end.byte}, but {after.byte} had been read: it was cut or replaced"
            raise TranscriptChanged(self.path, what, "read it again with --restart")

    def _messages(self, file: io.BufferedReader) -> Iterator[Line]:
        first: int | None = None
        for line in elements(file, ("messages",), self._accepts):
            first = line.start if first is None else first
            yield line._replace(start=line.start - first, end=line.end - first)

    def mark(self, end: Position) -> Fingerprint | None:
        """The fingerprint of the messages before a place; None where there are fewer."""
        with open_regular(self.path) as file:
            line = next(elements(file, ("messages",), self._accepts), None)
            if line is None or os.fstat(file.fileno()).st_size < line.start + end.byte:
                return None
            last = line.start + end.byte
            head = os.pread(file.fileno(), min(FINGERPRINT_HEAD, end.byte), line.start)
            begin = max(line.start, last - FINGERPRINT_TAIL)
            tail = os.pread(file.fileno(), last - begin, begin)
        return Fingerprint(hashlib.sha256(head).hexdigest(), hashlib.sha256(tail).hexdigest())


# ---- the elements of a JSON list in a file, one at a time: the file is never held whole ----

_SPACE = regex(rb"[\s,:]*+")

_CHARACTERS = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'

_IN_CHARACTERS = regex(_CHARACTERS, re.S)

_BETWEEN = regex(rb'[^"{}\[\]]*+(?:"' + _CHARACTERS + rb'"[^"{}\[\]]*+)*+', re.S)

_SCALAR = regex(rb"[^\s,\]}]*+")


def elements(
    file: io.BufferedReader, keys: Collection[str], accepts: Accepts, after: Position = START
) -> Iterator[Line]:
    """The elements from a place on: those of the list that the file is, or of the first list in its object that stands
    under one of the keys and whose first element is accepted.

    Of an element over LINE_LIMIT nothing is held. An element that has no end yet is given last, unfinished; what
    follows the list is not read.
    """
    values = _Values(file, after.byte)
    if after.byte == 0:
        opening = values.peek()
        values.skip()
        if opening == b"{" and not _enter(values, keys, accepts):
            return
    number = after.line
    while values.peek() not in (b"", b"]", b"}"):
        start = values.at
        data = values.take()
        cut = values.at - start if data is None else 0
        yield Line(data or b"", start, values.at, number, cut=cut, finished=values.finished)
        number += 1
        if not values.finished:
            return


def _enter(values: _Values, keys: Collection[str], accepts: Accepts) -> bool:
    """Go into that list; false if the object has none."""
    while values.peek() == b'"':
        key = _json(values.take())
        if values.peek() == b"[" and key in keys:
            outside = values.at
            values.skip()
            inside = values.at
            message = _json(values.take()) if values.peek() == b"{" else None
            if isinstance(message, dict) and accepts(message):
                values.move(inside)
                return True
            values.move(outside)
        values.take()
        if not values.finished:
            return False
    return False


def _json(data: bytes | None) -> object:
    try:
        return None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None


class _Values:
    """The JSON values in a file from a byte on. `at` is the byte after the last one taken."""

    def __init__(self, file: io.BufferedReader, at: int) -> None:
        self._file = file
        self.move(at)

    def move(self, at: int) -> None:
        """Go to a byte."""
        self._file.seek(at)
        self._held = b""
        self._from = 0
        self.at = at
        self.finished = True

    def peek(self) -> bytes:
        """The first byte of what comes next, b"" at the end of the file."""
        while True:
            found = _SPACE.match(self._held, self._from)
            self._go(found.end() if found else self._from)
            if self._from < len(self._held):
                return self._held[self._from : self._from + 1]
            if not self._more():
                return b""

    def skip(self) -> None:
        """Go past that byte."""
        self._go(self._from + 1)

    def take(self) -> bytes | None:
        """The value that begins here; None if it is too long. `finished` tells whether its end is in the file."""
        kind, first = self.peek(), self.at
        keep = self._from
        depth, in_string, self.finished = 0, False, True
        while True:
            where = self._from
            if in_string:
                where = _end_of(_IN_CHARACTERS, self._held, where)
                mark = self._held[where : where + 1]
                if mark == b'"':
                    in_string, where = False, where + 1
            elif depth or kind in b'"{[':
                where = _end_of(_BETWEEN, self._held, where) if depth else where
                mark = self._held[where : where + 1]
                where += len(mark)
                in_string = mark == b'"'
                depth += (mark in (b"{", b"[")) - (mark in (b"}", b"]"))
            else:
                where = _end_of(_SCALAR, self._held, where)
                mark = self._held[where : where + 1]
            self._go(where)
            done = mark and not in_string and depth == 0
            if done:
                break
            if mark and mark != b"\\":
                continue
            if self.at - first > LINE_LIMIT:
                keep = -1
            dropped = self._from if keep < 0 else keep
            read = self._more(dropped)
            keep = keep if keep < 0 else 0
            if not read:
                self.finished = False
                break
        return None if keep < 0 or self.at - first > LINE_LIMIT else self._held[keep : self._from]

    def _go(self, where: int) -> None:
        self.at += where - self._from
        self._from = where

    def _more(self, dropped: int | None = None) -> bool:
        """Read on, and let go of what lies before `dropped` (default: before here)."""
        piece = self._file.read(PIECE)
        dropped = self._from if dropped is None else dropped
        self._held = self._held[dropped:] + piece
        self._from -= dropped
        return bool(piece)


def _end_of(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    return found.end() if found else at
