"""Runs a shell's command line within a time limit, keeps the end of what it prints, and ends all of its processes."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ralf.refining.command import ending_with_us


class Ended(NamedTuple):
    """How a command ended: its exit status, negative for a signal, None for its time; and its last output."""

    status: int | None
    output: bytes


_READ = 16_384  # bytes of its end: more than is kept, so that a secret at the cut is redacted whole

_MARK = "RALF_VERIFYING"

_DRAINED = 1.0  # seconds in which what was printed before the end is read

_GRACE = 5  # seconds that the kernel may take to end a process

_SWEEPS = 5  # a process may start another one between two looks


def run(command: str, folder: Path, env: Mapping[str, str], seconds: float) -> Ended:
    """Run a shell's command line in a folder, and end all of its processes, at the latest when its time is up.

    OSError, ValueError where it cannot be started.
    """
    mark = secrets.token_hex(16)
    child = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**env, "PWD": os.fspath(folder), _MARK: mark},
        start_new_session=True,
        preexec_fn=ending_with_us(),
    )
    kept = bytearray()

    def read(pipe: BinaryIO) -> None:
        with pipe:
            while piece := os.read(pipe.fileno(), 1 << 16):
                kept.extend(piece)
                del kept[:-_READ]

    reader = threading.Thread(target=read, args=[child.stdout], daemon=True)
    try:
        reader.start()
        with suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
        status = child.returncode
    finally:  # also for Ctrl-C, which a session of its own does not see, and for what it leaves behind
        _end(child, mark)
    reader.join(_DRAINED)
    return Ended(status, bytes(kept))


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
