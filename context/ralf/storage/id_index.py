"""An index of a journal's ids: a cache of 16 bytes a record, so that finding one does not read the journal.

All big-endian: a name of 4 bytes, the CRC-32 of the entries, the end of what is indexed; then for each record the
first 8 bytes of the sha256 of its id, and the offset of its line.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ralf.storage import files
from ralf.storage.files import content_of, open_single_link

_ENTRY = struct.Struct(">8sQ")
_INDEX_HEADER = struct.Struct(">4sIQ")
_NAME = b"ids2"


class IdIndex:
    """The index of one journal, for a caller that holds the journal's lock. What it has read or written it keeps: it is
    read again only where its header, which has a sum of all, is another one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._header = b""
        self._entries = bytearray()
        self._hashes: set[bytes] | None = None  # of the entries, once they are asked for again

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
        indexed = self._load(end)
        entries = self._entries
        if entries:
            last, at = _ENTRY.unpack_from(entries, len(entries) - _ENTRY.size)
            known, until = known_at(at) if at < end else ("", end)
            if until != indexed or _hash(known) != last:
                self._keep(b"", b"")  # of a journal that was rewritten since, or what is left of one that was torn
                entries = self._entries
        indexed = indexed if entries else 0
        if indexed < end or not entries:
            added = b"".join(_ENTRY.pack(_hash(known), start) for known, start, _ in ids(indexed))
            content = with_header(bytes(entries) + added, end)
            self._keep(content[: _INDEX_HEADER.size], content[_INDEX_HEADER.size :])
            entries = self._entries
            self._save(content)
        wanted, place = _hash(id), -1
        if self._hashes is not None and wanted not in self._hashes:
            return None
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
        with (
            suppress(OSError, struct.error),
            os.fdopen(open_single_link(os.fspath(self.path), os.O_RDWR), "r+b") as file,
        ):
            found = file.read(_INDEX_HEADER.size)
            name, sum_, indexed = _INDEX_HEADER.unpack(found)
            if (name, indexed) != (_NAME, start):
                return
            entry = _ENTRY.pack(_hash(id), start)
            header = _INDEX_HEADER.pack(_NAME, zlib.crc32(entry, sum_), end)
            file.seek(0, os.SEEK_END)
            file.write(entry)
            file.seek(0)
            file.write(header)
            if found == self._header:
                self._header = header
                self._entries += entry
                if self._hashes is not None:
                    self._hashes.add(entry[:8])

    def drop(self) -> None:
        """Remove the index, as the journal was rewritten."""
        self._keep(b"", b"")
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def agrees(self, known: Sequence[tuple[str, int]]) -> bool:
        """Whether the index agrees with the ids and places of a journal, as far as it goes."""
        try:
            content = content_of(self.path)[_INDEX_HEADER.size :]
        except OSError:
            return False
        expected = b"".join(_ENTRY.pack(_hash(id_), start) for id_, start in known)
        return expected.startswith(content)

    def _load(self, end: int) -> int:
        """Read the entries, unless those that are kept are the file's; returns the end of what they index."""
        try:
            with files.open_regular(self.path, buffering=0) as file:
                header = file.read(_INDEX_HEADER.size)
                name, sum_, indexed = _INDEX_HEADER.unpack(header)
                if header == self._header and name == _NAME and indexed <= end:
                    if self._hashes is None:
                        places = range(0, len(self._entries), _ENTRY.size)
                        self._hashes = {bytes(self._entries[place : place + 8]) for place in places}
                    return int(indexed)
                entries = file.read()
        except (OSError, struct.error):
            self._keep(b"", b"")
            return 0
        if name != _NAME or indexed > end or len(entries) % _ENTRY.size:
            entries = b""  # of another journal, or torn: read the journal again
        while entries and _ENTRY.unpack_from(entries, len(entries) - _ENTRY.size)[1] >= indexed:
            entries = entries[: -_ENTRY.size]  # its writer died before it updated the header: the record is read again
        self._keep(header, entries if zlib.crc32(entries) == sum_ else b"")
        return int(indexed) if self._entries else 0

    def _keep(self, header: bytes, entries: bytes) -> None:
        self._header, self._entries, self._hashes = header, bytearray(entries), None

    def _save(self, content: bytes) -> None:
        with suppress(OSError):  # a cache that cannot be written costs time, not data
            files.make(self.path.parent)
            self.path.unlink(missing_ok=True)
            with open(self.path, "xb", opener=open_single_link) as file:
                file.write(content)


def with_header(entries: bytes, end: int) -> bytes:
    """The bytes of an index that has these entries, of a journal up to this end."""
    return _INDEX_HEADER.pack(_NAME, zlib.crc32(entries), end) + entries


def _hash(id: str) -> bytes:  # noqa: A002
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()[:8]
