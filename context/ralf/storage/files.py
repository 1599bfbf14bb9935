"""Safe access to files that anybody may have put there, and folders for this user only."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from ralf.errors import UsageError

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


# ---- a file that somebody may be saving at this moment ----

_QUIET, _QUIET_CUT = 0.03, 2.0
"""Seconds without a change after which a file counts as saved; the second is for a file that lacks its end, as an
editor may pause in the middle of a save.
"""


def settled(path: Path, patience: float, end: bytes) -> bytes | None:
    """The file's bytes once it has not been changed for a moment; None if that takes longer than `patience` seconds.
    OSError as `content_of`.

    end  stands in a whole file
    """
    deadline = time.monotonic() + patience
    while True:
        changed, content = path.stat().st_mtime, content_of(path)
        if abs(time.time() - changed) >= (_QUIET if end in content else _QUIET_CUT):
            return content
        if time.monotonic() > deadline:
            return None
        time.sleep(_QUIET / 10)
