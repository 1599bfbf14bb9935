"""Safe access to files that anybody may have put there, and folders for this user only."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ralf.errors import UsageError

Renaming = Callable[[Path, Path], object]

# ---- opening a file that anybody may have put there ----

CAREFUL = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags for opening a path where anyone may have put a link, or a pipe, which would wait for its other end."""


def without_waiting(path: str, flags: int) -> int:
    """An `opener` for `open` that does not hang on a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def open_single_link(path: str, flags: int) -> int:
    """An `opener` for `open` that takes nothing but a regular file, and to write only one with a single name: another
    one may belong to someone else. The check comes before O_TRUNC empties the file.
    """
    return opened(path, flags)[0]


NOT_REGULAR = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EINVAL)
"""Error numbers of anything but a regular file."""


def opened(path: str | Path, flags: int = os.O_RDONLY, *, follow: bool = False) -> tuple[int, os.stat_result]:
    """A descriptor of a regular file, and what it is now; see `open_single_link`."""
    try:
        descriptor = os.open(path, flags & ~os.O_TRUNC | CAREFUL & ~(os.O_NOFOLLOW if follow else 0), 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow and os.path.islink(path):  # noqa: PTH114
            error.strerror = "is a symbolic link: not followed"
        raise
    try:
        found = os.fstat(descriptor)
        _check(found, flags, os.fspath(path))
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found


def _check(found: os.stat_result, flags: int, path: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", path)
    if found.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR):
        raise OSError(errno.EMLINK, "has a second name", path)


def touch(path: Path) -> None:
    """Make an empty file where there is none. OSError as `open_single_link`: then nothing was changed."""
    os.close(open_single_link(os.fspath(path), os.O_WRONLY | os.O_CREAT))


MAX_BYTES = 256 << 20
"""The largest file that `content_of` reads."""


def open_regular(path: str | Path, *, follow: bool = False, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading; OSError for a pipe, a device, a folder, and for a link unless `follow`."""
    return os.fdopen(opened(path, follow=follow)[0], "rb", buffering)


def content_of(path: Path, *, follow: bool = False, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file; OSError as for `open_regular`, and for more than `most` bytes."""
    descriptor, found = opened(path, follow=follow)
    try:
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"has more than {most:,} bytes", str(path))
        content = b""
        while len(content) < found.st_size and (more := os.read(descriptor, found.st_size - len(content))):
            content += more
        return content
    finally:
        os.close(descriptor)


def replace_undurably(
    path: Path, content: bytes, temporary: Path, *, time_ns: int | None = None, rename: Renaming = os.replace
) -> None:
    """Replace a file that can be made anew: whole or not at all, but without fsync. OSError.

    temporary  a name in the same folder that no other writer of the file uses at the time, and that is free afterwards
    time_ns    the time that the new file is to have; None: now
    """
    make(path.parent)
    try:
        temporary.unlink(missing_ok=True)
        with open(temporary, "xb", opener=open_single_link) as file:
            file.write(content)
        if time_ns is not None:
            os.utime(temporary, ns=(time_ns, time_ns))
        rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


# ---- folders for this user only ----

PRIVATE = 0o700
"""The mode of a folder of the store."""

NOT_WRITABLE_BY_OTHERS = 0o755
"""The mode of a folder outside of the store, which other programs of this machine may have to read; the umask may take
more away.
"""


def make(folder: Path, *, mode: int = PRIVATE) -> None:
    """Make a folder and its missing parents with this mode, whatever the umask. An existing folder keeps its mode.

    OSError, even if something other than a folder is there.
    """
    if folder.is_dir():
        return
    try:
        os.mkdir(folder, mode)  # noqa: PTH102  # `Path.mkdir` gives the parents the mode of the umask
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make(folder.parent, mode=mode)
        with suppress(FileExistsError):  # another process makes it, too
            os.mkdir(folder, mode)  # noqa: PTH102
    except FileExistsError:
        if not folder.is_dir():
            raise


def tighten(folder: Path) -> None:
    """Remove other users' rights to a folder of this user; leave anything else as it is. OSError."""
    found = os.lstat(folder)
    if not (stat.S_ISDIR(found.st_mode) and found.st_mode & 0o077 and found.st_uid == os.geteuid()):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, PRIVATE)
    finally:
        os.close(descriptor)


# ---- file systems that the store is refused on: their locks and renames cannot be trusted ----

# The numbers of statfs(2), and of FUSE, behind which sshfs, s3fs, gcsfuse and the shared folders of many machines lie.
REFUSED = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB2",
    0x01021997: "9p",
    0x65735546: "FUSE",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x73757245: "Coda",
    0x00C36400: "Ceph",
    0x47504653: "GPFS",
    0x0BD00BD0: "Lustre",
    0x19830326: "BeeGFS",
    0x786F4256: "vboxsf",
}

_HINT = "keep the project on a local disk, or name a folder on one: RALF_PROJECT_DIR=DIR"


@cache
def check(folder: Path) -> None:
    """UsageError if a folder, or its nearest existing parent, is on a network or FUSE file system.

    Checked once per folder and process. If the system cannot tell, nothing is refused.
    """
    kind = kind_of(folder)
    if kind in REFUSED:
        what = f"lies on {REFUSED[kind]}, where neither locks nor renames can be trusted: not written to; reading works"
        raise UsageError(folder, what, _HINT)


def kind_of(folder: Path) -> int:
    """The statfs(2) type of the file system that a folder is, or will be, on; 0 if the system does not tell."""
    if sys.platform != "linux":
        return 0
    import ctypes  # loaded only by writers

    there = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
    found = (ctypes.c_long * 32)()  # a `struct statfs`, which begins with the type; no architecture has more
    statfs = getattr(ctypes.CDLL(None, use_errno=True), "statfs", None)
    if statfs is None or statfs(os.fsencode(there), ctypes.byref(found)) != 0:
        return 0
    return int(found[0]) & 0xFFFFFFFF


# ---- read leases: whether another program has a file open for writing ----
#
# Linux grants a read lease only on a file that no one has open for writing, and holds back whoever would open it until
# the lease is released. So what is read under one is no half of a save, and no writer can still hold an unlinked file
# open.

_PAUSE = 0.001

_QUIET, _QUIET_CUT = 0.03, 2.0
"""Seconds without a change after which a file counts as saved if the kernel cannot tell; the second is for a file that
lacks its end, as an editor may pause in the middle of a save.
"""


class Version(NamedTuple):
    """When a file was written last, and its size: a save changes them."""

    mtime: int  # nanoseconds, none below zero
    size: int  # bytes


class Read(NamedTuple):
    """A file's bytes, whether no one was writing them (None if the kernel or file system cannot tell), their version,
    and whether the end of a whole file is missing.
    """

    content: bytes
    closed: bool | None
    version: Version
    is_cut: bool = False

    @property
    def may_be_half(self) -> bool:
        """Whether a program is writing it, or may be: if the kernel cannot tell, whether it has just changed."""
        if self.closed is None:
            return abs(time.time() - self.version.mtime / 1e9) < (_QUIET_CUT if self.is_cut else _QUIET)
        return not self.closed


def read(path: str | Path, most: int = sys.maxsize, end: bytes = b"") -> Read:
    """The file as it is now, `most` bytes at most. OSError as it comes, including for anything but a regular file; a
    link is ELOOP.

    end  the end of a whole file
    """
    descriptor = os.open(path, os.O_RDONLY | CAREFUL)
    try:
        closed = _lease(descriptor)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is no regular file", os.fspath(path))
        content = _content(descriptor, most)
        if closed and fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK:
            closed = False  # someone waits to write
        return Read(content, closed, version_of(found), end not in content)
    finally:
        os.close(descriptor)


def settled(path: Path, patience: float, most: int = sys.maxsize, end: bytes = b"") -> bytes | None:
    """The file's bytes, `most` at most, once no program is writing them; None if that takes longer than `patience`
    seconds. OSError as `read`.
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
    """Take a read lease, released with the descriptor; False if a program has the file open for writing."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    from signal import SIGURG  # ignored by default; loaded only to read a route file

    try:
        # Whoever opens the file meanwhile has a signal sent to us, SIGIO by default, which would end the process.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, int(SIGURG))
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return False
    except OSError:
        return None  # another user's file, or a file system without leases
    return True
