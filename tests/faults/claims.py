"""Many who want one task at once: one gets it, the others are told who has it, and nobody keeps it beyond his death.

Processes that a gate lets go at once; holders that die, fall silent, or are busy. What was answered is judged by
`tests.faults.tenure`.

    python -m tests.faults.claims --rounds 1000 --racers 32
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.clocks import slower
from tests.faults import rig, tasked, tenure
from tests.faults.tenure import Answer

from ralf.errors import Busy, RalfError
from ralf.storage import locks
from ralf.storage.filestore import FileStore
from ralf.tasks import claims, store

MOST_LATE = 2.0  # seconds after a lease, or a known holder's death, within which its task is claimed again
_A_STORE = 100  # rounds before a new store is begun, so that every round costs the same
_ANSWERS = 120  # seconds; who takes longer hangs


@dataclass(frozen=True)
class Size:
    """How much is done: rounds of a race between so many; a two hundredth of them for leases, which take seconds."""

    rounds: int = 200
    racers: int = 32


# ---- one winner ----


def one_winner(size: Size, dice: random.Random, found: rig.Found) -> None:
    """For one task, for a dead holder's, for any of a few."""
    for first in range(0, size.rounds, _A_STORE):
        with rig.store() as root:
            _rounds(root, range(first, min(size.rounds, first + _A_STORE)), size.racers, dice, found)
    found.acknowledged += size.rounds


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
    _look(root, found, "rounds")


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


def _look(root: Path, found: rig.Found, when: str) -> None:
    """Look at a store at rest."""
    for fault, example in tenure.of_records(tenure.records(root)):
        found.note(fault, f"{when}: {example}")
    for task, status in tenure.statuses(root).items():
        found.note("doubled", f"{when}: {task} has two files, {status}", " and " in status)


# ---- leases ----


_HOLDERS = {"silent": 1, "killed": 60, "unburied": 60, "busy": 1, "renewing": 2, "touching": 4}
"""How each holder is, and its lease in seconds: the last three live, and show it."""

_WATCHED = 6.0  # seconds: no longer lease runs out, that is renewed


def leases(size: Size, dice: random.Random, found: rig.Found) -> None:
    """Holders that die or fall silent, and those that do not: who takes the task, and when."""
    late: list[float] = []
    for _ in range(max(1, size.rounds // 200)):
        with rig.store() as root:
            _one_lease_each(root, found, late)
    found.figures["a dead holder's task is claimed again after"] = f"{max(late, default=0):.2f} s at most"


def _one_lease_each(root: Path, found: rig.Found, late: list[float]) -> None:
    held = dict(zip(_HOLDERS, tasked.added(root, len(_HOLDERS)), strict=True))
    notes = rig.Notes(root / "held")
    holders = {name: rig.forked(partial(_hold, root, name, task, notes)) for name, task in held.items()}
    rig.until(lambda: len(notes.read()) == len(held), _ANSWERS)
    answers = {note["what"]: Answer(*note["answer"]) for note in notes.read()}
    if any(answer.outcome != "won" for answer in answers.values()):
        found.note("failed", f"leases: {answers}")
    for name in ("killed", "unburied"):
        os.kill(holders[name], signal.SIGKILL)
    died = time.time()
    os.waitpid(holders["killed"], 0)  # the other one stays a zombie, which does nothing any more
    due = {"silent": notes.read("silent")[0]["at"] + _HOLDERS["silent"], "killed": died, "unburied": died}
    taken: dict[str, float] = {}
    while time.time() < died + (_WATCHED if due.keys() <= taken.keys() else _ANSWERS):
        for name, task in held.items():
            if name not in taken and tasked.asked(root, 0, f"heir-of-{name}", task).outcome == "won":
                taken[name] = time.time()
        time.sleep(0.02)
    for name in held:
        after = taken.get(name, float("inf")) - due.get(name, 0.0)
        if name not in due:
            found.note("doubled", f"the {name} holder lives, and its task was claimed", name in taken)
        elif name not in taken:
            found.note("kept", f"the {name} holder's task was never claimed again")
        elif after < -0.5:  # what is noted comes after what is recorded
            found.note("early", f"the {name} holder's task was claimed again {-after:.2f} s before its lease ran out")
        else:
            late.append(after)
            if after > MOST_LATE and after > MOST_LATE * slower(time.monotonic):
                found.note("slow", f"the {name} holder's task was claimed again after {after:.2f} s")
    _stale(root, [answers["silent"], answers["killed"]], found)
    for name, holder in holders.items():
        if name != "killed":
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
    found.acknowledged += len(held)
    _look(root, found, "leases")


def _hold(root: Path, name: str, task: str, notes: rig.Notes) -> None:
    """Hold a task, and show as many signs of life as the name says."""
    known = name in ("killed", "unburied", "busy")
    answer = tasked.asked(root, 0, name, task, seconds=_HOLDERS[name], known=known)
    notes(name, answer=answer)
    lease = f"{task}:{answer.number}"
    while True:
        time.sleep(0.25)
        if name == "renewing":
            claims.renew(lease, root=root)
        elif name == "touching":
            words = [*tasked.COMMAND, "task", "progress", "The table is half way."]
            known_ = tasked.environment(root.parent, name, RALF_LEASE=lease)
            subprocess.run(words, cwd=root, env=known_, capture_output=True, check=False)


def _stale(root: Path, answers: Sequence[Answer], found: rig.Found) -> None:
    """Whoever has lost its claim is refused, and changes nothing."""
    for answer in answers:
        try:
            claims.done("I am done.", task=answer.task, lease=f"{answer.task}:{answer.number}", by=answer.by, root=root)
        except Busy:
            pass
        except RalfError as error:
            found.note("failed", f"a stale holder's `done` was refused as {error!r}")
        else:
            found.note("stale", f"the {answer.by} holder had lost its claim, and completed the task")
        holder = store.get(answer.task, root=root).claim
        if holder is None or holder.by != f"heir-of-{answer.by}":
            found.note("stale", f"{answer.task} is no longer its new holder's, but {holder and holder.by}'s")


# ---- the command ----

KINDS: dict[str, Callable[[Size, random.Random, rig.Found], None]] = {"one winner": one_winner, "leases": leases}


def run(size: Size, seed: int, only: Sequence[str] = ()) -> rig.Found:
    """Each kind, or those that are named."""
    found = rig.Found(rounds=size.rounds)
    with rig.store() as root:  # everything once: whoever is forked afterwards has imported and loaded what it takes
        task = tasked.added(root, 2)[0]
        answer = tasked.asked(root, 0, "warm", task, known=True)
        tasked.asked(root, 0, "other", task)
        claims.done("Done.", task=task, lease=f"{task}:{answer.number}", by="warm", root=root)
    for kind in only:
        KINDS[kind](size, random.Random(f"{seed} {kind}"), found)
    return found


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
    sys.exit(rig.command("claims", Size(), run, kinds=KINDS, broken={"no compare and swap": _without_swap}))
