"""The blobs of the embedded store: one compressed file each, and the old ones in zip files of the archive."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ralf.errors import BlobNotFound, DamagedBlob, UsageError
from ralf.files import filesystems, folders, locks
from ralf.files.placing import is_temporary, placed, removed, sync_parents
from ralf.storage.journalfile import CAREFUL
from ralf.store import Blob, Digest

if TYPE_CHECKING:
    from ralf.storage.blobzip import Info, Member

LARGEST = 256 << 20
"""Bytes that a blob has at most: more is not taken, and not read, whatever a file makes itself out to be."""

_ZIP_LARGEST = 1 << 20  # bytes from which a zip file is full; one is rewritten for each change of it
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ZIP = re.compile(r"\d{6}\.zip")
_CHUNK = 1 << 18
_BACK = "-"  # before the digest of a blob that was put again
_HINT = "ralf context verify --repair"

_Key = tuple[int, int, int]
_listings: dict[Path, tuple[_Key, dict[Digest, Info]]] = {}
"""What the zip files hold, with what tells each from any other of its name."""


class Blobs:
    """The blobs below `folder`.

    check  as for `ralf.storage.filestore.FileStore`
    """

    def __init__(self, folder: Path, check: Callable[[Path], None] = lambda _: None) -> None:
        self._folder = folder
        self._check = check
        self._top = folder / "blobs"
        self._gone = folder / "archive" / "gone"
        self.zips = folder / "archive" / "blobs"
        self._lock = folder / "locks" / "blobs.lock"

    def put(self, chunks: Iterable[bytes]) -> Digest:
        """See `ralf.store.Store.put_blob`."""
        filesystems.check(self._folder)
        content = b"".join(chunks)
        digest = hashlib.sha256(content).hexdigest()
        path = self.path_of(digest)
        if len(content) > LARGEST:
            raise UsageError(path, f"a blob has at most {LARGEST:,} bytes")
        if self._is_whole(path, digest):
            with suppress(FileNotFoundError):  # archived or dropped meanwhile
                os.utime(path)  # somebody needs it now: whoever prunes must not take it for an old one
                sync_parents(path.parent, self._folder)  # who put it may have died before that
                self._note_back(digest)
                return digest
        if path.parent.is_symlink():
            raise UsageError(path.parent, "is a symbolic link: not followed", "remove the link")
        self._check(path)
        folders.make(path.parent)
        with self._putting():
            placed(path, [zlib.compress(content, 6)], beside=self._top)
        sync_parents(self._top, self._folder)
        self._note_back(digest)
        return digest

    def open(self, digest: Digest) -> BinaryIO:
        """See `ralf.store.Store.open_blob`."""
        path = self.path_of(digest)
        try:
            return io.BytesIO(b"".join(verified(path, digest)))
        except (FileNotFoundError, DamagedBlob) as error:
            content = self._open_archived(digest)
            if content is not None:
                return content
            if isinstance(error, DamagedBlob):
                raise
        raise BlobNotFound(digest, "no such blob")

    def _open_archived(self, digest: Digest) -> BinaryIO | None:
        """An archived blob's bytes, None where there is none, however often its zip file is replaced meanwhile."""
        while (found := self._archived(digest)) is not None:
            path, info = found
            before = _listings.get(path)
            try:
                return io.BytesIO(b"".join(verified_member(path, info)))
            except (FileNotFoundError, DamagedBlob):
                with suppress(FileNotFoundError, DamagedBlob):
                    _listing(path)
                if _listings.get(path) is before and path.exists():
                    raise
        return None

    def has(self, digest: Digest) -> bool:
        """See `ralf.store.Store.has_blob`."""
        return self.path_of(digest).exists() or self._archived(digest) is not None

    def all(self) -> Iterator[Blob]:
        """See `ralf.store.Store.blobs`."""

        loose = set()
        for path in self.files():
            with suppress(FileNotFoundError):  # dropped meanwhile
                status = path.lstat()
                loose.add(path.name)
                yield Blob(path.name, status.st_size, status.st_mtime)
        for path in self.zip_files():
            with suppress(FileNotFoundError):
                for digest, info in _listing(path).items():
                    if digest not in loose:
                        loose.add(digest)
                        yield Blob(digest, info.deflated, info.put, archived=True)

    def drop(self, digest: Digest) -> None:
        """See `ralf.store.Store.drop_blob`."""
        from ralf.storage import blobzip

        path = self.path_of(digest)
        if self.has(digest):
            self.note_gone([digest])
        with self.archiving():
            if not path.parent.is_symlink():
                removed([path])
            while (found := self._archived(digest)) is not None:
                rest = [info for name, info in _listing(found[0]).items() if name != digest]
                if rest:
                    blobzip.write(found[0], [blobzip.member(found[0], info) for info in rest])
                else:
                    removed([found[0]])

    def note_gone(self, digests: Iterable[Digest]) -> None:
        """Note of blobs that they are not missed: dropped on purpose, or lost, which a repair has said."""
        from ralf.files import atomic

        lines = "".join(f"{digest}\n" for digest in digests)
        if lines:
            folders.make(self._gone.parent)
            atomic.add(self._gone, lines.encode())

    def _note_back(self, digest: Digest) -> None:
        """Note of a blob that was noted as gone, and is there again, that it would be missed."""
        if digest.encode() in self._noted() and digest in self.gone():
            from ralf.files import atomic

            atomic.add(self._gone, f"{_BACK}{digest}\n".encode())

    def gone(self) -> set[Digest]:
        """The blobs of which that was noted, and not since that they are there again."""
        lines = self._noted().decode("ascii", "replace").split()
        noted = {line.removeprefix(_BACK): not line.startswith(_BACK) for line in lines}
        return {digest for digest, is_gone in noted.items() if is_gone}

    def _noted(self) -> bytes:
        with suppress(FileNotFoundError):
            return _content(self._gone)
        return b""

    def archive(self, digests: Iterable[Digest], *, wait: bool = True) -> int:
        """See `ralf.store.Store.archive_blobs`."""
        wanted = [digest for digest in dict.fromkeys(digests) if self.path_of(digest).is_file()]
        moved = 0
        if wanted:
            with self.archiving(locks.TIMEOUT if wait else 0.0):
                if not self.zip_files():  # the folder's name first: whoever finds a zip file takes that for durable
                    folders.make(self.zips)
                    sync_parents(self.zips, self._folder)
                _sweep(self.zips)
                for batch in self._batches(wanted):
                    moved += self._archive(batch)
        return moved

    # ---- what lies where ----

    def path_of(self, digest: Digest) -> Path:
        """Where a blob lies that is not archived; UsageError for what is no digest."""
        if not _DIGEST.fullmatch(digest):
            raise UsageError(ascii(digest), "not a digest")
        return self._top / digest[:2] / digest

    def files(self) -> Iterator[Path]:
        """The files of the blobs that are not archived."""
        for path in self._top.glob("??/*"):
            if _DIGEST.fullmatch(path.name) and not path.parent.is_symlink():
                yield path

    def zip_files(self) -> list[Path]:
        """The zip files of the archive, oldest first."""
        try:
            return sorted(path for path in self.zips.iterdir() if _ZIP.fullmatch(path.name))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _archived(self, digest: Digest) -> tuple[Path, Info] | None:
        for path in reversed(self.zip_files()):
            with suppress(DamagedBlob, FileNotFoundError):  # of one that cannot be read the others know nothing
                info = _listing(path).get(digest)
                if info is not None:
                    return path, info
        return None

    def _is_whole(self, path: Path, digest: Digest) -> bool:
        """Whether a blob lies there, in a file without a second name: one that may be somebody's is not touched."""
        try:
            for _ in verified(path, digest):
                pass
            return path.lstat().st_nlink == 1
        except (FileNotFoundError, DamagedBlob):
            return False

    # ---- moving ----

    def _batches(self, digests: list[Digest]) -> Iterator[list[Digest]]:
        """Digests, as many at a time as one zip file takes."""
        batch: list[Digest] = []
        size = 0
        for digest in digests:
            with suppress(FileNotFoundError):
                size += self.path_of(digest).stat().st_size
                batch.append(digest)
                if size >= _ZIP_LARGEST:
                    yield batch
                    batch, size = [], 0
        if batch:
            yield batch

    def _archive(self, digests: list[Digest]) -> int:
        """Move blobs into the newest zip file, or the next one where that is full; how many bytes they took."""
        from ralf.files import atomic
        from ralf.storage import blobzip

        members = []
        for digest in digests:
            with suppress(FileNotFoundError, DamagedBlob):  # a damaged one stays where it is
                members.append(_member(self.path_of(digest), digest))
        new = [one for one in members if self._archived(one.digest) is None]
        if new:
            size = sum(len(one.deflated) for one in new)
            zips = self.zip_files()
            path = zips[-1] if zips else self.zips / "000001.zip"
            if zips and path.stat().st_size + size > _ZIP_LARGEST:
                path = self.zips / f"{int(path.stem) + 1:06d}.zip"
            self._check(path)
            before = [blobzip.member(path, info) for info in _listing(path).values()] if path.exists() else []
            blobzip.write(path, [*before, *new])
        else:
            atomic.sync_folder(self.zips)  # who put them there may have died before that
        moved = 0
        for one in members:
            found = self._archived(one.digest)
            if found is not None:
                for _ in verified_member(*found):
                    pass  # the copy is whole: only then the original goes
                with suppress(FileNotFoundError):
                    self.path_of(one.digest).unlink()
                    moved += len(one.deflated)
        return moved

    def sweep(self) -> int:
        """See `ralf.store.Store.sweep`."""
        swept = 0
        if self._top.is_dir():
            with locks.held(self._lock, "blobs"):
                places = (self._top, *(path for path in self._top.glob("??") if not path.is_symlink()))
                swept += sum(map(_sweep, places))
        if self.zips.is_dir():
            with self.archiving():
                swept += _sweep(self.zips)
        return swept

    @contextmanager
    def _putting(self) -> Iterator[None]:
        """While blobs are written, beside others who do; who is alone sweeps first what the dead have left."""
        folders.make(self._lock.parent)
        lock = locks.LockFile(self._lock)
        try:
            if lock.is_free():
                _sweep(self._top)
            lock.take(shared=True)
            yield
        finally:
            lock.close()

    def archiving(self, timeout: float = locks.TIMEOUT) -> AbstractContextManager[None]:
        """Hold the zip files: who writes to them."""
        return locks.held(self._folder / "locks" / "archive.lock", "archive", timeout)


def verified_member(path: Path, info: Info) -> Iterator[bytes]:
    """The bytes of an archived blob, in chunks; DamagedBlob, at the end, where they are not what was put."""
    from ralf.storage import blobzip

    return verified_bytes(path, blobzip.member(path, info))


def verified_bytes(path: Path, member: Member) -> Iterator[bytes]:
    """The same of a member of the zip file `path` that is in hand."""
    return _unpacked(member.deflated, -zlib.MAX_WBITS, path, member.digest)


def verified(path: Path, digest: Digest) -> Iterator[bytes]:
    """The bytes of a blob that is not archived, in chunks; DamagedBlob, at the end, where they are not what was put."""
    return _unpacked(_content(path), zlib.MAX_WBITS, path, digest)


def _member(path: Path, digest: Digest) -> Member:
    """A blob as a member of a zip file: a zlib stream without its ends is what zip calls deflated."""
    from ralf.storage import blobzip

    content = _content(path)
    crc = size = 0
    for chunk in _unpacked(content, zlib.MAX_WBITS, path, digest):
        crc = zlib.crc32(chunk, crc)
        size += len(chunk)
    return blobzip.Member(digest, path.stat().st_mtime, crc, size, content[2:-4])


def _unpacked(content: bytes, kind: int, path: Path, digest: Digest) -> Iterator[bytes]:
    """Decompress a chunk at a time, never more than a blob may have, and compare the digest."""
    machine = zlib.decompressobj(kind)
    found, size = hashlib.sha256(), 0
    with suppress(zlib.error):
        while not machine.eof:
            chunk = machine.decompress(content, _CHUNK)
            content = machine.unconsumed_tail
            size += len(chunk)
            if size > LARGEST or not (chunk or content or machine.eof):
                break
            found.update(chunk)
            yield chunk
    if not machine.eof or machine.unused_data or found.hexdigest() != digest:
        raise DamagedBlob(path, "its bytes are not those that were put", _HINT)


def _content(path: Path) -> bytes:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | CAREFUL), "rb") as file:
            return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
        return b""  # a link that somebody laid, or no file at all


def _listing(path: Path) -> dict[Digest, Info]:
    """The members of a zip file by digest."""
    from ralf.storage import blobzip

    status = path.stat()
    key = (status.st_mtime_ns, status.st_ino, status.st_size)
    if path not in _listings or _listings[path][0] != key:
        _listings[path] = (key, {info.digest: info for info in blobzip.listed(path)})
    return _listings[path][1]


def _sweep(folder: Path) -> int:
    """Remove the temporary files in a folder; only for who knows that nobody writes there."""
    left = []
    with suppress(FileNotFoundError):
        left = [path for path in folder.iterdir() if is_temporary(path.name)]
    removed(left)
    return len(left)
