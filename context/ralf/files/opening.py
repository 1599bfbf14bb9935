"""Opening a file that anybody may have put there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def without_waiting(path: str, flags: int) -> int:
    """An `opener` for `open`: a pipe in the place of a file does not hang whoever reads it."""
    return os.open(path, flags | os.O_NONBLOCK)


def ours_alone(path: str, flags: int) -> int:
    """An `opener` for `open`: as `without_waiting`, and OSError for a link and for a file that has a second name, which
    may be somebody's outside. A file that is to be emptied is looked at first.
    """
    careful = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags & ~os.O_TRUNC | careful, 0o600)
    try:
        _check_single(descriptor, path)
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_single(descriptor: int, path: str) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise OSError(errno.EMLINK, "is no regular file, or has a second name", path)


def make_private(path: Path) -> None:
    """Take the rights of others from a file. OSError as `ours_alone`: then nothing was changed."""
    descriptor = ours_alone(os.fspath(path), os.O_RDONLY)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def touch(path: Path) -> None:
    """Make an empty file where there is none. OSError as `ours_alone`: then nothing was changed."""
    os.close(ours_alone(os.fspath(path), os.O_WRONLY | os.O_CREAT))


def not_through_a_link(path: str, flags: int) -> int:
    """An `opener` for `open`: as `without_waiting`, and OSError for a link."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


MAX_BYTES = 256 << 20
"""More of a file that is read whole is never read."""


def content_of(path: Path, *, follow: bool = False, most: int = MAX_BYTES) -> bytes:
    """The bytes of a file; OSError for anything else in its place: a pipe, a device, more than `most` bytes, and a link
    unless `follow`.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow and path.is_symlink():
            raise OSError(errno.ELOOP, "is a symbolic link: not followed", str(path)) from None
        raise
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):  # Python would name the descriptor, not the path
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file", str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"has more than {most:,} bytes", str(path))
        return file.read(found.st_size)  # not `most`: room for all that is asked for is made beforehand
