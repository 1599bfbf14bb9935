"""The blobs of the embedded store: one compressed file each."""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ralf.errors import BlobNotFound, DamagedBlob, UsageError
from ralf.storage import durable, files
from ralf.storage.journal import Blob, Digest
from ralf.text.patterns import regex

# ---- the blobs: one compressed file each, new ones in `blobs/`, old ones in `archive/blobs/` ----

_HINT = "ralf context verify --repair"

LARGEST = 256 << 20
"""The most bytes of a blob: more is neither accepted nor read, whatever a file claims."""

_DIGEST = regex(r"[0-9a-f]{64}")

_BACK = "-"  # before the digest of a blob that was put again


class Blobs:
    """The blobs below `folder`.

    check  as for `ralf.storage.filestore.FileStore`
    """

    def __init__(self, folder: Path, check: Callable[[Path], None] = lambda _: None) -> None:
        self._folder = folder
        self._check = check
        self._top = folder / "blobs"
        self._gone = folder / "archive" / "gone"
        self._old = folder / "archive" / "blobs"
        self._lock = folder / "locks" / "blobs.lock"

    def put(self, chunks: Iterable[bytes]) -> Digest:
        """See `ralf.storage.journal.Store.put_blob`."""
        files.check(self._folder)
        content = b"".join(chunks)
        digest = hashlib.sha256(content).hexdigest()
        path = self.path_of(digest)
        if len(content) > LARGEST:
            raise UsageError(path, f"a blob has at most {LARGEST:,} bytes")
        if self._is_whole(path, digest):
            with suppress(FileNotFoundError):  # archived or dropped meanwhile
                os.utime(path)  # it is needed now: a prune must not take it for an old one
                durable.sync_parents(path.parent, self._folder)  # the process that put it may have died before this
                self._note_back(digest)
                return digest
        if path.parent.is_symlink():
            raise UsageError(path.parent, "is a symbolic link: not followed", "remove the link")
        self._check(path)
        files.make(path.parent)
        with self._putting():
            durable.replace_durably(path, [zlib.compress(content, 6)], beside=self._top)
        durable.sync_parents(self._top, self._folder)
        self._note_back(digest)
        return digest

    def open(self, digest: Digest) -> BinaryIO:
        """See `ralf.storage.journal.Store.open_blob`."""
        damage = None
        for path in self._places(digest):
            try:
                return io.BytesIO(verified(path, digest))
            except FileNotFoundError:
                continue
            except DamagedBlob as error:
                damage = error
        for found, content in self.zipped({digest}):
            if found == digest:
                return io.BytesIO(content)
        raise damage or BlobNotFound(digest, "no such blob")

    def zipped(self, wanted: Container[str] | None = None) -> Iterator[tuple[Digest, bytes]]:
        """The blobs in zip files, where an earlier version kept old ones, with their bytes; whole ones only."""
        for path in self._old.glob("*.zip"):
            import zipfile  # only for a store of an earlier version

            with suppress(OSError, zipfile.BadZipFile, zlib.error), zipfile.ZipFile(path) as kept:
                for info in kept.infolist():
                    if info.file_size <= LARGEST and (wanted is None or info.filename in wanted):
                        content = kept.read(info)
                        if hashlib.sha256(content).hexdigest() == info.filename:
                            yield info.filename, content

    def _unzip(self) -> None:
        """Rewrite zip files as blobs like others. What cannot be read is lost with them, and told of as lost."""
        zips = [*self._old.glob("*.zip")]
        if zips:
            with self.archiving():
                for digest, content in self.zipped():
                    path = self._places(digest)[1]
                    if not path.exists():
                        self._place_old(path, zlib.compress(content, 6), zips[0].stat().st_mtime)
                durable.sync_parents(self._old, self._folder)
                durable.removed(zips)

    def has(self, digest: Digest) -> bool:
        """See `ralf.storage.journal.Heap.has_blob`."""
        loose, old = self._places(digest)
        return loose.exists() or old.exists() or any(True for _ in self.zipped({digest}))

    def all(self) -> Iterator[Blob]:
        """See `ralf.storage.journal.Heap.blobs`."""
        seen = set()
        for path in self.paths():
            with suppress(FileNotFoundError):  # dropped meanwhile
                status = path.lstat()
                if path.name not in seen:
                    seen.add(path.name)
                    yield Blob(path.name, status.st_size, status.st_mtime, archived=self._old in path.parents)
        for digest, content in self.zipped():
            if digest not in seen:
                yield Blob(digest, len(content), 0.0, archived=True)

    def drop(self, digest: Digest) -> None:
        """See `ralf.storage.journal.Heap.drop_blob`."""
        if self.has(digest):
            self.note_gone([digest])
        self._unzip()
        with self.archiving():
            durable.removed(path for path in self._places(digest) if not path.parent.is_symlink())

    def _place_old(self, path: Path, content: bytes, put: float) -> None:
        """Write an archived blob durably, with the time when it was put."""
        self._check(path)
        files.make(path.parent)
        durable.replace_durably(path, [content], beside=self._old)
        os.utime(path, (put, put))

    def note_gone(self, digests: Iterable[Digest]) -> None:
        """Note that blobs are gone: dropped on purpose, or reported as lost by a repair."""
        lines = "".join(f"{digest}\n" for digest in digests)
        if lines:
            files.make(self._gone.parent)
            durable.add(self._gone, lines.encode())

    def _note_back(self, digest: Digest) -> None:
        """Note that a blob which was noted as gone is back."""
        if digest.encode() in self._noted() and digest in self.gone():
            durable.add(self._gone, f"{_BACK}{digest}\n".encode())

    def gone(self) -> set[Digest]:
        """The blobs that were noted as gone, and not as back since."""
        lines = self._noted().decode("ascii", "replace").split()
        noted = {line.removeprefix(_BACK): not line.startswith(_BACK) for line in lines}
        return {digest for digest, is_gone in noted.items() if is_gone}

    def _noted(self) -> bytes:
        with suppress(FileNotFoundError):
            return _content(self._gone)
        return b""

    def archive(self, digests: Iterable[Digest], *, wait: bool = True) -> int:
        """See `ralf.storage.journal.Archive.archive_blobs`."""
        moved: dict[Path, int] = {}
        wanted = [digest for digest in dict.fromkeys(digests) if self.path_of(digest).is_file()]
        if wanted:
            with self.archiving(files.LOCK_TIMEOUT if wait else 0.0):
                _sweep(self._old)
                for digest in wanted:
                    loose, old = self._places(digest)
                    with suppress(FileNotFoundError, DamagedBlob):  # a damaged one stays where it is
                        content, put = _content(loose), loose.stat().st_mtime
                        _unpacked(content, loose, digest)
                        self._place_old(old, content, put)
                        moved[loose] = len(content)
                durable.sync_parents(self._old, self._folder)
                for loose in moved:  # the copies have been read back: only then the originals go
                    loose.unlink(missing_ok=True)
        return sum(moved.values())

    # ---- what lies where ----

    def path_of(self, digest: Digest) -> Path:
        """The path of a blob that is not archived; UsageError for anything but a digest."""
        return self._places(digest)[0]

    def _places(self, digest: Digest) -> tuple[Path, Path]:
        """The paths of a blob while it is new and after it is archived."""
        if not _DIGEST.fullmatch(digest):
            raise UsageError(ascii(digest), "not a digest")
        return self._top / digest[:2] / digest, self._old / digest[:2] / digest

    def paths(self) -> Iterator[Path]:
        """The files of all blobs, the new ones first."""
        for top in (self._top, self._old):
            for path in top.glob("??/*"):
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
        """See `ralf.storage.journal.Heap.sweep`."""
        swept = 0
        if self._top.is_dir():
            with files.locked(self._lock, "blobs"):
                places = (self._top, *(path for path in self._top.glob("??") if not path.is_symlink()))
                swept += sum(map(_sweep, places))
        if self._old.is_dir():
            with self.archiving():
                swept += _sweep(self._old)
        return swept

    @contextmanager
    def _putting(self) -> Iterator[None]:
        """Hold the blobs to write some, beside other writers; a writer that is alone first sweeps after dead ones."""
        files.make(self._lock.parent)
        lock = files.LockFile(self._lock)
        try:
            if lock.is_free():
                _sweep(self._top)
            lock.take(shared=True)
            yield
        finally:
            lock.close()

    def archiving(self, timeout: float = files.LOCK_TIMEOUT) -> AbstractContextManager[None]:
        """Hold the archive in order to write to it."""
        return files.locked(self._folder / "locks" / "archive.lock", "archive", timeout)


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
