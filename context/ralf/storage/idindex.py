"""Which ids a journal holds, and where: a cache of 16 bytes a record, so that looking one up does not read the journal.

Layout, all big-endian: a name of 4 bytes, the CRC-32 of the entries and the end of what has been indexed; then for each
record the first 8 bytes of the sha256 of its id and the offset of its line.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ralf.files import folders
from ralf.files.opening import content_of, ours_alone

_ENTRY = struct.Struct(">8sQ")
_HEADER = struct.Struct(">4sIQ")
_NAME = b"ids2"


class IdIndex:
    """The index of one journal. Only for who holds the journal's lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def exists(self) -> bool:
        """Whether there is an index; what it would be of is read otherwise."""
        return self._path.exists()

    def find(
        self,
        id: str,  # noqa: A002
        end: int,
        known_at: Callable[[int], tuple[str, int]],
        ids: Callable[[int], Iterable[tuple[str, int, int]]],
    ) -> int | None:
        """Where the record with this id begins, None if the journal (which ends at `end`) has none.

        known_at  reads the id of the line at an offset, and where the line ends
        ids       reads id, start and end of the lines from an offset on, for what is not indexed yet
        """
        entries, indexed = self._load(end)
        if entries:
            last, at = _ENTRY.unpack_from(entries, len(entries) - _ENTRY.size)
            known, until = known_at(at) if at < end else ("", end)
            if until != indexed or _hash(known) != last:
                entries = b""  # of a journal that was rewritten since, or what is left of one that was torn
        indexed = indexed if entries else 0
        if indexed < end or not entries:
            added = b"".join(_ENTRY.pack(_hash(known), start) for known, start, _ in ids(indexed))
            entries += added
            self._save(entries, end)
        wanted, place = _hash(id), -1
        while (place := entries.find(wanted, place + 1)) >= 0:
            if place % _ENTRY.size == 0:
                offset: int = _ENTRY.unpack_from(entries, place)[1]
                if offset < end and known_at(offset)[0] == id:
                    return offset
        return None

    def add(self, id: str, start: int, end: int) -> None:  # noqa: A002
        """Note a record that was just appended at `start` and ends at `end`. What cannot be noted, or not behind all
        that comes before it, is indexed later.
        """
        with suppress(OSError, struct.error), os.fdopen(ours_alone(os.fspath(self._path), os.O_RDWR), "r+b") as file:
            name, sum_, indexed = _HEADER.unpack(file.read(_HEADER.size))
            if (name, indexed) != (_NAME, start):
                return
            entry = _ENTRY.pack(_hash(id), start)
            file.seek(0, os.SEEK_END)
            file.write(entry)
            file.seek(0)
            file.write(_HEADER.pack(_NAME, zlib.crc32(entry, sum_), end))

    def drop(self) -> None:
        """Forget it all, as the journal was rewritten."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def agrees(self, known: Sequence[tuple[str, int]]) -> bool:
        """Whether what is noted is what a journal holds, by id and place, as far as it goes."""
        try:
            content = content_of(self._path)[_HEADER.size :]
        except OSError:
            return False
        expected = b"".join(_ENTRY.pack(_hash(id_), start) for id_, start in known)
        return expected.startswith(content)

    def _load(self, end: int) -> tuple[bytes, int]:
        try:
            content = content_of(self._path)
            name, sum_, indexed = _HEADER.unpack_from(content)
        except (OSError, struct.error):
            return b"", 0
        if name != _NAME or indexed > end or len(content) % _ENTRY.size:
            return b"", 0  # of another journal, or torn: read the journal again
        entries = content[_HEADER.size :]
        while entries and _ENTRY.unpack_from(entries, len(entries) - _ENTRY.size)[1] >= indexed:
            entries = entries[: -_ENTRY.size]  # whoever noted it died before the header said so: it is read again
        return (entries, indexed) if zlib.crc32(entries) == sum_ else (b"", 0)

    def _save(self, entries: bytes, end: int) -> None:
        with suppress(OSError):  # a cache that cannot be written costs time, not data
            folders.make(self._path.parent)
            self._path.unlink(missing_ok=True)
            with open(self._path, "xb", opener=ours_alone) as file:
                file.write(with_header(entries, end))


def with_header(entries: bytes, end: int) -> bytes:
    """The bytes of an index that has these entries, of a journal up to this end."""
    return _HEADER.pack(_NAME, zlib.crc32(entries), end) + entries


def _hash(id: str) -> bytes:  # noqa: A002
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()[:8]
