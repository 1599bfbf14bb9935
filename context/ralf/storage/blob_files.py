"""The blobs of the embedded store: one compressed file each; older stores keep some in zip files."""

from __future__ import annotations

import calendar
import hashlib
import io
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ralf.errors import BlobNotFound, DamagedBlob, UsageError
from ralf.storage import durable, files
from ralf.storage.journal import Blob, Digest
from ralf.storage.journal_file import unpacked_part
from ralf.text.patterns import regex

# ---- zip files of old blobs, which earlier versions wrote ----
#
# Members are named by digest and keep the bytes of their own file but for its header. A zip file of the plainest kind
# can be read with little code, and what is whole of a damaged one can be found again.

_DEFLATED = 8

_VERSION = 20

_OF_UNIX = 3 << 8

_PRIVATE = 0o100600 << 16

_EARLIEST = (1980, 1, 1, 0, 0, 0)  # as zip tells time

_LOCAL = struct.Struct("<4s5H3I2H")

_CENTRAL = struct.Struct("<4s6H3I5H2I")

_END = struct.Struct("<4s4H2IH")

_NAME = regex(rb"[0-9a-f]{64}")

_HINT = "ralf context verify --repair"


class Info(NamedTuple):
    """What the directory says of a member: its name, when it was put (seconds since 1970, to two of them), its
    checksum, its size, the bytes that it takes up, and where they begin.
    """

    digest: Digest
    put: float
    crc: int
    size: int
    deflated: int
    offset: int


class Member(NamedTuple):
    """A member, with its bytes as deflated."""

    digest: Digest
    put: float
    crc: int
    size: int
    deflated: bytes


def listed(path: Path) -> list[Info]:
    """The members of a zip file; DamagedBlob if ralf did not write it."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END.size))
        end = file.read()
        if len(end) == _END.size and end.startswith(b"PK\5\6"):
            _, _, _, _, count, length, start, _ = _END.unpack(end)
            if start + length + _END.size == size:
                file.seek(start)
                members = _directory(file.read(length), count)
                if members is not None:
                    return members
    raise DamagedBlob(path, "is no archive of blobs that can be read", _HINT)


def member(path: Path, info: Info) -> Member:
    """A member as stored, `info.deflated` bytes at most."""
    with path.open("rb") as file:
        file.seek(info.offset)
        return Member(info.digest, info.put, info.crc, info.size, file.read(info.deflated))


def is_as_written(path: Path, members: Iterable[Info]) -> bool:
    """Whether a zip file that lists these members is byte for byte as it was written."""
    with path.open("rb") as file:
        same = all(file.read(len(chunk)) == chunk for chunk in chunks(member(path, info) for info in members))
        return same and not file.read(1)


def remains(content: bytes) -> Iterator[Member]:
    """The members that can be recovered from a damaged zip file by their local headers."""
    place = -1
    while (place := content.find(b"PK\3\4", place + 1)) >= 0:
        head = content[place : place + _LOCAL.size]
        name = content[place + _LOCAL.size : place + _LOCAL.size + 64]
        if len(head) == _LOCAL.size and _NAME.fullmatch(name):
            _, _, _, _, clock, date, crc, length, size, *_ = _LOCAL.unpack(head)
            start = place + _LOCAL.size + 64
            yield Member(name.decode(), _seconds(date, clock), crc, size, content[start : start + length])


def _directory(content: bytes, count: int) -> list[Info] | None:
    """The members that a central directory lists, None if ralf did not write it."""
    found, place = [], 0
    while place < len(content):
        head, name = content[place : place + _CENTRAL.size], content[place + _CENTRAL.size : place + _CENTRAL.size + 64]
        if len(head) < _CENTRAL.size or not head.startswith(b"PK\1\2") or not _NAME.fullmatch(name):
            return None
        _, _, _, _, kind, clock, date, crc, deflated, size, *_, offset = _CENTRAL.unpack(head)
        if kind != _DEFLATED:
            return None
        found.append(Info(name.decode(), _seconds(date, clock), crc, size, deflated, offset + _LOCAL.size + 64))
        place += _CENTRAL.size + 64
    return found if len(found) == count else None


def chunks(members: Iterable[Member]) -> Iterator[bytes]:
    """The bytes of a zip file of these members."""
    central, offset = [], 0
    for one in members:
        name = one.digest.encode()
        date, clock = _dos_time(one.put)
        common = (_VERSION, 0, _DEFLATED, clock, date, one.crc, len(one.deflated), one.size, len(name), 0)
        yield _LOCAL.pack(b"PK\3\4", *common) + name
        yield one.deflated
        central.append(_CENTRAL.pack(b"PK\1\2", _OF_UNIX | _VERSION, *common, 0, 0, 0, _PRIVATE, offset) + name)
        offset += _LOCAL.size + len(name) + len(one.deflated)
    directory = b"".join(central)
    yield directory
    yield _END.pack(b"PK\5\6", 0, 0, len(central), len(central), len(directory), offset, 0)


def _dos_time(put: float) -> tuple[int, int]:
    year, month, day, hour, minute, second = max(time.gmtime(put)[:6], _EARLIEST)
    return (year - 1980) << 9 | month << 5 | day, hour << 11 | minute << 5 | second // 2


def _seconds(date: int, clock: int) -> float:
    day = (date >> 9) + 1980, date >> 5 & 15, date & 31
    return float(calendar.timegm((*day, clock >> 11, clock >> 5 & 63, (clock & 31) * 2)))


# ---- the blobs: one compressed file each, new ones in `blobs/`, old ones in `archive/blobs/` ----

LARGEST = 256 << 20
"""The most bytes of a blob: more is neither accepted nor read, whatever a file claims."""

_DIGEST = regex(r"[0-9a-f]{64}")

_ZIP = regex(r"\d{6}\.zip")

_BACK = "-"  # before the digest of a blob that was put again

_listings: dict[Path, tuple[object, dict[Digest, Info]]] = {}
"""The members of each zip file, with the file's time, inode and size when it was read."""


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
        for path in (*self._places(digest), None, self._places(digest)[1]):  # who unpacks zip files puts them there
            try:
                content = self._zipped_bytes(digest) if path is None else verified(path, digest)
                if content is not None:
                    return io.BytesIO(content)
            except FileNotFoundError:
                continue
            except DamagedBlob as error:
                damage = error
        raise damage or BlobNotFound(digest, "no such blob")

    def _zipped_bytes(self, digest: Digest) -> bytes | None:
        """A blob's bytes in a zip file, None if there is none, even if zip files are replaced meanwhile."""
        while (found := self._zipped(digest)) is not None:
            path, info = found
            try:
                return verified_bytes(path, member(path, info))
            except (FileNotFoundError, DamagedBlob):
                if self._zipped(digest) == found:  # not replaced meanwhile
                    raise
        return None

    def has(self, digest: Digest) -> bool:
        """See `ralf.storage.journal.Heap.has_blob`."""
        loose, old = self._places(digest)
        return loose.exists() or old.exists() or self._zipped(digest) is not None or old.exists()

    def all(self) -> Iterator[Blob]:
        """See `ralf.storage.journal.Heap.blobs`."""
        seen = set()
        for path in self.paths():
            with suppress(FileNotFoundError):  # dropped meanwhile
                status = path.lstat()
                if path.name not in seen:
                    seen.add(path.name)
                    yield Blob(path.name, status.st_size, status.st_mtime, archived=self._old in path.parents)
        for path in self.zip_files():
            with suppress(FileNotFoundError):
                for digest, info in _listing(path).items():
                    if digest not in seen:
                        seen.add(digest)
                        yield Blob(digest, info.deflated, info.put, archived=True)

    def drop(self, digest: Digest) -> None:
        """See `ralf.storage.journal.Heap.drop_blob`."""
        if self.has(digest):
            self.note_gone([digest])
        with self.archiving():
            while (found := self._zipped(digest)) is not None:
                rest = [info for name, info in _listing(found[0]).items() if name != digest]
                self.unpack(found[0], [member(found[0], info) for info in rest])
            durable.removed(path for path in self._places(digest) if not path.parent.is_symlink())

    def unpack(self, path: Path, members: Iterable[Member]) -> None:
        """Write members of a zip file, damaged ones too, as old blobs of their own, and remove the file; for a caller
        that holds the archive.
        """
        for one in members:
            target = self._places(one.digest)[1]
            if not target.exists():
                sum_ = zlib.adler32(unpacked_part(one.deflated, LARGEST, -zlib.MAX_WBITS))
                self._place_old(target, b"\x78\x9c" + one.deflated + sum_.to_bytes(4), one.put)
        durable.sync_parents(self._old, self._folder)
        durable.removed([path])

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
                        _unpacked(content, zlib.MAX_WBITS, loose, digest)
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

    def zip_files(self) -> list[Path]:
        """The zip files that an earlier version has written, oldest first."""
        try:
            return sorted(path for path in self._old.iterdir() if _ZIP.fullmatch(path.name))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _zipped(self, digest: Digest) -> tuple[Path, Info] | None:
        for path in reversed(self.zip_files()):
            with suppress(DamagedBlob, FileNotFoundError):  # one that cannot be read says nothing about the others
                info = _listing(path).get(digest)
                if info is not None:
                    return path, info
        return None

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


def verified_bytes(path: Path, member: Member) -> bytes:
    """The bytes of a member of the zip file `path`; see `verified`."""
    return _unpacked(member.deflated, -zlib.MAX_WBITS, path, member.digest)


def verified(path: Path, digest: Digest) -> bytes:
    """The bytes of a blob in a file of its own; DamagedBlob where they are not what was put."""
    return _unpacked(_content(path), zlib.MAX_WBITS, path, digest)


def _unpacked(content: bytes, kind: int, path: Path, digest: Digest) -> bytes:
    """Decompress no more than a blob may have, and compare the digest."""
    machine = zlib.decompressobj(kind)
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


def _listing(path: Path) -> dict[Digest, Info]:
    """The members of a zip file by digest."""
    status = path.stat()
    key = (status.st_mtime_ns, status.st_ino, status.st_size)
    if path not in _listings or _listings[path][0] != key:
        _listings[path] = (key, {info.digest: info for info in listed(path)})
    return _listings[path][1]


def _sweep(folder: Path) -> int:
    """Remove the temporary files in a folder; only for a caller that knows that no one writes there."""
    left = []
    with suppress(FileNotFoundError):
        left = [path for path in folder.iterdir() if durable.is_temporary(path.name)]
    durable.removed(left)
    return len(left)
