"""What the commands of tasks cost beside those of aqua-coord (see `aqua.py`): CPU time of whole commands, in turns.

Both have the same tasks, every third of which waits for the one before it, put into a sequence with a checkpoint after
every third; the agent has completed three and holds the fourth. What a row does to a project is undone, unmeasured,
before the next. `aqua refresh` tells what came before and what comes next at a checkpoint alone, so that is what ours,
which always does, is held against; the row below has it where it tells the agent's task and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import aqua
import measure
from installed import ralf as installed
from measure import Row, main

from ralf.project import find
from ralf.tasks import claims, editing, planfile, serializing
from ralf.tasks.model import Task

TITLE = "Tasks beside aqua-coord"

SIZES = (10, 1_000, 10_000)
REFRESH = {10: 0.9, 1_000: 0.9, 10_000: 0.7}
CLAIM = {10: 1.0, 1_000: 1.0, 10_000: 0.5}
SERIALIZE = 0.1
FLAT = 2.0
EVERY = 3
_MOST_SERIALIZED = 3  # rounds of what takes seconds


@dataclass(frozen=True)
class Pair:
    """The two projects of one size.

    agent, checkpoint   who holds a task in aqua's, and in the copy of it where the agent stands at a checkpoint
    """

    ours: Path
    theirs: Path
    at_checkpoint: Path
    agent: str


def produce(rounds: int) -> list[Row]:
    """The rows; see above."""
    ours, theirs = installed(), aqua.command()
    os.environ["RALF_AGENT"] = "bench"
    rows: list[Row] = []
    listed: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        for size in SIZES:
            pair = laid(Path(scratch) / f"{size}", theirs, size)
            rows += _refreshed(pair, size, rounds, ours, theirs)
            rows += _claimed(pair, size, rounds, ours, theirs)
            if size == SIZES[-1]:
                rows += _serialized(Path(scratch) / "fresh", size, min(rounds, _MOST_SERIALIZED), ours, theirs)
            listed += _listed(pair, size, rounds, ours, theirs)
    few, many = (row for row in listed if row.name.startswith("ralf task list") and f" {SIZES[1]:,} " not in row.name)
    flat = Row(
        f"ralf task list, {SIZES[-1]:,} against {SIZES[0]}", many.value, many.unit, many.value / few.value, 0, FLAT
    )
    return [*rows, *listed, flat]


# ---- the projects ----


def _waits(size: int) -> list[int | None]:
    return [number - 1 if number % 3 == 2 else None for number in range(size)]


def fresh(folder: Path, theirs: str, size: int) -> tuple[Path, Path]:
    """Two projects with so many tasks, none of them claimed or in a sequence: ours and aqua's."""
    aqua.project(theirs, folder / "aqua", size, _waits(size))
    root = folder / "ralf"
    root.mkdir()
    tasks = [
        Task(
            f"TASK-t{number:05}",
            aqua.TITLE.format(number=number),
            aqua.TEXT.format(number=number),
            after=() if before is None else (f"TASK-t{before:05}",),
        )
        for number, before in enumerate(_waits(size))
    ]
    editing.add_all(tasks, root=root)
    return root, folder / "aqua"


def laid(folder: Path, theirs: str, size: int) -> Pair:
    """Two projects in the middle of their sequence."""
    ours, other = fresh(folder, theirs, size)
    aqua.serialize(theirs, other, EVERY)
    agent = aqua.join(theirs, other, "bench")
    serializing.serialize(every=EVERY, root=ours)
    for number in range(EVERY):
        summary = aqua.SUMMARY.format(number=number)
        aqua.run(theirs, other, "claim", agent=agent)
        aqua.run(theirs, other, "done", "--summary", summary, agent=agent)
        claims.claim(by="bench", root=ours)
        claims.done(summary, by="bench", root=ours)
    aqua.run(theirs, other, "claim", agent=agent)
    at_checkpoint = folder / "at-checkpoint"
    shutil.copytree(other, at_checkpoint)
    aqua.run(theirs, other, "done", agent=agent)
    aqua.run(theirs, other, "claim", agent=agent)
    claims.claim(by="bench", root=ours)
    return Pair(ours, other, at_checkpoint, agent)


# ---- the rows ----


@contextlib.contextmanager
def _inside(root: Path, agent: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(root)
    os.environ["AQUA_AGENT_ID"] = agent
    try:
        yield
    finally:
        os.chdir(before)


def in_turns(cases: Sequence[tuple[Path, str, Sequence[str], Callable[[], object]]], rounds: int) -> list[list[float]]:
    """Processor milliseconds of commands: where, as which agent, which, and what undoes it afterwards, unmeasured.

    A command of aqua that drew an id twice is undone and run again.
    """
    taken: list[list[float]] = [[] for _ in cases]
    for number in range(rounds + 1):
        for place, (root, agent, command, undo) in enumerate(cases):
            with _inside(root, agent):
                try:
                    cpu = measure.run(command).cpu * 1000
                except RuntimeError as error:
                    if aqua.DREW_TWICE not in str(error):
                        raise
                    undo()
                    cpu = measure.run(command).cpu * 1000
                undo()
            if number:  # the first call warms
                taken[place].append(cpu)
    return taken


def _rows(names: Sequence[str], taken: Sequence[Sequence[float]], target: float | None) -> list[Row]:
    base = statistics.median(taken[0])
    rows = [
        Row(name, value := statistics.median(each), "ms CPU", value / base)
        for name, each in zip(names, taken, strict=True)
    ]
    last = rows[-1]
    return [*rows[:-1], Row(last.name, last.value, last.unit, last.ratio, target=target)]


def _nothing() -> None:
    pass


def _refreshed(pair: Pair, size: int, rounds: int, ours: str, theirs: str) -> list[Row]:
    cases = [
        (pair.at_checkpoint, pair.agent, [theirs, "refresh"], _nothing),
        (pair.theirs, pair.agent, [theirs, "refresh"], _nothing),
        (pair.ours, "", [ours, "task", "show"], _nothing),
    ]
    names = ("aqua refresh at a checkpoint", "aqua refresh elsewhere", "ralf task show")
    return _rows([f"{name}, {size:,} tasks" for name in names], in_turns(cases, rounds), REFRESH[size])


def _claimed(pair: Pair, size: int, rounds: int, ours: str, theirs: str) -> list[Row]:
    def put_back() -> None:
        aqua.put_back(pair.theirs, pair.agent)

    def release() -> None:
        claims.release(by="bench", root=pair.ours)

    put_back()
    release()
    cases = [
        (pair.theirs, pair.agent, [theirs, "claim"], put_back),
        (pair.ours, "", [ours, "task", "claim"], release),
    ]
    names = [f"{name}, {size:,} tasks" for name in ("aqua claim", "ralf task claim")]
    return _rows(names, in_turns(cases, rounds), CLAIM[size])


def _serialized(folder: Path, size: int, rounds: int, ours: str, theirs: str) -> list[Row]:
    mine, other = fresh(folder, theirs, size)
    kept = aqua.keep(other)
    cases = [
        (other, "", [theirs, "serialize", "--every", str(EVERY)], lambda: aqua.lay_back(other, kept)),
        (mine, "", [ours, "plan", "--every", str(EVERY)], lambda: planfile.path_of(find(mine)).unlink()),
    ]
    names = ("aqua serialize", "ralf plan")
    return _rows([f"{name}, {size:,} tasks" for name in names], in_turns(cases, rounds), SERIALIZE)


def _listed(pair: Pair, size: int, rounds: int, ours: str, theirs: str) -> list[Row]:
    cases = [
        (pair.theirs, pair.agent, [theirs, "list"], _nothing),
        (pair.ours, "", [ours, "task", "list"], _nothing),
    ]
    names = ("aqua list", "ralf task list")
    return _rows([f"{name}, {size:,} tasks" for name in names], in_turns(cases, min(rounds, 5)), None)


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
