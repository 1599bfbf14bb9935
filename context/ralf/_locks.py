"""Kernel locks on side files: they go with their owner, whatever kills it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ralf.errors import Busy

TIMEOUT = 30.0


@contextmanager
def held(path: Path, what: str, timeout: float = TIMEOUT) -> Iterator[None]:
    """Hold the lock file `path` (made if missing, never deleted) for a block.

    what      the route or stream, for the message
    timeout   seconds; Busy when somebody else has held it all that time
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _wait(descriptor, what, timeout)
        yield
    finally:
        os.close(descriptor)  # closing the only descriptor gives the lock back


def _wait(descriptor: int, what: str, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    pause = 0.0005
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Busy(what, f"locked by another process for {timeout:g} s", "try again") from None
            import random  # only who has to wait pays for it

            time.sleep(pause * (0.5 + random.random()))  # noqa: S311  # jitter, not a secret
            pause = min(pause * 1.5, 0.02)
        else:
            return
