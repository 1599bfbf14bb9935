"""One step of a run, held by this process: its states, the calls that it makes once, its decisions and its signals."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from functools import partial
from typing import Any

from ralf import project as projects
from ralf.agent import claims, contents, records, states
from ralf.agent.hold import Hold
from ralf.agent.model import MAIN, Retry, RunState, SavedState, Signal, at_least_one, check_key, check_names, seconds
from ralf.agent.records import Heard, StepState, body
from ralf.agent.signals import signal_of
from ralf.agent.steplog import reason_text
from ralf.errors import NotFound, RalfError, RunCancelled, RunEnded, StaleLease, UnknownAnswer, UsageError
from ralf.storage.engine_calls import fenced
from ralf.text.patterns import regex

Root = str | os.PathLike[str] | None

Unknown = str | Callable[[str], Any]
"""What to do about a call that was asked and has no answer: "repeat", "stop", or a function that looks it up."""

_LEAST_PAUSE = 0.005  # seconds between the first two looks for a signal, or whether another one has made a call

_LONGEST_TURN = 0.1  # seconds between two looks whether another one has made a call

_REFERENCE = regex(r"\[Result stored at (?P<run>[^/\s]+)/(?P<key>.+), [0-9]+ bytes\]")


Steps = Generator[Any, Any, Any]
"""What is done in steps, between which whoever drives them does what they yield: waits seconds, or calls a function and
sends what it returns. So threads and coroutines share them.
"""


def advanced(steps: Steps, sent: object = None) -> tuple[bool, Any]:
    """Whether steps have ended, and what they return then; else what they yield."""
    try:
        return False, steps.send(sent)
    except StopIteration as end:
        return True, end.value


def _driven(steps: Steps) -> Any:
    sent = None
    with closing(steps):
        while True:
            has_ended, found = advanced(steps, sent)
            if has_ended:
                return found
            if callable(found):
                sent = found()
            else:
                time.sleep(found)


class AgentRun:
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
        root: Root = None,
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
        self.run = run
        self.step = step
        self._keep = at_least_one(keep, "keep")
        self._unknown = _checked(unknown)
        self._retry = retry
        self._loop_delay = seconds(loop_delay, "loop_delay")
        self._project = projects.find(root)
        lease_ = seconds(lease, "lease", least=0.001)
        self._hold = Hold(self._project, run, step, by=by, seconds=lease_, first_input=input)
        self._log, self._lock = self._hold.log, self._hold.lock

    # ---- the claim ----

    @property
    def term(self) -> int:
        """The number of our claim; 0 while we hold none."""
        return self._hold.term

    @property
    def iteration(self) -> int:
        """1, then one more after each `continue_with`. Claims."""
        return self._claimed().iteration

    @property
    def attempt(self) -> int:
        """1, then one more after each failure in this iteration. Claims."""
        return self._claimed().attempt

    @property
    def input(self) -> bytes:
        """The input of this iteration: the run's own, then the output of the last `continue_with`. Claims."""
        with self._lock:
            self._claimed()
            found = self._log.content(lambda rows: records.step_of(rows).input_at, "input", "output")
            return self._hold.unpacked(found)

    @property
    def is_open(self) -> bool:
        """Whether this process may work at the step now: claims it where it can be claimed.

        False once it has completed, failed for good, is dead or cancelled, is paused, or waits for its time. Claimed.
        """
        with self._lock:
            try:
                self._claimed()
                self._hold.check_moved()
            except (RunEnded, RunCancelled):
                return False
            return True

    @property
    def resumed(self) -> str:
        """How the last pause of this iteration ended: "signal", "timeout", "retried", or "" for no pause. Claims."""
        return self._claimed().resumed

    @property
    def resumed_by(self) -> Signal | None:
        """The signal that ended the last pause of this iteration; None for a time-out or no pause. Claims."""
        with self._lock:
            heard = self._claimed().resumed_by
            return self._hold.inbox.signal(heard) if heard is not None else None

    @property
    def status(self) -> str:
        """One of `ralf.agent.model.STATUSES`, as the store has it now. Claims nothing."""
        with self._lock:
            return claims.status_of(self._project, self.run, self.step, self._hold.look())

    def state(self) -> RunState:
        """What is known of the step now: metadata only. Claims nothing."""
        with self._lock:
            return claims.run_state(self._project, self.run, self.step, self._hold.look())

    def __enter__(self) -> AgentRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reopen(self) -> None:
        """Have the next call claim the step again although it was cancelled meanwhile, where somebody has opened it
        again. What the caller knows of the step's state is out of date.
        """
        with self._lock:
            self._hold.reopen()

    def close(self) -> None:
        """Release the claim, if we hold it, and write what is left of the output. Done twice it changes nothing."""
        with self._lock:
            if self._hold.is_ours():
                try:
                    with suppress(StaleLease):
                        if not self._hold.is_cut_off:
                            self._hold.output.flush(whole=True)
                finally:
                    self._hold.release()

    def heartbeat(self) -> None:
        """Show that this process lives; touches a file at most once a second. `once` and `wait_signal` do it, too.

        StaleLease, RunCancelled where the step is no longer ours. Claims.
        """
        with self._lock:
            self._hold.heartbeat()

    def _claimed(self) -> StepState:
        with self._lock:
            return self._hold.claimed()

    # ---- states ----

    def load(self, number: int | None = None) -> bytes | None:
        """The newest saved state, or the one of a number; None for none. NotFound for a number that is gone. Claims."""
        with self._lock:
            self._claimed()
            self._hold.check_moved()
            if number is not None:
                return self._state(number)
            if self._hold.newest is None or self._hold.newest[0] != self._log.state.states:
                self._hold.keep_newest(found := self._state(None))
                return found
            return self._hold.newest[1]

    def peek(self, number: int | None = None) -> bytes | None:
        """The same as the store has it now, for who only looks. Claims nothing."""
        with self._lock:
            self._hold.look()
            return self._state(number)

    def _state(self, number: int | None) -> bytes | None:
        found = self._log.content(lambda rows: records.state_at(rows, number), "state")
        if found is None and number is None:
            return None
        if found is None:
            raise NotFound(self._hold.where, f"has no state {number}", f"ralf run show {self.run}")
        return self._hold.unpacked(found)

    def save(self, state: bytes) -> int:
        """Save a state, of any size, and return its number; durable when this returns.

        What `wait_signal` returned before counts as part of it: it is not returned again.
        """
        with self._lock:
            self._claimed()
            tree, ahead = self._hold.pack(contents.checked(state, self._hold.where)), self._hold.ahead()
            made = self._hold.record(lambda before: body("saved", number=before.states + 1, state=tree, ahead=ahead))
            self._hold.keep_newest(state)
            self._tidy()
            return made.states

    def states(self) -> list[SavedState]:
        """The saved states, oldest first. Claims nothing."""
        with self._lock:
            found = self._log.rows(records.states_of)
            return [SavedState(int(one.name), one.iteration, one.at, one.size, one.is_kept) for one in found]

    def _tidy(self) -> None:
        """Drop old contents where that is worth a rewriting of the stream. What fails is tried later."""
        with suppress(RalfError, OSError):
            if states.is_due(self._log.state):
                pruned = states.tidy(self._project, self._log, self._keep)
                self._hold.write(lambda _: pruned)

    # ---- calls that are made once ----

    def once(self, key: str, call: Callable[[str], Any], *, unknown: Unknown | None = None) -> Any:
        """The answer of a call that is made once in this iteration: recorded before it is returned.

        key      of the call within the iteration
        call     gets an idempotency key, the same at each repetition, and returns bytes or a JSON value
        unknown  about a call that was asked and has no answer, because a process died or `call` raised: "repeat" makes
                 it again and counts it; "stop" raises UnknownAnswer; a function is called with the idempotency key
                 and returns the answer, or None where there was none: then the call is repeated

        A JSON value comes back as JSON has it: tuples as lists, keys as strings. UsageError for an answer of another
        kind. What `call` raises comes through.
        """
        return _driven(self.making(key, call, unknown, threading.get_ident()))

    def making(self, key: str, call: Callable[[str], Any], unknown: Unknown | None, owner: object) -> Steps:
        """The same in steps, for `owner`: of two with the same key the second one waits for the first."""
        policy = _checked(unknown) if unknown is not None else self._unknown
        check_key(key, self._hold.where)
        self._claimed()
        pause = _LEAST_PAUSE
        while not self._hold.begins(key, owner):
            yield pause
            pause = min(1.5 * pause, _LONGEST_TURN)
        try:
            with self._lock:
                self._claimed()
                self._hold.check_moved()
                state = self._log.state
                if key in self._hold.unsaved:
                    data, is_json = self._hold.unsaved[key]
                    self._hold.record_answer(key, data, is_json=is_json)
                known = self._log.call(key)
                if known.answer_at:
                    tree = self._log.content(lambda rows: records.call_of(rows, key).answer_at, "answer")
                    data = self._hold.unpacked(tree)
                    return json.loads(data) if known.is_json else data
            idempotency_key = self._idempotency_key(state, key)
            if known.asked and policy == "stop":
                raise UnknownAnswer(self._hold.where, key, idempotency_key)
            with self._hold.pulse.beating():
                answer = (yield partial(policy, idempotency_key)) if known.asked and callable(policy) else None
                if answer is None:
                    self._ask(key, known.asked, state.iteration)
                    answer = yield partial(call, idempotency_key)
            is_json = not isinstance(answer, (bytes, bytearray, memoryview))
            data = _json(key, answer) if is_json else bytes(answer)
            with self._lock:
                self._check_iteration(key, state.iteration)
                self._hold.record_answer(key, data, is_json=is_json)
            return json.loads(data) if is_json else data
        finally:
            self._hold.ends(key, owner)

    def _ask(self, key: str, repeat: int, iteration: int) -> None:
        """Record that a call is about to be made."""
        with self._lock:
            self._check_iteration(key, iteration)
            self._hold.record(lambda _: body("asked", key=key, repeat=repeat))

    def _check_iteration(self, key: str, iteration: int) -> None:
        if self._claimed().iteration != iteration:
            what = f"the iteration ended while the call {key!r} was made: not recorded"
            raise UsageError(self._hold.where, what)

    def _idempotency_key(self, state: StepState, key: str) -> str:
        name = json.dumps([state.nonce, self.run, self.step, state.iteration, key])
        return hashlib.sha256(name.encode()).hexdigest()[:40]

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

    def give_up(self, reason: str) -> None:
        """End the step as dead: a dead letter, which `retry_run` reopens."""
        with self._lock:
            self._claimed()
            self._hold.output.flush(whole=True)
            words = reason_text(self._project, reason)
            self._hold.write(lambda state: body("dead", reason=words, attempts=state.attempt))
            self._hold.let_go()

    def pause(self, name: str, timeout: float) -> None:
        """Release the step until a signal of this name comes or `timeout` seconds are over; the state is untouched.

        The same iteration then goes on, with its answers: see `resumed`.
        """
        check_names(name, what="signal")
        until = records.time_text(time.time() + seconds(timeout, "timeout"))
        self._decide("pause", not_before=until, name=name)

    def _decide(
        self,
        decision: str,
        output: bytes | None = None,
        state: bytes | None = None,
        *,
        reason: str = "",
        not_before: str = "",
        name: str = "",
        releases: bool = True,
    ) -> None:
        """Record a decision with all that belongs to it."""
        with self._lock:
            self._claimed()
            self._hold.output.flush(whole=True)
            self._tidy()
            output_tree, state_tree = self._hold.pack(output), self._hold.pack(state)
            words = reason_text(self._project, reason) if reason else ""
            # What was heard and is part of no state was not received: whoever tries again waits for it again.
            more = self._hold.received() if decision in ("continue", "complete") else {}
            self._hold.write(
                lambda before: body(
                    "decided",
                    decision=decision,
                    output=output_tree,
                    state=state_tree,
                    number=before.states + 1 if state_tree is not None else 0,
                    ahead=self._hold.ahead() if decision == "continue" else (),
                    reason=words,
                    not_before=not_before,
                    name=name,
                    releases=releases,
                    **more,
                )
            )
            if state is not None and not releases:
                self._hold.keep_newest(state)
            if releases:
                self._hold.let_go()
            else:
                self._hold.begin_iteration()

    def result(self) -> bytes | None:
        """The output of `complete`; None for a step that has not completed. Claims nothing."""
        with self._lock:
            if self._hold.look().phase != "completed":
                return None
            return self._hold.unpacked(self._log.content(lambda rows: records.step_of(rows).output_at, "output"))

    # ---- signals ----

    def wait_signal(self, name: str, timeout: float) -> Signal | None:
        """The next signal of this name, None for a time-out: a normal answer.

        timeout  seconds; 0 only looks

        A signal counts as received with the next record. After a crash or a failure, outcomes of this iteration that
        records depend on and that no saved state covers are returned again, in order; the others were never received.
        """
        found: Signal | None = _driven(self.waiting(name, timeout))
        return found

    def waiting(self, name: str, timeout: float) -> Steps:
        """The same in steps."""
        check_names(name, what="signal")
        deadline = time.monotonic() + seconds(timeout, "timeout")
        pause = _LEAST_PAUSE
        while True:
            with fenced(self._hold.where), self._lock:
                self._claimed()
                inbox = self._hold.inbox
                again = next((one for one in self._hold.replays if one.name == name), None)
                if again is not None:
                    signal = inbox.signal(again)
                    self._hold.replays.remove(again)
                    return signal
                if (sent := inbox.next(name)) is not None:
                    signal = signal_of(self._project, sent)
                    self._hold.unrecorded.append(inbox.receive(sent))
                    return signal
                if (left := deadline - time.monotonic()) <= 0:
                    self._hold.unrecorded.append(Heard(name))
                    return None
            self.heartbeat()
            yield min(pause, left)
            pause = min(1.5 * pause, self._hold.most_pause)

    # ---- output and stored results ----

    def stream(self, data: bytes) -> None:
        """Add to the step's output, which `tail` reads; the first bytes are durable at once, what follows within 0.05 s
        together, and always before the next record.
        """
        self._claimed()
        self._hold.output.add(data)

    def external(self, key: str, blob: bytes) -> str:
        """Store a large result under a key, and return the line that stands for it: `[Result stored at RUN/KEY, N
        bytes]`. The same bytes under the same key are stored once; others replace them.
        """
        check_key(key, self._hold.where, printable=True)
        sum_ = hashlib.sha256(contents.checked(blob, self._hold.where)).hexdigest()[:32]
        with self._lock:
            self._claimed()
            if self._log.rows(lambda rows: records.stored_at(rows, key)[1]) != sum_:
                self._hold.output.flush()
                made = body("external", key=key, sum=sum_, blob=self._hold.pack(blob))
                self._hold.write(lambda _: made)
        return f"[Result stored at {self.run}/{key}, {len(blob)} bytes]"

    def fetch(self, reference: str) -> bytes:
        """The bytes that were stored under a key, or for a line of `external`. NotFound. Claims nothing."""
        match = _REFERENCE.fullmatch(reference.strip())
        key = match["key"] if match and match["run"] == self.run else reference
        with self._lock:
            self._hold.look()
            found = self._log.content(lambda rows: records.stored_at(rows, key)[0], "blob")
            if found is None:
                raise NotFound(self._hold.where, f"has no result stored under {ascii(key)[:80]}")
            return self._hold.unpacked(found)


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
