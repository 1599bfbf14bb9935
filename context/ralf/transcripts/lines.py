"""The lines of a transcript in bounded pieces, its fingerprint, and what all readers of session logs share."""

from __future__ import annotations

import io
import json
import os
import re
import stat
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ralf.errors import DamagedTranscript, RalfError, TranscriptChanged, TranscriptNotFound, UsageError
from ralf.text.cleaning import outside
from ralf.text.digests import sha256
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex
from ralf.transcripts.events import START, Event, Kind, Position, Record, time_of, words

if TYPE_CHECKING:
    from ralf.model import Attempt

LINE_LIMIT = 8 << 20
"""Bytes: a line or an element longer than this is never held whole."""

END_KEPT = 64 << 10
"""Bytes kept of either end of such a line."""

HEAD = 256 << 10
"""Bytes read to tell the format, the session and the working directory."""

PIECE = 1 << 20

CUT = "\n…\n"
"""Stands in the place of the middle of a long string."""

_CHARACTERS = rb'[^"\\]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*+)*+'

_TOKEN = regex(rb'"' + _CHARACTERS + rb'("?)|[{}\[\]]', re.S)

_WHOLE = regex(_CHARACTERS, re.S)

_INSIDE = regex(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.S)

_OUTSIDE = regex(rb'[^"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"]*+)*+', re.S)

_UNESCAPED = regex(rb"[^\\](?=\\)|[^\\]{7}")  # ends where an escape begins, or where none can be under way

_KINDS = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


class Line(NamedTuple):
    """A line of a file, or an element of a JSON list. `start` and `end` are byte offsets, `number` counts the lines
    before it.

    data      the line with its line end; of a line over LINE_LIMIT its first END_KEPT bytes
    tail      the last END_KEPT bytes of such a line, else b""
    cut       bytes between the two that are not held
    finished  whether its end is in the file
    json      such a line without the middles of its long strings; b"" where that is over LINE_LIMIT, too
    """

    data: bytes
    start: int
    end: int
    number: int
    tail: bytes = b""
    cut: int = 0
    finished: bool = True
    json: bytes = b""

    @property
    def record(self) -> dict[str, Any] | None:
        """The JSON object that the line is, None for anything else."""
        return parsed(self.json if self.cut else self.data)


def open_regular(path: Path, after: Position = START) -> io.BufferedReader:
    """Open a regular file for reading, at `after`; links are followed, nothing else can make it hang.

    Raises TranscriptNotFound, DamagedTranscript (a folder, pipe or device), TranscriptChanged (shorter than `after`),
    UsageError (a path that cannot be one), RalfError (not readable).
    """
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            raw = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            file: io.BufferedReader = io.BufferedReader(raw, PIECE)
            status = os.fstat(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        raise TranscriptNotFound(path, "no such transcript", "ralf checkpoint --help") from None
    except OSError as error:
        hint = "make it readable, or name another: --transcript FILE"
        raise RalfError(path, f"cannot be read: {error.strerror or error}", hint) from error
    except ValueError as error:
        raise UsageError(ascii(str(path)), f"not a path: {error}") from None
    if not stat.S_ISREG(status.st_mode):
        what = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "a device")
        raise DamagedTranscript(path, f"is {what}, not a transcript", "name the transcript file itself")
    if status.st_size < after.byte:
        file.close()
        what = f"has {status.st_size} bytes, but {after.byte} had been read: it was cut or replaced"
        raise TranscriptChanged(path, what, "read it again with --restart")
    if after.byte:
        file.seek(after.byte)
    return file


def read_lines(file: io.BufferedReader, after: Position = START) -> Iterator[Line]:
    """The lines of a file opened at `after`.

    A last line without line end is yielded, too (`finished` is false), unless it is over LINE_LIMIT. A caller that
    consumes it may continue at its end: the line end that arrives later is not another line.
    """
    start, number = after.byte, after.line
    if start:
        file.seek(start - 1)
        if file.read(1) != b"\n" and file.peek(1)[:1] == b"\n":  # the line end that arrived later
            file.read(1)
            start += 1
    while True:
        data = file.readline(LINE_LIMIT)
        if data.endswith(b"\n"):
            end = start + len(data)
            yield Line(data, start, end, number)
        elif len(data) < LINE_LIMIT:
            if data.strip():
                yield Line(data, start, start + len(data), number, finished=False)
            return
        else:
            long = _finish(file, data, start, number)
            if long is None:
                return
            yield long
            end = long.end
        start = end
        number += 1


def lines_before(file: io.BufferedReader, after: Position) -> list[Line]:
    """The whole lines in the last END_KEPT bytes before a place; the file stands at that place again afterwards."""
    if not after.byte:
        return []
    start = max(0, after.byte - END_KEPT)
    file.seek(start)
    whole = file.read(after.byte - start).split(b"\n")[1 if start else 0 :]
    file.seek(after.byte)
    return [Line(line + b"\n", after.byte, after.byte, after.line) for line in whole]


def _finish(file: io.BufferedReader, data: bytes, start: int, number: int) -> Line | None:
    """The rest of a line that is too long; None if it is unfinished."""
    head, size, shortened = data[:END_KEPT], 0, _Shortened()
    piece, tail = data, b""
    while piece:
        size += len(piece)
        tail = (tail + piece[-END_KEPT:])[-END_KEPT:]
        shortened.add(piece)
        if tail.endswith(b"\n"):
            cut = max(0, size - len(head) - len(tail))
            return Line(head, start, start + size, number, tail, cut, json=bytes(shortened.kept))
        piece = file.readline(PIECE)
    return None


class _Shortened:
    """A JSON text, added in pieces, without the middles of its long strings: every field of it is there.

    kept  what is held of it, b"" where that would be over LINE_LIMIT
    """

    def __init__(self) -> None:
        self.kept = bytearray()
        self._string = -1  # where the one begins in which the last piece ended
        self._is_cut = False  # the middle of that one is gone
        self._rest = b""  # a backslash whose escape is in the next piece
        self._is_over = False

    def add(self, piece: bytes) -> None:
        """Add what follows."""
        for at in range(0, len(piece), END_KEPT):
            if not self._is_over:
                self._add(self._rest + piece[at : at + END_KEPT])
            if len(self.kept) > LINE_LIMIT:
                self._is_over = True
                self.kept.clear()

    def _add(self, piece: bytes) -> None:
        at, self._rest = 0, b""
        while at < len(piece):
            in_string = self._string >= 0
            found = (_INSIDE if in_string else _OUTSIDE).match(piece, at)
            end = found.end() if found else at
            self.kept += piece[at:end]
            if in_string:
                self._cut_middle()
            mark, at = piece[end : end + 1], end + 1
            if mark == b"\\":
                self._rest = mark
            elif mark and in_string:
                self._join_ends()
                self._string = -1
                self.kept += mark
            elif mark:
                self.kept += mark
                self._string = len(self.kept)

    def _cut_middle(self) -> None:
        middle = self._string + END_KEPT
        if len(self.kept) > middle + END_KEPT:
            del self.kept[middle:-END_KEPT]
            self._is_cut = True

    def _join_ends(self) -> None:
        """Put CUT in the place of the middle that is gone, where no escape is under way."""
        if self._is_cut:
            whole, safe = _WHOLE.match(self.kept[self._string : -END_KEPT]), _UNESCAPED.search(self.kept[-END_KEPT:])
            tail = self.kept[-END_KEPT:][safe.end() :] if safe else b""
            self.kept[self._string :] = (whole[0] if whole else b"") + json.dumps(CUT)[1:-1].encode() + tail
            self._is_cut = False


def _closed(head: bytes) -> dict[str, Any] | None:
    """The JSON object that begins so; None where it makes none."""
    open_at: list[bytes] = []
    end, in_string = 0, False
    for token in _TOKEN.finditer(head):
        mark, end = token[0], token.end()
        if mark in (b"{", b"["):
            open_at.append(b"}" if mark == b"{" else b"]")
        elif mark in (b"}", b"]"):
            if open_at:
                open_at.pop()
        else:
            in_string = not token[1]
    kept, closing = head[:end] + b'"' * in_string, b"".join(reversed(open_at))
    return next((record for text in (kept, kept + b":null") if (record := parsed(text + closing)) is not None), None)


# ---- fingerprints of a file's beginning and of what lies before a place ----

FINGERPRINT_HEAD = 4 * 1024

FINGERPRINT_TAIL = 64 * 1024


class Fingerprint(NamedTuple):
    """sha256 of the first 4 KiB and of the 64 KiB before a place (less where the place is nearer to the start)."""

    head: str
    tail: str


def take_fingerprint(path: Path, end: int) -> Fingerprint | None:
    """The fingerprint of a file up to byte `end`; None when the file is shorter than that."""
    with path.open("rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size < end:
            return None
        head = os.pread(file.fileno(), min(FINGERPRINT_HEAD, end), 0)
        start = max(0, end - FINGERPRINT_TAIL)
        tail = os.pread(file.fileno(), end - start, start)
    return Fingerprint(sha256(head).hexdigest(), sha256(tail).hexdigest())


# ---- the head of a file, which tells its format, session and working directory ----

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
        return [line for line in self.data.split(b"\n")[:-1] if line.strip()]

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
        return _closed(self.data.lstrip()) or {}

    @cached_property
    def in_lines(self) -> bool:
        """Whether the file is JSON lines: its first line is an object, or, where that was cut, the second."""
        return bool(self.records) and any(parsed(line) is not None for line in self._lines[: 1 + self._follows_a_cut])

    @cached_property
    def _follows_a_cut(self) -> bool:
        """Whether only the first line is other than those of a log of JSON lines."""
        others = self._lines[1:]
        return bool(others) and all(line.startswith(b"{") for line in others) and parsed(others[0]) is not None

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
        lines = enumerate(self.data.split(b"\n")[:-1], 1)
        return next((number for number, line in lines if line.strip() and parsed(line) is None), 0)


class Records:
    """The JSON objects among lines, each parsed once and when it is asked for: usually the first one is enough."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._new = (record for line in lines if (record := parsed(line)) is not None)
        self._read: list[Record] = []

    def __iter__(self) -> Iterator[Record]:
        yield from self._read
        for record in self._new:
            self._read.append(record)
            yield record

    def __bool__(self) -> bool:
        return any(True for _ in self)


class Growing:
    """A log in one file to which its client appends; see ralf.transcripts.reader.Transcript for the fields."""

    origin = ""
    rewritten = False
    attempt: Attempt | None = None

    def __init__(self, path: Path, *, session: str = "", cwd: str = "", branch: str = "") -> None:
        self.path = path
        self.session = session or words(path.stem)
        self.cwd = cwd
        self.branch = branch
        self.skipped: Counter[str] = Counter()
        self.malformed: list[int] = []
        self.end = START

    def _start(self, after: Position) -> None:
        """Begin a reading at a place."""
        self.skipped.clear()
        self.malformed.clear()
        self.end = after

    def _skip_malformed(self, number: int) -> None:
        """Count the record with this number, from 0, which could not be read."""
        self.skipped["malformed"] += 1
        if len(self.malformed) < MALFORMED_SHOWN:
            self.malformed.append(number + 1)

    def refuse_unread(self) -> None:
        """Raise DamagedTranscript for a file of which a reading has understood nothing, unless it is only begun."""
        unread = ", ".join(f"{count} {what}" for what, count in sorted(self.skipped.items()) if what != "unfinished")
        if unread or (self.size() > HEAD and not self.skipped):
            what = f"no record in it could be read ({unread or 'it holds no list of messages'})"
            raise DamagedTranscript(self.path, what, _HINT)

    def size(self) -> int:
        """Bytes of the file now."""
        return self.path.stat().st_size

    def mark(self, end: Position) -> Fingerprint | None:
        """The fingerprint of what lies before a place; None where the file is shorter than that."""
        return take_fingerprint(self.path, end.byte)


# ---- a session log of JSON lines, read record by record ----

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
    """A session log of JSON lines; see ralf.transcripts.reader.Transcript for the fields."""

    def _read(self, reading: Pass, after: Position) -> Iterator[Event]:
        """The events after a place. A last line without line end is taken when it is a whole record, else it waits."""
        self._start(after)
        with open_regular(self.path, after) as file:
            reading.recall(lines_before(file, after))
            for line in read_lines(file, after):
                record = self._record(line, reading)
                if record is None and not line.finished:
                    self.skipped["unfinished"] += 1
                    return
                if record is not None:
                    yield from reading.events(record, line)
                self.end = reading.waiting[0].start if reading.waiting else Position(line.end, line.number + 1)
        if reading.waiting:
            self.skipped["unfinished"] += 1

    def _record(self, line: Line, reading: Pass) -> Record | None:
        if line.finished and (what := reading.passed_over(line)):
            self.skipped[what] += 1
            return None
        if line.cut:
            self.skipped["oversized"] += 1
        record = line.record
        if record is None and line.finished and not line.cut and not line.data.isspace():
            self._skip_malformed(line.number)
        return record


class Base:
    """What the events of one record share; `cwd`: the working directory at that moment."""

    def __init__(self, record: Record, line: Line, cwd: str) -> None:
        self.start = Position(line.start, line.number)
        self.end = Position(line.end, line.number + 1)
        self.timestamp = time_of(record.get("timestamp"))
        self.cwd = cwd
        branch = record.get("gitBranch")
        self.branch = branch if isinstance(branch, str) else ""
        self.cut = line.cut

    def event(
        self, kind: Kind, text: str, *, start: Position | None = None, cwd: str | None = None, **fields: Any
    ) -> Event:
        """An event of this record. A user's text whose middle is gone is nobody's words: what stood there might tell
        whose they are.
        """
        where = self.cwd if cwd is None else cwd
        place = start or self.start
        kind = "other" if kind == "user" and self.cut and CUT in text else kind
        return Event(kind, text, place, self.end, self.timestamp, cwd=where, branch=self.branch, cut=self.cut, **fields)


def parsed(data: bytes | str) -> dict[str, Any] | None:
    """Return the JSON object that a line or text is, None for anything else."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8", "replace").lstrip("\ufeff\0")
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def others(text: str, skipped: Counter[str]) -> str:
    """The text without what ralf itself had printed there, which is counted."""
    found = outside(text)
    if found != text:
        skipped["own output"] += 1
    return found
