"""Processes that outlive whoever starts them: in a session of their own, with nothing to read from or print to."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ralf import environment

started: list[int] = []
"""By this process: reaped when the next one is started."""

_POLL = 0.01  # seconds between two looks

_CODE = """\
import sys
from importlib import import_module
sys.path[:0] = sys.argv[2:4]
import_module(sys.argv[1]).main(sys.argv[4:])
"""


def start(module: str, file: str, arguments: Sequence[str]) -> int:
    """Start `main(arguments)` of a module, of this very tree, and return at once.

    module, file   its name, and where it lies (`__name__` and `__file__` of whoever asks for itself)

    Returns its process id. Its environment is `environment.of_a_model`, of which Python itself takes nothing: a
    PYTHONPATH may name the project, and run its code. OSError, NotImplementedError (a system without `setsid` in
    `posix_spawn`) as they come.
    """
    for child in list(started):
        with suppress(ChildProcessError):
            if os.waitpid(child, os.WNOHANG) == (0, 0):
                continue
        started.remove(child)
    trees = [str(Path(file).parents[module.count(".")]), str(Path(__file__).parents[1])]
    devices = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    argv = [sys.executable, "-E", "-P", "-c", _CODE, module, *trees, *arguments]
    child = os.posix_spawn(sys.executable, argv, environment.of_a_model(), file_actions=devices, setsid=True)
    started.append(child)
    return child


def status_within(child: int, seconds: float) -> int | None:
    """Wait for a process that `start` has started; its exit status, 0 for success; None where it goes on."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:  # someone else has waited for it: no one knows
            found, status = 1, 1 << 8
        if found:
            with suppress(ValueError):
                started.remove(child)
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL)
