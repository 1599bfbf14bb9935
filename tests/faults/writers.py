"""Sixteen writers on one route, at once and without a pause: none loses, doubles, or sees half a write.

Deciders, checkpoints of their own transcripts, a person who saves the file, and a summariser that takes five seconds; a
reader looks at every moment.

    python -m tests.faults.writers --rounds 1000
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tests.faults import broken, rig

import ralf
from ralf.checkpointing.section import Extractive, Segment, Summary

WRITERS = {"decide": 10, "checkpoint": 4, "save": 1, "slow summariser": 1}
_SLOW = 5.0
_SAVE_PAUSE = 0.1  # between two saves of a person, on the average
_READ_PAUSE = 0.01


class _Slow:
    """A summariser that takes its time at every tenth checkpoint."""

    name = "slow"

    def __init__(self) -> None:
        self._calls = 0

    def summarize(self, segment: Segment) -> Summary:
        if self._calls % 10 == 0:
            time.sleep(_SLOW)
        self._calls += 1
        return Extractive().summarize(segment)


def run(size: rig.Rounds, seed: int, only: Sequence[str]) -> rig.Found:
    """So many writes by each writer, a tenth by who has the slow summariser."""
    found = rig.Found(rounds=size.rounds)
    rig.warm()
    with rig.store() as root:
        pipe, done = rig.Pipe(), root / "done"
        before: list[str] = []
        rig.decide(root, "before", before.append)
        names = [(kind, f"{kind[0]}{number}") for kind in only for number in range(WRITERS[kind])]
        children = [rig.forked(partial(_work, root, *name, size.rounds, seed, pipe)) for name in names]
        reader = rig.forked(partial(_read, root, pipe, done))
        said: list[str] = []  # while they write: a pipe holds too little to be read at the end
        reading = threading.Thread(target=lambda: said.extend(pipe.markers()))
        reading.start()
        for child in children:
            found.note("failed", "a writer ended with an error", bool(os.waitpid(child, 0)[1]))
        done.touch()
        found.note("torn", "a reader saw what was not whole, or older than before", bool(os.waitpid(reader, 0)[1]))
        reading.join()
        everything = {*before, *said}
        found.acknowledged += len(everything)
        rig.settle(root, everything, found, "afterwards", marker="after")
    return found


def _work(root: Path, kind: str, name: str, rounds: int, seed: int, pipe: rig.Pipe) -> None:
    random_ = random.Random(f"{seed} {name}")
    model = _Slow() if kind == "slow summariser" else None
    for number in range(rounds // 10 if model else rounds):
        marker = f"{name}-{number}"
        if kind == "decide":
            rig.decide(root, marker, pipe.acknowledge)
        elif kind == "save":
            rig.save(root, marker, pipe.acknowledge)
            time.sleep(random_.uniform(0, 2 * _SAVE_PAUSE))
        else:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")  # of a session that goes on nothing is old
            rig.checkpoint(root, marker, pipe.acknowledge, summarizer=model, when=now)


def _read(root: Path, pipe: rig.Pipe, done: Path) -> None:
    """Read until the writers are done: each read is whole, and none is older than the one before."""
    os.close(pipe.write)
    revision = 0
    while not done.exists():
        context = ralf.get_context(rig.ROUTE, root=root)
        assert not context.warnings, context.warnings
        assert context.revision >= revision, (context.revision, revision)
        assert len({item.id for item in context.decisions}) == len(context.decisions)
        revision = context.revision
        time.sleep(_READ_PAUSE)
    assert revision


if __name__ == "__main__":
    sys.exit(rig.command("writers", rig.Rounds(20), run, kinds=WRITERS, broken=broken.VARIANTS))
