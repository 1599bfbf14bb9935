"""Runs whose callers, clocks and processes do what no one should: the error says so, and nothing hangs or is lost."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ralf import project as projects
from ralf.agent.async_run import AsyncAgentRun
from ralf.agent.listing import cancel_run, get_run, retry_run
from ralf.agent.model import Retry
from ralf.agent.run import AgentRun
from ralf.agent.runner import run_agent
from ralf.agent.signals import send_signal
from ralf.errors import Claimed, RunCancelled, StaleLease, UsageError
from storekit import HANGS

# ---- values that make no sense ----


@pytest.mark.parametrize(
    "act",
    [
        lambda run: run.stream("text"),
        lambda run: run.stream(None),
        lambda run: run.save(None),
        lambda run: run.save({"a": 1}),
        lambda run: run.external("k", "text"),
        lambda run: run.complete("text"),
        lambda run: run.once(None, lambda _: 1),
        lambda run: run.once("\ud800", lambda _: 1),
        lambda run: run.once("x" * 501, lambda _: 1),
        lambda run: run.external(5, b""),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_the_run_s_name_and_nothing_is_recorded(
    tmp_path: Path, act: Callable[[AgentRun], object]
) -> None:
    with AgentRun("survey", root=tmp_path) as run:
        assert run.iteration == 1
        with pytest.raises(UsageError, match=r"^survey: "):
            act(run)
        assert run.state().at == run.state().began


@pytest.mark.parametrize(
    "act",
    [
        lambda root: AgentRun("r", root=root, keep="x"),  # type: ignore[arg-type]
        lambda root: AgentRun("r", root=root, lease="x"),  # type: ignore[arg-type]
        lambda root: AgentRun(None, root=root),  # type: ignore[arg-type]
        lambda root: run_agent(lambda _: None, "r", root=root, max_iterations="5"),  # type: ignore[arg-type]
        lambda root: run_agent(lambda _: None, "r", root=root, retry=3),  # type: ignore[arg-type]
        lambda root: run_agent(None, "r", root=root),  # type: ignore[arg-type]
        lambda root: send_signal("r", "n", "\ud800", root=root),
        lambda _: Retry(attempts=0.5),  # type: ignore[arg-type]
    ],
)
def test_an_argument_of_the_wrong_type_is_refused_before_anything_begins(
    tmp_path: Path, act: Callable[[Path], object]
) -> None:
    with pytest.raises(UsageError):
        act(tmp_path)
    assert not list(tmp_path.rglob("*.jsonl"))


def test_a_failure_s_reason_may_be_an_exception(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        run.fail(ValueError("busy"))  # type: ignore[arg-type]
    assert get_run("r", root=tmp_path).reason == "busy"


# ---- calls within calls, threads, event loops ----


def test_a_call_within_itself_is_refused_and_one_of_another_key_is_made(tmp_path: Path) -> None:
    found: list[object] = []

    def work() -> None:
        with AgentRun("r", root=tmp_path) as run:
            try:
                run.once("k", lambda _: run.once("k", lambda _: 1))
            except UsageError as error:
                found.append("k" in str(error))
            found.append(run.once("k", lambda _: run.once("other", lambda _: 2)))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(HANGS)
    assert found == [True, 2]


def test_coroutines_of_two_loops_and_a_thread_make_a_call_once(tmp_path: Path) -> None:
    run = AgentRun("r", root=tmp_path)
    shared = AsyncAgentRun.over(run)
    calls: list[int] = []
    answers: list[object] = []

    async def model(_: str) -> int:
        calls.append(1)
        await asyncio.sleep(0.2)
        return 7

    def loop() -> None:
        async def work() -> list[Any]:
            return await asyncio.gather(shared.once("k", model), shared.once("k", model))

        answers.extend(asyncio.run(work()))

    def plain() -> None:
        answers.append(run.once("k", lambda _: calls.append(1) or time.sleep(0.2) or 7))  # type: ignore[func-returns-value]

    threads = [threading.Thread(target=work, daemon=True) for work in (loop, loop, plain)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS)
    assert (len(calls), answers) == (1, [7] * 5)
    run.close()


def test_a_coroutine_s_call_within_itself_is_refused_and_a_cancelled_one_leaves_the_key_free(tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncAgentRun("r", root=tmp_path) as run:

            async def inner(_: str) -> Any:
                return await run.once("k", lambda _: 1)

            with pytest.raises(UsageError):
                await asyncio.wait_for(run.once("k", inner), HANGS)

            async def slow(_: str) -> None:
                await asyncio.sleep(HANGS)

            task = asyncio.create_task(run.once("k", slow))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.wait_for(run.once("k", lambda _: 3), HANGS) == 3

    asyncio.run(work())


def test_a_child_that_is_forked_within_a_call_can_record_nothing(tmp_path: Path) -> None:
    def call(_: str) -> str:
        child = os.fork()
        if child:
            return f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"
        return "of the child"

    with AgentRun("r", root=tmp_path) as run:
        parent = os.getpid()
        try:
            answer = run.once("k", call)
        except StaleLease:
            os._exit(9 if os.getpid() != parent else 1)
        if os.getpid() != parent:
            os._exit(0)
        assert answer == "9"
        assert run.once("k", lambda _: 1 / 0) == "9"


# ---- ends that others bring about ----


def test_a_runner_whose_run_is_cancelled_and_opened_again_at_once_continues_it(tmp_path: Path) -> None:
    seen: list[bytes | None] = []

    def handler(run: AgentRun) -> None:
        seen.append(run.load())
        if len(seen) == 1:
            run.save(b"one")
            cancel_run("r", root=tmp_path)
            with pytest.raises(RunCancelled):
                run.save(b"two")
            retry_run("r", root=tmp_path)
            run.complete()
        run.complete(b"done")

    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(run_agent(handler, "r", root=tmp_path)), daemon=True)
    thread.start()
    thread.join(HANGS)
    assert [one.status for one in found] == ["completed"]
    assert seen == [None, b"one"]


# ---- clocks ----


class Clock:
    """The wall clock, some seconds off."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.off, real = 0.0, time.time
        monkeypatch.setattr(time, "time", lambda: real() + self.off)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_clock_that_is_set_back_an_hour_takes_no_claim_from_a_holder_that_shows_life(
    tmp_path: Path, clock: Clock
) -> None:
    with AgentRun("r", root=tmp_path) as run:
        run.save(b"state")
        clock.off = -3_600
        run.heartbeat()
        files = projects.find(tmp_path).store.files
        assert files is not None
        os.utime(files.path("runs/r/main"), (time.time(), time.time()))
        with pytest.raises(Claimed):
            AgentRun("r", root=tmp_path).load()
        run.save(b"more")


def test_a_clock_that_is_set_back_an_hour_lengthens_no_delay(tmp_path: Path, clock: Clock) -> None:
    def handler(run: AgentRun) -> None:
        if run.iteration == 2:
            run.complete()
            return
        run.continue_with(delay=0.3)
        clock.off = -3_600

    begun = time.monotonic()
    assert run_agent(handler, "r", root=tmp_path).status == "completed"
    assert 0.3 <= time.monotonic() - begun < HANGS
