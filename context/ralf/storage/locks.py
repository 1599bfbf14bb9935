"""Kernel locks on side files: they go with their owner, whatever kills it, and no fork keeps one.

Those who wait for a lock may have turns. `flock` alone gives none: who gives a lock back and asks again, still running,
has it before those who sleep are awake; on a busy machine the same one goes first for seconds.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import time
from _thread import RLock
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ralf.errors import Busy
from ralf.storage import files

TIMEOUT = 30.0

_PAUSE = 0.005  # seconds between two looks of who can only look

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW

_MOST = 1 << 62  # places in a queue: the kernel counts no further than twice as many

_RANGE = struct.Struct("@hhqqi0q")  # Linux's struct flock: kind, whence, first byte, how many (0: all), process

_forking = RLock()  # held while a lock file is opened or closed, and by who forks

_opened: set[LockFile] = set()


class LockFile:
    """A lock file that is open (made if missing), of this process alone: a fork of it has the file closed."""

    def __init__(self, path: Path) -> None:
        with _forking:
            self._descriptor = os.open(path, _FLAGS, 0o600)
            _opened.add(self)

    def is_free(self) -> bool:
        """Whether no one held the lock; then it is taken."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def take(self, *, shared: bool = False) -> None:
        """Wait until the lock is taken, for as long as it takes."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)

    def close(self) -> None:
        """Give back what is held, also where a process that was forked otherwise has the file open, too."""
        with _forking:
            if self in _opened:
                try:
                    self._unlock()
                finally:
                    self.drop()

    def _unlock(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def drop(self) -> None:
        """Close the file alone. In a fork that gives nothing back: what is held is its parent's."""
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
        """Let those behind go on without us; for another thread than the one that waits."""
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
def held(path: Path, what: str, timeout: float = TIMEOUT, *, seen: bool = False) -> Iterator[None]:
    """Hold the lock file `path` (made if missing, never deleted) for a block.

    what      the route or stream, for the message
    timeout   seconds; Busy when someone else has held it all that time
    seen      whether those who wait have turns, and the holder is to see them, as `is_waited_for` says
    """
    files.make(path.parent)
    lock = LockFile(path)
    if not _came(lock, path, timeout, seen):
        raise Busy(what, f"locked by another process for {timeout:g} s", "try again")
    try:
        yield
    finally:
        lock.close()


def is_waited_for(path: Path) -> bool:
    """Whether someone waits for the lock `path`, and is to be seen; for a caller that holds it, or comes."""
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
    """Whether the lock came within the time; the file is closed where it did not, or when it comes nevertheless."""
    try:
        if not (seen and timeout and is_waited_for(path)) and lock.is_free():
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
            time.sleep(_PAUSE)
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
        if length != 1 or place > _MOST:
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
