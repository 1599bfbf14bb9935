"""What the harnesses for runs of agents share: agents with a recording stand-in as model, and judges of what was noted.

The judges know nothing of ralf: `tests/test_run_harness.py` feeds each of them a broken history.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.faults.rig import Notes

from ralf.agent import AgentRun, Retry
from ralf.agent.async_run import AsyncAgentRun, run_agent_async
from ralf.agent.runner import run_agent

PATIENT = Retry(attempts=1_000, initial=0.0)
MANY = 1_000_000


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


# ---- what was noted, judged ----

Fault = tuple[str, str]
"""A kind of fault, and an example in words."""


def repeated(notes: Sequence[dict[str, Any]]) -> Iterator[Fault]:
    """Calls made again after their answer, or without a kill; work done twice by a model that honours keys."""
    asked: dict[tuple[str, int, str], int] = defaultdict(int)
    allowed: dict[tuple[str, int, str], int] = defaultdict(int)
    answered: set[tuple[str, int, str]] = set()
    keys: dict[tuple[str, int, str], str] = {}
    for note in notes:
        if note["what"] == "killed":
            for call in asked:
                if call[0] == note["run"] and call not in answered:
                    allowed[call] += 1
            continue
        if note["what"] not in ("call", "answered"):
            continue
        call = (note["run"], note["iteration"], note["call"])
        if note["what"] == "answered":
            answered.add(call)
            continue
        asked[call] += 1
        if call in answered:
            yield "repeated", f"{call} was made again after its answer"
        elif asked[call] > 1 + allowed[call]:
            yield "repeated", f"{call} was made {asked[call]} times with {allowed[call]} kills in between"
        if keys.setdefault(call, note["key"]) != note["key"]:
            yield "keys", f"{call} had two idempotency keys"


def went_back(notes: Sequence[dict[str, Any]]) -> Iterator[Fault]:
    """Iterations that began though a later one had been acknowledged, or without a state that had been."""
    decided: dict[str, int] = defaultdict(int)
    saved: dict[str, int] = defaultdict(int)
    for note in notes:
        name = note.get("run", "")
        if note["what"] == "decided":
            decided[name] = saved[name] = max(decided[name], note["iteration"])
        elif note["what"] == "saved":
            saved[name] = max(saved[name], note["iteration"])
        elif note["what"] == "began":
            if not decided[name] < note["iteration"] <= decided[name] + 2:
                yield "iteration", f"{name}: iteration {note['iteration']} after {decided[name]} was decided"
            decided[name] = max(
                decided[name], note["iteration"] - 1
            )  # whoever decided it may have died before its note
            if note["loaded"] < saved[name]:
                yield "older", f"{name}: loaded the state of {note['loaded']} turns after {saved[name]} were saved"
