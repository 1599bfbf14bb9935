"""The runner: calls a function for each iteration of a run, tries again what fails, and stops at the limits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ralf.agent.model import MAIN, Retry, RunState, at_least_one, seconds
from ralf.agent.records import seconds_of
from ralf.agent.run import AgentRun, Unknown
from ralf.errors import Fenced, RalfError, RunCancelled, StaleLease, UnknownAnswer, UsageError

Root = str | os.PathLike[str] | None

_FIRST, _LONGEST = 0.02, 0.5  # seconds between two looks at a step that waits

_MOST_OUTAGES = 3  # of the engine in one attempt; then the handler's own error is taken for one

NO_DECISION = "the handler returned without a decision: continue_with, complete, fail or pause"


def run_agent(
    handler: Callable[[AgentRun], object],
    run: str,
    step: str = MAIN,
    *,
    input: bytes = b"",  # noqa: A002
    retry: Retry | None = None,
    max_iterations: int | None = 100,
    max_duration: float | None = None,
    max_losses: int | None = 10,
    loop_delay: float = 0.0,
    lease: float = 300.0,
    keep: int = 5,
    unknown: Unknown = "repeat",
    wait: bool = True,
    by: str = "",
    root: Root = None,
) -> RunState:
    """Work at a step of a run until it has ended, and return what became of it. Started again after any death of the
    process, it continues where the records say.

    handler         called once an iteration and attempt; it decides with `continue_with`, `complete`, `fail`,
                    `fail_for_good`, `give_up` or `pause`. If it raises an exception or returns without a decision, the
                    attempt has failed. The record names the exception's type and place, never its text, which goes to
                    the logger `ralf.agent`
    retry           delays between attempts, and how many there are; None: `Retry()`. Afterwards the step is dead
    max_iterations  how many may begin; then the step is dead. None: no limit
    max_duration    seconds after the run's first record in which an iteration or attempt may begin; then the step is
                    dead. Pauses and delays count, and are not cut short
    max_losses      how often the process may die within one iteration; then the step is dead
    loop_delay      seconds between two iterations, at least
    wait            whether to wait for a delay or a pause to end; False: return at once, for a scheduler that calls
                    again
    unknown         see `AgentRun.once`; with "stop", a call without an answer makes the step dead

    The limits hold for this call; the store keeps only what they led to. `step`, `input`, `lease`, `keep`, `by` as for
    `AgentRun`. Claimed names a live holder; StaleLease where another process has taken over meanwhile; Fenced where the
    engine of a store cannot be reached: the attempt is not counted, and who calls again continues it; UsageError for
    values that make no sense; DamagedJournal, Busy, OSError.
    """
    agent, driver = opened(
        handler,
        run,
        step,
        retry=retry,
        max_iterations=max_iterations,
        max_duration=max_duration,
        max_losses=max_losses,
        wait=wait,
        root=root,
        by=by,
        lease=lease,
        keep=keep,
        input=input,
        unknown=unknown,
        loop_delay=loop_delay,
    )
    with agent:
        while (due := driver.look()) is not None:
            if due:
                time.sleep(due)
                continue
            attempt = driver.begin()
            try:
                returned = handler(agent)
            except Exception as error:  # noqa: BLE001  # whatever it is, the attempt has failed
                driver.failed(attempt, error)
            else:
                if hasattr(returned, "__await__"):
                    getattr(returned, "close", lambda: None)()
                    raise UsageError("handler", "is a coroutine function", "call run_agent_async instead")
                driver.returned(attempt)
        return agent.state()


def opened(
    handler: object,
    run: str,
    step: str = MAIN,
    *,
    retry: Retry | None = None,
    max_iterations: int | None = 100,
    max_duration: float | None = None,
    max_losses: int | None = 10,
    wait: bool = True,
    **options: Any,
) -> tuple[AgentRun, Driver]:
    """A step, and what drives it; `options`: those of `AgentRun`. UsageError where an argument makes no sense."""
    if not callable(handler):
        raise UsageError("handler", f"a function is expected, and this is of type {type(handler).__name__}")
    if not (retry is None or isinstance(retry, Retry)):
        raise UsageError("retry", f"of type {type(retry).__name__}", "give a Retry: Retry(attempts=3)")
    for name, value in (("max_iterations", max_iterations), ("max_losses", max_losses)):
        if value is not None:
            at_least_one(value, name)
    if max_duration is not None:
        seconds(max_duration, "max_duration")
    agent = AgentRun(run, step, retry=retry or Retry(), **options)
    return agent, Driver(agent, max_iterations, max_duration, max_losses, wait=wait)


class Attempt(NamedTuple):
    """The iteration, attempt and term that a handler was called for."""

    iteration: int
    number: int
    term: int


class Driver:
    """What the runner does between two calls of a handler; the callers in threads and in coroutines share it.

    wait  whether delays and pauses are waited for; for the limits see `run_agent`
    """

    def __init__(
        self,
        agent: AgentRun,
        max_iterations: int | None,
        max_duration: float | None,
        max_losses: int | None,
        *,
        wait: bool,
    ) -> None:
        self._agent = agent
        self._limits = max_iterations, max_duration, max_losses
        self._waits = wait
        self._pause = _FIRST
        self._checked = 0  # the term whose losses were looked at
        self._outages = 0

    def look(self) -> float | None:
        """0.0 where a handler is to be called now, seconds to wait before the next look, or None for the end."""
        try:
            while self._agent.is_open:
                self._pause = _FIRST
                if not (reason := self._reached()):
                    return 0.0
                self._agent.give_up(reason)
            state = self._agent.state()
        except RunCancelled:
            return None
        if state.ended or not self._waits:
            return None
        self._agent.reopen()
        self._pause, due = min(self._pause * 2, _LONGEST), self._pause
        left = seconds_of(state.not_before) - time.time() if state.not_before else due
        return max(_FIRST / 2, min(due, left))

    def begin(self) -> Attempt:
        """What the next call of the handler is for."""
        return Attempt(self._agent.iteration, self._agent.attempt, self._agent.term)

    def returned(self, attempt: Attempt) -> None:
        """Record a handler's return, which is a failure where it has decided nothing."""
        self._outages = 0
        if not self._has_decided(attempt):
            self._record(self._agent.fail, NO_DECISION)

    def failed(self, attempt: Attempt, error: Exception) -> None:
        """Record the failure of a handler that raised `error`, unless the step is no longer ours: `look` sees that."""
        if not self._agent.term and isinstance(error, StaleLease | RunCancelled):
            return
        if isinstance(error, Fenced):  # nothing can be recorded: no attempt is counted. `look` raises it, or it is over
            self._outages += 1
            if self._outages > _MOST_OUTAGES:
                raise error
            return
        self._outages = 0
        import logging  # for failures alone

        where = f"{self._agent.run}/{self._agent.step}"
        logging.getLogger("ralf.agent").warning(
            "%s: iteration %d, attempt %d failed", where, attempt.iteration, attempt.number, exc_info=error
        )
        if self._has_decided(attempt):  # what was decided stands
            return
        if isinstance(error, UnknownAnswer):
            self._record(self._agent.give_up, f"{error.what}; its idempotency key: {error.idempotency_key}")
        else:
            self._record(self._agent.fail, reason_of(error))

    def _has_decided(self, attempt: Attempt) -> bool:
        """Whether anything was decided since, or somebody else has the step; a claim may also have been closed."""
        if self._agent.term == attempt.term:
            return self.begin() != attempt
        state = self._agent.state()
        now = Attempt(state.iteration, state.attempt, state.term)
        return now != attempt or state.status != "waiting"

    def _record(self, decide: Callable[[str], None], reason: str) -> None:
        try:
            decide(reason)
        except RunCancelled:  # `look` sees it, too
            return

    def _reached(self) -> str:
        """The limit that the step has reached, "" for none."""
        most, longest, losses = self._limits
        if most is not None and self._agent.iteration > most:
            return f"max_iterations is {most}"
        if self._checked == self._agent.term and longest is None:
            return ""
        state = self._agent.state()
        self._checked = state.term
        if longest is not None and time.time() - seconds_of(state.began) > longest:
            return f"max_duration is {longest:g} seconds"
        if losses is not None and state.losses >= losses:
            return f"the process died {state.losses} times in iteration {state.iteration}"
        return ""


def reason_of(error: BaseException) -> str:
    """The type of an exception and the last line of the caller's own code that it passed, without its text, which may
    quote a state or an answer; of an error of ours with it.
    """
    import traceback  # for failures alone
    from sysconfig import get_path

    others = (str(Path(__file__).parent), get_path("stdlib"), get_path("purelib"), "<frozen")
    places = [
        (frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    own = [place for place in places if not place[0].startswith(others)]
    name, line, function = (own or places or [("?", 0, "?")])[-1]
    told = f": {error}" if isinstance(error, RalfError) else ""
    return f"{type(error).__name__} at {Path(name).name}:{line} in {function}{told}"
