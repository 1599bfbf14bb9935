"""The durable write of one file: whole or not at all, and what a person saved in its place meanwhile is not lost.

`write` is for files that only we write; `exchange` for route files, which people edit, at any moment, without a lock.
The only module that imports atomicwrites.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from atomicwrites import AtomicWriter

from ralf.files import leases

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
TEMPORARY_PREFIX = ".ralf-"
TEMPORARY_SUFFIX = ".tmp"
ASIDE_SUFFIX = ".old"
_KEPT = 10.0  # seconds that a file stays aside where the kernel cannot tell whether somebody still saves into it


class BeingSaved(OSError):
    """Another program has the file open for writing; it was left in its place."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(errno.ETXTBSY, "another program is saving it", os.fspath(path))


@dataclass(frozen=True, slots=True)
class Aside:
    """What lay in the place of a file that was written, under a hidden name beside it until it is dropped.

    The name holds a hash of what is known of it already; where the content differs, a person saved it and nobody has
    taken that in.

    closed   whether nobody can save into it any more; None: the kernel cannot tell
    """

    path: Path
    content: bytes
    closed: bool | None

    def drop(self) -> None:
        """Forget it: its content is in the journal. Where it may still be saved into, a later write looks again."""
        if self.closed:
            self.path.unlink(missing_ok=True)
        else:
            beside, _, _ = self.path.name.rsplit("-", 2)
            self.path.rename(self.path.with_name(f"{beside}-{_hidden(self.content)}"))

    def keep(self, path: Path) -> None:
        """Give it a name that is seen, durably."""
        self.path.rename(path)
        sync_folder(path.parent)


class _Durable(AtomicWriter):  # type: ignore[misc]  # the library carries no types
    """Temporary file, fsync (the library's part), rename, fsync of the folder."""

    def get_fileobject(self, **_: Any) -> IO[bytes]:
        """Made and opened in one call, without a buffer; the library does it in two and reopens by name."""
        return open(
            f"{_beside(self._path)}-{os.urandom(6).hex()}{TEMPORARY_SUFFIX}", "xb", buffering=0, opener=_private
        )

    def commit(self, f: IO[bytes]) -> None:
        os.rename(f.name, self._path)  # noqa: PTH104
        sync_folder(os.path.dirname(self._path))  # noqa: PTH120  # else the name may be the old file's after a power loss


class _Exchanging(_Durable):
    """Exchanges the new file with the old one instead, so that what was displaced can be looked at."""

    displaced: Aside | None = None

    def __init__(self, path: Path, content: bytes, expected: bytes) -> None:
        super().__init__(path, mode="wb", overwrite=True)
        self._content = content
        self._expected = expected

    def commit(self, f: IO[bytes]) -> None:
        # From here on the file is whole, and soon it may be a person's: it takes a name that no sweep removes unseen.
        aside = f"{_beside(self._path)}-{_hidden(self._expected)}"
        os.rename(f.name, aside)  # noqa: PTH104
        try:
            exchanged = _put(aside, self._path)
        except OSError:
            with suppress(OSError):
                os.unlink(aside)  # noqa: PTH108
            raise
        sync_folder(os.path.dirname(self._path))  # noqa: PTH120
        if exchanged:
            self.displaced = self._looked_at(Path(aside))

    def _looked_at(self, aside: Path) -> Aside | None:
        """What was displaced; BeingSaved, and all in its old place again, where somebody has it open for writing.

        Such a save would go into a file that nobody sees any more. Looking after the fsync gives whoever had found the
        file, but not opened it yet, the time to do so.
        """
        if aside.is_symlink():
            aside.unlink()  # what it names stays where it is
            return None
        found = leases.read(aside)
        if found.closed is not False:
            return Aside(aside, found.content, found.closed)
        if _renamed(os.fspath(aside), self._path, _RENAME_EXCHANGE) == 0:
            ours = leases.read(aside)
            if ours.closed and ours.content == self._content:
                aside.unlink()  # else somebody saved into that one, too: whoever sweeps takes it in
        raise BeingSaved(self._path)


def write(path: Path, content: bytes) -> None:
    """Write a file durably: temporary file in the same folder, fsync, rename, fsync of the folder.

    OSError as it comes; the old file is then untouched and the temporary one gone.
    """
    _fill(_Durable(path, mode="wb", overwrite=True), content)


def add(path: Path, content: bytes) -> None:
    """Add a few bytes to a file, made where there is none, durably. OSError also where no file lies there, or one that
    has another name, too, under which it may be anybody's.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with naming(path), os.fdopen(os.open(path, flags, 0o600), "ab", buffering=0) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise OSError(errno.EINVAL, "is no regular file, or has a second name", os.fspath(path))
        file.write(content)
        os.fsync(file.fileno())
    sync_folder(path.parent)


def exchange(path: Path, content: bytes, expected: bytes) -> Aside | None:
    """Write a file that a person may be saving: as `write`, but what is displaced is handed back, for `drop`.

    expected  what is known to lie there; it is remembered in the name of what is set aside

    None where there was no file, or the kernel cannot exchange. BeingSaved where another program has the file open for
    writing; OSError as it comes. The file is then the old one, or both files are there.
    """
    writer = _Exchanging(path, content, expected)
    _fill(writer, content)
    return writer.displaced


def _fill(writer: _Durable, content: bytes) -> None:
    with naming(Path(writer._path)), writer.open() as file:
        rest = memoryview(content)
        while rest:  # the last bytes before a disk is full are taken, then it says so
            rest = rest[file.write(rest) :]


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError of the block that names no file (a write to a full disk) the name of this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


def sync_folder(folder: str | Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(path: Path) -> list[Aside]:
    """Remove what dead writers of `path` left, and return what a person saved that none of them could take in.

    Only for who holds the lock that all writers of `path` take: then no owner of what is found can be alive.
    """
    ours = re.compile(
        re.escape(TEMPORARY_PREFIX + path.name)
        + rf"-(?:([0-9a-f]{{12}})-)?[0-9a-f]{{12}}(?:{re.escape(TEMPORARY_SUFFIX)}|{re.escape(ASIDE_SUFFIX)})"
    )
    unseen = []
    with suppress(FileNotFoundError), os.scandir(path.parent) as entries:
        found = [(entry.path, match) for entry in entries if (match := ours.fullmatch(entry.name))]
        for name, match in found:
            if name.endswith(TEMPORARY_SUFFIX) or os.path.islink(name):  # noqa: PTH114
                with suppress(FileNotFoundError):
                    os.unlink(name)  # noqa: PTH108
            elif (aside := _unseen(Path(name), match[1])) is not None:
                unseen.append(aside)
    return unseen


def _unseen(path: Path, known: str | None) -> Aside | None:
    """What was set aside, if nobody has looked at what it is now; what somebody has open is left for later."""
    found = leases.read(path)
    if found.closed is False:
        return None
    if _hash(found.content) != known:
        return Aside(path, found.content, found.closed)
    if found.closed or time.time() - path.stat().st_ctime > _KEPT:
        path.unlink()
    return None


def _put(source: str, target: str) -> bool:
    """Give a file its name; True when it was exchanged with the one that had it.

    Never replaces what nobody has looked at, but where the kernel or file system knows no other way.
    """
    while True:
        code = _renamed(source, target, _RENAME_EXCHANGE)
        if code == 0:
            return True
        if code == errno.ENOENT:  # an editor may make the file at this moment
            code = _renamed(source, target, _RENAME_NOREPLACE)
            if code == 0:
                return False
            if code == errno.EEXIST:
                continue
        if code in (errno.ENOSYS, errno.EINVAL):
            os.rename(source, target)  # noqa: PTH104
            return False
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code), target)


def _renamed(source: str, target: str, flags: int) -> int:
    """Rename as the flags say; the error's number, 0 for none."""
    renameat2 = _renameat2()
    if renameat2 is None:
        return errno.ENOSYS
    if renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
        return 0
    return ctypes.get_errno()


@cache
def _renameat2() -> Any:
    """The C library's function, None where it has none; looking it up costs more than calling it."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _beside(path: str) -> str:
    """How the hidden names beside a file begin."""
    return os.path.join(os.path.dirname(path), TEMPORARY_PREFIX + os.path.basename(path))  # noqa: PTH118, PTH119, PTH120


def _hidden(known: bytes) -> str:
    """How the name of what is set aside ends: with what is known to be in it."""
    return f"{_hash(known)}-{os.urandom(6).hex()}{ASIDE_SUFFIX}"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _private(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW, 0o600)
