"""A journal's file: how its lines are framed, found from either end, written whole and made durable."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ralf.errors import MEND_JOURNAL, DamagedJournal, UnknownToken
from ralf.store import Entry, Token

CAREFUL = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # the last: a pipe would wait for its other end
_FRAME = re.compile(rb'\{"id":("(?:[^"\\]|\\.)*"),"length":(\d+),"sha256":"([0-9a-f]{32})","record":')
_FRAME_BYTES = 4096  # more than a frame before its record ever takes
_BACKWARD = 64 * 1024  # how much of a journal's end is read at a time when its last line is looked for


class Line(NamedTuple):
    """A line's token, and where the line ends."""

    token: Token
    end: int


def framed(id: str, record: bytes) -> bytes:  # noqa: A002
    """A record as a line."""
    quoted = json.dumps(id).encode()
    return b'{"id":%s,"length":%d,"sha256":"%s","record":%s}\n' % (quoted, len(record), _sum(record), record)


def _sum(record: bytes) -> bytes:
    return hashlib.sha256(record).hexdigest()[:32].encode()


def token_at(offset: int, line: bytes) -> Token:
    """The token of a line at a place."""
    match = _FRAME.match(line)
    checksum = match[3].decode() if match else _sum(line[:_FRAME_BYTES]).decode()  # a damaged line has a place, too
    return f"{offset}-{checksum}"


def offset_of(token: Token) -> int:
    """Where the line of a token begins; UnknownToken for what is none."""
    number, _, _ = token.partition("-")
    if not number.isdecimal():
        raise UnknownToken(ascii(token), "no such place in this stream")
    return int(number)


def opened(path: Path, flags: int) -> int:
    """A journal's descriptor; DamagedJournal where something else than a file lies in its place."""
    try:
        descriptor = os.open(path, flags | CAREFUL, 0o600)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ENXIO):
            raise DamagedJournal(path, "is no regular file", f"move it away: {path}") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedJournal(path, "is no regular file", f"move it away: {path}")
    return descriptor


def line_of(file: BinaryIO, stream: str, token: Token) -> bytes:
    """The line at a place, with the file left behind it."""
    offset = offset_of(token)
    file.seek(offset)
    line = file.readline()
    if not line.endswith(b"\n") or token_at(offset, line) != token:
        raise UnknownToken(stream, "no such place in this stream")
    return line


def parsed(path: Path, start: int, line: bytes) -> Entry:
    """The entry in a line; DamagedJournal where it is not what was written."""
    match = _FRAME.match(line)
    record = line[match.end() : -2] if match else b""
    id_ = _id_in(match)
    if match is None or id_ is None or len(record) != int(match[2]) or _sum(record) != match[3]:
        raise DamagedJournal(path, f"the record at byte {start} is not what was written", MEND_JOURNAL)
    return Entry(token_at(start, line), id_, record)


def _id_in(match: re.Match[bytes] | None) -> str | None:
    """The id in a line's frame, None where the line is damaged."""
    try:
        return str(json.loads(match[1])) if match is not None else None
    except ValueError:
        return None


def end_of_lines(descriptor: int) -> int:
    """Where the last complete line ends."""
    size = os.fstat(descriptor).st_size
    end = size
    while end:
        start = max(0, end - _BACKWARD)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def cut_torn_tail(descriptor: int) -> int:
    """Remove a last line without its newline (it was never acknowledged); returns where the journal ends now."""
    end = end_of_lines(descriptor)
    if end != os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, end)
    return end


def _start_of_line(descriptor: int, end: int) -> int:
    """Where the line begins that ends at `end`."""
    place = end - 1
    while place:
        start = max(0, place - _BACKWARD)
        found = os.pread(descriptor, place - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        place = start
    return 0


def last_token(path: Path, descriptor: int, end: int) -> Token | None:
    """The token of the last complete line, which ends at `end`."""
    return line_at(path, descriptor, _start_of_line(descriptor, end)).token if end else None


def line_at(path: Path, descriptor: int, start: int) -> Line:
    """The line at a place, by its frame alone."""
    frame = os.pread(descriptor, _FRAME_BYTES, start)
    match = _FRAME.match(frame)
    if match is None:
        return Line(token_at(start, frame), start + len(frame))
    return Line(token_at(start, frame), start + match.end() + int(match[2]) + 2)


def id_at(descriptor: int, offset: int) -> str | None:
    """The id of the line at a place."""
    return _id_in(_FRAME.match(os.pread(descriptor, _FRAME_BYTES, offset)))


def ids(descriptor: int, start: int) -> Iterator[tuple[str, int, int]]:
    """Id, start and end of every line from `start` on."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(start)
        for line in file:
            end = start + len(line)
            yield _id_in(_FRAME.match(line)) or "", start, end
            start = end


def write_all(descriptor: int, line: bytes, end: int) -> None:
    """One write; a short one (a full disk) is undone and raised, so that no part of a record stays."""
    try:
        written = os.write(descriptor, line)
        while written < len(line):
            written += os.write(descriptor, line[written:])
    except OSError:
        _take_back(descriptor, end)
        raise


def sync(descriptor: int, end: int) -> None:
    """The acknowledgement. When it fails nothing was promised, and it is not tried again: the line goes.

    After a failure the kernel takes the pages for clean: a second fsync would succeed, and the line be lost for that.
    """
    try:
        os.fsync(descriptor)
    except OSError:
        _take_back(descriptor, end)
        raise


def _take_back(descriptor: int, end: int) -> None:
    """Undo a line that nobody was promised. Where it cannot be cut off, its newline goes: without one it is no line."""
    try:
        os.ftruncate(descriptor, end)
    except OSError:
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)  # with O_APPEND a write goes to the end, wherever it is meant to
            last = os.fstat(descriptor).st_size - 1
            if last >= end:
                os.pwrite(descriptor, b" ", last)
