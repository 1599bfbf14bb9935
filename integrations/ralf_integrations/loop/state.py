"""The loop's own state, one file in the cache: for `ralf loop status`, and for the loop that comes after a killed one.

Losing it loses no task: a claim names its process, so that the task of an agent that still runs is never claimed again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ralf.errors import Busy
from ralf.project import Project
from ralf.storage import durable, files
from ralf.storage.files import content_of
from ralf.storage.locks import LockFile
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop import processes
from ralf_integrations.loop.options import Spent

_MOST = 16 << 20


@dataclass(frozen=True, slots=True)
class Running:
    """A start that is not over."""

    worker: str = ""  # the slot, `w1`
    task: str = ""
    title: str = ""
    route: str = ""
    lease: str = ""
    agent: str = ""  # the name under which it holds its claims
    client: str = ""  # the preset
    label: str = ""  # what its command is called
    session: str = ""  # the client's, where we chose it
    process: int = 0
    born: int = 0
    opened: bool = False  # whether the command has begun; before, the process only waits, and ends with its loop
    name: str = ""  # of its logs
    last: str = ""  # where the client leaves its last message
    cwd: str = ""
    began: float = 0.0  # seconds since 1970
    limit: float = 0.0  # seconds that it may take, 0 for any
    handed: str = ""  # the hand-over that the route had when it began

    @property
    def mark(self) -> str:
        """The variable that its processes have, and no other: the agent's name is drawn at random, while a clone on
        this machine may well have the same lease of the same task.
        """
        return f"RALF_AGENT={self.agent}" if self.agent else ""


@dataclass(slots=True)
class LoopState:
    """A loop, running or over. Times are seconds since 1970, 0 for not yet."""

    process: int = 0
    born: int = 0
    machine: str = ""
    began: float = 0.0
    updated: float = 0.0
    ended: float = 0.0
    log: str = ""  # where it tells what happens
    running: tuple[Running, ...] = ()
    spent: Spent = field(default_factory=Spent)
    parked: dict[str, float] = field(default_factory=dict)  # by client, until when its usage limit lasts
    waits: str = ""  # for what, while none of its agents runs
    reason: str = ""  # why it ended, or is about to
    status: int = -1  # its exit status, -1 while it runs

    @property
    def is_running(self) -> bool:
        """Whether the loop still runs."""
        is_here = not self.ended and self.machine == session_registry.machine()
        return is_here and processes.is_running(self.process, self.born)


def folder(project: Project) -> Path:
    """The folder of the loop's files."""
    return project.cache / "loop"


def log_file(project: Project) -> Path:
    """Where a loop tells what happens."""
    return folder(project) / "loop.log"


def load(project: Project) -> LoopState:
    """The state of the loop that ran last; an empty one where there is none, or it cannot be read."""
    try:
        tree = json.loads(content_of(folder(project) / "state.json", most=_MOST))
        running = tuple(Running(**_known(Running, one)) for one in tree.pop("running"))
        parked = {name: float(until) for name, until in tree.pop("parked").items()}
        spent = Spent(**_known(Spent, tree.pop("spent")))
        return LoopState(**_known(LoopState, tree), running=running, spent=spent, parked=parked)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return LoopState()


def _known(kind: type[Any], tree: dict[str, Any]) -> dict[str, Any]:
    """The fields of a class that a tree holds; TypeError for one of another type than its default."""
    empty = kind()
    found = {one.name: tree[one.name] for one in fields(kind) if one.name in tree}
    if wrong := [name for name, value in found.items() if type(value) is not type(getattr(empty, name))]:
        raise TypeError(wrong[0])
    return found


def save(project: Project, state: LoopState) -> None:
    """Keep the state. Only a power loss can lose it, which ends every process in it, too. OSError as it comes."""
    project.make_room(folder(project) / "state.json", prepare=True)
    path = folder(project) / "state.json"  # a store that was registered only now has its cache elsewhere
    content = json.dumps(asdict(state) | {"updated": round(time.time(), 3)}).encode()
    files.make(path.parent)
    durable.write(path, content, is_synced=False)


@contextmanager
def alone(project: Project) -> Iterator[None]:
    """Be the only loop of this store. Busy where one runs; the kernel frees the lock of one that dies."""
    path = project.folder / "locks" / "loop.lock"
    project.make_room(path, prepare=True)
    lock = LockFile(path)
    try:
        if not lock.is_free():
            known = load(project)
            which = f" (process {known.process})" if known.is_running else ""
            raise Busy(project.root, f"another loop{which} runs here", "look at it: ralf loop status")
        yield
    finally:
        with suppress(OSError):
            lock.close()
