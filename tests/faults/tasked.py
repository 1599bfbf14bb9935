"""What the harnesses for tasks share: projects with tasks, calls that answer in plain words, and commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.faults.tenure import Answer

from ralf.errors import Busy, NotFound, RalfError
from ralf.tasks import claims, editing, origin
from ralf.tasks.model import TaskState

COMMAND = (sys.executable, "-m", "ralf_cli")
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


def alive_with(*words: str) -> list[int]:
    """Processes whose command has these words in it: what a run of a harness has left behind. Linux only."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            text = path.read_bytes().decode(errors="replace")
            if all(word in text for word in words):
                found.append(int(path.parent.name))
    return found
