"""The claim of a step by one object of this process: taken, kept, lost and released; and the writes that it fences."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar, cast
from weakref import WeakMethod

from ralf.agent import contents, records
from ralf.agent.output import Output
from ralf.agent.records import Body, StepState, body
from ralf.agent.signals import Inbox
from ralf.agent.steplog import StepLog, held_here, holder_name, prepare
from ralf.errors import Claimed, Fenced, RalfError, RunCancelled, RunEnded, StaleLease
from ralf.project import Project
from ralf.storage.engine_calls import fenced
from ralf.storage.kept_lease import KeptLease
from ralf.tasks import origin

_RELEASING = 1.0  # seconds that a lease may last after the record that releases its step

_LEAST_PAUSE, _TOUCHES = 0.05, 1.0  # seconds between two signs of life: of the thread that shows them, of who works

_MOST_KEPT = 1 << 20  # bytes of a state that stays in memory

F = TypeVar("F", bound=Callable[..., Any])


def locked(method: F) -> F:
    """A method of a hold that one thread at a time is in, and that waits for the engine of a store; what cannot be
    recorded as that is away says so.
    """

    @functools.wraps(method)
    def within(self: Hold, *args: Any, **given: Any) -> Any:
        with fenced(self._log.where), self._lock:
            try:
                return method(self, *args, **given)
            except Fenced:
                if self._lease is not None:
                    self._lease.is_away = True
                raise

    return cast(F, within)


class Hold:
    """The claim of a step, taken at its first use.

    _unsaved  answers of calls that could not be recorded: the calls were made
    _newest   the newest state, while this object holds the step and the state is small: it need not be read
    """

    def __init__(self, project: Project, run: str, step: str, by: str, seconds: float, first_input: bytes) -> None:
        self.run, self.step = run, step
        self._project, self._by, self._seconds, self._input = project, by, seconds, first_input
        self._log = StepLog(project, run, step)
        self._lock = threading.RLock()
        self._output = Output(self._log, self._lock, WeakMethod(self._check_moved))
        self._lease: KeptLease | None = None
        self._touched = 0.0  # when a sign of life was shown last, by the monotonic clock
        self._writer = os.urandom(8).hex()
        self._term = self._process = 0
        self._nonce = ""
        self._refused: RalfError | None = None
        self._waited_for, self._waits_to = "", 0.0  # a time of the records, and when it is by the monotonic clock
        self._inbox = Inbox(project, run)
        self._unsaved: dict[str, tuple[bytes, bool]] = {}
        self._newest: bytes | None = None

    # ---- claiming ----

    @locked
    def _claimed(self) -> StepState:
        """The state of the step, which is ours; claims it where it is not. Errors: see `ralf.agent.run.AgentRun`."""
        if self._refused is not None:
            raise self._refused.with_traceback(None)
        if self._term and self._process != os.getpid():
            what = "was claimed before this process was forked"
            raise StaleLease(self._log.where, what, "", "make an AgentRun in the new process")
        if not self._term:
            try:
                self._claim()
            except BaseException:
                self._let_go()
                raise
        return self._log.state

    def _claim(self) -> None:
        self._log.look()
        self._log.write(self._claim_of, self._writer)
        state = self._log.state
        held_here[self._writer] = self
        self._process, self._term, self._nonce = os.getpid(), state.term, state.nonce
        self._begin_iteration()

    def _claim_of(self, state: StepState) -> Body:
        """The record that claims the step. Claimed where somebody has it, RunEnded where nothing can be done at it."""
        how = self._check_open(state)
        prepare(self._project, self._log.stream)
        name = holder_name(self._project, self._by)
        self._check_free(name)
        return body(
            "claimed",
            term=state.term + 1,
            holder=self._holder(name),
            nonce="" if state.records else os.urandom(8).hex(),
            input=None if state.records else self._packed(self._input),
            lost=state.holder is not None,
            **how,
        )

    def _holder(self, name: str) -> dict[str, Any]:
        """This object as a holder, with what `ralf.tasks.origin` knows of its process."""
        process, since = os.getpid(), records.time_text(time.time())
        made = {"writer": self._writer, "by": name, "process": process, "born": origin.born(process)}
        return made | {"machine": origin.machine(), "seconds": self._seconds, "since": since}

    def _check_free(self, name: str) -> None:
        """Claimed where somebody has the step. Where the store has leases, that of the step is ours afterwards: whoever
        has it is the only one who may claim the step, and the record that claims it is compared besides.
        """
        leases = self._project.store.leases
        if leases is None:
            if self._log.is_held():
                raise self._log.claimed()
        elif self._lease is None or not self._lease.is_held:
            self._lease = KeptLease(leases, self._log.stream, f"{name} {self._writer}", self._seconds)
            try:
                self._lease.take_within(_RELEASING if self._log.state.holder is None else 0.0)
            except Claimed as error:
                raise self._log.claimed(error.by.rpartition(" ")[0], error.since, error.until) from None

    def _check_open(self, state: StepState) -> dict[str, Any]:
        """How a pause has ended, with which signal, and the position in the inbox behind it. RunEnded where nothing can
        be done at the step now.
        """
        run, where = self.run, self._log.where
        if state.phase == "paused":
            self._inbox.begin(state._replace(replays=()))
            if self._inbox.outcome(state.waits_for, is_last=False)[0]:
                return {"resumed": "signal", **self._inbox.received()}
            if self._is_time(state):
                return {"resumed": "timeout"}
            status = f"paused until {state.not_before} or a signal {state.waits_for}"
            raise RunEnded(where, status, f"ralf send {run} {state.waits_for}")
        if state.phase:
            raise RunEnded(where, state.phase, f"ralf run {'show' if state.phase == 'completed' else 'retry'} {run}")
        if not self._is_time(state):
            raise RunEnded(where, f"waiting until {state.not_before}", f"ralf run retry {run}")
        return {}

    def _is_time(self, state: StepState) -> bool:
        """Whether a step continues by now. A clock that is set back lets no one wait longer than the wait was to be."""
        until, now = records.seconds_of(state.not_before), time.time()
        if self._waited_for != state.not_before:
            longest = until - (records.seconds_of(state.at) or now)
            self._waited_for, self._waits_to = state.not_before, time.monotonic() + min(until - now, longest)
        return until <= now or time.monotonic() >= self._waits_to

    def _begin_iteration(self) -> None:
        """Start an iteration, or go on with one."""
        self._inbox.begin(self._log.state)
        self._unsaved = {}

    # ---- losing and releasing the claim ----

    def _check_ours(self) -> None:
        """StaleLease, RunCancelled where the newest state has no claim of ours. A lease that has ended is taken again
        where nobody has claimed the step since: the process was stopped, or did not reach the engine.
        """
        is_lost = self._lease is not None and self._lease.is_lost
        if is_lost:
            self._log.look()
        state, lost = self._log.state, f"its claim, term {self._term}, was lost"
        one = state.holder or {"writer": "", "by": ""}
        if (one["writer"], state.term, state.nonce) != (self._writer, self._term, self._nonce):
            if state.phase == "cancelled" and state.nonce == self._nonce:
                self._refuse(RunCancelled(self._log.where, state.reason))
            self._refuse_to(one["by"], lost + (f"; {one['by']} has it now, term {state.term}" if one["by"] else ""))
        if self._lease is not None and is_lost:
            try:
                self._lease.take()
            except Claimed as error:
                by = error.by.rpartition(" ")[0]
                self._refuse_to(by, f"{lost}: no sign of life reached the engine in time; {by} has it now")

    def _refuse_to(self, by: str, what: str) -> NoReturn:
        self._refuse(StaleLease(self._log.where, what, by, f"ralf run show {self.run}"))

    def _refuse(self, error: RalfError) -> NoReturn:
        """Note that the step is lost for this object: what its caller has in memory is out of date."""
        self._refused = error
        self._output.drop()
        self._let_go()
        raise error

    def _check_moved(self) -> None:
        """The same, where somebody else has appended, or rewritten the stream."""
        self._log.look()
        self._check_ours()

    def _let_go(self) -> None:
        """Hold the step no longer: the record that says so was written, or is somebody else's."""
        self._term = 0
        self._newest = None
        held_here.pop(self._writer, None)
        if self._lease is not None:
            self._lease.end()

    @locked
    def reopen(self) -> None:
        """Have the next call claim the step again although it was cancelled meanwhile, where somebody has opened it
        again. What the caller knows of the step's state is out of date.
        """
        if isinstance(self._refused, RunCancelled):
            self._refused = None

    @locked
    def close(self) -> None:
        """Release the claim, if we hold it, and write what is left of the output. Done twice it changes nothing."""
        if not self._term or self._process != os.getpid():
            return
        is_away = self._lease is not None and self._lease.is_away
        try:
            with suppress(StaleLease):
                if not is_away:
                    self._output.flush()
        finally:
            with suppress(RalfError, OSError):  # the end of the process, or of the lease, says it as well
                if self._term and not is_away:
                    self._write(body("released"))
            self._let_go()

    # ---- writing ----

    def _write(self, made: Body) -> None:
        """Append a record; the step has to be ours."""

        def ours(_: StepState) -> Body:
            self._check_ours()
            return made

        self._log.write(ours, self._writer)

    def _record(self, kind: str, **members: Any) -> None:
        """The same of a record that depends on what was heard, behind the output so far."""
        self._output.flush()
        self._write(body(kind, **members, **self._inbox.received()))
        self._inbox.recorded()

    def _keep_newest(self, state: bytes | None) -> bytes | None:
        """Keep the newest state in memory, unless it is large; the same."""
        self._newest = bytes(state) if state is not None and len(state) <= _MOST_KEPT else None
        return state

    def _packed(self, data: bytes | None) -> contents.Tree | None:
        """Bytes as they stand in a record, None for None."""
        return contents.pack(self._project.store, data, self._log.where) if data is not None else None

    @locked
    def heartbeat(self) -> None:
        """Show that this process lives; touches a file at most once a second. `once` and `wait_signal` do it, too.

        StaleLease, RunCancelled where the step is no longer ours. Claims.
        """
        self._claimed()
        if time.monotonic() - self._touched >= _TOUCHES:
            self._check_moved()
            self._touch()

    def _touch(self) -> None:
        self._touched, files = time.monotonic(), self._project.store.files
        if self._lease is not None:
            self._lease.touch()
        with suppress(OSError):
            if files is not None:
                os.utime(files.path(self._log.stream), follow_symlinks=False)

    @contextmanager
    def _beating(self) -> Iterator[None]:
        """Show signs of life from a thread for the length of a block, which may take longer than the lease."""
        end, pause = threading.Event(), max(_LEAST_PAUSE, min(self._seconds / 4, 60.0))

        def beat() -> None:
            while not end.wait(pause):
                self._touch()

        with suppress(RuntimeError):  # the interpreter ends, or there is no room for a thread
            threading.Thread(target=beat, name="ralf-lease", daemon=True).start()
        try:
            yield
        finally:
            end.set()
