"""What the harness for runs of agents has done in processes of their own: agents with a recording stand-in as model,
and processes that are killed at a numbered call.

Everything is noted in one file, whose lines have the order in which things happened, whoever is killed meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults import rig

from ralf.agent import AgentRun, Retry
from ralf.agent.async_run import AsyncAgentRun, run_agent_async
from ralf.agent.runner import run_agent

_NO_FILES = (str, bytes, bytearray, list, set, dict)  # whose `replace` and `remove` touch no disk

DEADLY = frozenset("write pwrite fsync fdatasync rename replace link unlink remove mkdir ftruncate utime flock".split())
"""Calls before and after which a process is killed."""

PATIENT = Retry(attempts=1_000, initial=0.0)
MANY = 1_000_000


class Notes:
    """Notes of what happened, in order."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, what: str, **fields: object) -> None:
        """Note something; the line is whole, or is not there."""
        line = json.dumps({"what": what, "pid": os.getpid(), "at": time.time(), **fields})
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)

    def read(self, *whats: str) -> list[dict[str, Any]]:
        """What was noted."""
        if not self.path.exists():
            return []
        found = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [line for line in found if not whats or line["what"] in whats]


# ---- a conversation of some turns ----


def answer(call: str, prompt: str) -> str:
    """What the stand-in answers: the same to the same."""
    return f"{call}-{hashlib.sha256(prompt.encode()).hexdigest()[:12]}"


def conversation(turns: int) -> dict[str, list[str]]:
    """The state that so many turns come to: input, the model's answer, the tool's answer of each."""
    made, prompt = {}, "begin"
    for number in range(1, turns + 1):
        said = answer("model", prompt)
        made[str(number)] = [prompt, said, answer("tool", said)]
        prompt = said
    return made


class Model:
    """The recording stand-in. One that honours idempotency keys does its work once for each."""

    def __init__(self, notes: Notes, *, honours: bool) -> None:
        self._notes = notes
        self._honours = honours

    def ask(self, run: str, iteration: int, call: str, prompt: str, key: str) -> str:
        """Note a call, and answer it."""
        known = {line["key"] for line in self._notes.read("call")} if self._honours else ()
        self._notes("call", run=run, iteration=iteration, call=call, key=key, worked=key not in known)
        return answer(call, prompt)


def turn(run: AgentRun, notes: Notes, model: Model, turns: int) -> None:
    """One iteration: two calls, then the state, with the decision or before it."""
    known = json.loads(run.load() or b"{}")
    number, prompt = run.iteration, run.input.decode()
    notes("began", run=run.run, iteration=number, loaded=len(known))
    said = run.once("model", lambda key: model.ask(run.run, number, "model", prompt, key))
    notes("answered", run=run.run, iteration=number, call="model")
    made = run.once("tool", lambda key: model.ask(run.run, number, "tool", said, key))
    notes("answered", run=run.run, iteration=number, call="tool")
    run.stream(f"{number}: {said}\n".encode())
    known[str(number)] = [prompt, said, made]
    state = json.dumps(known).encode()
    if number % 2:
        run.save(state)
        notes("saved", run=run.run, iteration=number)
    with_it = None if number % 2 else state
    if number == turns:
        run.complete(said.encode(), state=with_it)
    else:
        run.continue_with(said.encode(), state=with_it)
    notes("decided", run=run.run, iteration=number)


async def turn_async(run: AsyncAgentRun, notes: Notes, model: Model, turns: int) -> None:
    """The same for coroutines, with the calls of a turn at the same time where they do not depend on each other."""
    known = json.loads(await run.load() or b"{}")
    number, prompt = run.iteration, run.input.decode()
    notes("began", run=run.run, iteration=number, loaded=len(known))

    async def ask(call: str, text: str) -> str:
        async def asked(key: str) -> str:
            await asyncio.sleep(0)
            return model.ask(run.run, number, call, text, key)

        made = await run.once(call, asked)
        notes("answered", run=run.run, iteration=number, call=call)
        return str(made)

    said, made = await asyncio.gather(ask("model", prompt), ask("tool", answer("model", prompt)))
    await run.stream(f"{number}: {said}\n".encode())
    known[str(number)] = [prompt, said, made]
    state = json.dumps(known).encode()
    if number == turns:
        await run.complete(said.encode(), state=state)
    else:
        await run.continue_with(said.encode(), state=state)
    notes("decided", run=run.run, iteration=number)


def converse(root: Path, run: str, notes: Notes, turns: int, *, honours: bool = False, lease: float = 300.0) -> None:
    """Work at a run until it has completed."""
    model = Model(notes, honours=honours)
    run_agent(
        lambda held: turn(held, notes, model, turns),
        run,
        input=b"begin",
        retry=PATIENT,
        max_losses=MANY,
        lease=lease,
        root=root,
    )


def converse_async(root: Path, run: str, notes: Notes, turns: int, *, honours: bool = False) -> None:
    """The same with coroutines."""
    model = Model(notes, honours=honours)

    async def handler(held: AsyncAgentRun) -> None:
        await turn_async(held, notes, model, turns)

    asyncio.run(run_agent_async(handler, run, input=b"begin", retry=PATIENT, max_losses=MANY, root=root))


# ---- processes that are killed ----


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Do work in a process of its own that is killed at its n-th call of `DEADLY`; whether it was."""
    return _was_killed(rig.forked(lambda: _work_until(number, work)))


def killed_after(seconds: float, work: Callable[[], object]) -> bool:
    """The same, killed after a time."""
    child = rig.forked(lambda: _work_until(None, work))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.WIFSIGNALED(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return _was_killed(child)


def _was_killed(child: int) -> bool:
    """Whether a process was killed; AssertionError where it failed."""
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"a worker failed: {status}"
    return os.WIFSIGNALED(status)


def _work_until(number: int | None, work: Callable[[], object]) -> None:
    if number is None:
        work()
        return
    count = 0

    def hook(frame: Any, event: str, what: Any) -> None:
        nonlocal count
        if event not in ("c_call", "c_return") or getattr(what, "__name__", "") not in DEADLY:
            return
        if not isinstance(getattr(what, "__self__", None), _NO_FILES):
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

    import threading

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        work()
    finally:
        sys.setprofile(None)
