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
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ralf import names
from ralf.errors import BlobNotFound, DamagedBlob, UsageError
from ralf.journalfile import CAREFUL
from ralf.journalstream import Stream, sync_parents
from ralf.store import Blob, Digest, Entry, Token

_DIGEST = re.compile(r"[0-9a-f]{64}")


class FileStore:
    """Keeps streams and blobs below `folder`, which need not exist yet. Contract: `ralf.store.Store`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        """Append one record; see `ralf.store.Store.append`."""
        return self._stream(stream).append(record, id, after)

    def rewrite(self, stream: str, change: Callable[[Entry], bytes]) -> int:
        """Replace the bytes of records; see `ralf.store.Store.rewrite`."""
        return self._stream(stream).rewrite(change)

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place; see `ralf.store.Store.read`."""
        return self._stream(stream).read(after)

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place; see `ralf.store.Store.entry`."""
        return self._stream(stream).entry(token)

    def head(self, stream: str) -> Token | None:
        """The place of the newest record; see `ralf.store.Store.head`."""
        return self._stream(stream).head()

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
        if not all(names.is_valid(part) for part in stream.split("/")):
            raise UsageError(ascii(stream), "refused as a stream name")
        return Stream(self._folder, stream)

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
                raise UsageError(path.parent, "is a symbolic link: not written through", "remove the link")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # it is damaged
            _atomic.write(path, zlib.compress(content, 6))
            sync_parents(path.parent.parent, self._folder)
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
        with suppress(FileNotFoundError):
            self._blob(digest).unlink()

    def _blob(self, digest: Digest) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise UsageError(ascii(digest), "not a digest")
        return self._folder / "blobs" / digest[:2] / digest


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | CAREFUL), "rb")
