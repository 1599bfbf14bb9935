"""Runs whose callers, clocks and processes do what no one should: the error says so, and nothing hangs or is lost."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ralf import project as projects
from ralf.agent.async_run import AsyncAgentRun
from ralf.agent.run import AgentRun
from ralf.errors import Claimed, StaleLease, UsageError
from storekit import HANGS

# ---- calls within calls, threads, event loops ----


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
