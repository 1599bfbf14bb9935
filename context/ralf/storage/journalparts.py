"""The parts of a journal that lie in the archive: gzip files that hold its oldest lines as they were.

A part is named by its number and by its own sha256, and is never changed: a longer one takes its place.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from ralf.errors import MEND_JOURNAL, DamagedJournal
from ralf.files import folders
from ralf.files.placing import placed
from ralf.storage import journalline
from ralf.storage.journalfile import CAREFUL, MOST, Header, Part

LARGEST = 4 << 20
"""Bytes of lines that a part has at most, unless one line alone is longer."""

_STEP = 1 << 16
_GZIP = zlib.MAX_WBITS | 16
_LEVEL = 6
_NAME = r"\d{6}-[0-9a-f]{12}\.jsonl\.gz"
_HEAD = re.compile(rb'(?m)^\{"id":"')  # no list of all lines: of a hundred million there may be
_OURS = re.compile(rf"{_NAME}|\.ralf-{_NAME}-[0-9a-f]{{12}}\.tmp")


class _Placed(NamedTuple):
    """An archived part, where its lines begin in the journal, and its open file."""

    part: Part
    start: int
    path: Path
    descriptor: int


class PartGone(DamagedJournal):
    """A part that the journal names is not there. Whoever reads without the lock looks first whether it names others
    by now.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "is missing", MEND_JOURNAL)
        self.path = path


class Parts:
    """The parts of one header from a place on, all open, so that nobody can take them away. Leave it with `with`."""

    def __init__(self, folder: Path, header: Header, offset: int) -> None:
        """PartGone where one is not there, DamagedJournal where something else lies in its place."""
        self._placed: list[_Placed] = []
        self._offset = max(offset, header.begin)
        self._stack = ExitStack()
        start = header.begin
        try:
            for part in header.parts:
                if start + part.size > offset:
                    path = folder / part.file
                    descriptor = opened(path)
                    self._stack.callback(os.close, descriptor)
                    self._placed.append(_Placed(part, start, path, descriptor))
                start += part.size
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Parts:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def lines(self) -> Iterator[tuple[Path, int, bytes]]:
        """File, place in the journal, and bytes of each line; DamagedJournal where a part is not what was written."""
        for part, start, path, descriptor in self._placed:
            content = content_of(path, descriptor, part.size)
            place = max(self._offset, start)
            while place < start + part.size:
                end = content.find(b"\n", place - start) + 1 or part.size
                yield path, place, content[place - start : end]
                place = start + end


def lines_of(folder: Path, part: Part, start: int) -> Iterator[tuple[Path, int, bytes]]:
    """File, place and bytes of each line of one part, which begins at `start` in its journal. Errors as in `Parts`."""
    with Parts(folder, Header(start + part.size, parts=(part,)), start) as parts:
        yield from parts.lines()


def opened(path: Path) -> int:
    """A part's descriptor."""
    try:
        descriptor = os.open(path, os.O_RDONLY | CAREFUL)
    except FileNotFoundError:
        raise PartGone(path) from None
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ELOOP):
            raise DamagedJournal(path, "is no regular file", MEND_JOURNAL) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedJournal(path, "is no regular file", MEND_JOURNAL)
    return descriptor


def content_of(path: Path, descriptor: int, size: int) -> bytes:
    """The lines in a part, `size` bytes; never holds more than that, whatever the file makes itself out to be."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        content = unpacked(file.read(), size + 1)
    if len(content) != size:
        raise DamagedJournal(path, "is not what was archived", MEND_JOURNAL)
    return content


def put(folder: Path, number: int, lines: Iterable[bytes], before: bytes = b"", size: int = 0) -> Part:
    """Write lines as the part of this number, durable and read back.

    before, size  what the file begins with, gzip files joined are one, and the bytes of the lines in it
    """
    content = b"".join(lines)
    machine = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)  # whose header has no time in it: same lines, same bytes
    packed = before + machine.compress(content) + machine.flush()
    digest = hashlib.sha256(packed).hexdigest()
    part = Part(f"{number:06d}-{digest[:12]}.jsonl.gz", size + len(content), digest)
    folders.make(folder)
    placed(folder / part.file, [packed])
    return part


def extend(folder: Path, parts: list[Part], lines: Sequence[bytes]) -> None:
    """Add lines to a journal's parts: to the last one as long as it is small, else as a new one. Files are added only;
    the header that is to name them is not yet written.
    """
    last = parts[-1] if parts else None
    if last is not None and last.size + sum(map(len, lines)) <= LARGEST:
        path = folder / last.file
        with os.fdopen(opened(path), "rb") as file:
            before = file.read()
        if hashlib.sha256(before).hexdigest() != last.sha256:
            raise DamagedJournal(path, "is not what was archived", MEND_JOURNAL)
        parts[-1] = put(folder, len(parts), lines, before, last.size)
    else:
        parts.append(put(folder, len(parts) + 1, lines))


def stray(folder: Path, parts: Sequence[Part]) -> list[Path]:
    """What lies in a journal's folder of parts and its header does not name: parts, and files half written, of the
    dead.
    """
    named = {part.file for part in parts}
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path for path in folder.iterdir() if _OURS.fullmatch(path.name) and path.name not in named)
    return []


def holds_only(path: Path, known: Container[str]) -> bool:
    """Whether the records in a part, as far as it can be read, all have these ids. What a journal does not have is not
    to be lost: of a part that is too large to be looked through nobody can say it.
    """
    content = unpacked(path.read_bytes(), MOST + 1) if path.suffix == ".gz" else b""
    heads = (content[found.start() : found.start() + journalline.FRAME_BYTES] for found in _HEAD.finditer(content))
    return len(content) <= MOST and all(id_ is None or id_ in known for id_ in map(journalline.id_of, heads))


def unpacked(packed: bytes, most: int, kind: int = _GZIP) -> bytes:
    """What can be had of a gzip file, up to the byte where it is damaged, at most so many bytes.

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
