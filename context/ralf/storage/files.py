"""Safe access to files that anybody may have put there, folders for this user only, and kernel locks."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import sys
import time
from _thread import RLock
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ralf.errors import Busy, UsageError

Renaming = Callable[[Path, Path], object]

# ---- opening a file that anybody may have put there ----

CAREFUL = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags for opening a path where anyone may have put a link, or a pipe, which would wait for its other end."""


def without_waiting(path: str, flags: int) -> int:
    """An `opener` for `open` that does not hang on a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def open_single_link(path: str, flags: int) -> int:
    """An `opener` for `open`: as `without_waiting`, but OSError for a link and for a file with a second name, which may
    belong to someone else. The check comes before O_TRUNC empties the file.
    """
    descriptor = os.open(path, flags & ~os.O_TRUNC | CAREFUL, 0o600)
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


def touch(path: Path) -> None:
    """Make an empty file where there is none. OSError as `open_single_link`: then nothing was changed."""
    os.close(open_single_link(os.fspath(path), os.O_WRONLY | os.O_CREAT))


NOT_REGULAR = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EINVAL)
"""Error numbers that `open_regular` raises for anything but a regular file."""

MAX_BYTES = 256 << 20
"""The largest file that `content_of` reads."""


def open_regular(path: str | Path, *, follow: bool = False, buffering: int = -1) -> BinaryIO:
    """Open a regular file for reading; OSError for a pipe, a device, a folder, and for a link unless `follow`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | CAREFUL & ~(os.O_NOFOLLOW if follow else 0))
    except OSError as error:
        if error.errno == errno.ELOOP and not follow and Path(path).is_symlink():
            raise OSError(errno.ELOOP, "is a symbolic link: not followed", os.fspath(path)) from None
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb", buffering)
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "is no regular file", os.fspath(path))


def content_of(path: Path, *, follow: bool = False, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file; OSError as for `open_regular`, and for more than `most` bytes."""
    with open_regular(path, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"has more than {most:,} bytes", str(path))
        return file.read(size)  # not `most`: room for all that is asked for is made beforehand


_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE


def reserve(descriptor: int, start: int, length: int) -> None:
    """Reserve room on the disk from a place of an open file on, whose size stays. Nothing where that cannot be done."""
    if sys.platform != "linux":
        return
    import ctypes  # loaded only by writers

    reserving = getattr(ctypes.CDLL(None), "fallocate64", None)
    if reserving is not None:
        reserving(descriptor, _KEEP_SIZE, ctypes.c_int64(start), ctypes.c_int64(length))


def sync_data(descriptor: int) -> None:
    """Make a file's bytes and its size durable; its times may be older ones after a loss of power."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


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


# ---- kernel locks on side files: they go with their owner, whatever kills it, and no fork keeps one ----
#
# Those who wait for a lock may have turns. `flock` alone gives none: a process that releases a lock and asks again,
# still running, has it before those who sleep are awake; on a busy machine the same one goes first for seconds.

LOCK_TIMEOUT = 30.0

_POLL = 0.005  # seconds between two looks of who can only look

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW

_MOST_PLACES = 1 << 62  # places in a queue: the kernel counts no further than twice as many

_RANGE = struct.Struct("@hhqqi0q")  # Linux's struct flock: kind, whence, first byte, how many (0: all), process

_forking = RLock()  # held while a lock file is opened or closed, and by who forks

_opened: set[LockFile] = set()


class LockFile:
    """An open lock file (made if missing) of this process alone: it is closed in a fork."""

    def __init__(self, path: Path) -> None:
        with _forking:
            self._descriptor = os.open(path, _LOCK_FLAGS, 0o600)
            _opened.add(self)

    def is_free(self) -> bool:
        """Take the lock if no one holds it; whether it was taken."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def take(self, *, shared: bool = False) -> None:
        """Wait until the lock is taken, for as long as it takes."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)

    def close(self) -> None:
        """Release the lock, even if a process that was forked in another way has the file open, too."""
        with _forking:
            if self in _opened:
                try:
                    self._unlock()
                finally:
                    self.drop()

    def _unlock(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def drop(self) -> None:
        """Close the file only. In a fork that releases nothing: the lock belongs to the parent."""
        _opened.discard(self)
        os.close(self._descriptor)


class _Turn(LockFile):
    """A turn among those who wait for a lock: a locked byte of its queue, behind the last one that is locked.

    Whoever comes waits for the one before, so one is woken at a time, and no one passes. The bytes go with their
    owners, as the lock itself does, and need no clock, which others may have set otherwise. OSError where the system or
    the file system has no such locks.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(_queue_of(path))
        try:
            last = _last_place(self._descriptor)
            self._place = 0 if last is None else last + 1
            while not self._is_taken():  # by someone who came at the same time
                self._place += 1
        except OSError:
            self.close()
            raise

    def wait(self) -> None:
        """Wait until no one is before us."""
        with suppress(OSError):  # it is for order only: what keeps two from writing is the lock
            while (before := self._before()) is not None:
                _range(self._descriptor, fcntl.F_RDLCK, before, wait=True)
                _range(self._descriptor, fcntl.F_UNLCK, before)

    def has_come(self) -> bool:
        """Whether no one is before us."""
        with suppress(OSError):
            return self._before() is None
        return True

    def leave(self) -> None:
        """Let later waiters pass; called by another thread than the waiting one."""
        with _forking:
            if self in _opened:
                self._unlock()

    def _before(self) -> int | None:
        """The place of who is right before us. Who was killed, or has given up, has none."""
        return _last_place(self._descriptor, self._place) if self._place else None

    def _is_taken(self) -> bool:
        try:
            _range(self._descriptor, fcntl.F_WRLCK, self._place)
        except BlockingIOError:
            return False
        return True

    def _unlock(self) -> None:
        _range(self._descriptor, fcntl.F_UNLCK, 0, 0)


@contextmanager
def locked(path: Path, what: str, timeout: float = LOCK_TIMEOUT, *, seen: bool = False) -> Iterator[None]:
    """Hold the lock file `path` (made if missing, never deleted) for a block.

    what      the route or stream, for the message
    timeout   seconds; Busy if another process holds it all that time
    seen      whether waiters take turns, and the holder can see them by `is_lock_awaited`
    """
    try:
        lock = LockFile(path)
    except FileNotFoundError:
        make(path.parent)
        lock = LockFile(path)
    if not _came(lock, path, timeout, seen):
        raise Busy(what, f"locked by another process for {timeout:g} s", "try again")
    try:
        yield
    finally:
        lock.close()


def is_lock_awaited(path: Path) -> bool:
    """Whether a process waits for the lock `path` with `seen`; for its holder, or the next to ask for it."""
    try:
        descriptor = os.open(_queue_of(path), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False  # no one ever has, or no one can
    try:
        return _first_place(descriptor, 0) is not None
    except OSError:
        return False  # no turns here
    finally:
        os.close(descriptor)


def _came(lock: LockFile, path: Path, timeout: float, seen: bool) -> bool:
    """Whether the lock was taken in time; if not, the file is closed, now or when the lock comes nevertheless."""
    try:
        if not (seen and timeout and is_lock_awaited(path)) and lock.is_free():
            return True
        turn = None
        if seen and timeout:
            with suppress(OSError):
                turn = _Turn(path)
    except BaseException:
        lock.close()
        raise
    if timeout:
        return _waited(lock, turn, timeout)
    lock.close()
    return False


def _waited(lock: LockFile, turn: _Turn | None, timeout: float) -> bool:
    """The same, for a lock that is not free.

    The kernel knows no time limit, and a signal is the caller's to use: hence a thread. One that is given up still
    waits, and gives the lock back when it has it.
    """
    import threading  # paid for only by those that wait

    if not threading.main_thread().is_alive():  # the interpreter ends, and starts no thread any more
        return _polled(lock, turn, timeout)
    decided = threading.Lock()  # taken once: by the thread when it has the lock, or by the caller that gives up
    failed: list[OSError] = []

    def wait() -> None:
        try:
            if turn is not None:
                turn.wait()
            lock.take()
        except OSError as error:
            failed.append(error)
        if turn is not None:
            turn.close()
        if not decided.acquire(blocking=False):
            lock.close()

    waiting = threading.Thread(target=wait, daemon=True)
    try:
        waiting.start()
    except (MemoryError, RuntimeError):  # there is no room for one
        return _polled(lock, turn, timeout)
    try:
        waiting.join(timeout)
    finally:
        given_up = decided.acquire(blocking=False)
        if given_up and turn is not None:
            turn.leave()
    if failed:
        lock.close()
        raise failed[0]
    return not given_up


def _polled(lock: LockFile, turn: _Turn | None, timeout: float) -> bool:
    """The same without a thread."""
    deadline = time.monotonic() + timeout
    came = False
    try:
        while not (came := (turn is None or turn.has_come()) and lock.is_free()) and time.monotonic() < deadline:
            time.sleep(_POLL)
    finally:
        if turn is not None:
            turn.close()
        if not came:
            lock.close()
    return came


def _queue_of(path: Path) -> Path:
    """The file of which those who wait for a lock hold a byte each."""
    return path.with_suffix(".queue")


def _last_place(descriptor: int, end: int = 0) -> int | None:
    """The place of the last one who waits, or of the last before `end` (0: any); None for no one."""
    found, begin = None, 0
    while (not end or begin < end) and (place := _first_place(descriptor, begin, end)) is not None:
        found, begin = place, place + 1
    return found


if sys.platform == "linux":

    def _first_place(descriptor: int, begin: int, end: int = 0) -> int | None:
        """The place of one who waits, from `begin` to before `end` (0: any); None for no one. Our own is not told."""
        asked = _RANGE.pack(fcntl.F_RDLCK, os.SEEK_SET, begin, end and end - begin, 0)
        kind, _, place, length, _ = _RANGE.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
        if kind == fcntl.F_UNLCK:
            return None
        if length != 1 or place > _MOST_PLACES:
            raise OSError(errno.ENOLCK, "somebody else has locked bytes of a queue")
        return int(place)

    def _range(descriptor: int, kind: int, begin: int, length: int = 1, *, wait: bool = False) -> None:
        """Lock bytes of an open file, or unlock them."""
        command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
        fcntl.fcntl(descriptor, command, _RANGE.pack(kind, os.SEEK_SET, begin, length, 0))

else:

    def _first_place(descriptor: int, begin: int, end: int = 0) -> int | None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    def _range(descriptor: int, kind: int, begin: int, length: int = 1, *, wait: bool = False) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def _drop_all() -> None:
    """Close the lock files of the process that this one was forked from."""
    for lock in tuple(_opened):
        lock.drop()
    _forking.release()


os.register_at_fork(before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_drop_all)
