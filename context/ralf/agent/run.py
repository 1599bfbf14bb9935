"""One step of a run, held by this process: its states, the calls that it makes once, its decisions and its signals."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from ralf import project as projects
from ralf.agent import contents, records, signals, states
from ralf.agent.hold import Hold, locked
from ralf.agent.model import MAIN, Retry, RunState, SavedState, Signal, at_least_one, check_key, check_names, seconds
from ralf.agent.records import NOT_CALLED, Heard, StepState, body
from ralf.agent.steplog import reason_text
from ralf.errors import Fenced, NotFound, RalfError, RunCancelled, RunEnded, UnknownAnswer, UsageError
from ralf.text.patterns import regex

Unknown = str | Callable[[str], Any]
"""What to do about a call that was asked and has no answer: "repeat", "stop", or a function that looks it up."""

_LEAST_PAUSE = 0.005  # seconds between the first two looks for a signal

_MOST_PAUSE, _MOST_PAUSE_OF_REQUESTS = 0.1, 0.5  # between two looks later; each look at an engine is a request

_REFERENCE = regex(r"\[Result stored at (?P<run>[^/\s]+)/(?P<key>.+), [0-9]+ bytes\]")

sleep: ContextVar[Callable[[float], object]] = ContextVar("sleep", default=time.sleep)
"""What waits so many seconds here; it raises where nobody waits any longer."""

_within: ContextVar[frozenset[tuple[str, str]]] = ContextVar("within", default=frozenset())
"""The calls that are being made here, by what makes them and their keys: none is made within itself."""


class AgentRun(Hold):
    """A step of a run, for one process at a time. Leave it with `with`: closing releases the claim.

    The first use claims it (`Claimed` names a live holder). The claim has a term, one higher each time; a process that
    lost it is refused at its next write (`StaleLease`). A holder that died loses it at once, one that is silent when
    its lease ends. Every write is one record, durable when the call returns. Several threads may call the methods.

    Errors of every method that claims or writes: Claimed; StaleLease; RunCancelled; RunEnded for a step that has ended,
    is paused or waits; Fenced where the engine of the store does not answer; DamagedJournal; Busy; OSError.
    """

    def __init__(
        self,
        run: str,
        step: str = MAIN,
        *,
        root: str | os.PathLike[str] | None = None,
        by: str = "",
        lease: float = 300.0,
        keep: int = 5,
        input: bytes = b"",  # noqa: A002
        unknown: Unknown = "repeat",
        retry: Retry | None = None,
        loop_delay: float = 0.0,
    ) -> None:
        """Name a step; nothing is read or written yet.

        run, step   names as routes have them
        by          the holder's name; "": what the environment says
        lease       seconds without a sign of life after which another process may claim it. Where the store has leases
                    a thread shows them to its engine until then, and a process that dies or is stopped loses the claim
                    when the engine's lease ends (`nats_lease`)
        keep        how many of the newest states always stay
        input       of the run's first iteration; ignored where the run has one already
        unknown     what `once` does about a call without an answer, unless it is told otherwise
        retry       the policy of `fail`: its delays, and after how many attempts the step is dead. None: tried again at
                    once, without end
        loop_delay  seconds that `continue_with` waits at least

        UsageError for a name or a number that makes no sense.
        """
        check_names(run, step)
        lease_ = seconds(lease, "lease", least=0.001)
        super().__init__(projects.find(root), run, step, by, lease_, input)
        self._keep = at_least_one(keep, "keep")
        self.unknown = _checked(unknown)
        self._retry = retry
        self._loop_delay = seconds(loop_delay, "loop_delay")
        self._turns = threading.Condition(self._lock)
        self._making: set[str] = set()

    def __enter__(self) -> AgentRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what is known ----

    @property
    def term(self) -> int:
        """The number of our claim; 0 while we hold none."""
        return self._term

    @property
    def known(self) -> StepState:
        """What the records of the step came to when this process looked or wrote last."""
        return self._log.state

    @property
    def iteration(self) -> int:
        """1, then one more after each `continue_with`. Claims."""
        return self._claimed().iteration

    @property
    def attempt(self) -> int:
        """1, then one more after each failure in this iteration. Claims."""
        return self._claimed().attempt

    @property
    @locked
    def input(self) -> bytes:
        """The input of this iteration: the run's own, then the output of the last `continue_with`. Claims."""
        self._claimed()
        return self._log.content(lambda: self._log.state.input_at, "input", "output") or b""

    @property
    @locked
    def is_open(self) -> bool:
        """Whether this process may work at the step now: claims it where it can be claimed.

        False once it has completed, failed for good, is dead or cancelled, is paused, or waits for its time. Claimed.
        """
        with suppress(RunEnded, RunCancelled):
            self._claimed()
            self._check_moved()
            return True
        return False

    @property
    def resumed(self) -> str:
        """How the last pause of this iteration ended: "signal", "timeout", "retried", or "" for no pause. Claims."""
        return self._claimed().resumed

    @property
    @locked
    def resumed_by(self) -> Signal | None:
        """The signal that ended the last pause of this iteration; None for a time-out or no pause. Claims."""
        heard = self._claimed().resumed_by
        return self._inbox.signal(Heard(*heard)) if heard is not None else None

    @property
    def status(self) -> str:
        """One of `ralf.agent.model.STATUSES`, as the store has it now. Claims nothing."""
        return self.state().status

    @locked
    def state(self) -> RunState:
        """What is known of the step now: metadata only. Claims nothing."""
        self._log.look()
        return self._log.told(signals.count_of(self._project, self.run))

    # ---- states ----

    @locked
    def load(self, number: int | None = None) -> bytes | None:
        """The newest saved state, or the one of a number; None for none. NotFound for a number that is gone. Claims."""
        self._claimed()
        self._check_moved()
        if number is not None:
            return self._state(number)
        return self._newest if self._newest is not None else self._keep_newest(self._state(None))

    @locked
    def peek(self, number: int | None = None) -> bytes | None:
        """The same as the store has it now, for who only looks. Claims nothing."""
        self._log.look()
        return self._state(number)

    def _state(self, number: int | None) -> bytes | None:
        if number is None:
            return self._log.content(lambda: self._log.state.state_at, "state")
        found = self._log.content(lambda: self._log.rows(lambda rows: records.state_at(rows, number)), "state")
        if found is None:
            raise NotFound(self._log.where, f"has no state {number}", f"ralf run show {self.run}")
        return found

    @locked
    def save(self, state: bytes) -> int:
        """Save a state, of any size, and return its number; durable when this returns.

        What `wait_signal` returned before counts as part of it: it is not returned again.
        """
        self._claimed()
        tree, number = self._packed(contents.checked(state, self._log.where)), self._log.state.states + 1
        self._record("saved", number=number, state=tree, ahead=self._inbox.ahead())
        self._keep_newest(state)
        self._tidy()
        return number

    @locked
    def states(self) -> list[SavedState]:
        """The saved states, oldest first. Claims nothing."""
        return self._log.rows(records.states_of)

    def _tidy(self) -> None:
        """Drop old contents where that is worth a rewriting of the stream. What fails is tried later."""
        with suppress(RalfError, OSError):
            if states.is_due(self._log.state):
                self._write(states.tidy(self._log, self._keep))

    # ---- calls that are made once ----

    def once(self, key: str, call: Callable[[str], Any], *, unknown: Unknown | None = None) -> Any:
        """The answer of a call that is made once in this iteration: recorded before it is returned.

        key      of the call within the iteration; of two threads with the same key the second one waits for the first
        call     gets an idempotency key, the same at each repetition, and returns bytes or a JSON value
        unknown  about a call that was asked and has no answer, because a process died or `call` raised: "repeat" makes
                 it again and counts it; "stop" raises UnknownAnswer; a function is called with the idempotency key
                 and returns the answer, or None where there was none: then the call is repeated

        A JSON value comes back as JSON has it: tuples as lists, keys as strings. UsageError for an answer of another
        kind. What `call` raises comes through.
        """
        policy = _checked(unknown) if unknown is not None else self.unknown
        check_key(key, self._log.where)
        self._claimed()
        with self._turn(key):
            iteration, asked, answer = self._known(key)
            if answer is not None:
                return answer[0]
            name = json.dumps([self._nonce, self.run, self.step, iteration, key])
            idempotency_key = hashlib.sha256(name.encode()).hexdigest()[:40]
            if asked and policy == "stop":
                raise UnknownAnswer(self._log.where, key, idempotency_key)
            with self._beating():
                found = policy(idempotency_key) if asked and callable(policy) else None
                if found is None:
                    self._record_call(iteration, "asked", key=key, repeat=asked)
                    found = call(idempotency_key)
            is_json = not isinstance(found, (bytes, bytearray, memoryview))
            data = _json(key, found) if is_json else bytes(found)
            self._answered(iteration, key, data, is_json)
            return json.loads(data) if is_json else data

    @contextmanager
    def _turn(self, key: str) -> Iterator[None]:
        """Make the call of a key alone."""
        if (self._writer, key) in _within.get():
            raise UsageError(self._log.where, f"the call {ascii(key)[:80]} is made within itself", "use another key")
        with self._turns:
            self._turns.wait_for(lambda: key not in self._making)
            self._making.add(key)
        outside = _within.set(_within.get() | {(self._writer, key)})
        try:
            yield
        finally:
            _within.reset(outside)
            with self._turns:
                self._making.remove(key)
                self._turns.notify_all()

    @locked
    def _known(self, key: str) -> tuple[int, int, tuple[Any] | None]:
        """This iteration, how often a call was asked in it, and the answer that it has, None for none."""
        iteration = self._claimed().iteration
        self._check_moved()
        if key in self._unsaved:
            self._answered(iteration, key, *self._unsaved[key])
        asked, _, is_json = self._log.state.calls.get(key, NOT_CALLED)
        data = self._log.content(lambda: self._log.state.calls.get(key, NOT_CALLED)[1], "answer")
        if data is None:
            return iteration, asked, None
        return iteration, asked, (json.loads(data) if is_json else data,)

    @locked
    def _record_call(self, iteration: int, kind: str, *, key: str, **members: Any) -> None:
        """Record that a call of an iteration is about to be made, or its answer."""
        if self._claimed().iteration != iteration:
            what = f"the iteration ended while the call {key!r} was made: not recorded"
            raise UsageError(self._log.where, what)
        self._record(kind, key=key, **members)

    @locked
    def _answered(self, iteration: int, key: str, data: bytes, is_json: bool) -> None:
        """Record an answer. Where the engine is away it is kept: who makes the call again gets it then."""
        try:
            self._record_call(iteration, "answered", key=key, answer=self._packed(data), is_json=is_json)
        except Fenced:
            self._unsaved[key] = data, is_json
            raise
        self._unsaved.pop(key, None)

    # ---- decisions ----

    def continue_with(self, output: bytes = b"", *, state: bytes | None = None, delay: float = 0.0) -> None:
        """End the iteration: `output` is the input of the next one.

        state  saved with the decision, in one record
        delay  seconds until the next iteration; the claim is released for them
        """
        wait = max(seconds(delay, "delay"), self._loop_delay)
        self._decide("continue", output, state, not_before=_later(wait), releases=wait > 0)

    def complete(self, output: bytes = b"", *, state: bytes | None = None) -> None:
        """End the step: `result` is `output` from now on."""
        self._decide("complete", output, state)

    def fail(self, reason: str, *, retry_after: float | None = None) -> None:
        """End the attempt; the iteration is tried again, with its answers and its state, after a delay.

        reason       recorded on one line, redacted
        retry_after  seconds; None: as the policy says. Where its attempts are used up the step is dead
        """
        wait = seconds(retry_after, "retry_after") if retry_after is not None else 0.0
        attempt = self._claimed().attempt
        if self._retry is not None and attempt >= self._retry.attempts:
            self.give_up(reason)
            return
        if self._retry is not None and retry_after is None:
            wait = self._retry.delay(attempt)
        self._decide("fail", reason=reason, not_before=_later(wait))

    def fail_for_good(self, reason: str) -> None:
        """End the step as failed."""
        self._decide("fail-for-good", reason=reason)

    @locked
    def give_up(self, reason: str) -> None:
        """End the step as dead: a dead letter, which `retry_run` reopens."""
        attempt = self._claimed().attempt
        self._output.flush()
        self._write(body("dead", reason=reason_text(self._project, reason), attempts=attempt))
        self._let_go()

    def pause(self, name: str, timeout: float) -> None:
        """Release the step until a signal of this name comes or `timeout` seconds are over; the state is untouched.

        The same iteration then goes on, with its answers: see `resumed`.
        """
        check_names(name, what="signal")
        until = records.time_text(time.time() + seconds(timeout, "timeout"))
        self._decide("pause", not_before=until, name=name)

    @locked
    def _decide(
        self,
        decision: str,
        output: bytes | None = None,
        state: bytes | None = None,
        *,
        reason: str = "",
        releases: bool = True,
        **members: Any,
    ) -> None:
        """Record a decision with all that belongs to it."""
        before = self._claimed()
        self._output.flush()
        self._tidy()
        # What was heard and is part of no state was not received: whoever tries again waits for it again.
        received = self._inbox.received() if decision in ("continue", "complete") else {}
        made = body(
            "decided",
            decision=decision,
            output=self._packed(output),
            state=self._packed(state),
            number=before.states + 1 if state is not None else 0,
            ahead=self._inbox.ahead() if decision == "continue" else (),
            reason=reason_text(self._project, reason) if reason else "",
            releases=releases,
            **members,
            **received,
        )
        self._write(made)
        if releases:
            self._let_go()
            return
        self._begin_iteration()
        if state is not None:
            self._keep_newest(state)

    @locked
    def result(self) -> bytes | None:
        """The output of `complete`; None for a step that has not completed. Claims nothing."""
        if self._log.look().phase != "completed":
            return None
        return self._log.content(lambda: self._log.state.output_at, "output")

    # ---- signals ----

    def wait_signal(self, name: str, timeout: float) -> Signal | None:
        """The next signal of this name, None for a time-out: a normal answer.

        timeout  seconds; 0 only looks

        A signal counts as received with the next record. After a crash or a failure, outcomes of this iteration that
        records depend on and that no saved state covers are returned again, in order; the others were never received.
        """
        check_names(name, what="signal")
        deadline, pause = time.monotonic() + seconds(timeout, "timeout"), _LEAST_PAUSE
        most = _MOST_PAUSE if self._project.store.leases is None else _MOST_PAUSE_OF_REQUESTS
        while True:
            left = deadline - time.monotonic()
            is_over, signal = self._outcome(name, is_last=left <= 0)
            if is_over:
                return signal
            self.heartbeat()
            sleep.get()(min(pause, left))
            pause = min(1.5 * pause, most)

    @locked
    def _outcome(self, name: str, *, is_last: bool) -> tuple[bool, Signal | None]:
        self._claimed()
        return self._inbox.outcome(name, is_last=is_last)

    # ---- output and stored results ----

    @locked
    def stream(self, data: bytes) -> None:
        """Add to the step's output, which `tail` reads; the first bytes are durable at once, what follows within 0.05 s
        together, and always before the next record.
        """
        self._claimed()
        self._output.add(data)

    @locked
    def external(self, key: str, blob: bytes) -> str:
        """Store a large result under a key, and return the line that stands for it: `[Result stored at RUN/KEY, N
        bytes]`. The same bytes under the same key are stored once; others replace them.
        """
        check_key(key, self._log.where, printable=True)
        sum_ = hashlib.sha256(contents.checked(blob, self._log.where)).hexdigest()[:32]
        self._claimed()
        if self._log.rows(lambda rows: records.stored_at(rows, key)[1]) != sum_:
            self._output.flush()
            self._write(body("external", key=key, sum=sum_, blob=self._packed(blob)))
        return f"[Result stored at {self.run}/{key}, {len(blob)} bytes]"

    @locked
    def fetch(self, reference: str) -> bytes:
        """The bytes that were stored under a key, or for a line of `external`. NotFound. Claims nothing."""
        match = _REFERENCE.fullmatch(reference.strip())
        key = match["key"] if match and match["run"] == self.run else reference
        found = self._log.content(lambda: self._log.rows(lambda rows: records.stored_at(rows, key)[0]), "blob")
        if found is None:
            raise NotFound(self._log.where, f"has no result stored under {ascii(key)[:80]}")
        return found


def _checked(unknown: Unknown) -> Unknown:
    if not callable(unknown) and unknown not in ("repeat", "stop"):
        what = f"{unknown!r} is not what can be done about an unknown answer"
        raise UsageError("unknown", what, 'give "repeat", "stop" or a function')
    return unknown


def _json(key: str, answer: Any) -> bytes:
    try:
        try:
            return json.dumps(answer, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return json.dumps(answer).encode()
    except (TypeError, ValueError, RecursionError) as error:
        what = f"the answer is neither bytes nor a JSON value ({error}): it was not recorded"
        raise UsageError(f"call {key!r}", what, "return bytes, or what json.dumps takes") from None


def _later(seconds_: float) -> str:
    return records.time_text(time.time() + seconds_) if seconds_ > 0 else ""
