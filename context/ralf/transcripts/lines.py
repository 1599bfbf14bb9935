"""The bytes of a transcript in bounded pieces: a regular file opened safely, its complete lines, clean text."""

from __future__ import annotations

import io
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ralf.errors import DamagedTranscript, RalfError, TranscriptChanged, TranscriptNotFound, UsageError
from ralf.transcripts.events import START, Position

LINE_LIMIT = 8 << 20
"""Bytes: a line or an element longer than this is never held whole."""

END_KEPT = 64 << 10
"""Bytes kept of either end of such a line."""

HEAD = 256 << 10
"""Bytes read to tell the format, the session and the working directory."""

_PIECE = 1 << 20
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*+)*+("?)|[{}\[\]]', re.S)
_INSIDE = re.compile(rb'(?:\\.|[^"\\])+', re.S)
_UNESCAPED = re.compile(rb"[^\\](?=\\)|[^\\]{7}")  # ends where an escape begins, or where none can be under way
_TIME = re.compile(rb'"timestamp"\s*:\s*"([^"\\]{1,64})"')
_KINDS = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


class Line(NamedTuple):
    """A line. `start` and `end` are bytes of the file, `number` counts the lines before it.

    data  the line with its line end; of a line over LINE_LIMIT its first END_KEPT bytes
    tail  the last END_KEPT bytes of such a line, else b""
    cut   bytes between the two that are not held
    """

    data: bytes
    start: int
    end: int
    number: int
    tail: bytes = b""
    cut: int = 0

    @property
    def finished(self) -> bool:
        """Whether the line end is there."""
        return bool(self.cut) or self.data.endswith(b"\n")


def open_regular(path: Path, after: Position = START) -> io.BufferedReader:
    """Open a regular file for reading, at `after`; links are followed, nothing else can make it hang.

    Raises TranscriptNotFound, DamagedTranscript (a folder, pipe or device), TranscriptChanged (shorter than `after`),
    UsageError (a path that cannot be one), RalfError (not readable).
    """
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            raw = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            file: io.BufferedReader = io.BufferedReader(raw, _PIECE)
            status = os.fstat(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        raise TranscriptNotFound(path, "no such transcript", "ralf context checkpoint --help") from None
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

    A last line without line end is given, too (`finished` is false), unless it is over LINE_LIMIT. Who takes it for
    whole may go on at its end: the line end that arrives later is not another line.
    """
    start, number = after.byte, after.line
    if start and _inside_line(file, start) and file.peek(1)[:1] == b"\n":
        file.read(1)
        start += 1
    while True:
        data = file.readline(LINE_LIMIT)
        if data.endswith(b"\n"):
            end = start + len(data)
            yield Line(data, start, end, number)
        elif len(data) < LINE_LIMIT:
            if data.strip():
                yield Line(data, start, start + len(data), number)
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
    data = file.read(after.byte - start)
    whole = data.split(b"\n")[1 if start else 0 :]
    file.seek(after.byte)
    return [Line(line + b"\n", after.byte, after.byte, after.line) for line in whole]


def _inside_line(file: io.BufferedReader, at: int) -> bool:
    file.seek(at - 1)
    return file.read(1) != b"\n"


def _finish(file: io.BufferedReader, data: bytes, start: int, number: int) -> Line | None:
    """The rest of a line that is too long, of which only the ends are kept; None if it is unfinished."""
    head, tail, size = data[:END_KEPT], data[-END_KEPT:], len(data)
    while not tail.endswith(b"\n"):
        piece = file.readline(_PIECE)
        if not piece:
            return None
        size += len(piece)
        tail = (tail + piece)[-END_KEPT:]
    return Line(head, start, start + size, number, tail, max(0, size - len(head) - len(tail)))


def restored(line: Line) -> dict[str, Any]:
    """What can be had of the JSON object in a line over LINE_LIMIT: everything up to the long string, both of its ends.

    Raises ValueError where the ends make no object.
    """
    head = line.data
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
    kept = head[:end] + (b"\\n\xe2\x80\xa6\\n" + _long_end(line.tail) + b'"' if in_string else b"")
    closing = b"".join(reversed(open_at))
    for text in (kept + closing, kept + b":null" + closing):
        try:
            record = json.loads(text.decode("utf-8", "replace"), strict=False)
        except ValueError:
            continue
        if isinstance(record, dict):
            times = _TIME.findall(line.tail)
            return {"timestamp": times[-1].decode("utf-8", "replace"), **record} if times else record
    raise ValueError("the kept ends make no record")


def _long_end(tail: bytes) -> bytes:
    """The end of the long string: the longest stretch between quotes in the tail, from where no escape is cut."""
    safe = _UNESCAPED.search(tail)
    pieces = _INSIDE.findall(tail, safe.end() if safe else len(tail))
    longest = max(pieces, key=len, default=b"")
    try:
        json.loads(b'"' + longest + b'"', strict=False)
    except ValueError:
        return b""
    return longest
