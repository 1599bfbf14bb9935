"""Kernel locks on side files: a lock goes with its process, whatever kills that, and no fork keeps one."""

from __future__ import annotations

import fcntl
import os
import re
import time
from _thread import RLock
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ralf.errors import Busy
from ralf.storage.files import make

WAIT = 10.0
"""Seconds for which a lock is waited for, if nothing else is said."""

_POLL = 0.005  # seconds between two looks of who can only look

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW

_forking = RLock()  # held while a lock file is opened or closed, and by who forks: a fork knows all that it inherits

_opened: set[LockFile] = set()


class LockFile:
    """An open lock file (made if missing) of this process alone: it is closed in a fork."""

    def __init__(self, path: Path) -> None:
        with _forking:
            self._descriptor = os.open(path, _FLAGS, 0o600)
            _opened.add(self)

    def is_free(self) -> bool:
        """Take the lock if no one holds it; whether it was taken."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def take(self) -> None:
        """Wait until the lock is taken, for as long as it takes."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def close(self) -> None:
        """Release the lock, even if a process that was forked in another way has the file open, too."""
        with _forking:
            if self in _opened:
                try:
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)
                finally:
                    self.drop()

    def drop(self) -> None:
        """Close the file only. In a fork that releases nothing: the lock belongs to the parent."""
        _opened.discard(self)
        os.close(self._descriptor)


@contextmanager
def locked(path: Path, what: str, timeout: float = WAIT) -> Iterator[None]:
    """Hold the lock file `path` (made if missing, never deleted) for a block.

    what      the route or stream, for the message
    timeout   seconds; Busy if another process holds it all that time
    """
    try:
        lock = LockFile(path)
    except FileNotFoundError:
        make(path.parent)
        lock = LockFile(path)
    try:
        is_taken = lock.is_free()
    except BaseException:
        lock.close()
        raise
    if not is_taken and not _waited(lock, timeout):
        hint = "try again; or end that process, if it does not go on"
        raise Busy(what, f"locked by {_holder(path)} for {timeout:g} s", hint)
    try:
        yield
    finally:
        lock.close()


def _holder(path: Path) -> str:
    """The process that holds a lock, as far as the system says so: "process 123", else "another process"."""
    with suppress(OSError):
        inode = path.stat().st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            if found := re.fullmatch(rf"\d+: FLOCK +ADVISORY +WRITE (\d+) [0-9a-f:]+:{inode} .*", line):
                return f"process {found[1]}"
    return "another process"


def _waited(lock: LockFile, timeout: float) -> bool:
    """Whether a lock that another process holds was taken in time; if not, the file is closed, at the latest when the
    lock comes nevertheless.

    The kernel wakes whoever waits first; it knows no time limit, and a signal is the caller's to use: hence a thread.
    """
    import threading  # paid for only by those that wait

    if not timeout:
        lock.close()
        return False
    if not threading.main_thread().is_alive():  # the interpreter ends, and starts no thread any more
        return _polled(lock, timeout)
    decided = threading.Lock()  # taken once: by the thread when it has the lock, or by the caller that gives up

    def wait() -> None:
        lock.take()
        if not decided.acquire(blocking=False):
            lock.close()

    waiting = threading.Thread(target=wait, daemon=True)
    try:
        waiting.start()
    except (MemoryError, RuntimeError):  # there is no room for one
        return _polled(lock, timeout)
    try:
        waiting.join(timeout)
    finally:
        is_given_up = decided.acquire(blocking=False)
    return not is_given_up


def _polled(lock: LockFile, timeout: float) -> bool:
    """The same without a thread."""
    deadline, is_taken = time.monotonic() + timeout, False
    try:
        while not (is_taken := lock.is_free()) and time.monotonic() < deadline:
            time.sleep(_POLL)
    finally:
        if not is_taken:
            lock.close()
    return is_taken


def _drop_all() -> None:
    """Close the lock files of the process that this one was forked from."""
    for lock in tuple(_opened):
        lock.drop()
    _forking.release()


os.register_at_fork(before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_drop_all)
