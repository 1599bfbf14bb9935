"""The embedded store: journals as JSON lines, blobs as compressed files, in one folder.

A journal's line is `{"id":…,"length":…,"sha256":…,"record":…}`, written by one write() and made durable by one fsync.
A token is "OFFSET-SHA256": where the line begins, and the checksum in it.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ralf import _locks, journalfile, names
from ralf.errors import BlobNotFound, Conflict, DamagedBlob, UnknownToken, UsageError
from ralf.idindex import IdIndex
from ralf.store import Blob, Digest, Entry, Token

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MAX_ID = 200


class FileStore:
    """Keeps streams and blobs below `folder`, which need not exist yet. Contract: `ralf.store.Store`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        """Append one record; see `ralf.store.Store.append`."""
        from ralf import _atomic  # here and below: only writers pay for what it imports

        if b"\n" in record or len(id) > _MAX_ID:
            raise UsageError(stream, f"a record is one line, and its id has at most {_MAX_ID} characters")
        path = self._journal(stream)
        line = journalfile.framed(id, record)
        with _locks.held(self._folder / "locks" / f"{stream}.journal.lock", stream):
            new = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = journalfile.opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                end = journalfile.cut_torn_tail(descriptor)
                head = journalfile.last_token(path, descriptor, end)
                index = IdIndex(self._folder / "cache" / "ids" / f"{stream}.idx")
                known = index.find(
                    id,
                    end,
                    lambda offset: journalfile.id_at(descriptor, offset),
                    lambda start: journalfile.ids(descriptor, start),
                )
                if known is not None:
                    os.fsync(descriptor)  # who appended it may have died before that
                    return journalfile.line_at(path, descriptor, known).token
                if head != after:
                    raise Conflict(stream, head)
                with _atomic.naming(path):
                    journalfile.write_all(descriptor, line, end)
                    journalfile.sync(descriptor, end)
                index.add(id, end, end + len(line))
            finally:
                os.close(descriptor)
            if new:
                _sync_parents(path.parent, self._folder)
        return journalfile.token_at(end, line)

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place; see `ralf.store.Store.read`."""
        path = self._journal(stream)
        try:
            file = os.fdopen(journalfile.opened(path, os.O_RDONLY), "rb")
        except FileNotFoundError:
            if after is not None:
                raise UnknownToken(stream, "no such place in this stream") from None
            return
        with file:
            if after is not None:
                journalfile.line_of(file, stream, after)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # never acknowledged
                yield journalfile.parsed(path, file.tell() - len(line), line)

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place; see `ralf.store.Store.entry`."""
        path = self._journal(stream)
        try:
            with os.fdopen(journalfile.opened(path, os.O_RDONLY), "rb") as file:
                line = journalfile.line_of(file, stream, token)
        except FileNotFoundError:
            raise UnknownToken(stream, "no such place in this stream") from None
        return journalfile.parsed(path, journalfile.offset_of(token), line)

    def head(self, stream: str) -> Token | None:
        """The place of the newest record; see `ralf.store.Store.head`."""
        path = self._journal(stream)
        try:
            descriptor = journalfile.opened(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return journalfile.last_token(path, descriptor, journalfile.end_of_lines(descriptor))
        finally:
            os.close(descriptor)

    def streams(self, prefix: str) -> Iterator[str]:
        """The names of the streams that begin with `prefix`."""
        top = self._folder / "journal"
        for folder, _, files in os.walk(top):
            for name in files:
                if name.endswith(".jsonl"):
                    stream = Path(folder, name).relative_to(top).as_posix().removesuffix(".jsonl")
                    if stream.startswith(prefix) and all(map(names.is_valid, stream.split("/"))):
                        yield stream

    def _journal(self, stream: str) -> Path:
        parts = stream.split("/")
        if not all(names.is_valid(part) for part in parts):
            raise UsageError(ascii(stream), "refused as a stream name")
        return self._folder.joinpath("journal", *parts[:-1], f"{parts[-1]}.jsonl")

    # ---- blobs ----

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        """Keep the chunks' joined bytes; see `ralf.store.Store.put_blob`."""
        from ralf import _atomic

        content = b"".join(chunks)
        digest = hashlib.sha256(content).hexdigest()
        path = self._blob(digest)
        if self._is_whole(digest):
            os.utime(path)  # somebody needs it now: whoever prunes must not take it for an old one
        else:
            if path.parent.is_symlink():
                raise UsageError(path.parent, "is a symbolic link: not followed", "remove the link")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # it is damaged
            _atomic.write(path, zlib.compress(content, 6))
            _sync_parents(path.parent.parent, self._folder)
        return digest

    def open_blob(self, digest: Digest) -> BinaryIO:
        """A blob's bytes; see `ralf.store.Store.open_blob`."""
        path = self._blob(digest)
        try:
            with _opened(path) as file:
                regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
                content = zlib.decompress(file.read()) if regular else b""
        except FileNotFoundError:
            raise BlobNotFound(digest, "no such blob") from None
        except (zlib.error, IsADirectoryError):
            content = b""
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            content = b""  # a link that somebody laid
        if hashlib.sha256(content).hexdigest() != digest:
            raise DamagedBlob(path, "its bytes are not those that were put", f"move it away: {path}")
        return io.BytesIO(content)

    def has_blob(self, digest: Digest) -> bool:
        """Whether a blob of this digest is kept."""
        return self._blob(digest).exists()

    def _is_whole(self, digest: Digest) -> bool:
        try:
            self.open_blob(digest).close()
        except (BlobNotFound, DamagedBlob):
            return False
        return True

    def blobs(self) -> Iterator[Blob]:
        """Every blob that is kept."""
        for path in self._folder.glob("blobs/??/*"):
            if _DIGEST.fullmatch(path.name) and not path.parent.is_symlink():
                with suppress(FileNotFoundError):  # dropped meanwhile
                    status = path.lstat()
                    yield Blob(path.name, status.st_size, status.st_mtime)

    def drop_blob(self, digest: Digest) -> None:
        """Forget a blob."""
        path = self._blob(digest)
        if not path.parent.is_symlink():
            path.unlink(missing_ok=True)

    def _blob(self, digest: Digest) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise UsageError(ascii(digest), "not a digest")
        return self._folder / "blobs" / digest[:2] / digest


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | journalfile.CAREFUL), "rb")


def _sync_parents(folder: Path, top: Path) -> None:
    """Make a new file's name durable, and those of the folders that were made for it."""
    from ralf import _atomic

    while True:
        _atomic.sync_folder(folder)
        if folder == top or top not in folder.parents:
            return
        folder = folder.parent
