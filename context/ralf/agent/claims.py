"""Whether a step's holder lives: its process, its lease, its signs of life; and a step's state as callers see it."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ralf.agent import signals
from ralf.agent.model import RunState
from ralf.agent.records import seconds_of, time_text
from ralf.agent.steplog import StepLog
from ralf.errors import Claimed
from ralf.project import Project
from ralf.storage.kept_lease import KeptLease
from ralf.tasks import origin

_LEAST_PAUSE = 0.05  # seconds between two signs of life of the thread that shows them

_TOUCHES = 1.0  # seconds between two touches of a lease file

held_here: weakref.WeakValueDictionary[str, object] = weakref.WeakValueDictionary()
"""What holds steps in this process, by writer: a claim of ours that is not among them was dropped."""


class FileLease:
    """The signs of life of a step's holder where the store has files: the time of its journal. It has the methods of
    `KeptLease`; this lease ends with its process, or with its holder's silence.
    """

    is_held = is_lost = is_away = False

    def __init__(self, project: Project, stream: str) -> None:
        self._files = project.store.files
        self._stream = stream
        self._touched = 0.0

    def is_fresh(self) -> bool:
        """Whether a sign of life was shown within the last second."""
        return time.monotonic() - self._touched < _TOUCHES

    def touch(self) -> bool:
        """Show a sign of life; whether that could be done."""
        self._touched = time.monotonic()
        with suppress(OSError):
            if self._files is not None:
                os.utime(self._files.path(self._stream), follow_symlinks=False)
                return True
        return False

    def end(self) -> None:
        """Nothing: the records say who holds the step."""


@contextmanager
def beating(lease: FileLease | KeptLease, seconds: float) -> Iterator[None]:
    """Show signs of life from a thread for the length of a block, which may take longer than the lease."""
    end, pause = threading.Event(), max(_LEAST_PAUSE, min(seconds / 4, 60.0))

    def beat() -> None:
        while not end.wait(pause):
            lease.touch()

    with suppress(RuntimeError):  # the interpreter ends, or there is no room for a thread
        threading.Thread(target=beat, name="ralf-lease", daemon=True).start()
    try:
        yield
    finally:
        end.set()


def holder(writer: str, by: str, seconds: float) -> dict[str, Any]:
    """This process as a holder, as `ralf.tasks.origin` knows it. `writer`: unique to the object that claims."""
    process = os.getpid()
    made = {"writer": writer, "by": by, "process": process, "born": origin.born(process)}
    return made | {"machine": origin.machine(), "seconds": seconds, "since": time_text(time.time())}


def claimed_by(log: StepLog, by: str = "", since: str = "") -> Claimed:
    """The error that names a live holder: that of the records, where nothing else is known."""
    one = log.state.holder or {"by": by, "since": since}
    return Claimed(log.where, one["by"], one["since"], f"ralf run show {log.run}")


def is_alive(log: StepLog) -> bool:
    """Whether a step's holder lives: its process is not dead, and its last sign of life not older than its lease. Of a
    store with leases: whether it has the step's lease. Fenced where that cannot be known.
    """
    one, store = log.state.holder, log.project.store
    if one is None:
        return False
    if store.leases is not None:  # of whatever machine the holder is, nothing else is known for sure
        return store.leases.holder(log.stream) is not None
    if origin.is_running(one["process"], one["born"], one["machine"]) is False:
        return False
    ours = one["process"] == os.getpid() and one["machine"] == origin.machine()
    if ours and one["writer"] not in held_here:
        return False
    # Each sign by itself, and either way: a clock that was set back keeps no claim for ever, and ends none.
    signs = [seconds_of(log.state.at)]
    with suppress(OSError):
        if store.files is not None:
            signs.append(store.files.path(log.stream).stat().st_mtime)
    return any(abs(time.time() - last) < one["seconds"] for last in signs)


def status_of(log: StepLog) -> str:
    """One of `ralf.agent.model.STATUSES`."""
    state = log.state
    if not state.records:
        return "new"
    if state.phase or state.holder is None:
        return state.phase or "waiting"
    return "running" if is_alive(log) else "lost"


def run_state(log: StepLog, steps: tuple[str, ...] = (), sent: int | None = None) -> RunState:
    """A step's state as callers see it.

    sent  how many signals the run has; None: look
    """
    status, state = status_of(log), log.state
    by = (state.holder or {}) if status == "running" else {}
    return RunState(
        run=log.run,
        step=log.step,
        status=status,
        steps=steps or (log.step,),
        by=by.get("by", ""),
        process=by.get("process", 0),
        signals=signals.count_of(log.project, log.run) if sent is None else sent,
        calls=len(state.calls),
        repeats=sum(max(call[0] - 1, 0) for call in state.calls.values()),
        **{name: getattr(state, name) for name in _AS_THEY_ARE},
    )


_AS_THEY_ARE = "iteration attempt losses term states size heard began at not_before waits_for reason".split()
