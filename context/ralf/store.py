"""The store port: what ralf asks of whatever keeps its records and blobs. The docstrings are the contract.

`tests/conformance` holds every implementation to it; `ralf.storage.filestore` is the embedded one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO, NamedTuple, Protocol

Token = str
"""A place in a stream, opaque: only its store can read it. Equal tokens of one stream are the same place."""

Digest = str
"""The sha256 of a blob's content, 64 lower-case hexadecimal digits."""


class Entry(NamedTuple):
    """A record as it stands in a stream: its place, the id under which it was appended, its bytes, and whether it came
    from elsewhere (`ralf.storage.sealed`; a store itself cannot tell).
    """

    token: Token
    id: str
    record: bytes
    foreign: bool = False


class Blob(NamedTuple):
    """A blob that is kept: its digest, the bytes that it takes up, when it was last put, in seconds since 1970, and
    whether it lies in the archive.
    """

    digest: Digest
    size: int
    put: float
    archived: bool = False


class Store(Protocol):
    """Streams of records and a heap of blobs.

    A stream's name is a path of route-name-like parts, `routes/TASK-001`; the first append makes it.
    Every method may raise Busy (try again) and OSError (unwritable, disk full): then nothing was done.
    """

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        """Append one record to a stream, and return its place, once it is durable.

        record  one JSON object as UTF-8 without a line break
        id      unique within the stream: a record lands once per id, whatever `after` says; appending it again
                changes nothing and returns the place of the first
        after   the head that the caller saw, None for an empty stream; Conflict(head) when it is another by now

        Whole or not at all: no reader ever sees a part of a record. Of two callers with the same `after` one wins.
        """
        ...

    def rewrite(self, stream: str, change: Callable[[Entry], bytes]) -> int:
        """Replace the bytes of records, and return how many are others now; durable when this returns.

        change  told each record, oldest first; returns the bytes that are to stand in its place, or its own

        Ids and order stay, and nobody appends meanwhile. Whole or not at all: a reader sees all records as they were or
        all as they are now. Nothing of what was replaced is left. Every token of the stream is void afterwards
        (UnknownToken), unless no record changed. DamagedJournal as in `read`; what `change` raises comes through: then
        nothing was done.
        """
        ...

    def drop(self, stream: str) -> None:
        """Forget a stream: all its records, archived ones too; nothing happens when there is none.

        Durable when this returns. Nothing of it is left, and it may be begun anew. Broken off, it has all records or
        none, and done again it is completed.
        """
        ...

    def archive(self, stream: str, upto: Token, *, wait: bool = True) -> int:
        """Move the records up to and with a place to where they take less room, and return how many bytes they had.

        wait  whether to wait for another writer; else Busy at once

        Every method goes on as before, and tokens stay what they are. At no moment is a record in neither place, and
        no copy counts before it has been read back. 0 when all of that was archived already. UnknownToken,
        DamagedJournal as in `read`.
        """
        ...

    def archived(self, stream: str) -> Token | None:
        """The place of the newest record in the archive, None where there is none."""
        ...

    def unarchived(self, stream: str) -> int:
        """About how many bytes the records have that are not in the archive. Takes no longer for a long stream."""
        ...

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place, or all, oldest first; nothing for a stream that does not exist.

        A record that was being written when reading began may or may not be among them. DamagedJournal when a record's
        bytes are not those that were written, after all records before it; UnknownToken when `after` is no place of
        this stream.
        """
        ...

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place. UnknownToken when that is no place of this stream, DamagedJournal as in `read`."""
        ...

    def head(self, stream: str) -> Token | None:
        """The place of the newest record, None for an empty or missing stream. Takes no longer for a long stream."""
        ...

    def marks(self, folder: str) -> Mapping[str, str]:
        """Of the streams right below a folder (`routes`) that can tell, by their last part, a mark that is the same
        only while the stream is; for who keeps what was made of many. Takes much less than the head of each.

        One that was changed a moment ago is left out: what changed it once more might leave the same mark.
        """
        ...

    def streams(self, prefix: str) -> Iterator[str]:
        """The names of all streams that begin with `prefix`, in no particular order."""
        ...

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        """Keep the chunks' joined bytes durably and return their digest. Idempotent; `Blob.put` is now."""
        ...

    def open_blob(self, digest: Digest) -> BinaryIO:
        """A blob's bytes, verified; NotFound when there is none of this digest, Damaged when it is not what was put."""
        ...

    def has_blob(self, digest: Digest) -> bool:
        """Whether a blob of this digest is kept."""
        ...

    def blobs(self) -> Iterator[Blob]:
        """Every blob that is kept, in no particular order, whole ones only."""
        ...

    def drop_blob(self, digest: Digest) -> None:
        """Forget a blob; nothing happens when there is none."""
        ...

    def archive_blobs(self, digests: Iterable[Digest], *, wait: bool = True) -> int:
        """Move blobs to where they take less room, and return how many bytes they took before.

        wait  whether to wait for somebody else who moves or drops blobs; else Busy at once

        Those that are not kept, are archived or are damaged are passed over. The other methods go on as before.
        """
        ...

    def sweep(self) -> int:
        """Remove what those have left who died in the middle of a call, and return how many pieces; durable.

        Waits for whoever is at it, Busy when that takes too long. DamagedJournal as in `read`.
        """
        ...
