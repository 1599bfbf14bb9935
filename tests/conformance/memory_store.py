"""A store in memory, the plainest that keeps the contract of `ralf.storage.journal`: a pattern for another store.

Stores of the same folder share what they keep, as those of several processes do on a disk.
"""

# ruff: noqa: D102  # what a method does stands in the port

from __future__ import annotations

import hashlib
import io
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO

from ralf.errors import BlobNotFound, Conflict, UnknownToken, UsageError
from ralf.storage.journal import (
    Blob,
    Digest,
    Entry,
    Files,
    Leases,
    Token,
    Written,
    check_digest,
    check_record,
    check_stream,
)


class _Kept:
    """What the stores of one folder share."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.streams: dict[str, list[Entry]] = {}
        self.blobs: dict[Digest, tuple[bytes, float]] = {}
        self.tokens = count(1)


class MemoryStore:
    """Contract: `ralf.storage.journal.Store`.

    check  is not asked: nothing is put into a file
    """

    files: Files | None = None
    leases: Leases | None = None

    folders: dict[Path, _Kept] = {}  # noqa: RUF012  # for as long as the process lives

    def __init__(self, folder: Path, *, check: Callable[[Path], None] = lambda _: None) -> None:
        self._kept = self.folders.setdefault(folder, _Kept())

    def _entries(self, stream: str) -> list[Entry]:
        check_stream(stream)
        return self._kept.streams.get(stream, [])

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None, is_new: bool = False) -> Token:  # noqa: A002
        check_record(stream, record, id)
        with self._kept.lock:
            entries = self._entries(stream)
            for entry in entries:
                if entry.id == id:
                    return entry.token
            head = self.head(stream)
            if head != after:
                raise Conflict(stream, head)
            token = f"token-{next(self._kept.tokens)}"
            self._kept.streams[stream] = [*entries, Entry(token, id, record)]  # whoever reads has the old list
            return token

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        entries = self._entries(stream)
        start = 0 if after is None else _place(stream, entries, after) + 1
        yield from entries[start:]

    def head(self, stream: str) -> Token | None:
        entries = self._entries(stream)
        return entries[-1].token if entries else None

    def streams(self, prefix: str) -> Iterator[str]:
        yield from [stream for stream in list(self._kept.streams) if stream.startswith(prefix)]

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        content = b"".join(chunks)
        digest = hashlib.sha256(content).hexdigest()
        self._kept.blobs[digest] = content, time.time()
        return digest

    def open_blob(self, digest: Digest) -> BinaryIO:
        check_digest(digest)
        if digest not in self._kept.blobs:
            raise BlobNotFound(digest, "no such blob")
        return io.BytesIO(self._kept.blobs[digest][0])

    def newest(self, stream: str) -> Entry | None:
        entries = self._entries(stream)
        return entries[-1] if entries else None

    def written(self, folder: str) -> dict[str, Written]:
        names = (name.removeprefix(f"{folder}/") for name in self.streams(f"{folder}/"))
        return {name: Written(0, sys.maxsize) for name in names if "/" not in name}

    def entry(self, stream: str, token: Token) -> Entry:
        entries = self._entries(stream)
        return entries[_place(stream, entries, token)]

    def replace(self, stream: str, change: Callable[[Entry], bytes], *, wipe: bool = True) -> int:
        with self._kept.lock:
            entries = self._entries(stream)
            records = [change(entry) for entry in entries]
            if any(b"\n" in record for record in records):
                raise UsageError(stream, "a record is one line")
            changed = sum(record != entry.record for record, entry in zip(records, entries, strict=True))
            if changed:
                self._kept.streams[stream] = [
                    Entry(f"token-{next(self._kept.tokens)}", entry.id, record)
                    for record, entry in zip(records, entries, strict=True)
                ]
            return changed

    def drop(self, stream: str, *, wipe: bool = True) -> None:
        self._entries(stream)
        self._kept.streams.pop(stream, None)

    def has_blob(self, digest: Digest) -> bool:
        try:
            self.open_blob(digest).close()
        except BlobNotFound:
            return False
        return True

    def blobs(self) -> Iterator[Blob]:
        yield from [Blob(digest, len(content), put) for digest, (content, put) in list(self._kept.blobs.items())]

    def drop_blob(self, digest: Digest) -> None:
        if self.has_blob(digest):
            self._kept.blobs.pop(digest, None)

    def sweep(self) -> int:
        return 0


def _place(stream: str, entries: list[Entry], token: Token) -> int:
    for number, entry in enumerate(entries):
        if entry.token == token:
            return number
    raise UnknownToken(stream, "no such place in this stream")
