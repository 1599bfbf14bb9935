"""A journal's file: how its lines are found from either end, written whole and made durable.

Places in a journal are counted over all that it holds, also what has moved to the archive
(`ralf.storage.journalparts`). A file whose beginning has moved, or that was rewritten, begins with a line that says
where its own lines begin.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

from ralf.errors import MEND_JOURNAL, DamagedJournal
from ralf.storage import journalline
from ralf.storage.journalline import Line, sum_of
from ralf.store import Token

CAREFUL = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # the last: a pipe would wait for its other end
_BACKWARD = 64 * 1024  # how much of a journal's end is read at a time when its last line is looked for
_HEADER = re.compile(rb'\{"header":(\{.*\}),"sha256":"([0-9a-f]{32})"\}\n')
_PART = re.compile(r"\d{6}-[0-9a-f]{12}\.jsonl\.gz")
MOST = 256 << 20
"""Bytes of lines that a part is believed to have."""
_HEADER_BEGINS = b'{"header":'
_FARTHEST = 10**17
"""A place that no journal has: from there on a token would have more digits than one may have."""


class Part(NamedTuple):
    """A part of a journal that lies in the archive: its file's name, how many bytes its lines have, and the file's
    sha256.
    """

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


class Journal:
    """A journal's file that is open. Leave it with `with`.

    descriptor, header  of the file as it was when it was opened, whatever takes its name since
    """

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        """FileNotFoundError where there is none, DamagedJournal where something else than a journal lies in its
        place.
        """
        self.path = path
        self.descriptor = _opened(path, flags)
        try:
            self.header = _header_of(path, self.descriptor)
        except BaseException:
            os.close(self.descriptor)
            raise
        self._shift = self.header.length - self.header.offset  # from a place in the journal to one in the file

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # what has to be on the disk was synced; and the descriptor is gone in any case
            os.close(self.descriptor)

    def end(self) -> int:
        """The place where the last complete line ends."""
        return self._behind_newline(os.fstat(self.descriptor).st_size)

    def cut_torn_tail(self) -> int:
        """Remove a last line without its newline (it was never acknowledged); returns where the journal ends now."""
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
        while end > self.header.length:
            start = max(0, end - _BACKWARD)
            found = os.pread(self.descriptor, end - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1 - self._shift
            end = start
        return self.header.offset

    def line_at(self, offset: int) -> Line:
        """The line of this file at a place, by its frame alone."""
        return journalline.line_at(offset, self._frame(offset))

    def id_at(self, offset: int) -> str | None:
        """The id of the line of this file at a place."""
        return journalline.id_of(self._frame(offset))

    def lines(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Place and bytes of this file's complete lines from a place on."""
        with _reading(self.descriptor) as file:
            file.seek(offset + self._shift)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # never acknowledged
                yield offset, line
                offset += len(line)

    def write(self, line: bytes, end: int) -> None:
        """One write, gone on with where it was short. What a full disk took of it is undone, and the error raised, so
        that no part of a record stays.
        """
        try:
            written = os.write(self.descriptor, line)
            while written < len(line):
                written += os.write(self.descriptor, line[written:])
        except OSError:
            self._take_back(end)
            raise

    def sync(self, end: int) -> None:
        """The acknowledgement. When it fails nothing was promised, and it is not tried again: the line goes.

        After a failure the kernel takes the pages for clean: a second fsync would succeed, and the line be lost.
        """
        try:
            os.fsync(self.descriptor)
        except OSError:
            self._take_back(end)
            raise

    def _take_back(self, end: int) -> None:
        """Undo a line that nobody was promised. Where it cannot be cut off, its newline goes: then it is none."""
        try:
            os.ftruncate(self.descriptor, end + self._shift)
        except OSError:
            with suppress(OSError):
                fcntl.fcntl(self.descriptor, fcntl.F_SETFL, 0)  # with O_APPEND a write goes to the end, wherever meant
                last = os.fstat(self.descriptor).st_size - 1
                if last >= end + self._shift:
                    os.pwrite(self.descriptor, b" ", last)

    def _frame(self, offset: int) -> bytes:
        return os.pread(self.descriptor, journalline.FRAME_BYTES, offset + self._shift)


@contextmanager
def _reading(descriptor: int) -> Iterator[BinaryIO]:
    """The file behind a descriptor. What goes wrong when it is closed is nobody's matter: nothing was written."""
    file = os.fdopen(os.dup(descriptor), "rb")
    try:
        yield file
    finally:
        with suppress(OSError):
            file.close()


def _opened(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | CAREFUL, 0o600)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ENXIO):
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
    return descriptor


def header_in(path: Path, content: bytes) -> Header:
    """The header in all bytes of a journal's file; DamagedJournal where it is not what was written."""
    if not content.startswith(_HEADER_BEGINS):
        return Header()
    return _header(path, content[: content.find(b"\n") + 1])


def _header_of(path: Path, descriptor: int) -> Header:
    if os.pread(descriptor, len(_HEADER_BEGINS), 0) != _HEADER_BEGINS:
        return Header()
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return _header(path, file.readline(1 << 26))


def _header(path: Path, line: bytes) -> Header:
    match = _HEADER.fullmatch(line)
    if match is not None and sum_of(match[1]) == match[2]:
        with suppress(ValueError, KeyError, TypeError, OverflowError, RecursionError):
            tree = json.loads(match[1])
            parts = tuple(Part(str(one["file"]), int(one["size"]), str(one["sha256"])) for one in tree["archived"])
            header = Header(int(tree["offset"]), len(line), parts, str(tree["last"]))
            known = all(_PART.fullmatch(part.file) and 0 < part.size <= MOST for part in parts)
            if known and 0 <= header.begin <= header.offset < _FARTHEST and bool(header.last) == bool(parts):
                return header
    raise DamagedJournal(path, "its first line is not what was written", MEND_JOURNAL)
