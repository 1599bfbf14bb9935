"""Many who want one task at once: one gets it, the others are told who has it, and nobody keeps it beyond his death.

Processes that a gate lets go at once ask for one task, for a dead holder's, for any of a few. What was answered is
judged by `tests.faults.tenure`.

    python -m tests.faults.claims --rounds 1000 --racers 32
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.faults import rig, tasked, tenure
from tests.faults.tenure import Answer

from ralf.errors import RalfError
from ralf.storage import locks
from ralf.storage.filestore import FileStore
from ralf.tasks import claims

_A_STORE = 100  # rounds before a new store is begun, so that every round costs the same
_ANSWERS = 120  # seconds; who takes longer hangs


@dataclass(frozen=True)
class Size:
    """How much is done: rounds of a race between so many."""

    rounds: int = 200
    racers: int = 32


def run(size: Size, seed: int, _: Sequence[str]) -> rig.Found:
    """So many rounds."""
    found, dice = rig.Found(rounds=size.rounds), random.Random(seed)
    with rig.store() as root:  # everything once: whoever is forked afterwards has imported and loaded what it takes
        task = tasked.added(root, 2)[0]
        answer = tasked.asked(root, 0, "warm", task, known=True)
        tasked.asked(root, 0, "other", task)
        claims.done("Done.", task=task, lease=f"{task}:{answer.number}", by="warm", root=root)
    for first in range(0, size.rounds, _A_STORE):
        with rig.store() as root:
            _rounds(root, range(first, min(size.rounds, first + _A_STORE)), size.racers, dice, found)
    return found


def _rounds(root: Path, numbers: Sequence[int], racers: int, dice: random.Random, found: rig.Found) -> None:
    names = [f"racer-{number}" for number in range(racers)]
    spare = tasked.added(root, 1, name="First")
    last: dict[str, int] = {}
    for number in numbers:
        kind = ("one", "one", "dead", "any")[number % 4]
        if kind == "any":
            most = max(0, min(4, racers - len(spare)))
            spare += tasked.added(root, dice.randint(0, most), name=f"Round {number}, table")
        if kind == "dead":
            os.waitpid(rig.forked(partial(_asked, root, number, "dead", spare[0], known=True)), 0)
        answers = _raced(root, number, names, None if kind == "any" else spare[0])
        for fault, example in tenure.raced(answers, names, spare if kind == "any" else spare[:1]):
            found.note(fault, f"{kind}: {example}")
        won = [(answer.task, answer.number) for answer in answers if answer.outcome == "won"]
        for fault, example in tenure.fenced([*last.items(), *won]):
            found.note(fault, example)
        last.update(won)
        given = {task for task, _ in won}
        spare = [task for task in spare if task not in given] + _ended(root, answers, dice, found)
        spare = spare or tasked.added(root, 1, name=f"After round {number}")
    for fault, example in tenure.of_records(tenure.records(root)):
        found.note(fault, example)
    for task, status in tenure.statuses(root).items():
        found.note("doubled", f"{task} has two files, {status}", " and " in status)


def _raced(root: Path, number: int, names: Sequence[str], task: str | None) -> list[Answer]:
    """What all are answered who ask at one instant: when nobody holds the gate's other end any more."""
    gate, pipe = os.pipe(), rig.Pipe()

    def race(name: str) -> None:
        signal.alarm(_ANSWERS)
        os.close(gate[1])
        os.read(gate[0], 1)
        pipe.acknowledge(json.dumps(tasked.asked(root, number, name, task)))

    children = [rig.forked(partial(race, name)) for name in names]
    os.close(gate[0])
    os.close(gate[1])
    answers = [Answer(*json.loads(line)) for line in pipe.text().splitlines()]
    for child in children:
        os.waitpid(child, 0)
    return answers


def _asked(root: Path, number: int, name: str, task: str, **more: Any) -> None:
    assert tasked.asked(root, number, name, task, **more).outcome == "won"


def _ended(root: Path, answers: Sequence[Answer], dice: random.Random, found: rig.Found) -> list[str]:
    """Have each winner give its task back or complete it; those that are ready again."""
    ready = []
    for answer in answers:
        if answer.outcome != "won":
            continue
        lease = f"{answer.task}:{answer.number}"
        try:
            if dice.random() < 0.7:
                claims.release(answer.task, lease=lease, by=answer.by, root=root)
                ready.append(answer.task)
            else:
                claims.done("The table is carried over.", task=answer.task, lease=lease, by=answer.by, root=root)
        except RalfError as error:
            found.note("failed", f"the winner could not end its claim: {error!r}")
    return ready


@contextmanager
def _without_swap() -> Iterator[None]:
    """A stream in which the last one wins, and no lock: what claims are where a read is followed by a write."""
    append, locked = FileStore.append, locks.locked

    def any_append(self: FileStore, stream: str, record: bytes, **said: Any) -> str:
        return append(self, stream, record, **said | {"after": self.head(stream)})

    @contextmanager
    def unlocked(path: Path, what: str, timeout: float = 30.0) -> Iterator[None]:
        if path.name == "tasks.lock":
            yield
        else:
            with locked(path, what, timeout):
                yield

    with patch.object(FileStore, "append", any_append), patch.object(locks, "locked", unlocked):
        yield


if __name__ == "__main__":
    sys.exit(rig.command("claims", Size(), run, broken={"no compare and swap": _without_swap}))
