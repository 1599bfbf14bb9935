"""The embedded store: journals as JSON lines, blobs as compressed files, in one folder.

`ralf.storage.journalstream` is one of its streams, `ralf.storage.blobfiles` are its blobs. A token is "OFFSET-SHA256":
where the line begins in the journal, and the checksum in it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ralf import names
from ralf.errors import UsageError
from ralf.storage.journalstream import Stream
from ralf.store import Blob, Digest, Entry, Token

if TYPE_CHECKING:
    from ralf.storage.blobfiles import Blobs


_SETTLED = 2_000_000_000
"""Nanoseconds after which nothing changes a file and leaves its times as they are: no file system counts coarser."""


class FileStore:
    """Keeps streams and blobs below `folder`, which need not exist yet. Contract: `ralf.store.Store`.

    check  called with the path of a file before records or blobs are put into it; what it raises is passed on
    """

    def __init__(self, folder: Path, *, check: Callable[[Path], None] = lambda _: None) -> None:
        self._folder = folder
        self._check = check
        self._streams: dict[str, Stream] = {}

    @cached_property
    def _blobs(self) -> Blobs:
        from ralf.storage.blobfiles import Blobs  # who only reads a route never pays for it

        return Blobs(self._folder, self._check)

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        """Append one record; see `ralf.store.Store.append`."""
        found = self._stream(stream)
        self._check(found.path)
        return found.append(record, id, after)

    def rewrite(self, stream: str, change: Callable[[Entry], bytes]) -> int:
        """Replace the bytes of records; see `ralf.store.Store.rewrite`."""
        return self._stream(stream).rewrite(change)

    def drop(self, stream: str) -> None:
        """Forget a stream; see `ralf.store.Store.drop`."""
        self._stream(stream).drop()

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place; see `ralf.store.Store.read`."""
        return self._stream(stream).read(after)

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place; see `ralf.store.Store.entry`."""
        return self._stream(stream).entry(token)

    def head(self, stream: str) -> Token | None:
        """The place of the newest record; see `ralf.store.Store.head`."""
        return self._stream(stream).head()

    def marks(self, folder: str) -> dict[str, str]:
        """By stream what stays the same only while it does; see `ralf.store.Store.marks`."""
        found, settled = {}, time.time_ns() - _SETTLED
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self._folder / "journal" / folder) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl"):
                    with suppress(OSError):
                        one = entry.stat(follow_symlinks=False)
                        if max(one.st_mtime_ns, one.st_ctime_ns) < settled:
                            mark = f"{one.st_ino}:{one.st_size}:{one.st_mtime_ns}:{one.st_ctime_ns}"
                            found[entry.name.removesuffix(".jsonl")] = mark
        return found

    def streams(self, prefix: str) -> Iterator[str]:
        """The names of the streams that begin with `prefix`."""
        top = self._folder / "journal"
        for folder, _, files in os.walk(top):
            for name in files:
                if name.endswith(".jsonl"):
                    stream = Path(folder, name).relative_to(top).as_posix().removesuffix(".jsonl")
                    if stream.startswith(prefix) and all(map(names.is_valid, stream.split("/"))):
                        yield stream

    def _stream(self, stream: str) -> Stream:
        if stream not in self._streams:
            if not all(names.is_valid(part) for part in stream.split("/")):
                raise UsageError(ascii(stream), "refused as a stream name")
            self._streams[stream] = Stream(self._folder, stream)
        return self._streams[stream]

    def archive(self, stream: str, upto: Token, *, wait: bool = True) -> int:
        """Move a stream's oldest records to the archive; see `ralf.store.Store.archive`."""
        return self._stream(stream).archive(upto, wait=wait)

    def archived(self, stream: str) -> Token | None:
        """The place of the newest record in the archive; see `ralf.store.Store.archived`."""
        return self._stream(stream).archived()

    def unarchived(self, stream: str) -> int:
        """The bytes of the journal's own file; see `ralf.store.Store.unarchived`."""
        return self._stream(stream).unarchived()

    # ---- blobs ----

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        """Keep the chunks' joined bytes; see `ralf.store.Store.put_blob`."""
        return self._blobs.put(chunks)

    def open_blob(self, digest: Digest) -> BinaryIO:
        """A blob's bytes; see `ralf.store.Store.open_blob`."""
        return self._blobs.open(digest)

    def has_blob(self, digest: Digest) -> bool:
        """Whether a blob of this digest is kept."""
        return self._blobs.has(digest)

    def blobs(self) -> Iterator[Blob]:
        """Every blob that is kept."""
        return self._blobs.all()

    def drop_blob(self, digest: Digest) -> None:
        """Forget a blob."""
        self._blobs.drop(digest)

    def archive_blobs(self, digests: Iterable[Digest], *, wait: bool = True) -> int:
        """Move blobs to the archive; see `ralf.store.Store.archive_blobs`."""
        return self._blobs.archive(digests, wait=wait)

    # ---- both ----

    def sweep(self) -> int:
        """Remove what the dead have left; see `ralf.store.Store.sweep`."""
        swept = self._blobs.sweep()
        for name in self.streams(""):
            stream = self._stream(name)
            if stream.may_have_left():
                with stream.writing():
                    swept += len(stream.sweep())
        return swept
