"""Runs a shell's command line within a time limit, keeps the end of what it prints, and ends its session."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ralf.refining.command import ending_with_us


class Ended(NamedTuple):
    """How a command ended: its exit status, negative for a signal, None for its time; and its last output."""

    status: int | None
    output: bytes


_READ = 16_384  # bytes of its end: more than is kept, so that a secret at the cut is redacted whole

_GRACE = 5  # seconds that the kernel may take to end it

_DRAINED = 1.0  # seconds in which what was printed before the end is read


def run(command: str, folder: Path, env: Mapping[str, str], seconds: float) -> Ended:
    """Run a shell's command line in a folder, in a session of its own, which is killed when it ends or its time is up.

    OSError, ValueError where it cannot be started.
    """
    child = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**env, "PWD": os.fspath(folder)},
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
    reader.start()
    try:
        with suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
        status = child.returncode
    finally:  # also for Ctrl-C, which a session of its own does not see, and for what it leaves behind
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # one that has become another user's cannot be ended
            child.wait(_GRACE)
    reader.join(_DRAINED)
    return Ended(status, bytes(kept))
