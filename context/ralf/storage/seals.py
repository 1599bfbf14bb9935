"""Seals, which tell this user's records from those that came from elsewhere.

A seal is a keyed hash (BLAKE2b, 128 bits) of stream and record, the last member of the record's JSON object. The key
lies in the user's own folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from ralf.storage.journal import Entry, Properties, Replace, Store, Token, entry_at, newest_entry, required

_SIZE = 16  # bytes

_BEGIN, _END = b',"seal":"', b'"}'

_LENGTH = len(_BEGIN) + 2 * _SIZE + len(_END)


class SealedStore:
    """A `Store` that seals what is appended and says of each entry whether it is foreign.

    store    where the records lie
    key      called for the key when a record is read or written; None for none: records are written without a seal
    vouched  told a stream: whether its records without a seal are this user's, too
    """

    def __init__(self, store: Store, key: Callable[[], bytes | None], vouched: Callable[[str], bool]) -> None:
        self._store = store
        self._key = key
        self._vouched = vouched
        # The names of blobs are sums of what they hold, and stand in sealed records: nothing of them is sealed.
        self.streams, self.put_blob, self.open_blob = store.streams, store.put_blob, store.open_blob

    @property
    def inner(self) -> Store:
        """The store where the records lie, with their seals."""
        return self._store

    @property
    def properties(self) -> Properties:
        """What the store can do, with seals; see `Store.properties`."""
        inner = self._store.properties
        return inner._replace(lookup=inner.lookup and self, replace=inner.replace and self, tail=inner.tail and self)

    def _replacing(self) -> Replace:
        return required(self._store.properties.replace, "replace records")

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        """Append one record with its seal; see `Store.append`."""
        return self._store.append(stream, self.sealed(stream, record), id=id, after=after)

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place, without their seals; see `Store.read`."""
        for entry in self._store.read(stream, after=after):
            yield self.opened(stream, entry)

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place, without its seal; see `Lookup.entry`."""
        return self.opened(stream, entry_at(self._store, stream, token))

    def newest(self, stream: str) -> Entry | None:
        """The newest record, without its seal; see `Tail.newest`."""
        entry = newest_entry(self._store, stream)
        return self.opened(stream, entry) if entry is not None else None

    def replace(self, stream: str, change: Callable[[Entry], bytes], *, wipe: bool = True) -> int:
        """Replace the bytes of records; a foreign one stays foreign. See `Replace.replace`."""

        def changed(entry: Entry) -> bytes:
            ours = self.opened(stream, entry)
            made = change(ours)
            if made == ours.record:
                return entry.record
            return made if ours.foreign else self.sealed(stream, made)

        return self._replacing().replace(stream, changed, wipe=wipe)

    def adopt(self, stream: str) -> int:
        """Seal the records of a stream that have no seal of ours, so that they are this user's; how many there were.
        Errors: `Replace.replace`.
        """

        def sealed(entry: Entry) -> bytes:
            ours = self.opened(stream, entry)
            return entry.record if ours.record != entry.record else self.sealed(stream, entry.record)

        return self._replacing().replace(stream, sealed)

    def head(self, stream: str) -> Token | None:
        """The place of the newest record; see `Store.head`."""
        return self._store.head(stream)

    def drop(self, stream: str, *, wipe: bool = True) -> None:
        """Forget a stream; see `Replace.drop`."""
        self._replacing().drop(stream, wipe=wipe)

    # ---- seals ----

    def under(self, key: bytes) -> SealedStore:
        """The same store as the owner of another key sees it."""
        return SealedStore(self._store, lambda: key, lambda _: False)

    def sealed(self, stream: str, record: bytes) -> bytes:
        """A record with our seal; as it is where there is no key."""
        key = self._key()
        if key is None or record[-1:] != b"}" or record == b"{}":
            return record
        return b"%s%s%s%s" % (record[:-1], _BEGIN, _seal(key, stream, record), _END)

    def opened(self, stream: str, entry: Entry) -> Entry:
        """The entry without its seal, or as it is, foreign unless its stream is vouched for."""
        key = self._key()
        if key is not None and entry.record[-_LENGTH : len(_BEGIN) - _LENGTH] == _BEGIN:
            record = entry.record[:-_LENGTH] + b"}"
            found = entry.record[len(_BEGIN) - _LENGTH : -len(_END)]
            if found == _seal(key, stream, record):  # nobody can time a process that reads a file of theirs
                return entry._replace(record=record)
        return entry if self._vouched(stream) else entry._replace(foreign=True)


def _seal(key: bytes, stream: str, record: bytes) -> bytes:
    name = stream.encode()
    found = hashlib.blake2b(b"%d:%s" % (len(name), name), key=key, digest_size=_SIZE)
    found.update(record)
    return found.hexdigest().encode()
