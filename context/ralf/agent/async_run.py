"""Runs of agents for coroutines: `AgentRun` and `run_agent`, each call of them in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from inspect import isawaitable
from typing import Any

from ralf.agent.model import MAIN, RunState, Signal
from ralf.agent.run import AgentRun, Unknown
from ralf.agent.runner import Limits, work


class AsyncAgentRun:
    """`AgentRun` for coroutines: the same names and arguments. `async with` claims the step, if it can be.

    Its methods are awaited, and run in a thread of their own; any number of calls and waits may be under way. Its
    properties are not awaited: they are known once the step is claimed.
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
        return partial(_in_thread, found) if callable(found) else found

    async def __aenter__(self) -> AsyncAgentRun:
        await _in_thread(lambda: self.sync.is_open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await _in_thread(self.sync.close)

    async def once(
        self, key: str, call: Callable[[str], Awaitable[Any] | Any], *, unknown: Unknown | None = None
    ) -> Any:
        """See `AgentRun.once`. `call`, and a function that looks an answer up, may be coroutine functions."""
        with _Loop() as loop:
            policy = loop.called(self.sync.unknown if unknown is None else unknown)
            return await _in_thread(partial(self.sync.once, key, loop.called(call), unknown=policy))

    async def wait_signal(self, name: str, timeout: float) -> Signal | None:  # as in threads
        """See `AgentRun.wait_signal`."""
        with _Loop() as loop:
            found: Signal | None = await _in_thread(self.sync.wait_until, name, timeout, loop.gone)
            return found


async def run_agent_async(
    handler: Callable[[AsyncAgentRun], Awaitable[object] | object],
    run: str,
    step: str = MAIN,
    *,
    max_iterations: int | None = 100,
    max_duration: float | None = None,
    max_losses: int | None = 10,
    wait: bool = True,
    **options: Any,
) -> RunState:
    """`ralf.agent.run_agent`, with its options, for a handler that is a coroutine function. If the task is cancelled,
    the claim is released, and no attempt is counted.
    """
    limits = Limits(max_iterations, max_duration, max_losses)
    with _Loop() as loop:
        handle = loop.called(handler, AsyncAgentRun.over)
        given = partial(work, handle, run, step, limits, loop.sleep, wait=wait, **options)
        working = asyncio.ensure_future(_in_thread(given))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            loop.leave()
            await asyncio.wait([working])
            raise


class _Loop:
    """The event loop of a task, for the thread that works for it.

    gone  set where the task waits no longer
    """

    def __init__(self) -> None:
        self.gone = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._under_way: concurrent.futures.Future[Any] | None = None

    def __enter__(self) -> _Loop:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Cancel what runs for the thread; it ends."""
        self.gone.set()
        if self._under_way is not None:
            self._under_way.cancel()

    def called(self, function: Any, given: Callable[[Any], Any] = lambda value: value) -> Any:
        """A function for the thread that calls `function` on the loop, with what `given` makes of its argument, and
        waits for what a coroutine comes to. What is no function stays as it is.
        """
        if not callable(function):
            return function

        def call(value: Any) -> Any:
            self._under_way = asyncio.run_coroutine_threadsafe(_awaited(function, given(value)), self._loop)
            if self.gone.is_set():
                self._under_way.cancel()
            try:
                return self._under_way.result()
            except concurrent.futures.CancelledError:
                raise asyncio.CancelledError from None  # which is no failure

        return call

    def sleep(self, seconds: float) -> None:
        """Wait in the thread; CancelledError where the task is gone."""
        if self.gone.wait(seconds):
            raise asyncio.CancelledError


async def _awaited(function: Callable[[Any], Any], value: Any) -> Any:
    """What a function returns, or what the coroutine that it returns comes to."""
    found = function(value)
    return await found if isawaitable(found) else found


async def _in_thread(function: Callable[..., Any], *arguments: Any, **given: Any) -> Any:
    """What a function returns in a thread of its own: those that all share may be needed by who it waits for."""
    thread = concurrent.futures.ThreadPoolExecutor(1)
    try:
        found = partial(copy_context().run, function, *arguments, **given)
        return await asyncio.get_running_loop().run_in_executor(thread, found)
    finally:
        thread.shutdown(wait=False)
