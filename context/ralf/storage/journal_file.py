"""A journal's file: lines that are found from either end, written whole and made durable. Format: docs/format.md."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ralf.errors import MEND_JOURNAL, DamagedJournal, UnknownToken
from ralf.storage import durable, files
from ralf.storage.files import CAREFUL
from ralf.storage.journal import Entry, Token
from ralf.text.patterns import regex

# ---- a line: a record in its frame, with its id, its length, and sums of both ----

_FRAME = regex(
    rb'\{"id":(?P<id>"(?:[^"\\]++|\\.)*+"),"length":(?P<length>\d{1,12}),"sha256":"(?P<sum>[0-9a-f]{32})"'
    rb'(?:,"frame":"(?P<frame>[^"]*)")?,"record":'
)

FRAME_BYTES = 4096  # more than a frame before its record ever takes


def framed(id: str, record: bytes) -> bytes:  # noqa: A002
    """A record as a line."""
    begin = b'{"id":%s,"length":%d,"sha256":"%s"' % (json.dumps(id).encode(), len(record), sum_of(record))
    return b'%s,"frame":"%s","record":%s}\n' % (begin, _sum_of_frame(begin), record)


def _sound_id(match: re.Match[bytes]) -> str | None:
    """The id in a frame, None where the frame is not what was written."""
    begin = match.string[match.start() : match.end("sum") + 1]
    return _text_of(match["id"]) if match["frame"] in (None, _sum_of_frame(begin)) else None


def sum_of(content: bytes) -> bytes:
    """The sum of some bytes, 32 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:32].encode()


def _sum_of_frame(begin: bytes) -> bytes:
    """The sum of a line up to its record's, which is another one, so that a record whose id is damaged is still known
    to be whole.
    """
    return sum_of(begin)[:16]


def token_at(offset: int, line: bytes) -> Token:
    """The token of a line at a place."""
    match = _FRAME.match(line)
    checksum = match["sum"] if match else sum_of(line[:FRAME_BYTES])  # a damaged line has a place, too
    return f"{offset}-{checksum.decode()}"


def offset_of(token: Token) -> int:
    """Where the line of a token begins; UnknownToken for what is none."""
    number, _, _ = token.partition("-")
    if not number.isdecimal() or len(number) > 18:
        raise UnknownToken(ascii(token), "no such place in this stream")
    return int(number)


def parsed(path: Path, start: int, line: bytes) -> Entry:
    """The entry in a line; DamagedJournal where it is not what was written."""
    match = _FRAME.match(line)
    record = line[match.end() : -2] if match else b""
    id_ = _sound_id(match) if match else None
    whole = match is not None and len(record) == int(match["length"]) and sum_of(record) == match["sum"]
    if id_ is None or not whole or line[-2:] != b"}\n":
        raise DamagedJournal(path, f"the record at byte {start} is not what was written", MEND_JOURNAL)
    return Entry(token_at(start, line), id_, record)


def quoted(line: bytes) -> bytes:
    """The id in a line's frame, as it stands there; something else for a damaged one."""
    return line[6 : line.find(b'","length":', 6) + 1]


def _text_of(quoted: bytes) -> str | None:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return None


# ---- the file ----
#
# A file that was rewritten begins with a header, which says where its own lines begin: no place of before is one since.
# A journal that is archived is one gzip file of the same bytes; whoever opens it reads them from memory.

_TAIL = 4 << 10  # bytes of a journal's end that are read first when its last line is looked for; then eight times more
_PIECE = 4 << 20  # bytes of it that are looked through at once
_HEADER = rb'\{"header":(\{.*\}),"sha256":"([0-9a-f]{32})"\}\n'  # compiled where there is one
_HEADER_BEGINS = b'{"header":'

_BEGIN = 64  # bytes that have the offset of a header, which grows whenever a file is replaced

_FARTHEST = 10**17
"""An offset beyond every journal: from there on a token would have too many digits."""

MOST = 256 << 20
"""The most bytes of an archived journal."""

_STEP = 1 << 16
_GZIP = zlib.MAX_WBITS | 16


class Header(NamedTuple):
    """Where a file's own lines begin: their place in the journal, and the bytes of the header's own line, 0 for none.

    parts  the files of an earlier version's archive in which the lines before them lie, with their bytes
    """

    offset: int = 0
    length: int = 0
    parts: tuple[tuple[str, int], ...] = ()

    def line(self) -> bytes:
        """The header as the first line of a file."""
        text = b'{"offset":%d}' % self.offset
        return b'{"header":%s,"sha256":"%s"}\n' % (text, sum_of(text))


class Stamp(NamedTuple):
    """What changes of a journal's file with whatever is done to it."""

    inode: int
    size: int
    written: int
    changed: int


class Seen(NamedTuple):
    """What is known of a journal as long as its file has this stamp and begins like this: its header, and end and token
    of its last line. A file that was replaced begins otherwise, whatever its stamp.
    """

    stamp: Stamp
    begin: bytes
    header: Header
    end: int
    head: Token


class Journal:
    """A journal's file that is open. Leave it with `with`.

    descriptor, header  of the file as it was when it was opened, whatever takes its name since
    is_as_seen          whether it was then as it is known to have been
    is_plain            whether the descriptor is the file's; else of a copy in memory of what is kept otherwise
    """

    def __init__(self, path: Path, flags: int = os.O_RDONLY, seen: Seen | None = None) -> None:
        """Open it; `seen`: what is known of it.

        FileNotFoundError where there is none, DamagedJournal where something else than a journal lies in its place.
        """
        self.path = path
        self.descriptor, found = _opened(path, flags)
        self.is_plain = found is not None
        found = found or os.fstat(self.descriptor)
        try:
            self._begin = os.pread(self.descriptor, _BEGIN, 0)
            self.is_as_seen = seen is not None and (seen.stamp, seen.begin) == (_stamp_of(found), self._begin)
            known = seen.header if seen is not None and self.is_as_seen else None
            self.header = known or _header_of(path, self.descriptor, self._begin)
        except BaseException:
            os.close(self.descriptor)
            raise
        self._shift = self.header.length - self.header.offset  # from a place in the journal to one in the file

    def become(self, begin: int, lines: bytes) -> None:
        """Be a copy in memory that has all lines of the journal, of which the first begins at a place."""
        header = Header(begin).line() if begin else b""
        os.close(self.descriptor)
        self.descriptor, self.is_plain = _in_memory(header + lines), False
        self._begin, self.header = b"", Header(begin, len(header))
        self._shift = len(header) - begin

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # what has to be on the disk was synced; and the descriptor is gone in any case
            os.close(self.descriptor)

    def seen(self, end: int, head: Token) -> Seen:
        """What is known of the file as it is now, whose last line has this end and this token."""
        begin = self._begin if len(self._begin) == _BEGIN else os.pread(self.descriptor, _BEGIN, 0)
        return Seen(_stamp_of(os.fstat(self.descriptor)), begin, self.header, end, head)

    def newest_line(self) -> tuple[int, bytes]:
        """Place and bytes of the last complete line; where there is none, the place at which the first would begin."""
        size, most, first = os.fstat(self.descriptor).st_size, _TAIL, self.header.length
        while True:
            start = max(first, size - most)
            content = os.pread(self.descriptor, size - start, start)
            end = content.rfind(b"\n") + 1
            begin = content.rfind(b"\n", 0, max(end - 1, 0)) + 1
            if begin or start <= first:
                return start + begin - self._shift, content[begin:end]
            most *= 8

    def cut_torn_tail(self) -> tuple[int, bytes]:
        """Remove a last line without a newline, which was never acknowledged; returns what `newest_line` does."""
        place, line = self.newest_line()
        end = place + len(line) + self._shift
        if end != os.fstat(self.descriptor).st_size:
            os.ftruncate(self.descriptor, end)
        return place, line

    def content(self, place: int = 0) -> Iterator[bytes]:
        """All bytes of the file from one on, in pieces."""
        while piece := os.pread(self.descriptor, _PIECE, place):
            yield piece
            place += len(piece)

    def place_of(self, id: str) -> int | None:  # noqa: A002
        """Where the first line with an id begins, None for none."""
        wanted, place = b'\n{"id":%s,"length":' % json.dumps(id).encode(), self.header.length
        if os.pread(self.descriptor, len(wanted) - 1, place) == wanted[1:]:
            return place - self._shift
        while piece := os.pread(self.descriptor, _PIECE + len(wanted), place):  # what begins at its end is in the next
            found = piece.find(wanted)
            if found >= 0:
                return place + found + 1 - self._shift
            place += _PIECE
        return None

    def frame(self, offset: int) -> bytes:
        """The first FRAME_BYTES of the line of this file at a place."""
        return os.pread(self.descriptor, FRAME_BYTES, offset + self._shift)

    def lines(self, offset: int, *, torn: bool = False) -> Iterator[tuple[int, bytes]]:
        """Place and bytes of this file's complete lines from a place on; `torn`: of one that is not complete, too."""
        with _reading(self.descriptor) as file:
            file.seek(offset + self._shift)
            for line in file:
                if not (torn or line.endswith(b"\n")):
                    return  # never acknowledged
                yield offset, line
                offset += len(line)

    def append(self, line: bytes, end: int) -> None:
        """Write a line behind the last one, which ends at `end`, and make it durable: the acknowledgement.

        A short write is continued. If a write or the fsync fails, the line is removed and the error raised, so that no
        part of a record stays. A failed fsync is not tried again: the kernel takes the pages for clean, so a second
        one would succeed, and the line be lost.
        """
        try:
            durable.fill(self.descriptor, line)
            os.fsync(self.descriptor)
        except OSError:
            self._take_back(end)
            raise

    def _take_back(self, end: int) -> None:
        """Undo a line that was not acknowledged. If it cannot be cut off, its newline is overwritten."""
        try:
            os.ftruncate(self.descriptor, end + self._shift)
        except OSError:
            with suppress(OSError):
                fcntl.fcntl(self.descriptor, fcntl.F_SETFL, 0)  # with O_APPEND a write goes to the end, wherever meant
                last = os.fstat(self.descriptor).st_size - 1
                if last >= end + self._shift:
                    os.pwrite(self.descriptor, b" ", last)


@contextmanager
def _reading(descriptor: int) -> Iterator[BinaryIO]:
    """The file behind a descriptor. Errors of its close are ignored, as nothing was written."""
    file = os.fdopen(os.dup(descriptor), "rb")
    try:
        yield file
    finally:
        with suppress(OSError):
            file.close()


def _stamp_of(found: os.stat_result) -> Stamp:
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def packed(path: Path) -> Path:
    """The file of a journal while it is archived."""
    return path.with_name(f"{path.name}.gz")


def compressed(content: bytes) -> bytes:
    """The bytes of a journal as those of an archived one: the same ones for the same content."""
    machine = zlib.compressobj(6, zlib.DEFLATED, _GZIP)  # whose header has no time in it
    return machine.compress(content) + machine.flush()


def unpacked(content: bytes) -> bytes:
    """What was compressed in a file's bytes, of a damaged one what can be had; any other bytes as they are."""
    if content[:1] not in (b"\x1f", b"\x78"):
        return content
    for step in (len(content), 1):  # of a damaged one byte by byte
        made, machine = bytearray(), zlib.decompressobj(zlib.MAX_WBITS | 32)
        with suppress(zlib.error):
            for place in range(0, len(content), step):
                made += machine.decompress(content[place : place + step], MOST)
            break
    return bytes(made) or content


def _unpack(content: bytes) -> tuple[bytes, bool]:
    """An archived journal, and whether it is whole."""
    made, machine, place = bytearray(), zlib.decompressobj(_GZIP), 0
    with suppress(zlib.error):
        while place < len(content) and len(made) < MOST and not machine.eof:
            piece = content[place : place + _STEP]
            made += machine.decompress(piece, MOST - len(made))
            place += len(piece) - len(machine.unconsumed_tail) - len(machine.unused_data)
    return bytes(made), machine.eof and place == len(content)


def _opened(path: Path, flags: int) -> tuple[int, os.stat_result | None]:
    """A descriptor of a journal's file, and what is known of that; or of a copy of one that is archived."""
    try:
        return _opened_plain(path, flags)
    except FileNotFoundError:
        try:
            content = files.content_of(packed(path), most=MOST)
        except FileNotFoundError:  # brought back meanwhile, or there is none
            return _opened_plain(path, flags)
        except OSError as error:
            if error.errno not in files.NOT_REGULAR:
                raise
            raise DamagedJournal(packed(path), "is no regular file", MEND_JOURNAL) from None
        made, is_whole = _unpack(content)
        if not is_whole:
            raise DamagedJournal(packed(path), "is not what was archived", MEND_JOURNAL) from None
        return _in_memory(made), None


def _in_memory(content: bytes) -> int:
    """A descriptor of a file without a name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("journal")
    else:
        import tempfile  # a system without files in memory

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return descriptor


def _opened_plain(path: Path, flags: int) -> tuple[int, os.stat_result]:
    try:
        descriptor = os.open(path, flags | CAREFUL, 0o600)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ENXIO, errno.ELOOP):
            raise DamagedJournal(path, "is no regular file", MEND_JOURNAL) from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise DamagedJournal(path, "is no regular file", MEND_JOURNAL)
    if found.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR):
        os.close(descriptor)
        what = "has a second name (a hard link), whose file would be written, too"
        raise DamagedJournal(path, what, f"cp -p {path} {path}.copy && mv {path}.copy {path}")
    return descriptor, found


def _header_of(path: Path, descriptor: int, begin: bytes) -> Header:
    if not begin.startswith(_HEADER_BEGINS):
        return Header()
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return _header(path, file.readline(1 << 26))


def _header(path: Path, line: bytes) -> Header:
    match = re.fullmatch(_HEADER, line)
    if match is not None and sum_of(match[1]) == match[2]:
        with suppress(ValueError, KeyError, TypeError, OverflowError, RecursionError):
            tree = json.loads(match[1])
            parts = tuple((str(one["file"]), int(one["size"])) for one in tree.get("archived", ()))
            header = Header(int(tree["offset"]), len(line), parts)
            if 0 <= header.offset < _FARTHEST:
                return header
    raise DamagedJournal(path, "its first line is not what was written", MEND_JOURNAL)
