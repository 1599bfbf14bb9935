"""Runs of agents that are killed at every call that touches the disk. What was noted is judged: no call again after its
answer, no state older than one that was acknowledged.

    python -m tests.faults.runs --step 9
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.faults import rig, run_work
from tests.faults.rig import Notes
from tests.faults.run_work import MANY, repeated, went_back

from ralf import project
from ralf.agent import AgentRun, get_run, tail
from ralf.document.index import files_in

TURNS = 4


@dataclass(frozen=True)
class Size:
    """Calls between two at which a process is killed: 1 for every call."""

    step: int = 1


# ---- kills ----


def _finished(root: Path, run: str, notes: Notes, turns: int, found: rig.Found) -> None:
    """Judge a run that should have completed."""
    for fault, example in (*repeated(notes.read()), *went_back(notes.read())):
        found.note(fault, example)
    state = get_run(run, root=root)
    expected = run_work.conversation(turns)
    agent = AgentRun(run, root=root)
    kept = json.loads(agent.peek() or b"{}")
    if state.status != "completed" or state.iteration != turns:
        found.note("unfinished", f"{run}: {state.status} in iteration {state.iteration}")
    if kept != expected or agent.result() != expected[str(turns)][1].encode():
        found.note("older", f"{run}: the state is not that of {turns} turns: {str(kept)[:200]}")
    streamed = set(b"".join(tail(run, root=root)).decode().splitlines())
    if lines := {f"{number}: {said[1]}" for number, said in expected.items()} - streamed:
        found.note("output", f"{run}: lacks {sorted(lines)[:2]}")


def _boundaries(step: int, found: rig.Found, name: str, work: Callable[..., None], *, honours: bool) -> None:
    """Kill at each call, every second time the successor at another one, then let one finish."""
    dice = random.Random(f"{name} {step}")
    number, lived, calls, repeats = 0, False, 0, 0
    with rig.store() as root:
        work(root, f"{name}-warm", Notes(root / "warm"), 1)
        while not lived:
            run, notes = f"{name}-{number}", Notes(root / f"notes-{number}")
            do = partial(work, root, run, notes, TURNS, honours=honours)
            lived = not rig.killed_at(number, do)
            if not lived:
                notes("killed", run=run)
                if dice.random() < 0.3:
                    _lose_the_index(root)
                if dice.random() < 0.5 and rig.killed_at(dice.randrange(number + 40), do):
                    notes("killed", run=run)
                    found.acknowledged += 1
                rig.killed_at(MANY, do)
                found.acknowledged += 1
            _finished(root, run, notes, TURNS, found)
            made = notes.read("call")
            calls, repeats = calls + len(made), repeats + len(made) - 2 * TURNS
            twice = sum(line["worked"] for line in made) - 2 * TURNS
            if honours and twice:
                found.note("repeated", f"{run}: {twice} calls did their work twice for one key")
            number += step
    found.figures[f"{name}: calls, of them repeated before an answer"] = f"{calls:,}, {repeats:,}"


def _lose_the_index(root: Path) -> None:
    """As who deletes the cache does, at any time."""
    for path in files_in(project.find(root).cache):
        path.unlink(missing_ok=True)


def run(size: Size, _: int, __: Sequence[str]) -> rig.Found:
    """A kill before and after every call that touches the disk; the same, in part, with a model that does its work once
    for each idempotency key, and with coroutines, two calls of a turn at once.
    """
    found = rig.Found()
    _boundaries(size.step, found, "boundaries", run_work.converse, honours=False)
    _boundaries(3 * size.step, found, "honouring", run_work.converse, honours=True)
    _boundaries(3 * size.step, found, "async", run_work.converse_async, honours=False)
    return found


def _once(self: AgentRun, key: str, call: Callable[[str], Any], **_: object) -> Any:
    """Each attempt makes its calls anew, as where only the state is kept."""
    return call(f"{self.run}/{self.iteration}/{key}")


if __name__ == "__main__":
    broken = {"no phases": lambda: patch.object(AgentRun, "once", _once)}
    sys.exit(rig.command("runs", Size(), run, broken=broken))
