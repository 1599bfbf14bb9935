"""A journal's file: lines that are found from either end, written whole and made durable. Format: docs/format.md."""

from __future__ import annotations

import errno
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ralf.errors import MEND_JOURNAL, DamagedJournal, UnknownToken
from ralf.storage import durable, files
from ralf.storage.journal import Entry, Token
from ralf.text import digests
from ralf.text.frozen import NamedTuple
from ralf.text.patterns import regex

# ---- a line: a record in its frame, with its id, its length, and sums of both ----

_FRAME = regex(
    rb'(?P<begin>\{"id":(?P<id>"(?:[^"\\]++|\\.)*+"),"length":(?P<length>\d{1,12}),"sha256":"(?P<sum>[0-9a-f]{32})")'
    rb'(?:,"frame":"(?P<frame>[^"]*)")?,"record":'
)

_FRAME_BYTES = 4096  # more than a frame before its record ever takes


def framed(id: str, record: bytes) -> bytes:  # noqa: A002
    """A record as a line. The frame's sum is another one than the record's, so that a record whose id is damaged is
    still known to be whole.
    """
    begin = b'{"id":%s,"length":%d,"sha256":"%s"' % (json.dumps(id).encode(), len(record), _sum_of(record))
    return b'%s,"frame":"%s","record":%s}\n' % (begin, _sum_of(begin)[:16], record)


def _sum_of(content: bytes) -> bytes:
    return digests.sha256(content).hexdigest()[:32].encode()


def token_at(offset: int, line: bytes) -> Token:
    """The token of a line at a place."""
    match = _FRAME.match(line)
    checksum = match["sum"] if match else _sum_of(line[:_FRAME_BYTES])  # a damaged line has a place, too
    return f"{offset}-{checksum.decode()}"


def head_at(offset: int, line: bytes) -> Token | None:
    """The token of the last line of a stream, None for a stream without one."""
    return token_at(offset, line) if line else None


def offset_of(token: Token) -> int:
    """Where the line of a token begins; UnknownToken for what is none."""
    number, _, _ = token.partition("-")
    if not number.isdecimal() or len(number) > 18:
        raise UnknownToken(ascii(token), "no such place in this stream")
    return int(number)


def parsed(path: Path, start: int, line: bytes) -> Entry:
    """The entry in a line; DamagedJournal where it is not what was written."""
    match, record = _FRAME.match(line), b""
    if match is not None and line.endswith(b"}\n") and match["frame"] in (None, _sum_of(match["begin"])[:16]):
        record = line[match.end() : -2]
        with suppress(ValueError):
            if (len(record), _sum_of(record)) == (int(match["length"]), match["sum"]):
                return Entry(f"{start}-{match['sum'].decode()}", json.loads(match["id"]), record)
    raise DamagedJournal(path, f"the record at byte {start} is not what was written", MEND_JOURNAL)


# ---- the file ----
#
# A file that was rewritten begins with a header, which says where its own lines begin: no place of before is one since.
# A journal that is archived is one gzip file of the same bytes; whoever opens it reads them from memory.

_TAIL = 4 << 10  # bytes of a journal's end that are read first when its last line is looked for; then eight times more
_PIECE = 1 << 16  # bytes of it that are looked through at once: more leave the cache of the processor
_STEP = 1 << 18  # bytes of it that are read at once
_BEGIN = 64
_HEADER = rb'\{"header":(\{.*\}),"sha256":"([0-9a-f]{32})"\}\n'  # compiled where there is one
_HEADER_BEGINS = b'{"header":'

_FARTHEST = 10**17
"""An offset beyond every journal: from there on a token would have too many digits."""

MOST = 256 << 20
"""The most bytes of an archived journal, or of a blob."""


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
        return b'{"header":%s,"sha256":"%s"}\n' % (text, _sum_of(text))


class Journal:
    """A journal that is open. Leave it with `with`.

    descriptor  of the file as it was when it was opened, whatever takes its name since
    copy        what is read in its place of a journal that is not one plain file; else None
    size        bytes that it had then
    header      see there
    """

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        """Open it. FileNotFoundError where there is none, DamagedJournal for what is no journal."""
        self.path = path
        self.descriptor, self.size, self.copy = _opened(path, flags)
        try:
            self.header = self._read_header()
        except BaseException:
            self.close()
            raise

    def _read_header(self) -> Header:
        if not self.content(0, _BEGIN).startswith(_HEADER_BEGINS):
            return Header()
        _, line = next(_lines(self, 0), (0, b""))
        match = re.fullmatch(_HEADER, line)
        if match is not None and _sum_of(match[1]) == match[2]:
            with suppress(ValueError, KeyError, TypeError, OverflowError, RecursionError):
                tree = json.loads(match[1])
                parts = tuple((str(one["file"]), int(one["size"])) for one in tree.get("archived", ()))
                if 0 <= int(tree["offset"]) < _FARTHEST:
                    return Header(int(tree["offset"]), len(line), parts)
        raise DamagedJournal(self.path, "its first line is not what was written", MEND_JOURNAL)

    def become(self, begin: int, lines: bytes) -> None:
        """Read from now on a copy that has all lines of the journal, of which the first begins at a place."""
        line = Header(begin).line() if begin else b""
        self.copy, self.header = line + lines, Header(begin, len(line))
        self.size = len(self.copy)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # what has to be on the disk was synced; and of a copy there is none
            os.close(self.descriptor)

    @property
    def _shift(self) -> int:
        """From a place in the journal to one in the file."""
        return self.header.length - self.header.offset

    def content(self, place: int, size: int) -> bytes:
        """Bytes of the file from one on."""
        if self.copy is not None:
            return self.copy[place : place + size]
        return os.pread(self.descriptor, size, place)

    def newest_line(self) -> tuple[int, bytes]:
        """Place and bytes of the last complete line; where there is none, the place at which the first would begin."""
        most, first = _TAIL, self.header.length
        while True:
            start = max(first, self.size - most)
            content = self.content(start, self.size - start)
            end = content.rfind(b"\n") + 1
            begin = content.rfind(b"\n", 0, max(end - 1, 0)) + 1
            if begin or start <= first:
                return start + begin - self._shift, content[begin:end]
            most *= 8

    def cut_torn_tail(self) -> tuple[int, bytes]:
        """Remove a last line without a newline, which was never acknowledged; returns what `newest_line` does."""
        place, line = self.newest_line()
        before, self.size = self.size, place + len(line) + self._shift
        if self.size != before and self.copy is None:
            os.ftruncate(self.descriptor, self.size)
        return place, line

    def line_of(self, id: str) -> tuple[int, bytes] | None:  # noqa: A002
        """Place and bytes of the first line with an id, None for none."""
        wanted, before, place = b'\n{"id":%s,"length":' % json.dumps(id).encode(), b"\n", self.header.length
        while place < self.size and (piece := self.content(place, _PIECE)):
            found = (before + piece).find(wanted)
            if found >= 0:
                return next(self.lines(place - len(before) + found + 1 - self._shift))
            place, before = place + len(piece), piece[-len(wanted) :]
        return None

    def lines(self, offset: int = 0, *, torn: bool = False) -> Iterator[tuple[int, bytes]]:
        """Place and bytes of this file's complete lines from a place on; `torn`: of one that is not complete, too."""
        for place, line in _lines(self, max(offset, self.header.offset) + self._shift):
            if torn or line.endswith(b"\n"):  # else it was never acknowledged
                yield place - self._shift, line

    def append(self, line: bytes, end: int) -> None:
        """Write a line behind the last one, which ends at `end`, and make it durable: the acknowledgement.

        A short write is continued. If a write or the sync fails, the line is removed and the error raised, so that no
        part of a record stays. A failed sync is not tried again: the kernel takes the pages for clean, so a second
        one would succeed, and the line be lost.
        """
        try:
            with durable.naming(self.path):
                durable.fill(self.descriptor, line)
                durable.sync_content(self.descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self.descriptor, end + self._shift)
            raise


def _lines(journal: Journal, place: int) -> Iterator[tuple[int, bytes]]:
    """Place and bytes of the lines of a journal's file from a place on."""
    begin, rest = place, b""
    while place < journal.size and (piece := journal.content(place, _STEP)):
        *found, rest = (rest + piece).split(b"\n")
        for line in found:
            yield begin, line + b"\n"
            begin += len(line) + 1
        place += len(piece)
    if rest:
        yield begin, rest


def packed(path: Path) -> Path:
    """The file of a journal while it is archived."""
    return path.with_name(f"{path.name}.gz")


def compressed(content: bytes) -> bytes:
    """The bytes of a journal as those of an archived one: the same ones for the same content, as they have no time."""
    return zlib.compress(content, 6, zlib.MAX_WBITS | 16)


def unpack(content: bytes) -> tuple[bytes, bool]:
    """What is compressed in some bytes, and whether it is whole; of a damaged one what can be had."""
    for step in (1 << 12, 1):  # of a damaged one byte by byte
        made, machine = bytearray(), zlib.decompressobj(zlib.MAX_WBITS | 32)
        with suppress(zlib.error):
            for place in range(0, len(content), step):
                made += machine.decompress(content[place : place + step])
                if len(made) > MOST:
                    return bytes(made[:MOST]), False
            return bytes(made), machine.eof and not machine.unused_data
    return bytes(made), False


def unpacked(content: bytes) -> bytes:
    """What can be had of the bytes of a file that may be compressed; others as they are."""
    return (unpack(content)[0] if content[:1] in (b"\x1f", b"\x78") else b"") or content


def _opened(path: Path, flags: int) -> tuple[int, int, bytes | None]:
    """A descriptor of a journal's file, and its size; or -1 and the bytes of one that is archived, with theirs."""
    try:
        return *_opened_plain(path, flags), None
    except FileNotFoundError:
        try:
            descriptor, _ = _opened_plain(packed(path), os.O_RDONLY)
        except FileNotFoundError:  # brought back meanwhile, or there is none
            return *_opened_plain(path, flags), None
        with os.fdopen(descriptor, "rb") as file:
            made, is_whole = unpack(file.read(MOST))
        if not is_whole:
            raise DamagedJournal(packed(path), "is not what was archived", MEND_JOURNAL) from None
        return -1, len(made), made


def _opened_plain(path: Path, flags: int) -> tuple[int, int]:
    try:
        descriptor, found = files.opened(path, flags)
    except OSError as error:
        if error.errno == errno.EMLINK:
            what = "has a second name (a hard link), whose file would be written, too"
            raise DamagedJournal(path, what, f"cp -p {path} {path}.copy && mv {path}.copy {path}") from None
        if error.errno in files.NOT_REGULAR:
            raise DamagedJournal(path, "is no regular file", MEND_JOURNAL) from None
        raise
    return descriptor, found.st_size
