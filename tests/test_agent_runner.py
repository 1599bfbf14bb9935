"""The runner: a handler called once an iteration, failures tried again, limits, delays and pauses that survive."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from pathlib import Path

import pytest

from ralf.agent import (
    AgentRun,
    AsyncAgentRun,
    Retry,
    get_run,
    retry_run,
    run_agent,
    run_agent_async,
    send_signal,
    tail,
)
from ralf.errors import StaleLease
from runskit import lapsed

QUICK = Retry(kind="fixed", attempts=3, initial=0.0)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "ralf.agent")


def final(root: Path, run: str = "one") -> bytes | None:
    return AgentRun(run, root=root).peek()


# ---- failures ----


def test_the_record_of_an_exception_has_its_type_and_place_and_not_its_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "ralf.agent")

    def handler(run: AgentRun) -> None:
        int("a conversation")

    state = run_agent(handler, "one", retry=Retry(attempts=1), root=tmp_path)
    assert state.status == "dead"
    assert state.reason.startswith("ValueError at test_agent_runner.py:")
    assert state.reason.endswith(" in handler")
    assert "conversation" in caplog.text


def test_a_call_without_an_answer_ends_the_run_where_it_may_not_be_repeated(tmp_path: Path) -> None:
    keys = []

    def handler(run: AgentRun) -> None:
        run.once("payment", lambda key: keys.append(key) or 1 / 0)

    state = run_agent(handler, "one", retry=QUICK, unknown="stop", root=tmp_path)
    assert (state.status, state.attempt, len(keys)) == ("dead", 2, 1)
    assert "'payment'" in state.reason and keys[0] in state.reason
    retry_run("one", root=tmp_path)
    assert run_agent(handler, "one", retry=QUICK, unknown="stop", root=tmp_path).status == "dead"
    retry_run("one", root=tmp_path)

    def known(run: AgentRun) -> None:
        run.complete(run.once("payment", lambda key: b"again", unknown=lambda key: b"paid" if key in keys else None))

    assert run_agent(known, "one", root=tmp_path).status == "completed"
    assert AgentRun("one", root=tmp_path).result() == b"paid"


def test_an_interrupt_releases_the_claim_and_counts_no_attempt(tmp_path: Path) -> None:
    def handler(run: AgentRun) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_agent(handler, "one", root=tmp_path)
    state = get_run("one", root=tmp_path)
    assert (state.status, state.attempt) == ("waiting", 1)


# ---- waiting ----


def approving(run: AgentRun) -> None:
    if not run.resumed:
        run.save(b"kept")
        run.pause("approval", 0.3)
    else:
        run.complete(f"{run.resumed} {run.resumed_by.text if run.resumed_by else ''}".encode(), state=run.load())


def test_a_pause_ends_with_its_signal_and_leaves_the_state_alone(tmp_path: Path) -> None:
    def sender() -> None:
        while get_run("one", root=tmp_path).status != "paused":
            time.sleep(0.01)
        send_signal("one", "other", "no", root=tmp_path)
        send_signal("one", "approval", "yes", root=tmp_path)

    def patient(run: AgentRun) -> None:
        if not run.resumed:
            run.save(b"kept")
            run.pause("approval", 60)
        else:
            approving(run)

    with AgentRun("one", root=tmp_path) as run:
        assert run.is_open
    thread = threading.Thread(target=sender)
    thread.start()
    run_agent(patient, "one", root=tmp_path)
    thread.join()
    assert AgentRun("one", root=tmp_path).result() == b"signal yes"
    assert final(tmp_path) == b"kept"


def test_a_runner_that_was_replaced_is_refused_and_records_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handler(run: AgentRun) -> None:
        lapsed(monkeypatch)  # without a sign of life since
        with AgentRun("one", by="second", root=tmp_path) as other:
            other.complete(b"by the second")
            run.save(b"older")

    with pytest.raises(StaleLease):
        run_agent(handler, "one", root=tmp_path)
    state = get_run("one", root=tmp_path)
    assert (state.status, state.attempt, state.states) == ("completed", 1, 0)


# ---- coroutines ----


def test_a_handler_of_coroutines_runs_as_one_of_threads(tmp_path: Path) -> None:
    calls = []

    async def handler(run: AsyncAgentRun) -> None:
        async def ask(key: str) -> str:
            await asyncio.sleep(0.01)
            calls.append(key)
            return f"answer {run.iteration}"

        first, second = await asyncio.gather(run.once("a", ask), run.once("b", lambda key: {"plain": 1}))
        assert second == {"plain": 1}
        await run.stream(first.encode())
        if run.iteration == 1 and run.attempt == 1:
            raise ValueError("once more")
        if run.iteration == 2:
            await run.complete(first.encode(), state=run.input)
        else:
            await run.continue_with(first.encode())

    state = asyncio.run(run_agent_async(handler, "one", retry=QUICK, root=tmp_path))
    assert (state.status, state.iteration, len(calls)) == ("completed", 2, 2)
    assert final(tmp_path) == b"answer 1"
    assert b"".join(tail("one", root=tmp_path)) == b"answer 1answer 1answer 2"


def test_no_more_iterations_begin_than_are_allowed(tmp_path: Path) -> None:
    seen = []

    def handler(run: AgentRun) -> None:
        seen.append(run.iteration)
        run.continue_with()

    state = run_agent(handler, "one", max_iterations=3, root=tmp_path)
    assert (seen, state.status, "max_iterations" in state.reason) == ([1, 2, 3], "dead", True)
