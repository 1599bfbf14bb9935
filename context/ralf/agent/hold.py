"""A step as one object of this process holds it: the claim, what the iteration has done so far, and fenced writes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ralf.agent import claims, contents, records
from ralf.agent.claims import FileLease, Pulse
from ralf.agent.output import Output
from ralf.agent.records import Body, Heard, StepState, body
from ralf.agent.signals import Inbox
from ralf.agent.steplog import StepLog, holder_name, prepare
from ralf.errors import (
    Claimed,
    Fenced,
    RalfError,
    RunCancelled,
    RunEnded,
    StaleLease,
    UsageError,
)
from ralf.project import Project
from ralf.storage.engine_calls import fenced
from ralf.storage.kept_lease import KeptLease

_MOST_PAUSE, _MOST_PAUSE_OF_REQUESTS = 0.1, 0.5  # seconds between two looks for a signal

_RELEASING = 1.0  # seconds that a lease may last after the record that releases its step

_MOST_KEPT = 1 << 20  # bytes of a state that stays in memory


class Hold:
    """The claim of a step, taken at its first use. Its methods are called with `lock`.

    term        of our claim, 0 while we hold none
    replays     outcomes of waits that are to be returned again
    unrecorded  outcomes on which no record depends yet
    unsaved     answers of calls that could not be recorded: the calls were made
    newest      a state with its number: it need not be read while that is the newest one's
    """

    def __init__(self, project: Project, run: str, step: str, *, by: str, seconds: float, first_input: bytes) -> None:
        self.project = project
        self.run, self.step = run, step
        self.log = StepLog(project, run, step)
        self.lock = threading.RLock()
        self.output = Output(project, run, step)
        self.term = 0
        self.replays: list[Heard] = []
        self.unrecorded: list[Heard] = []
        self.unsaved: dict[str, tuple[bytes, bool]] = {}
        self.newest: tuple[int, bytes] | None = None
        self._making: dict[str, object] = {}
        self._by = by
        self._seconds = seconds
        self._input = first_input
        self._writer = os.urandom(8).hex()
        self._nonce = ""
        self._process = 0
        self._refused: RalfError | None = None
        self._is_prepared = self._takes_over = False
        self._waited_for, self._waits_to = "", 0.0  # a time of the records, and when it is by the monotonic clock
        self._inbox: Inbox | None = None
        self._lease: FileLease | KeptLease = FileLease(project, self.log.stream)
        self.pulse = Pulse(self._lease, seconds)

    @property
    def where(self) -> str:
        """How the step is called in messages."""
        return self.log.where

    # ---- claiming ----

    def claimed(self) -> StepState:
        """The state of the step, which is ours; claims it where it is not. Errors: see `ralf.agent.run.AgentRun`."""
        if self._refused is not None:
            raise self._refused.with_traceback(None)
        if self.term and self._process != os.getpid():
            what = "was claimed before this process was forked"
            raise StaleLease(self.where, what, "", "make an AgentRun in the new process")
        if not self.term:
            try:
                with fenced(self.where):
                    self._claim()
            finally:
                if not self.term:
                    self._lease.end()
        return self.log.state

    def is_ours(self) -> bool:
        """Whether this process has a claim to release."""
        return bool(self.term) and self._process == os.getpid()

    def _claim(self) -> None:
        self.log.look()
        self.log.write(self._claim_of, self._writer)
        state = self.log.state
        if self._takes_over:
            self.output.begin(self._writer, state.term, state.iteration, state.attempt)
            self.output.fence()
        claims.held_here[self._writer] = self
        self._process, self.term, self._nonce = os.getpid(), state.term, state.nonce
        self.pulse = Pulse(self._lease, self._seconds)
        self._inbox_behind(state)
        self.begin_iteration()
        if state.records == 1:
            from ralf.agent.listing import expire_daily  # only a new run pays for it

            expire_daily(self.project)

    def _claim_of(self, state: StepState) -> Body:
        """The record that claims the step, which is free. Claimed, RunEnded."""
        how = self._check_claimable(state)
        if not self._is_prepared:
            prepare(self.project, self.log.stream)
            self._is_prepared = True
        name = holder_name(self.project, self._by)
        self._check_free(state, name)
        self._takes_over = state.holder is not None
        return body(
            "claimed",
            term=state.term + 1,
            holder=claims.holder(self._writer, name, self._seconds)._asdict(),
            nonce="" if state.records else os.urandom(8).hex(),
            input=None if state.records else self.pack(self._input),
            lost=self._takes_over,
            **how,
        )

    def _check_free(self, state: StepState, name: str) -> None:
        """Claimed where somebody has the step. Where the store has leases, that of the step is ours afterwards: whoever
        has it is the only one who may claim the step, and the record that claims it is compared besides.
        """
        leases = self.project.store.leases
        if leases is None:
            if claims.is_alive(self.project, self.run, self.step, state):
                raise claims.claimed_by(self.run, self.where, state.holder)
        elif not self._lease.is_held:
            self._lease = lease = KeptLease(leases, self.log.stream, claims.told(name, self._writer), self._seconds)
            try:
                lease.take_within(0.0 if state.holder is not None else _RELEASING)
            except Claimed as error:
                known = state.holder if state.holder is not None else claims.unrecorded(error.by, error.since)
                raise claims.claimed_by(self.run, self.where, known) from None

    def _check_claimable(self, state: StepState) -> dict[str, Any]:
        """How a pause has ended, with which signal, and the position in the inbox behind it. RunEnded where nothing can
        be done at the step now.
        """
        if state.phase == "paused":
            inbox = self._inbox_behind(state)
            sent = inbox.next(state.pause)
            if sent is not None:
                heard = inbox.receive(sent)
                return {"resumed": "signal", "heard": [heard], "inbox": inbox.position._asdict()}
            if self._is_time(state):
                return {"resumed": "timeout"}
            status = f"paused until {state.not_before} or a signal {state.pause}"
            raise RunEnded(self.where, status, f"ralf signal {self.run} {state.pause}")
        if state.phase:
            verb = "show" if state.phase == "completed" else "retry"
            raise RunEnded(self.where, state.phase, f"ralf run {verb} {self.run}")
        if not self._is_time(state):
            raise RunEnded(self.where, f"waiting until {state.not_before}", f"ralf run retry {self.run}")
        return {}

    def _is_time(self, state: StepState) -> bool:
        """Whether a step continues by now. A clock that is set back lets no one wait longer than the wait was to be."""
        until, now = records.seconds_of(state.not_before), time.time()
        if until <= now:
            return True
        if self._waited_for != state.not_before:
            longest = until - records.seconds_of(state.at) if state.at else until - now
            self._waited_for, self._waits_to = state.not_before, time.monotonic() + min(until - now, longest)
        return time.monotonic() >= self._waits_to

    def begin_iteration(self) -> None:
        """Start an iteration, or go on with one."""
        state = self.log.state
        self.replays, self.unrecorded, self.unsaved, self._making = list(state.replays), [], {}, {}
        self.output.begin(self._writer, state.term, state.iteration, state.attempt)

    # ---- the calls that are being made ----

    def begins(self, key: str, owner: object) -> bool:
        """Let `owner`, a thread or a task, make the call of a key, which no one else makes until `ends`; False where
        somebody else is at it. UsageError where that is `owner`.
        """
        with self.lock:
            if self._making.get(key) == owner:
                raise UsageError(self.where, f"the call {ascii(key)[:80]} is made within itself", "use another key")
            return self._making.setdefault(key, owner) == owner

    def ends(self, key: str, owner: object) -> None:
        """Let others make the call of a key, or see its answer."""
        with self.lock:
            if self._making.get(key) == owner:
                del self._making[key]

    # ---- losing and releasing the claim ----

    @property
    def is_cut_off(self) -> bool:
        """Whether the engine with our lease did not answer when it was asked last."""
        return self._lease.is_away

    def check_ours(self) -> None:
        """StaleLease, RunCancelled where the newest state has no claim of ours."""
        state = self.log.state
        one = state.holder
        if one is not None and (one.writer, state.term, state.nonce) == (self._writer, self.term, self._nonce):
            return
        if state.phase == "cancelled" and state.nonce == self._nonce:
            raise self._refuse(RunCancelled(self.where, state.reason))
        by = one.by if one is not None else ""
        what = f"its claim, term {self.term}, was lost" + (f"; {by} has it now, term {state.term}" if by else "")
        raise self._refuse(StaleLease(self.where, what, by, f"ralf run show {self.run}"))

    def check_moved(self) -> None:
        """The same, where somebody else has appended, or rewritten the stream."""
        with fenced(self.where):
            self.look()
            self.check_ours()
            self._keep_lease()

    def look(self) -> StepState:
        """The state as the store has it now. Claims nothing."""
        with fenced(self.where):
            return self.log.look()

    def _keep_lease(self) -> None:
        """Take the lease again where it has ended and nobody has claimed the step since: the process was stopped, or
        did not reach the engine. StaleLease where somebody is about to claim it.
        """
        if not (isinstance(self._lease, KeptLease) and self._lease.is_lost):
            return
        self.look()
        self.check_ours()
        try:
            self._lease.take()
        except Claimed as error:
            by = claims.unrecorded(error.by, error.since).by
            what = f"its claim, term {self.term}, was lost: no sign of life reached the engine in time; {by} has it now"
            raise self._refuse(StaleLease(self.where, what, by, f"ralf run show {self.run}")) from None

    def _refuse(self, error: RalfError) -> RalfError:
        """Note that the step is lost for this object: what its caller has in memory is out of date."""
        self._refused = error
        self.output.drop()
        self.let_go()
        return error

    def reopen(self) -> None:
        """Forget that the step was cancelled under this object, for who begins anew with what the records say."""
        if isinstance(self._refused, RunCancelled):
            self._refused = None

    def let_go(self) -> None:
        """Hold the step no longer: the record that says so was written, or is somebody else's."""
        self.term = 0
        self.newest = None
        self._inbox = None
        claims.held_here.pop(self._writer, None)
        self._lease.end()

    def release(self) -> None:
        """Record that the claim ends without a decision. What cannot be recorded is seen by the end of the process, or
        of the lease.
        """
        with suppress(RalfError, OSError):
            if not self.is_cut_off:
                self.write(lambda _: body("released"))
        if self.term:
            self.let_go()

    # ---- writing ----

    def write(self, make: Callable[[StepState], Body]) -> StepState:
        """Append the record that `make` makes of the present state, which has to be ours."""

        def ours(state: StepState) -> Body:
            self.check_ours()
            self._keep_lease()
            return make(state)

        try:
            with fenced(self.where):
                self.log.write(ours, self._writer)
        except Fenced:
            self._lease.is_away = True
            raise
        return self.log.state

    def record(self, make: Callable[[StepState], Body]) -> StepState:
        """The same of a record that depends on what was heard, behind the output so far."""
        self.output.flush()
        heard = self.received()
        state = self.write(lambda before: {**make(before), **heard})
        self.unrecorded = []
        return state

    def record_answer(self, key: str, data: bytes, *, is_json: bool) -> None:
        """Record the answer of a call. Where the engine is away it is kept: who makes the call again gets it then."""
        try:
            made = body("answered", key=key, answer=self.pack(data), is_json=is_json)
            self.record(lambda _: made)
        except Fenced:
            self.unsaved[key] = data, is_json
            raise
        self.unsaved.pop(key, None)

    @property
    def most_pause(self) -> float:
        """Seconds between two looks for a signal, at most: each look at an engine is a request."""
        return _MOST_PAUSE if self.project.store.leases is None else _MOST_PAUSE_OF_REQUESTS

    def keep_newest(self, state: bytes | None) -> None:
        """Keep the newest state in memory, unless it is large."""
        is_small = state is not None and len(state) <= _MOST_KEPT
        self.newest = (self.log.state.states, bytes(state)) if state is not None and is_small else None

    def pack(self, data: bytes | None) -> contents.Tree | None:
        """Bytes as they stand in a record, None for None."""
        with fenced(self.where):
            return contents.pack(self.project.store, data, self.where) if data is not None else None

    def unpacked(self, tree: contents.Tree | None) -> bytes:
        """The bytes of a content; errors as `contents.unpack`."""
        return contents.unpack(self.project.store, tree, self.where)

    # ---- signs of life ----

    def heartbeat(self) -> None:
        """Show that this process lives, and see whether the step is still ours; at most once a second."""
        self.claimed()
        if self._lease.is_fresh():
            return
        self.check_moved()
        if not self._lease.touch() and abs(time.time() - records.seconds_of(self.log.state.at)) > self._seconds / 4:
            self.write(lambda _: body("renewed"))

    # ---- the inbox ----

    @property
    def inbox(self) -> Inbox:
        """The inbox of the run, as far as this step has received it."""
        return self._inbox_behind(self.claimed()) if self._inbox is None else self._inbox

    def _inbox_behind(self, state: StepState) -> Inbox:
        """The inbox behind what the records say was received."""
        if self._inbox is None or self._inbox.position != state.inbox:
            self._inbox = Inbox(self.project, self.run, state.inbox)
        return self._inbox

    def received(self) -> dict[str, Any]:
        """The outcomes of waits that the next record depends on, and the position in the inbox behind them."""
        if not self.unrecorded or self._inbox is None:
            return {}
        return {"heard": list(self.unrecorded), "inbox": self._inbox.position._asdict()}

    def ahead(self) -> tuple[Heard, ...]:
        """Signals that were received before a crash and not returned again yet: a state cannot cover them."""
        return tuple(one for one in self.replays if one.number)
