"""Durable changes of files: one is replaced whole or not at all, moved, or removed for good."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from ralf.storage import files
from ralf.text.patterns import regex

TEMPORARY_PREFIX, TEMPORARY_SUFFIX = ".ralf-", ".tmp"

_TEMPORARY = regex(rf"{re.escape(TEMPORARY_PREFIX)}(?P<of>.+)-[0-9a-f]{{12}}{re.escape(TEMPORARY_SUFFIX)}")

_DEAD = 60.0  # seconds after which nobody is still writing a temporary file

_MODE = 0o600

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# ---- a file whole or not at all ----


def write(path: Path, content: bytes, *, mode: int = _MODE, is_synced: bool = True) -> None:
    """Make some bytes the content of a file, and remove what dead writers of it left. Errors: `replace_durably`.

    is_synced  False for a file that can be made anew after a loss of power
    """
    replace_durably(path, [content], mode=mode, is_synced=is_synced)
    with suppress(OSError):
        for left in temporaries_of(path):
            if time.time() - left.lstat().st_ctime > _DEAD:
                left.unlink()


def replace_durably(path: Path, chunks: Iterable[bytes], *, mode: int = _MODE, is_synced: bool = True) -> None:
    """Make `chunks` the content of `path`, whose folder exists: a file with one name, in place of whatever lay there.

    OSError, which names the file: then it is as it was, and nothing is left beside it.
    """
    with naming(path):
        temporary = made_beside(path, chunks, mode=mode, is_synced=is_synced)
        try:
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if is_synced:
            sync_folder(path.parent)  # else the name may be the old file's after a power loss


def made_beside(
    path: Path, chunks: Iterable[bytes], *, mode: int = _MODE, alike: bool = False, is_synced: bool = True
) -> Path:
    """A durable new file in the folder of `path`, under a name that tells whose temporary file it is.

    alike  whether it has the rights of the file that is there (`give_rights`)
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{path.name}-{os.urandom(6).hex()}{TEMPORARY_SUFFIX}")
    descriptor = os.open(temporary, _NEW, _MODE)
    try:
        try:
            for chunk in chunks:
                fill(descriptor, chunk)
            if alike:
                give_rights(descriptor, path, mode)
            else:
                os.fchmod(descriptor, mode)
            if is_synced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return temporary


def give_rights(descriptor: int, path: Path, mode: int) -> None:
    """Give a new version of a file the mode that a person gave it, but for everybody's right to write, and the owner of
    the old one, as root can.

    mode  where there is no old one
    """
    with suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode):
            mode = _MODE | (found.st_mode & 0o664)
            if (found.st_uid or found.st_gid) and os.geteuid() == 0:
                os.fchown(descriptor, found.st_uid, found.st_gid)
    if mode != _MODE:
        os.fchmod(descriptor, mode)


def fill(descriptor: int, content: bytes) -> None:
    """Write all of some bytes: the last ones before a disk is full are taken, then it says so."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def add(path: Path, content: bytes) -> None:
    """Append a few bytes to a file durably; it is made if missing. OSError as it comes, including for anything but a
    regular file with one name.
    """
    with naming(path):
        descriptor = files.open_single_link(os.fspath(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            fill(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(path.parent)


def is_temporary(name: str) -> bool:
    """Whether this is the name of a temporary file, which is not yet renamed or never will be."""
    return _TEMPORARY.fullmatch(name) is not None


def temporaries_in(folder: Path) -> list[Path]:
    """The temporary files in a folder."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(folder / name for name in os.listdir(folder) if is_temporary(name))  # names alone
    return []


def temporaries_of(*paths: Path) -> list[Path]:
    """The temporary files of files of one folder."""
    names = {path.name for path in paths}
    found = ((path, _TEMPORARY.fullmatch(path.name)) for path in temporaries_in(paths[0].parent))
    return [path for path, match in found if match and match["of"] in names]


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name this file in an OSError of the block that names none, such as a write to a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


# ---- names ----


def sync_content(descriptor: int) -> None:
    """Have a file's bytes and its length on the disk. Its times may come later: a tenth of the wait is for them."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def sync_folder(folder: str | Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, _FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_parents(folder: Path, top: Path) -> None:
    """Make a new file's name durable, and the names of the folders that were made for it."""
    sync_folder(folder)
    while folder != top and top in folder.parents:
        folder = folder.parent
        sync_folder(folder)


def sync_below(folder: Path) -> None:
    """Make the names in a folder and in all below it durable, and removals by a process that died before its sync."""
    for top, _, _ in os.walk(folder):
        with suppress(FileNotFoundError):
            sync_folder(top)


def removed(paths: Iterable[Path]) -> None:
    """Remove files durably: none of them is back after a power loss. Missing ones are skipped."""
    folders = set()
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
            folders.add(path.parent)
    for folder in sorted(folders):
        with suppress(FileNotFoundError):
            sync_folder(folder)


_AT_FDCWD = -100

_NOREPLACE, _EXCHANGE = 1, 2

_UNKNOWN = (errno.ENOSYS, errno.EINVAL)  # of a way to rename

_MOST_TRIES = 8


def rename_free(source: Path, target: Path) -> None:
    """Give a file another name. FileExistsError where that is taken, if the system can tell; OSError."""
    code = _renamed(source, target, _NOREPLACE)
    if code in _UNKNOWN:
        try:
            os.link(source, target)
            os.unlink(source)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            os.rename(source, target)
    elif code:
        raise OSError(code, os.strerror(code), os.fspath(target))


def swap(new: Path, target: Path, aside: Path) -> None:
    """Exchange the names of two files; `new` is gone where there was no `target`. What lay there is never without a
    name: where two names cannot be exchanged, as on macOS, it has that of `aside` for a moment. OSError.
    """
    for _ in range(_MOST_TRIES):
        code = _renamed(new, target, _EXCHANGE)
        if code == 0:
            return
        if code in _UNKNOWN:
            aside.unlink(missing_ok=True)
            try:
                os.link(target, aside)
            except FileNotFoundError:
                os.rename(new, target)
                return
            os.rename(new, target)
            os.rename(aside, new)
            return
        if code != errno.ENOENT:
            raise OSError(code, os.strerror(code), os.fspath(target))
        try:  # nothing lies there, unless an editor makes it at this moment
            os.link(new, target)
        except FileExistsError:
            continue
        os.unlink(new)
        return
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), os.fspath(target))


def _renamed(source: Path, target: Path, flags: int) -> int:
    """Rename as the flags say; the error's number, 0 for none."""
    renameat2 = _renameat2()
    if renameat2 is None:
        return errno.ENOSYS
    if renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
        return 0
    import ctypes

    return ctypes.get_errno()


@cache
def _renameat2() -> Any:
    """The C library's function, None where it has none; looking it up costs more than calling it."""
    import ctypes  # loaded only by writers

    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
