"""A journal's file, its parts in the archive, and an index of the ids in both. Format: docs/format.md."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
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


def is_sound(line: bytes) -> bool:
    """Whether a line's frame, and so its id, is what was written; of an earlier version's, only that it has an id."""
    match = _FRAME.match(line)
    return match is not None and _sound_id(match) is not None


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


def length_of(begin: bytes) -> int:
    """The length of a line, by its first FRAME_BYTES."""
    match = _FRAME.match(begin)
    return match.end() + int(match["length"]) + 2 if match else len(begin)


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


def record_at(content: bytes, start: int, base: int = 0) -> tuple[bytes, Entry] | None:
    """The whole record that begins at a place of some bytes, with its line break if it has one; None where none does.
    One whose frame is not sound has an id made of that frame.

    base  where the bytes begin in the journal
    """
    match = _FRAME.match(content, start)
    if match is None:
        return None
    end = match.end() + int(match["length"])
    record = content[match.end() : end]
    if content[end : end + 1] != b"}" or sum_of(record) != match["sum"] or b"\n" in record:
        return None
    id_ = _sound_id(match)
    if id_ is None:
        id_ = f"repaired-{sum_of(match[0]).decode()}"
    raw = content[start : end + (2 if content[end + 1 : end + 2] == b"\n" else 1)]
    return raw, Entry(token_at(base + start, match[0]), id_, record)


def id_of(line: bytes) -> str | None:
    """The id in a line's frame as it stands there, None where no frame does. What is no text of JSON is some id, too:
    that of a record that may be whole.
    """
    match = _FRAME.match(line)
    if match is None:
        return None
    found = _text_of(match["id"])
    return found if found is not None else match["id"].decode("utf-8", "replace")


def _text_of(quoted: bytes) -> str | None:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return None


# ---- the file: its lines are found from either end, written whole and made durable ----
#
# Offsets count all lines of a journal, archived ones too. A file whose beginning was archived, or that was rewritten,
# begins with a header that says where its own lines begin.

_BACKWARD = 1024  # how much of a journal's end is read first when its last line is looked for; then eight times more
_MOST_BACKWARD = 64 * 1024
_TAIL, _MOST_TAIL = 32 << 10, 2 << 20  # how much is read first when it is wanted itself, and at most in one piece
_LARGE, _MOST_RESERVED = 256 << 10, 4 << 20  # bytes of a file for whose growth room is reserved, and of that room
_HEADER = rb'\{"header":(\{.*\}),"sha256":"([0-9a-f]{32})"\}\n'  # compiled where there is one, as are those below
_PART = r"\d{6}-[0-9a-f]{12}\.jsonl\.gz"
MOST = 256 << 20
"""The most bytes of lines that a part may claim."""

_HEADER_BEGINS = b'{"header":'

_BEGIN = 64  # bytes that have the offset of a header, which grows whenever a file is replaced

_FARTHEST = 10**17
"""An offset beyond every journal: from there on a token would have too many digits."""


class Part(NamedTuple):
    """An archived part of a journal: its file's name, the bytes that its lines have, and the file's sha256."""

    file: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Header:
    """Where a file's own lines begin.

    offset  their place in the journal
    length  bytes of the header's own line, 0 where there is none
    parts   what lies before them, oldest first
    last    the token of the last record of that, "" where there is none
    """

    offset: int = 0
    length: int = 0
    parts: tuple[Part, ...] = ()
    last: Token = ""
    begin: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "begin", self.offset - sum(part.size for part in self.parts))

    def line(self) -> bytes:
        """The header as the first line of a file."""
        tree = {"offset": self.offset, "last": self.last, "archived": [part._asdict() for part in self.parts]}
        text = json.dumps(tree, separators=(",", ":")).encode()
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
    """

    def __init__(self, path: Path, flags: int = os.O_RDONLY, seen: Seen | None = None) -> None:
        """Open it; `seen`: what is known of it.

        FileNotFoundError where there is none, DamagedJournal where something else than a journal lies in its place.
        """
        self.path = path
        self.descriptor, found = _opened(path, flags)
        try:
            self._allocated = found.st_blocks * 512
            self._begin = os.pread(self.descriptor, _BEGIN, 0)
            self.is_as_seen = seen is not None and (seen.stamp, seen.begin) == (_stamp_of(found), self._begin)
            known = seen.header if seen is not None and self.is_as_seen else None
            self.header = known or _header_of(path, self.descriptor, self._begin)
        except BaseException:
            os.close(self.descriptor)
            raise
        self._shift = self.header.length - self.header.offset  # from a place in the journal to one in the file

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # what has to be on the disk was synced; and the descriptor is gone in any case
            os.close(self.descriptor)

    def seen(self, end: int, head: Token) -> Seen:
        """What is known of the file as it is now, whose last line has this end and this token."""
        begin = self._begin if len(self._begin) == _BEGIN else os.pread(self.descriptor, _BEGIN, 0)
        return Seen(_stamp_of(os.fstat(self.descriptor)), begin, self.header, end, head)

    def end(self) -> int:
        """The place where the last complete line ends."""
        return self._behind_newline(os.fstat(self.descriptor).st_size)

    def cut_torn_tail(self) -> int:
        """Remove a last line without a newline, which was never acknowledged; returns the new end of the journal."""
        end = self.end()
        if end + self._shift != os.fstat(self.descriptor).st_size:
            os.ftruncate(self.descriptor, end + self._shift)
        return end

    def last_line(self, end: int) -> int | None:
        """Where the last complete line of the file begins, which ends at `end`; None where the file has none."""
        if end <= self.header.offset:
            return None
        return self._behind_newline(end + self._shift - 1)

    def _behind_newline(self, end: int) -> int:
        """The place behind the last newline before byte `end` of the file, where the first line begins for none."""
        size = _BACKWARD
        while end > self.header.length:
            start = max(0, end - size)
            found = os.pread(self.descriptor, end - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1 - self._shift
            end, size = start, min(8 * size, _MOST_BACKWARD)
        return self.header.offset

    def newest_line(self) -> tuple[int, bytes]:
        """Place and bytes of the file's last complete line, 0 and b"" where it has none."""
        size, most = os.fstat(self.descriptor).st_size, _TAIL
        while most <= _MOST_TAIL:
            start = max(self.header.length, size - most)
            content = os.pread(self.descriptor, size - start, start)
            end = content.rfind(b"\n") + 1
            begin = content.rfind(b"\n", 0, max(end - 1, 0)) + 1
            if begin or start == self.header.length:
                return (start + begin - self._shift, content[begin:end]) if end else (0, b"")
            most *= 8
        end = self.end()
        place = self.last_line(end)
        return (place, os.pread(self.descriptor, end - place, place + self._shift)) if place is not None else (0, b"")

    def frame(self, offset: int) -> bytes:
        """The first FRAME_BYTES of the line of this file at a place."""
        return os.pread(self.descriptor, FRAME_BYTES, offset + self._shift)

    def lines(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Place and bytes of this file's complete lines from a place on."""
        with _reading(self.descriptor) as file:
            file.seek(offset + self._shift)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # never acknowledged
                yield offset, line
                offset += len(line)

    def append(self, line: bytes, end: int) -> None:
        """Write a line behind the last one, which ends at `end`, and make it durable: the acknowledgement.

        A short write is continued. If a write or the fsync fails, the line is removed and the error raised, so that no
        part of a record stays. A failed fsync is not tried again: the kernel takes the pages for clean, so a second
        one would succeed, and the line be lost.
        """
        size = end + self._shift
        self._reserve(size, len(line))
        try:
            written = os.write(self.descriptor, line)
            while written < len(line):
                written += os.write(self.descriptor, line[written:])
            if size >= _LARGE:
                files.sync_data(self.descriptor)
            else:
                os.fsync(self.descriptor)
        except OSError:
            self._take_back(end)
            raise

    def _reserve(self, size: int, more: int) -> None:
        """Have the disk keep room behind the end of a large file: a sync that need not wait for the allocation of
        blocks takes two thirds of the time, and without the file's times a tenth less.
        """
        if size >= _LARGE and self._allocated < size + more:
            files.reserve(self.descriptor, size, more + min(max(size // 8, _LARGE), _MOST_RESERVED))

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


def _opened(path: Path, flags: int) -> tuple[int, os.stat_result]:
    """A descriptor of a journal's file, and what it is."""
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


def header_in(path: Path, content: bytes) -> Header:
    """The header in all bytes of a journal's file; DamagedJournal where it is not what was written."""
    if not content.startswith(_HEADER_BEGINS):
        return Header()
    return _header(path, content[: content.find(b"\n") + 1])


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
            parts = tuple(Part(str(one["file"]), int(one["size"]), str(one["sha256"])) for one in tree["archived"])
            header = Header(int(tree["offset"]), len(line), parts, str(tree["last"]))
            known = all(re.fullmatch(_PART, part.file) and 0 < part.size <= MOST for part in parts)
            if known and 0 <= header.begin <= header.offset < _FARTHEST and bool(header.last) == bool(parts):
                return header
    raise DamagedJournal(path, "its first line is not what was written", MEND_JOURNAL)


# ---- the parts in the archive: gzip files with a journal's oldest lines, named by number and sha256 ----

LARGEST = 4 << 20
"""The most bytes of lines in a part, unless a single line is longer."""

_STEP = 1 << 16
_GZIP = zlib.MAX_WBITS | 16
_LEVEL = 6
_HEAD = rb'(?m)^\{"id":"'  # no list of all lines: of a hundred million there may be
_OURS = rf"{_PART}|\.ralf-{_PART}-[0-9a-f]{{12}}\.tmp"


class PartGone(DamagedJournal):
    """A part that the journal names is not there. A reader without the lock checks whether it names others by now."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "is missing", MEND_JOURNAL)
        self.path = path


Line = tuple[Path, int, bytes]
"""The file of a line, its place in the journal, and its bytes."""


@contextmanager
def opened_parts(folder: Path, header: Header, offset: int) -> Iterator[Iterator[Line]]:
    """The lines of a header's parts from a place on. All parts stay open, so that none can be removed meanwhile.

    PartGone if one is missing, DamagedJournal if it is not a regular file.
    """
    with ExitStack() as stack:
        opened, start = [], header.begin
        for part in header.parts:
            if start + part.size > offset:
                path = folder / part.file
                opened.append((part.size, start, path, stack.enter_context(opened_part(path))))
            start += part.size
        yield _lines_of(opened, max(offset, header.begin))


def _lines_of(parts: Iterable[tuple[int, int, Path, BinaryIO]], place: int) -> Iterator[Line]:
    """The lines of open parts from a place on; DamagedJournal where a part is not what was written."""
    for size, start, path, file in parts:
        content = unpacked_part(file.read(), size + 1)  # whatever the file makes itself out to be
        if len(content) != size:
            raise DamagedJournal(path, "is not what was archived", MEND_JOURNAL)
        while place < start + size:
            end = content.find(b"\n", place - start) + 1 or size
            yield path, place, content[place - start : end]
            place = start + end


def lines_of_part(folder: Path, part: Part, start: int) -> Iterator[Line]:
    """The lines of one part, which begins at `start` in its journal. Errors as in `opened_parts`."""
    with opened_parts(folder, Header(start + part.size, parts=(part,)), start) as lines:
        yield from lines


def opened_part(path: Path) -> BinaryIO:
    """A part's file, open. Errors as in `opened_parts`."""
    try:
        return files.open_regular(path)
    except FileNotFoundError:
        raise PartGone(path) from None
    except OSError as error:
        if error.errno not in files.NOT_REGULAR:
            raise
        raise DamagedJournal(path, "is no regular file", MEND_JOURNAL) from None


def put_part(folder: Path, number: int, lines: Iterable[bytes], before: bytes = b"", size: int = 0) -> Part:
    """Write lines as the part of this number, durable and read back.

    before, size  what the file begins with, gzip files joined are one, and the bytes of the lines in it
    """
    content = b"".join(lines)
    machine = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)  # whose header has no time in it: same lines, same bytes
    packed = before + machine.compress(content) + machine.flush()
    digest = hashlib.sha256(packed).hexdigest()
    part = Part(f"{number:06d}-{digest[:12]}.jsonl.gz", size + len(content), digest)
    files.make(folder)
    durable.replace_durably(folder / part.file, [packed])
    return part


def extend_part(folder: Path, parts: list[Part], lines: Sequence[bytes]) -> None:
    """Add lines to a journal's parts: to the last one as long as it is small, else as a new one. Files are added only;
    the header that is to name them is not yet written.
    """
    last = parts[-1] if parts else None
    if last is not None and last.size + sum(map(len, lines)) <= LARGEST:
        path = folder / last.file
        with opened_part(path) as file:
            before = file.read()
        if hashlib.sha256(before).hexdigest() != last.sha256:
            raise DamagedJournal(path, "is not what was archived", MEND_JOURNAL)
        parts[-1] = put_part(folder, len(parts), lines, before, last.size)
    else:
        parts.append(put_part(folder, len(parts) + 1, lines))


def stray_parts(folder: Path, parts: Sequence[Part]) -> list[Path]:
    """The parts and temporary files in a journal's folder of parts that its header does not name: dead writers left
    them.
    """
    named = {part.file for part in parts}
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path for path in folder.iterdir() if re.fullmatch(_OURS, path.name) and path.name not in named)
    return []


def holds_only(path: Path, known: Container[str]) -> bool:
    """Whether the records in a part, as far as it can be read, all have these ids. What a journal does not have is not
    to be lost: of a part that is too large to be looked through no one can say it.
    """
    content = unpacked_part(path.read_bytes(), MOST + 1) if path.suffix == ".gz" else b""
    heads = (content[found.start() : found.start() + FRAME_BYTES] for found in re.finditer(_HEAD, content))
    return len(content) <= MOST and all(id_ is None or id_ in known for id_ in map(id_of, heads))


def unpacked_part(packed: bytes, most: int, kind: int = _GZIP) -> bytes:
    """The content of a gzip file up to the first damaged byte, `most` bytes at most.

    kind  of stream, as zlib numbers them (`wbits`)
    """
    content = bytearray()
    while packed and len(content) < most:
        machine = zlib.decompressobj(kind)
        step = _STEP
        while not machine.eof and len(content) < most:
            before = machine.copy() if step > 1 else machine
            try:
                chunk = machine.decompress(packed, min(step, most - len(content)))
            except zlib.error:
                if step == 1:
                    return bytes(content)
                machine, step = before, 1  # what came before the damage in this step, byte by byte
                continue
            content += chunk
            packed = machine.unconsumed_tail
            if not chunk and not packed:
                break
        packed = machine.unused_data
    return bytes(content)
