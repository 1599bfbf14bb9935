"""A store whose records bear this user's seal, so that records which came from elsewhere are told from ours.

A seal is a keyed hash (BLAKE2b, 128 bits) of stream and record, the last member of the record's JSON object. Its key is
in the user's own folder: without it nobody can make one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import BinaryIO

from ralf.store import Blob, Digest, Entry, Store, Token

_SIZE = 16  # bytes
_BEGIN, _END = b',"seal":"', b'"}'
_LENGTH = len(_BEGIN) + 2 * _SIZE + len(_END)


class SealedStore:
    """A `ralf.store.Store` that seals what is appended and says of each entry whether it is foreign.

    store    where the records lie
    key      called for the key when a record is read or written; None for none: records are written without a seal
    vouched  told a stream: whether its records without a seal are this user's, too
    """

    def __init__(self, store: Store, key: Callable[[], bytes | None], vouched: Callable[[str], bool]) -> None:
        self._store = store
        self._key = key
        self._vouched = vouched

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        """Append one record with its seal; see `ralf.store.Store.append`."""
        return self._store.append(stream, self.sealed(stream, record), id=id, after=after)

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place, without their seals; see `ralf.store.Store.read`."""
        for entry in self._store.read(stream, after=after):
            yield self.opened(stream, entry)

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place, without its seal; see `ralf.store.Store.entry`."""
        return self.opened(stream, self._store.entry(stream, token))

    def rewrite(self, stream: str, change: Callable[[Entry], bytes]) -> int:
        """Replace the bytes of records; a foreign one stays foreign. See `ralf.store.Store.rewrite`."""

        def changed(entry: Entry) -> bytes:
            ours = self.opened(stream, entry)
            made = change(ours)
            if made == ours.record:
                return entry.record
            return made if ours.foreign else self.sealed(stream, made)

        return self._store.rewrite(stream, changed)

    def adopt(self, stream: str) -> int:
        """Seal the records of a stream that have no seal of ours, so that they are this user's; how many there were.
        Errors: `ralf.store.Store.rewrite`.
        """

        def sealed(entry: Entry) -> bytes:
            ours = self.opened(stream, entry)
            return entry.record if ours.record != entry.record else self.sealed(stream, entry.record)

        return self._store.rewrite(stream, sealed)

    def head(self, stream: str) -> Token | None:
        """The place of the newest record; see `ralf.store.Store.head`."""
        return self._store.head(stream)

    def marks(self, folder: str) -> Mapping[str, str]:
        """What stays the same only while a stream does; see `ralf.store.Store.marks`."""
        return self._store.marks(folder)

    def streams(self, prefix: str) -> Iterator[str]:
        """The names of the streams that begin with `prefix`."""
        return self._store.streams(prefix)

    def drop(self, stream: str) -> None:
        """Forget a stream; see `ralf.store.Store.drop`."""
        self._store.drop(stream)

    def archive(self, stream: str, upto: Token, *, wait: bool = True) -> int:
        """Move a stream's oldest records to the archive; see `ralf.store.Store.archive`."""
        return self._store.archive(stream, upto, wait=wait)

    def archived(self, stream: str) -> Token | None:
        """The place of the newest record in the archive; see `ralf.store.Store.archived`."""
        return self._store.archived(stream)

    def unarchived(self, stream: str) -> int:
        """The bytes of the records that are not archived; see `ralf.store.Store.unarchived`."""
        return self._store.unarchived(stream)

    # ---- blobs: their names are sums of what they hold, and stand in sealed records ----

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        """Keep the chunks' joined bytes; see `ralf.store.Store.put_blob`."""
        return self._store.put_blob(chunks)

    def open_blob(self, digest: Digest) -> BinaryIO:
        """A blob's bytes; see `ralf.store.Store.open_blob`."""
        return self._store.open_blob(digest)

    def has_blob(self, digest: Digest) -> bool:
        """Whether a blob of this digest is kept."""
        return self._store.has_blob(digest)

    def blobs(self) -> Iterator[Blob]:
        """Every blob that is kept."""
        return self._store.blobs()

    def drop_blob(self, digest: Digest) -> None:
        """Forget a blob."""
        self._store.drop_blob(digest)

    def archive_blobs(self, digests: Iterable[Digest], *, wait: bool = True) -> int:
        """Move blobs to the archive; see `ralf.store.Store.archive_blobs`."""
        return self._store.archive_blobs(digests, wait=wait)

    def sweep(self) -> int:
        """Remove what dead writers have left; see `ralf.store.Store.sweep`."""
        return self._store.sweep()

    # ---- seals ----

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
    return blake2b(b"%d:%s%s" % (len(name), name, record), key=key, digest_size=_SIZE).hexdigest().encode()
