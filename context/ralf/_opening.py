"""Opening a file that anybody may have put there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def without_waiting(path: str, flags: int) -> int:
    """An `opener` for `open`: a pipe in the place of a file does not hang whoever reads it."""
    return os.open(path, flags | os.O_NONBLOCK)


MAX_BYTES = 256 << 20
"""More of a file that is read whole is never read."""


def content_of(path: Path, *, follow: bool = False, most: int = MAX_BYTES) -> bytes:
    """The bytes of a file; OSError for anything else in its place: a pipe, a device, more than `most` bytes, and a link
    unless `follow`.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "is no regular file", str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"has more than {most:,} bytes", str(path))
    return content
