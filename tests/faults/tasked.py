"""What the harnesses for tasks share: projects with tasks, calls that answer in plain words, commands, and a gate at
which processes wait that shall start at one instant.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests import storekit
from tests.faults.tenure import Answer

from ralf.errors import Busy, NotFound, RalfError
from ralf.tasks import claims, editing, origin
from ralf.tasks.model import TaskState

COMMAND = (sys.executable, "-m", "ralf_cli")
_PLAN_TO_WAIT = 0.002  # seconds that a process takes at most between what it says last and its wait


class Gate:
    """Holds processes back and lets go all of them at once: a kernel lock that they wait to share, one of two in turn.

    Made before the processes are forked; a process that is started with the path alone waits at `wait_at`.
    """

    def __init__(self, folder: Path) -> None:
        self.paths = [folder / "gate-0", folder / "gate-1"]
        for path in self.paths:
            path.touch()
        self._held = [os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in self.paths]
        for held in self._held:
            fcntl.flock(held, fcntl.LOCK_EX)

    def open(self, turn: int) -> None:
        """Let go those that wait for this turn."""
        time.sleep(_PLAN_TO_WAIT)
        fcntl.flock(self._held[turn % 2], fcntl.LOCK_UN)

    def shut(self, turn: int) -> None:
        """Hold back whoever comes for the turn after the next; once all have passed this one."""
        fcntl.flock(self._held[turn % 2], fcntl.LOCK_EX)

    def wait(self, turn: int) -> None:
        """Wait for a turn; in a process of its own."""
        wait_at(self.paths[turn % 2])

    def close(self) -> None:
        """Let go everybody, for good."""
        for held in self._held:
            os.close(held)


def wait_at(path: Path) -> None:
    """Wait until a gate is open. A lock belongs to what was opened: so each opens the file for itself."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


# ---- calls that answer ----


def added(root: Path, count: int, *, name: str = "Carry over table", after: Sequence[str] = ()) -> list[str]:
    """Add so many tasks; their ids."""
    return [editing.add(f"{name} {number}", after=after, root=root).task.id for number in range(count)]


def asked(root: Path, number: int, by: str, task: str | None, *, seconds: int = 900, known: bool = False) -> Answer:
    """Claim a task, or any, in a round.

    known  whether the claim names this process, so that it ends with it
    """
    process, born = (os.getpid(), started(os.getpid())) if known else (0, 0)
    try:
        state = claims.claim(task, by=by, seconds=seconds, process=process, born=born, root=root)
    except (Busy, NotFound) as error:
        return Answer(number, by, "lost", task or "", f"{error} {error.hint}")
    except (RalfError, OSError) as error:
        return Answer(number, by, "failed", task or "", repr(error))
    return won(number, by, state)


def won(number: int, by: str, state: TaskState) -> Answer:
    """The answer of who was given a task; failed, if it is said to be another's."""
    claim = state.claim
    if claim is None or claim.by != by:
        return Answer(number, by, "failed", state.task.id, f"was given a task that {claim and claim.by} has")
    return Answer(number, by, "won", state.task.id, number=claim.number)


def started(pid: int) -> int:
    """When a process started, as a claim keeps it."""
    return origin.born(pid)


# ---- commands ----


def environment(home: Path, by: str = "", **more: str) -> dict[str, str]:
    """The environment of a command of ours, and who it says it is. Its modules are compiled once, as installed ones."""
    other = ("RALF_", "CLAUDE", "CODEX", "PYTHONDONTWRITEBYTECODE")
    known = {name: value for name, value in os.environ.items() if not name.startswith(other)}
    compiled = os.path.join(os.environ["XDG_CONFIG_HOME"], "pycache")
    path = os.pathsep.join(filter(None, sys.path))
    known |= {"HOME": str(home), "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": compiled, **more}
    return known | ({"RALF_AGENT": by} if by else {})


def run(root: Path, *words: str, by: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ralf in a project."""
    known = environment(root.parent, by, **more)
    return subprocess.run(
        [*COMMAND, *words], cwd=root, env=known, capture_output=True, text=True, timeout=storekit.HANGS
    )


def alive_with(*words: str) -> list[int]:
    """Processes whose command has these words in it: what a run of a harness has left behind. Linux only."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            text = path.read_bytes().decode(errors="replace")
            if all(word in text for word in words):
                found.append(int(path.parent.name))
    return found
