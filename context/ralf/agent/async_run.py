"""Runs of agents for coroutines: `AgentRun` and `run_agent`, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from typing import Any

from ralf.agent.model import MAIN, RunState, Signal
from ralf.agent.run import AgentRun, Steps, Unknown, advanced
from ralf.agent.runner import opened


class AsyncAgentRun:
    """`AgentRun` for coroutines: the same names and arguments. `async with` claims the step, if it can be.

    Its methods are awaited, and run in a thread. Its properties are not: they are known once the step is claimed. A
    call or a wait holds no thread, and any number of them may be under way.
    """

    def __init__(self, run: str, step: str = MAIN, **options: Any) -> None:
        """Name a step; nothing is read or written yet. The options are those of `AgentRun`."""
        self.sync = AgentRun(run, step, **options)

    @classmethod
    def over(cls, agent: AgentRun) -> AsyncAgentRun:
        """The coroutines of a step that an `AgentRun` has."""
        made = cls.__new__(cls)
        made.sync = agent
        return made

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.sync, name)
        return partial(asyncio.to_thread, found) if callable(found) else found

    async def __aenter__(self) -> AsyncAgentRun:
        await asyncio.to_thread(lambda: self.sync.is_open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.sync.close)

    async def once(
        self, key: str, call: Callable[[str], Awaitable[Any] | Any], *, unknown: Unknown | None = None
    ) -> Any:
        """See `AgentRun.once`. `call`, and a function that looks an answer up, may be coroutine functions."""
        return await _driven(self.sync.making(key, call, unknown, asyncio.current_task()))

    async def wait_signal(self, name: str, timeout: float) -> Signal | None:  # as in threads
        """See `AgentRun.wait_signal`."""
        found: Signal | None = await _driven(self.sync.waiting(name, timeout))
        return found


async def run_agent_async(
    handler: Callable[[AsyncAgentRun], Awaitable[object] | object], run: str, step: str = MAIN, **options: Any
) -> RunState:
    """`ralf.agent.run_agent`, with its options, for a handler that is a coroutine function. If the task is cancelled,
    the claim is released, and no attempt is counted.
    """
    agent, driver = opened(handler, run, step, **options)
    held = AsyncAgentRun.over(agent)
    try:
        while (due := await asyncio.to_thread(driver.look)) is not None:
            if due:
                await asyncio.sleep(due)
                continue
            attempt = driver.begin()
            try:
                await _awaited(handler(held))
            except Exception as error:  # noqa: BLE001  # whatever it is, the attempt has failed
                await asyncio.to_thread(driver.failed, attempt, error)
            else:
                await asyncio.to_thread(driver.returned, attempt)
        return await asyncio.to_thread(agent.state)
    finally:
        await asyncio.shield(asyncio.to_thread(agent.close))


async def _driven(steps: Steps) -> Any:
    """What steps return, each of which runs in a thread; none is held by what they yield."""
    sent = None
    try:
        while True:
            has_ended, found = await asyncio.to_thread(advanced, steps, sent)
            if has_ended:
                return found
            sent = await (_awaited(found()) if callable(found) else asyncio.sleep(found))
    finally:
        with suppress(ValueError):  # cancelled in the middle of a step, with which they end
            steps.close()


async def _awaited(found: Any) -> Any:
    """What a function returned, or what the coroutine that it returned comes to."""
    return await found if isawaitable(found) else found
