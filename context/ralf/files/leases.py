"""Whether another program has a file open for writing: asked of the kernel, with a read lease.

Linux grants a read lease only on a file that nobody has open for writing, and holds back whoever would open it until
the lease is given back. So what is read under one is no half of a save, and nothing can be saved into a file that has
no name any more.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
import time
from pathlib import Path
from typing import NamedTuple

_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_PAUSE = 0.001
_QUIET, _QUIET_CUT = 0.03, 2.0
"""Seconds without a change after which a file counts as saved where the kernel does not tell, also one without its end:
an editor may pause in the middle of a save.
"""


class Version(NamedTuple):
    """When a file was written last, and its size: a save changes them."""

    mtime: int  # nanoseconds, none below zero
    size: int  # bytes


class Read(NamedTuple):
    """A file's bytes, whether nobody was writing them (None where the kernel or file system cannot tell), which version
    of the file they are, and whether they lack what a whole file has.
    """

    content: bytes
    closed: bool | None
    version: Version
    is_cut: bool = False

    @property
    def may_be_half(self) -> bool:
        """Whether somebody writes it at this moment, or may: where nobody can tell, whether it has just changed."""
        if self.closed is None:
            return abs(time.time() - self.version.mtime / 1e9) < (_QUIET_CUT if self.is_cut else _QUIET)
        return not self.closed


def read(path: str | Path, most: int = sys.maxsize, end: bytes = b"") -> Read:
    """The file as it is now, so many bytes at most. OSError as it comes, also where no regular file is there, or only a
    link (ELOOP).

    end  what a whole file has at its end
    """
    descriptor = os.open(path, _READING)
    try:
        closed = _lease(descriptor)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file", os.fspath(path))
        content = _content(descriptor, most)
        if closed and fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK:
            closed = False  # somebody waits to write
        return Read(content, closed, version_of(found), end not in content)
    finally:
        os.close(descriptor)


def settled(path: Path, patience: float, most: int = sys.maxsize, end: bytes = b"") -> bytes | None:
    """The file's bytes, `most` at most, once nobody writes them; None when that takes longer than `patience` seconds.
    OSError as `read`.
    """
    deadline = time.monotonic() + patience
    while (found := read(path, most, end)).may_be_half:
        if time.monotonic() > deadline:
            return None
        time.sleep(_PAUSE)
    return found.content


def version_of(found: os.stat_result) -> Version:
    """The version of a file that has been looked at."""
    return Version(found.st_mtime_ns % (1 << 64), found.st_size)


def _content(descriptor: int, most: int) -> bytes:
    """What an open file holds now, `most` bytes at most."""
    size = min(os.lseek(descriptor, 0, os.SEEK_END), most)
    content = os.pread(descriptor, size, 0)
    while len(content) < size and (more := os.pread(descriptor, size - len(content), len(content))):
        content += more
    return content


def _lease(descriptor: int) -> bool | None:
    """Take a read lease, which goes with the descriptor; False when somebody has the file open for writing."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    from signal import SIGURG  # ignored by default; only who looks at a route file pays for the module

    try:
        # Whoever opens the file meanwhile has a signal sent to us, SIGIO by default, which would end the process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, int(SIGURG))
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return False
    except OSError:
        return None  # another user's file, or a file system without leases
    return True
