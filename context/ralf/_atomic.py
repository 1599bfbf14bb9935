"""The durable write of one file: whole or not at all, and a file that somebody changed meanwhile is handed back.

The only module that imports atomicwrites.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from atomicwrites import AtomicWriter

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
TEMPORARY_PREFIX = ".ralf-"
TEMPORARY_SUFFIX = ".tmp"


class _Exchanger(AtomicWriter):  # type: ignore[misc]  # the library carries no types
    """Puts the new file in place by exchanging it with the old one, so that what was displaced can be looked at."""

    displaced: bytes | None = None

    def get_fileobject(self, **_: Any) -> IO[bytes]:
        """Made and opened in one call, without a buffer; the library does it in two and reopens by name."""
        name = f"{TEMPORARY_PREFIX}{os.path.basename(self._path)}-{os.urandom(6).hex()}{TEMPORARY_SUFFIX}"  # noqa: PTH119
        path = os.path.join(os.path.dirname(self._path), name)  # noqa: PTH118, PTH120
        return open(path, "xb", buffering=0, opener=_private)

    def commit(self, f: IO[bytes]) -> None:
        if _exchange(f.name, os.fspath(self._path)):
            self.displaced = _content(f.name)
            os.unlink(f.name)  # noqa: PTH108
        else:
            os.rename(f.name, self._path)  # noqa: PTH104
        sync_folder(os.path.dirname(self._path))  # noqa: PTH120


def write(path: Path, content: bytes) -> bytes | None:
    """Write `content` to `path` durably: temporary file in the same folder, fsync, exchange, fsync of the folder.

    Returns the bytes that were displaced, None where there was no file or the kernel cannot exchange. OSError as it
    comes; the old file is then untouched and the temporary one gone.
    """
    writer = _Exchanger(path, mode="wb", overwrite=True)
    with naming(path), writer.open() as file:
        rest = memoryview(content)
        while rest:  # the last bytes before a disk is full are taken, then it says so
            rest = rest[file.write(rest) :]
    return writer.displaced


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


def sweep(path: Path) -> int:
    """Remove what dead writers of `path` left; only for who holds the lock that all its writers take."""
    ours = re.compile(rf"{re.escape(TEMPORARY_PREFIX + path.name)}-[0-9a-f]{{12}}{re.escape(TEMPORARY_SUFFIX)}")
    swept = 0
    with suppress(FileNotFoundError), os.scandir(path.parent) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name):
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)  # noqa: PTH108
                    swept += 1
    return swept


def _exchange(one: str, other: str) -> bool:
    """Exchange two names atomically; False where `other` does not exist or the kernel or file system cannot."""
    renameat2 = _renameat2()
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOENT, errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(code, os.strerror(code), other)


@cache
def _renameat2() -> Any:
    """The C library's function, None where it has none; looking it up costs more than calling it."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def _private(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW, 0o600)


def _content(name: str) -> bytes:
    with open(name, "rb", buffering=0) as file:  # noqa: PTH123
        return file.readall()
