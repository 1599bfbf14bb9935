"""The runner: calls a function for each iteration of a run, tries again what fails, and stops at the limits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ralf.agent.model import MAIN, Retry, RunState, at_least_one, seconds
from ralf.agent.records import StepState, seconds_of
from ralf.agent.run import AgentRun, Unknown, sleep
from ralf.errors import Fenced, RalfError, RunCancelled, StaleLease, UnknownAnswer, UsageError
from ralf.text.frozen import NamedTuple

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
    root: str | os.PathLike[str] | None = None,
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
    if not callable(handler):
        raise UsageError("handler", f"a function is expected, and this is of type {type(handler).__name__}")
    if not (retry is None or isinstance(retry, Retry)):
        raise UsageError("retry", f"of type {type(retry).__name__}", "give a Retry: Retry(attempts=3)")
    limits = Limits(max_iterations, max_duration, max_losses).checked()
    options: dict[str, Any] = {"input": input, "unknown": unknown, "loop_delay": loop_delay, "lease": lease, "by": by}
    outages, pause = 0, _FIRST
    with AgentRun(run, step, retry=retry or Retry(), keep=keep, root=root, **options) as agent:
        while True:
            with suppress(RunCancelled):  # the next look sees it, too
                while agent.is_open:
                    pause = _FIRST
                    if reason := limits.reached(agent.known):
                        agent.give_up(reason)
                    else:
                        outages = attempt(agent, handler, outages)
            state = agent.state()
            if state.ended or not wait:
                return state
            agent.reopen()
            left = seconds_of(state.not_before) - time.time() if state.not_before else pause
            sleep.get()(max(_FIRST / 2, min(pause, left)))
            pause = min(pause * 2, _LONGEST)


class Limits(NamedTuple):
    """How far a run may go; see `run_agent`."""

    max_iterations: int | None = 100
    max_duration: float | None = None
    max_losses: int | None = 10

    def checked(self) -> Limits:
        """The same; UsageError where one makes no sense."""
        for name in ("max_iterations", "max_losses"):
            if (most := getattr(self, name)) is not None:
                at_least_one(most, name)
        if self.max_duration is not None:
            seconds(self.max_duration, "max_duration")
        return self

    def reached(self, state: StepState) -> str:
        """The limit that a step has reached, "" for none."""
        if self.max_iterations is not None and state.iteration > self.max_iterations:
            return f"max_iterations is {self.max_iterations}"
        if self.max_duration is not None and time.time() - seconds_of(state.began) > self.max_duration:
            return f"max_duration is {self.max_duration:g} seconds"
        if self.max_losses is not None and state.losses >= self.max_losses:
            return f"the process died {state.losses} times in iteration {state.iteration}"
        return ""


def attempt(agent: AgentRun, handler: Callable[[AgentRun], object], outages: int = 0) -> int:
    """Call a handler once, and record a failure where it has decided nothing. Returns how often the engine was away in
    this attempt, which is not counted then; Fenced where that were `outages` before, too many.
    """
    known = agent.known
    before = known.iteration, known.attempt, known.phase
    reason = NO_DECISION
    decide: Callable[[str], None] = agent.fail
    try:
        returned = handler(agent)
    except Fenced:  # nothing can be recorded. The next look raises it, or it is over
        if outages == _MOST_OUTAGES:
            raise
        return outages + 1
    except Exception as error:  # whatever it is, the attempt has failed
        if not agent.term and isinstance(error, StaleLease | RunCancelled):
            return 0  # the step is no longer ours: the next look says so
        import logging  # for failures alone

        told = "%s/%s: iteration %d, attempt %d failed"
        logging.getLogger("ralf.agent").warning(told, agent.run, agent.step, *before[:2], exc_info=error)
        reason = reason_of(error)
        if isinstance(error, UnknownAnswer):
            reason, decide = f"{error.what}; its idempotency key: {error.idempotency_key}", agent.give_up
    else:
        if hasattr(returned, "__await__"):
            getattr(returned, "close", lambda: None)()
            raise UsageError("handler", "is a coroutine function", "call run_agent_async instead")
    known = agent.known
    if (known.iteration, known.attempt, known.phase) == before:  # else what was decided stands
        decide(reason)
    return 0


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
