"""Kernel locks on side files: they go with their owner, whatever kills it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from ralf.errors import Busy
from ralf.files import folders

TIMEOUT = 30.0


@contextmanager
def held(path: Path, what: str, timeout: float = TIMEOUT, *, seen: bool = False) -> Iterator[None]:
    """Hold the lock file `path` (made if missing, never deleted) for a block.

    what      the route or stream, for the message
    timeout   seconds; Busy when somebody else has held it all that time
    seen      whether the holder is to see that this one waits, as `is_waited_for` says
    """
    folders.make(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        waits = partial(_queued, path) if seen else _waited
        if not _free(descriptor) and not (timeout and waits(descriptor, timeout)):
            raise Busy(what, f"locked by another process for {timeout:g} s", "try again")
        yield
    finally:
        os.close(descriptor)  # closing the only descriptor gives the lock back


def is_waited_for(path: Path) -> bool:
    """Whether somebody waits for the lock `path`; for who holds it."""
    try:
        descriptor = os.open(_queue_of(path), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False  # nobody ever has
    try:
        return not _free(descriptor)
    finally:
        os.close(descriptor)


def _queue_of(path: Path) -> Path:
    """The file on which all who wait for a lock hold a shared one: it goes with them, whatever kills them."""
    return path.with_suffix(".queue")


def _queued(path: Path, descriptor: int, timeout: float) -> bool:
    """Wait for the lock, and be seen waiting."""
    queue = os.open(_queue_of(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with suppress(BlockingIOError):  # the holder is looking at this moment: it sees the next one, or nobody
            fcntl.flock(queue, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return _waited(descriptor, timeout)
    finally:
        os.close(queue)


def _free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _waited(descriptor: int, timeout: float) -> bool:
    """Whether the lock came within the time.

    The kernel keeps those who wait in a queue, so that each has its turn; who asks again and again has luck instead.
    It knows no time limit, and a signal is the caller's to use: hence a thread, with a descriptor of its own. One that
    is given up still waits; when its turn comes its descriptor is the last, and the lock goes with it.
    """
    import threading  # only who has to wait pays for it

    own = os.dup(descriptor)
    failed: list[OSError] = []

    def wait() -> None:
        try:
            fcntl.flock(own, fcntl.LOCK_EX)
        except OSError as error:
            failed.append(error)
        finally:
            os.close(own)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(timeout)
    if failed:
        raise failed[0]
    return not waiting.is_alive()
