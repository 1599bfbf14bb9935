"""Runs of agents for coroutines: `AgentRun` and `run_agent`, awaited."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any, TypeVar

from ralf.agent.model import MAIN, Retry, RunState, SavedState, Signal, seconds
from ralf.agent.run import AgentRun, Unknown
from ralf.agent.runner import Driver, Limits, checked

Root = str | os.PathLike[str] | None

T = TypeVar("T")

_LEAST_PAUSE = 0.005  # seconds between the first two looks for a signal

_LONGEST_TURN = 0.1  # seconds between two looks whether another task has made a call


class AsyncAgentRun:
    """`AgentRun` for coroutines: the same names and arguments, awaited. `async with` claims the step, if it can be.

    What reads or writes the store runs in a thread; between two of its steps a call or a wait holds none. The
    properties are not awaited: they are known once the step is claimed.
    """

    def __init__(self, run: str, step: str = MAIN, **options: Any) -> None:
        """Name a step; nothing is read or written yet. The options are those of `AgentRun`."""
        self._adopt(AgentRun(run, step, **options))

    @classmethod
    def over(cls, agent: AgentRun) -> AsyncAgentRun:
        """The coroutines of a step that an `AgentRun` has."""
        made = cls.__new__(cls)
        made._adopt(agent)
        return made

    def _adopt(self, agent: AgentRun) -> None:
        self.sync = agent
        self.run, self.step = agent.run, agent.step

    async def __aenter__(self) -> AsyncAgentRun:
        await asyncio.to_thread(lambda: self.sync.is_open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ---- what is known ----

    @property
    def term(self) -> int:
        """See `AgentRun.term`."""
        return self.sync.term

    @property
    def iteration(self) -> int:
        """See `AgentRun.iteration`."""
        return self.sync.iteration

    @property
    def attempt(self) -> int:
        """See `AgentRun.attempt`."""
        return self.sync.attempt

    @property
    def input(self) -> bytes:
        """See `AgentRun.input`."""
        return self.sync.input

    @property
    def is_open(self) -> bool:
        """See `AgentRun.is_open`."""
        return self.sync.is_open

    @property
    def resumed(self) -> str:
        """See `AgentRun.resumed`."""
        return self.sync.resumed

    @property
    def resumed_by(self) -> Signal | None:
        """See `AgentRun.resumed_by`."""
        return self.sync.resumed_by

    @property
    def status(self) -> str:
        """See `AgentRun.status`."""
        return self.sync.status

    async def state(self) -> RunState:
        """See `AgentRun.state`."""
        return await asyncio.to_thread(self.sync.state)

    async def states(self) -> list[SavedState]:
        """See `AgentRun.states`."""
        return await asyncio.to_thread(self.sync.states)

    async def result(self) -> bytes | None:
        """See `AgentRun.result`."""
        return await asyncio.to_thread(self.sync.result)

    async def load(self, number: int | None = None) -> bytes | None:
        """See `AgentRun.load`."""
        return await asyncio.to_thread(self.sync.load, number)

    async def peek(self, number: int | None = None) -> bytes | None:
        """See `AgentRun.peek`."""
        return await asyncio.to_thread(self.sync.peek, number)

    async def fetch(self, reference: str) -> bytes:
        """See `AgentRun.fetch`."""
        return await asyncio.to_thread(self.sync.fetch, reference)

    # ---- what is written ----

    async def close(self) -> None:
        """See `AgentRun.close`."""
        await asyncio.to_thread(self.sync.close)

    async def heartbeat(self) -> None:
        """See `AgentRun.heartbeat`."""
        await asyncio.to_thread(self.sync.heartbeat)

    async def save(self, state: bytes) -> int:
        """See `AgentRun.save`."""
        return await asyncio.to_thread(self.sync.save, state)

    async def stream(self, data: bytes) -> None:
        """See `AgentRun.stream`."""
        await asyncio.to_thread(self.sync.stream, data)

    async def external(self, key: str, blob: bytes) -> str:
        """See `AgentRun.external`."""
        return await asyncio.to_thread(self.sync.external, key, blob)

    async def continue_with(self, output: bytes = b"", *, state: bytes | None = None, delay: float = 0.0) -> None:
        """See `AgentRun.continue_with`."""
        await asyncio.to_thread(partial(self.sync.continue_with, output, state=state, delay=delay))

    async def complete(self, output: bytes = b"", *, state: bytes | None = None) -> None:
        """See `AgentRun.complete`."""
        await asyncio.to_thread(partial(self.sync.complete, output, state=state))

    async def fail(self, reason: str, *, retry_after: float | None = None) -> None:
        """See `AgentRun.fail`."""
        await asyncio.to_thread(partial(self.sync.fail, reason, retry_after=retry_after))

    async def fail_for_good(self, reason: str) -> None:
        """See `AgentRun.fail_for_good`."""
        await asyncio.to_thread(self.sync.fail_for_good, reason)

    async def give_up(self, reason: str) -> None:
        """See `AgentRun.give_up`."""
        await asyncio.to_thread(self.sync.give_up, reason)

    async def pause(self, name: str, timeout: float) -> None:  # recorded, not waited for
        """See `AgentRun.pause`."""
        await asyncio.to_thread(self.sync.pause, name, timeout)

    # ---- calls and waits, which hold no thread ----

    async def once(
        self, key: str, call: Callable[[str], Awaitable[Any] | Any], *, unknown: Unknown | None = None
    ) -> Any:
        """See `AgentRun.once`. `call`, and a function that looks an answer up, may be coroutine functions."""
        agent = self.sync
        await asyncio.to_thread(lambda: agent.term or agent.iteration)  # claims
        pause = _LEAST_PAUSE
        while (end_turn := agent.take_turn(key, asyncio.current_task())) is None:
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_TURN)
        try:
            asked = await asyncio.to_thread(agent.begin_call, key, unknown)
            if asked.is_answered:
                return asked.answer
            with agent.beating():
                found = None
                if asked.look_up is not None:
                    found = await _awaited(asked.look_up(asked.idempotency_key))
                if found is None:
                    await asyncio.to_thread(agent.ask, asked)
                    found = await _awaited(call(asked.idempotency_key))
            return await asyncio.to_thread(agent.answer, asked, found)
        finally:
            end_turn()

    async def wait_signal(self, name: str, timeout: float) -> Signal | None:  # as in threads
        """See `AgentRun.wait_signal`."""
        deadline = time.monotonic() + seconds(timeout, "timeout")
        pause = _LEAST_PAUSE
        while True:
            has_come, signal = await asyncio.to_thread(self.sync.find_signal, name)
            if has_come:
                return signal
            left = deadline - time.monotonic()
            if left <= 0:
                await asyncio.to_thread(self.sync.time_out, name)
                return None
            await self.heartbeat()
            await asyncio.sleep(min(pause, left))
            pause = min(1.5 * pause, self.sync.most_pause)


async def run_agent_async(
    handler: Callable[[AsyncAgentRun], Awaitable[object] | object],
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
    """`ralf.agent.run_agent` for a handler that is a coroutine function. If the task is cancelled, the claim is
    released, and no attempt is counted.
    """
    limits = checked(handler, retry, Limits(max_iterations, max_duration, max_losses))
    agent = AgentRun(
        run,
        step,
        root=root,
        by=by,
        lease=lease,
        keep=keep,
        input=input,
        unknown=unknown,
        retry=retry or Retry(),
        loop_delay=loop_delay,
    )
    driver = Driver(agent, limits, wait=wait)
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
        return await held.state()
    finally:
        await asyncio.shield(held.close())


async def _awaited(found: Any) -> Any:
    """What a function returned, or what the coroutine that it returned comes to."""
    return await found if isawaitable(found) else found
