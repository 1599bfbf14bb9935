"""The durable write of one file: whole or not at all, and a file that somebody changed meanwhile is handed back.

The only module that imports atomicwrites.
"""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import suppress
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

    def get_fileobject(self, **kwargs: Any) -> IO[bytes]:
        return super().get_fileobject(  # type: ignore[no-any-return]
            suffix=TEMPORARY_SUFFIX, prefix=TEMPORARY_PREFIX, **kwargs
        )

    def commit(self, f: IO[bytes]) -> None:
        if _exchange(f.name, os.fspath(self._path)):
            self.displaced = Path(f.name).read_bytes()
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
    with writer.open() as file:
        file.write(content)
    return writer.displaced


def sync_folder(folder: str | Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path) -> int:
    """Remove the temporary files that dead writers left; only for who holds the lock that all writers there take."""
    swept = 0
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY_PREFIX) and entry.name.endswith(TEMPORARY_SUFFIX):
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)  # noqa: PTH108
                    swept += 1
    return swept


def _exchange(one: str, other: str) -> bool:
    """Exchange two names atomically; False where `other` does not exist or the kernel or file system cannot."""
    renameat2 = getattr(_libc(), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOENT, errno.ENOSYS, errno.EINVAL):
        return False
    raise OSError(code, os.strerror(code), other)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
