"""The blobs of the embedded store: one compressed file each."""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ralf.errors import BlobNotFound, Busy, DamagedBlob, UsageError
from ralf.storage import durable, earlier, files, locks
from ralf.storage.journal import Blob, Digest
from ralf.text.patterns import regex

_HINT = "ralf context verify --repair"

LARGEST = 256 << 20
"""The most bytes of a blob: more is neither accepted nor read, whatever a file claims."""

_DIGEST = regex(r"[0-9a-f]{64}")


class Blobs:
    """The blobs below `folder`.

    check  as for `ralf.storage.filestore.FileStore`
    """

    def __init__(self, folder: Path, check: Callable[[Path], None] = lambda _: None) -> None:
        self._folder = folder
        self._check = check
        self._top = folder / "blobs"
        self._gone = self._top / "gone"
        self._lock = folder / "locks" / "blobs.lock"

    def put(self, chunks: Iterable[bytes]) -> Digest:
        """See `ralf.storage.journal.Store.put_blob`."""
        files.check(self._folder)
        self._bring_earlier()
        content = b"".join(chunks)
        digest = hashlib.sha256(content).hexdigest()
        path = self.path_of(digest)
        if len(content) > LARGEST:
            raise UsageError(path, f"a blob has at most {LARGEST:,} bytes")
        if self._is_whole(path, digest):
            with suppress(FileNotFoundError):  # dropped meanwhile
                os.utime(path)  # it is needed now: nobody is to take it for an old one
                durable.sync_parents(path.parent, self._folder)  # the process that put it may have died before this
                return digest
        if path.parent.is_symlink():
            raise UsageError(path.parent, "is a symbolic link: not followed", "remove the link")
        self._check(path)
        files.make(path.parent)
        with self._putting():
            durable.replace_durably(path, [zlib.compress(content, 6)], beside=self._top)
        durable.sync_parents(self._top, self._folder)
        return digest

    def open(self, digest: Digest) -> BinaryIO:
        """See `ralf.storage.journal.Store.open_blob`."""
        try:
            return io.BytesIO(verified(self.path_of(digest), digest))
        except FileNotFoundError:
            if (content := earlier.blob(self._folder, digest)) is not None:
                return io.BytesIO(content)
            raise BlobNotFound(digest, "no such blob") from None

    def _bring_earlier(self) -> None:
        """Rewrite what an earlier version archived, for a caller that writes."""
        if (self._folder / "archive" / "blobs").is_dir():
            earlier.bring_blobs(self._folder, self._top)

    def has(self, digest: Digest) -> bool:
        """See `ralf.storage.journal.Store.has_blob`."""
        return self.path_of(digest).exists() or earlier.blob(self._folder, digest) is not None

    def all(self) -> Iterator[Blob]:
        """See `ralf.storage.journal.Store.blobs`."""
        with suppress(OSError, Busy):  # who cannot write
            self._bring_earlier()
        for path in self.paths():
            with suppress(FileNotFoundError):  # dropped meanwhile
                status = path.lstat()
                yield Blob(path.name, status.st_size, status.st_mtime)

    def drop(self, digest: Digest) -> None:
        """See `ralf.storage.journal.Store.drop_blob`."""
        self._bring_earlier()
        path = self.path_of(digest)
        if path.exists() and not path.parent.is_symlink():
            self.note_gone([digest])
            durable.removed([path])

    def note_gone(self, digests: Iterable[Digest]) -> None:
        """Note that blobs are gone: dropped on purpose, or reported as lost by a repair."""
        lines = "".join(f"{digest}\n" for digest in digests)
        if lines:
            files.make(self._gone.parent)
            durable.add(self._gone, lines.encode())

    def gone(self) -> set[Digest]:
        """The blobs that were noted as gone."""
        with suppress(FileNotFoundError):
            return set(_content(self._gone).decode("ascii", "replace").split())
        return set()

    def path_of(self, digest: Digest) -> Path:
        """The path of a blob; UsageError for anything but a digest."""
        if not _DIGEST.fullmatch(digest):
            raise UsageError(ascii(digest), "not a digest")
        return self._top / digest[:2] / digest

    def paths(self) -> Iterator[Path]:
        """The files of all blobs."""
        for path in self._top.glob("??/*"):
            if _DIGEST.fullmatch(path.name) and not path.parent.is_symlink():
                yield path

    def _is_whole(self, path: Path, digest: Digest) -> bool:
        """Whether a path holds a blob in a file with one name: another name may belong to someone else."""
        with suppress(FileNotFoundError, DamagedBlob):
            verified(path, digest)
            return path.lstat().st_nlink == 1
        return False

    # ---- writing ----

    def sweep(self) -> int:
        """See `ralf.storage.journal.Store.sweep`."""
        if not self._top.is_dir():
            return 0
        with locks.locked(self._lock, "blobs"):
            places = (self._top, *(path for path in self._top.glob("??") if not path.is_symlink()))
            return sum(map(_sweep, places))

    @contextmanager
    def _putting(self) -> Iterator[None]:
        """Hold the blobs to write some, beside other writers; a writer that is alone first sweeps after dead ones."""
        files.make(self._lock.parent)
        lock = locks.LockFile(self._lock)
        try:
            if lock.is_free():
                _sweep(self._top)
            lock.take(shared=True)
            yield
        finally:
            lock.close()


def verified(path: Path, digest: Digest) -> bytes:
    """The bytes of a blob in a file of its own; DamagedBlob where they are not what was put."""
    return _unpacked(_content(path), path, digest)


def _unpacked(content: bytes, path: Path, digest: Digest) -> bytes:
    """Decompress no more than a blob may have, and compare the digest."""
    machine = zlib.decompressobj()
    found = b""
    with suppress(zlib.error):
        found = machine.decompress(content, LARGEST + 1)
    is_whole = machine.eof and not machine.unused_data and len(found) <= LARGEST
    if not is_whole or hashlib.sha256(found).hexdigest() != digest:
        raise DamagedBlob(path, "its bytes are not those that were put", _HINT)
    return found


def _content(path: Path) -> bytes:
    try:
        with files.open_regular(path) as file:
            return file.read()
    except OSError as error:
        if error.errno not in files.NOT_REGULAR:
            raise
        return b""  # a link that someone laid, or no file at all


def _sweep(folder: Path) -> int:
    """Remove the temporary files in a folder; only for a caller that knows that no one writes there."""
    left = []
    with suppress(FileNotFoundError):
        left = [path for path in folder.iterdir() if durable.is_temporary(path.name)]
    durable.removed(left)
    return len(left)
