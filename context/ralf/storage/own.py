"""A store in which only this user's own streams are there: every record of them begins with the store's id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile

from ralf.errors import Conflict, DamagedJournal, UsageError
from ralf.storage.journal import Entry, Store, Token

_BEGIN = b'{"store":"'


class OwnStore:
    """A `Store` without what a clone, an archive or a copy has brought: such a stream reads as empty, up to where it
    begins, and nothing is appended to it. Blobs are named by what they hold, and stand in records.

    inner  where the records lie, also those of others
    id     called for the store's id, which no one can know who has not seen a record of it; "" for none: then nothing
           is this user's
    """

    def __init__(self, inner: Store, id: Callable[[], str]) -> None:  # noqa: A002
        self.inner = inner
        self._id = id
        self._begin = b""  # of each record, once there is an id: that stays
        self.files, self.leases = inner.files, inner.leases
        self.streams, self.written, self.drop, self.sweep = inner.streams, inner.written, inner.drop, inner.sweep
        self.put_blob, self.open_blob, self.has_blob = inner.put_blob, inner.open_blob, inner.has_blob
        self.blobs, self.drop_blob = inner.blobs, inner.drop_blob

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None, is_new: bool = False) -> Token:  # noqa: A002
        """Append one record with the store's id; see `Store.append`. UsageError for a stream of somebody else's."""
        try:
            return self.inner.append(stream, self.with_id(record), id=id, after=after, is_new=is_new)
        except Conflict:
            if not self.is_foreign(stream):
                raise
            what, route = "its journal was not written by your ralf: nothing is recorded there", ""
            if stream.startswith("routes/"):
                route = stream.removeprefix("routes/")
            raise UsageError(route or stream, what, f"ralf trust {route}".rstrip()) from None

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place, up to one of somebody else's; see `Store.read`."""
        return map(self.without_id, takewhile(self._is_own, self.inner.read(stream, after=after)))

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place; see `Store.entry`."""
        return self.without_id(self.inner.entry(stream, token))

    def newest(self, stream: str) -> Entry | None:
        """The newest record, None also where that is somebody else's; see `Store.newest`."""
        entry = self.inner.newest(stream)
        return self.without_id(entry) if entry is not None and self._is_own(entry) else None

    def head(self, stream: str) -> Token | None:
        """The place of the newest record, None also where that is somebody else's; see `Store.head`."""
        try:
            entry = self.inner.newest(stream)
        except DamagedJournal:  # whoever reads it is told
            return self.inner.head(stream)
        return entry.token if entry is not None and self._is_own(entry) else None

    def is_foreign(self, stream: str) -> bool:
        """Whether a stream has records, the newest of which is somebody else's. DamagedJournal."""
        entry = self.inner.newest(stream)
        return entry is not None and not self._is_own(entry)

    def replace(self, stream: str, change: Callable[[Entry], bytes], *, wipe: bool = True) -> int:
        """Replace the bytes of records; one of somebody else's stays that. See `Store.replace`."""

        def changed(entry: Entry) -> bytes:
            made = change(self.without_id(entry))
            return self.with_id(made) if self._is_own(entry) else made

        return self.inner.replace(stream, changed, wipe=wipe)

    def with_id(self, record: bytes) -> bytes:
        """A record as it stands in the store. UsageError where there is no id."""
        begin = self._own_begin()
        if not begin:
            raise UsageError("store", "is not yours: nothing is recorded in it", "ralf init")
        return begin + (record[1:] if record[1:] == b"}" else b"," + record[1:])

    def without_id(self, entry: Entry) -> Entry:
        """An entry as it was appended; one of somebody else's as it is."""
        if not self._is_own(entry):
            return entry
        return entry._replace(record=b"{" + entry.record[len(self._own_begin()) :].removeprefix(b","))

    def _own_begin(self) -> bytes:
        if not self._begin and (id_ := self._id()):
            self._begin = _BEGIN + id_.encode() + b'"'
        return self._begin

    def _is_own(self, entry: Entry) -> bool:
        begin = self._own_begin()
        return bool(begin) and entry.record.startswith(begin)


def id_of(record: bytes) -> str:
    """The id of the store that a record, as it stands there, was written to; "" where it tells none."""
    if not record.startswith(_BEGIN):
        return ""
    return record[len(_BEGIN) :].partition(b'"')[0].decode("ascii", "replace")
