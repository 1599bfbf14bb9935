"""Runs of agents for coroutines: `AgentRun` and `run_agent`, each call of them in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from functools import partial
from inspect import isawaitable
from typing import Any

from ralf.agent.model import MAIN, RunState
from ralf.agent.run import AgentRun, Unknown, sleep
from ralf.agent.runner import run_agent

_PAUSE = 0.05  # seconds between two attempts to end a thread


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
        made, policy = _on_this_loop(call), self.sync.unknown if unknown is None else unknown
        return await _in_thread(self.sync.once, key, made, unknown=_on_this_loop(policy))


async def run_agent_async(
    handler: Callable[[AsyncAgentRun], Awaitable[object] | object], run: str, step: str = MAIN, **options: Any
) -> RunState:
    """`ralf.agent.run_agent`, with its options, for a handler that is a coroutine function. If the task is cancelled,
    the claim is released, and no attempt is counted.
    """
    made = _on_this_loop(handler, AsyncAgentRun.over)
    found: RunState = await _in_thread(run_agent, made, run, step, **options)
    return found


# ---- threads that work for tasks ----

_left: ContextVar[list[Callable[[], object]]] = ContextVar("left")
"""Of a thread that works for a task: what is called when that is cancelled."""


async def _in_thread(function: Callable[..., Any], *arguments: Any, **given: Any) -> Any:
    """What a function returns in a thread of its own: those that all share may be needed by who it waits for. If the
    task is cancelled the thread is, too, where it waits, and has ended when this raises.
    """
    context, gone, left = copy_context(), threading.Event(), list[Callable[[], object]]()

    def wait(seconds: float) -> None:
        if gone.wait(seconds):
            raise asyncio.CancelledError

    left.append(gone.set)
    context.run(sleep.set, wait)
    context.run(_left.set, left)
    thread = concurrent.futures.ThreadPoolExecutor(1)
    call = partial(context.run, function, *arguments, **given)
    working = asyncio.get_running_loop().run_in_executor(thread, call)
    thread.shutdown(wait=False)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        while not working.done():
            for leave in tuple(left):
                leave()
            await asyncio.wait([working], timeout=_PAUSE)
        raise


def _on_this_loop(function: Any, given: Callable[[Any], Any] | None = None) -> Any:
    """A function for a thread, which calls `function` on the loop of this task, with what `given` makes of its value,
    and waits for what a coroutine comes to. What is no function stays as it is.
    """
    if not callable(function):
        return function
    loop = asyncio.get_running_loop()

    async def awaited(value: Any) -> Any:
        found = function(given(value) if given else value)
        return await found if isawaitable(found) else found

    def call(value: Any) -> Any:
        left = _left.get()
        future = asyncio.run_coroutine_threadsafe(awaited(value), loop)
        left[1:] = [future.cancel]
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError from None  # which is no failure

    return call
