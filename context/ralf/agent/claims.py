"""Whether a step's holder lives: its process, its lease, its signs of life; and a step's status."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ralf.agent import records, signals
from ralf.agent.model import RunState
from ralf.agent.records import Holder, StepState, seconds_of, time_text
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

    def touched(self) -> float:
        """When one was shown last, in seconds since 1970; 0.0 for never."""
        with suppress(OSError):
            if self._files is not None:
                return self._files.path(self._stream).stat().st_mtime
        return 0.0

    def end(self) -> None:
        """Nothing: the records say who holds the step."""


class Pulse:
    """Shows signs of life from a thread of its own while a call is made, which may take longer than the lease."""

    def __init__(self, lease: FileLease | KeptLease, seconds: float) -> None:
        self._lease = lease
        self._pause = max(_LEAST_PAUSE, min(seconds / 4, 60.0))
        self._lock = threading.Lock()
        self._calls = 0
        self._end: threading.Event | None = None

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Show signs of life for the length of a block."""
        with self._lock:
            self._calls += 1
            if self._end is None:
                self._end = end = threading.Event()
                with suppress(RuntimeError):  # the interpreter ends, or there is no room for a thread
                    threading.Thread(target=self._beat, args=(end,), name="ralf-lease", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                if not self._calls and self._end is not None:
                    self._end.set()
                    self._end = None

    def _beat(self, end: threading.Event) -> None:
        while not end.wait(self._pause):
            self._lease.touch()


def holder(writer: str, by: str, seconds: float) -> Holder:
    """This process as a holder."""
    process = os.getpid()
    return Holder(writer, by, process, origin.born(process), origin.machine(), seconds, time_text(time.time()))


def told(by: str, writer: str) -> str:
    """How a step's lease names its holder."""
    return f"{by} {writer}"


def unrecorded(by: str, since: str) -> Holder:
    """A holder of whom only the engine's lease says anything, as `told`."""
    name, _, writer = by.rpartition(" ")
    return Holder(writer, name, since=since)


def claimed_by(run: str, where: str, one: Holder | None) -> Claimed:
    """The error that names a live holder."""
    return Claimed(where, one.by if one else "", one.since if one else "", f"ralf run show {run}")


def is_alive(project: Project, run: str, step: str, state: StepState) -> bool:
    """Whether a step's holder lives: its process is not dead, and its last sign of life not older than its lease. Of a
    store with leases: whether it has the step's lease. Fenced where that cannot be known.
    """
    one = state.holder
    if one is None:
        return False
    leases, stream = project.store.leases, records.stream_of(run, step)
    if leases is not None:  # of whatever machine the holder is, nothing else is known for sure
        return leases.holder(stream) is not None
    if origin.is_running(one.process, one.born, one.machine) is False:
        return False
    ours = one.process == os.getpid() and one.machine == origin.machine()
    if ours and one.writer not in held_here:
        return False
    # Each sign by itself, and either way: a clock that was set back keeps no claim for ever, and ends none.
    signs = seconds_of(state.at), FileLease(project, stream).touched()
    return any(abs(time.time() - last) < one.seconds for last in signs)


def status_of(project: Project, run: str, step: str, state: StepState) -> str:
    """One of `ralf.agent.model.STATUSES`."""
    if not state.records:
        return "new"
    if state.phase:
        return state.phase
    if state.holder is None:
        return "waiting"
    return "running" if is_alive(project, run, step, state) else "lost"


def run_state(
    project: Project, run: str, step: str, state: StepState, *, steps: tuple[str, ...] = (), sent: int | None = None
) -> RunState:
    """A step's state as callers see it.

    sent  how many signals the run has; None: look
    """
    status = status_of(project, run, step, state)
    shown = state.holder if status == "running" else None
    return RunState(
        run=run,
        step=step,
        status=status,
        steps=steps or (step,),
        iteration=state.iteration,
        attempt=state.attempt,
        losses=state.losses,
        term=state.term,
        by=shown.by if shown else "",
        process=shown.process if shown else 0,
        states=state.states,
        size=state.state_size,
        signals=signals.count_of(project, run) if sent is None else sent,
        heard=state.heard,
        calls=state.calls,
        repeats=state.repeats,
        began=state.began,
        at=state.at,
        not_before=state.not_before,
        waits_for=state.pause,
        reason=state.reason,
    )
