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
_MOST_UNSAVED = 64 * _ENTRY.size  # bytes of entries that wait


class IdIndex:
    """The index of one journal, for a caller that holds the journal's lock. What it has read or written it keeps: it is
    read again only where its header, which has a sum of all, is another one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._header = b""  # of the file, as it was when it was last read or written
        self._entries = bytearray()
        self._hashes: set[bytes] | None = None  # of the entries, once they are asked for again
        self._end = -1  # of the journal, as far as it has these ids
        self._unsaved = 0  # bytes of entries that the file has not

    def reaches(self, end: int) -> bool:
        """Whether the entries in memory go up to this end of the journal."""
        return self._end == end

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
            self._save(content)
        self._end = end
        return self._found(id, end, known_at)

    def find_kept(self, id: str, known_at: Callable[[int], tuple[str, int]]) -> int | None:  # noqa: A002
        """The same for a journal that nobody has written to since `reaches` became true of its end: no file is read."""
        self._hash_entries()
        return self._found(id, self._end, known_at)

    def _found(self, id: str, end: int, known_at: Callable[[int], tuple[str, int]]) -> int | None:  # noqa: A002
        wanted, place = _hash(id), -1
        if self._hashes is not None and wanted not in self._hashes:
            return None
        while (place := self._entries.find(wanted, place + 1)) >= 0:
            if place % _ENTRY.size == 0:
                offset: int = _ENTRY.unpack_from(self._entries, place)[1]
                if offset < end and known_at(offset)[0] == id:
                    return offset
        return None

    def add(self, id: str, start: int, end: int, *, later: bool = False) -> None:  # noqa: A002
        """Note a record that was just appended at `start` and ends at `end`. What cannot be noted, or not behind all
        that comes before it, is indexed later.

        later  whether the file need not have it at once: whoever opens the journal anew reads the last few lines
        """
        if self._end != start:
            return
        entry = _ENTRY.pack(_hash(id), start)
        self._entries += entry
        if self._hashes is not None:
            self._hashes.add(entry[:8])
        self._end = end
        self._unsaved += _ENTRY.size
        if not later or self._unsaved >= _MOST_UNSAVED:
            self._extend()

    def _extend(self) -> None:
        """Write the entries that the file has not. Where it is not as it was left, what is in memory is given up, too:
        it is missing once a writer has begun to replace the journal, and the next one has to look for what was left.
        """
        try:
            descriptor = open_single_link(os.fspath(self.path), os.O_RDWR)
            try:
                if os.pread(descriptor, _INDEX_HEADER.size, 0) == self._header:
                    added = bytes(self._entries[-self._unsaved :])
                    sum_ = _INDEX_HEADER.unpack(self._header)[1]
                    header = _INDEX_HEADER.pack(_NAME, zlib.crc32(added, sum_), self._end)
                    place = _INDEX_HEADER.size + len(self._entries) - len(added)
                    if os.pwrite(descriptor, added, place) == len(added):
                        os.pwrite(descriptor, header, 0)
                        self._header, self._unsaved = header, 0
                        return
            finally:
                os.close(descriptor)
        except (OSError, struct.error):
            pass
        self._keep(b"", b"")

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
                    if self._unsaved:  # of lines that somebody else has seen since
                        self._keep(header, bytes(self._entries[: -self._unsaved]))
                    self._hash_entries()
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

    def _hash_entries(self) -> None:
        if self._hashes is None:
            places = range(0, len(self._entries), _ENTRY.size)
            self._hashes = {bytes(self._entries[place : place + 8]) for place in places}

    def _keep(self, header: bytes, entries: bytes) -> None:
        """Have these entries in memory, which are those of the file of this header."""
        self._header, self._entries, self._hashes = header, bytearray(entries), None
        self._end, self._unsaved = -1, 0

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
