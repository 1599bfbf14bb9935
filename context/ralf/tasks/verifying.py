"""Runs a shell's command line within a time limit, keeps the end of what it prints, and ends all of its processes."""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ralf.refining.command import ending_with_us


class Ended(NamedTuple):
    """How a command ended: its exit status, negative for a signal, None for its time; and its last output."""

    status: int | None
    output: bytes


_READ = 16_384  # bytes of its end: more than is kept, so that a secret at the cut is redacted whole

_PAUSE, _LONGEST_PAUSE = 0.005, 0.05  # seconds between two looks at a command that prints nothing

_MARK = "RALF_VERIFYING"

_DRAINED = 1 << 20  # bytes that are read of what was printed before the end

_GRACE = 5  # seconds that the kernel may take to end a process

_SWEEPS = 5  # a process may start another one between two looks


def run(command: str, folder: Path, env: Mapping[str, str], seconds: float) -> Ended:
    """Run a shell's command line in a folder, and end all of its processes, at the latest when its time is up.

    OSError, ValueError where it cannot be started.
    """
    mark = secrets.token_hex(16)
    reading, writing = os.pipe()
    try:
        os.set_blocking(reading, False)
        try:
            child = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                cwd=folder,
                env={**env, "PWD": os.fspath(folder), _MARK: mark},
                start_new_session=True,
                preexec_fn=ending_with_us(),
            )
        finally:
            os.close(writing)
        output = _Tail(reading)
        try:
            status = _wait(child, output, time.monotonic() + seconds)
        finally:  # also for Ctrl-C, which a session of its own does not see, and for what it leaves behind
            _end(child, mark)
        output.drain()
        return Ended(status, output.kept)
    finally:
        os.close(reading)


class _Tail:
    """The end of what comes through a pipe."""

    def __init__(self, descriptor: int) -> None:
        self.kept = b""
        self.is_open = True
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Read what comes within so many seconds; whether anything did, or nothing will any more."""
        return bool(self._poll.poll(max(1, round(1_000 * seconds)))) and self._take() >= 0

    def drain(self) -> None:
        """Read what is there."""
        left = _DRAINED
        while self.is_open and left > 0 and (size := self._take()) > 0:
            left -= size

    def _take(self) -> int:
        """How many bytes there were, -1 for none yet."""
        try:
            found = os.read(self._descriptor, 1 << 16)
        except BlockingIOError:
            return -1
        self.is_open = bool(found)
        self.kept = (self.kept + found)[-_READ:]
        return len(found)


def _wait(child: subprocess.Popen[bytes], output: _Tail, deadline: float) -> int | None:
    """Wait for a command; its exit status, None where its time is up."""
    pause = _PAUSE
    while True:
        left = deadline - time.monotonic()
        if output.is_open:
            pause = _PAUSE if output.wait(min(pause, max(0.0, left))) else min(2 * pause, _LONGEST_PAUSE)
            status = child.poll()
        else:
            with suppress(subprocess.TimeoutExpired):
                child.wait(min(pause, max(0.0, left)))
            pause, status = min(2 * pause, _LONGEST_PAUSE), child.returncode
        if status is not None:
            return status
        if left <= 0:
            return None


def _end(child: subprocess.Popen[bytes], mark: str) -> None:
    """End a command's session, and those of its processes that have gone into another one (Linux)."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # one that has become another user's cannot be ended
        child.wait(_GRACE)
    if sys.platform == "linux":
        for _ in range(_SWEEPS):
            if not [process for process in _marked(f"{_MARK}={mark}".encode()) if _kill(process, mark)]:
                break


def _marked(mark: bytes) -> Iterator[int]:
    """The processes that have a variable with this value in their environment; those of other users are not asked."""
    for name in os.listdir("/proc"):  # noqa: PTH208  # a name is all that is needed
        if name.isdecimal() and _has(int(name), mark):
            yield int(name)


def _has(process: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb", buffering=0) as file:  # noqa: PTH123
            return mark in file.read(1 << 20).split(b"\0")
    except OSError:
        return False


def _kill(process: int, mark: str) -> bool:
    """Kill a process, of which it is looked up again that no other one has its number by now; whether it was there."""
    try:
        descriptor = os.pidfd_open(process)
    except OSError:
        return False
    try:
        if not _has(process, f"{_MARK}={mark}".encode()):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
