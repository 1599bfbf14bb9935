"""Kills writers with SIGKILL at random moments: nothing acknowledged is lost, nothing torn, nobody blocked.

python -m tests.faults.kills --rounds 10000
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.faults import rig

_A_STORE = 10  # kills before a new store is begun, so that every round costs the same
_LONGEST = 0.05  # seconds from the start of a writer to its death, at most


def run(rounds: int, seed: int, only: Sequence[str] = ()) -> rig.Found:
    """Kill `rounds` writers."""
    found = rig.Found()
    random_ = random.Random(seed)
    rig.warm()
    while found.rounds < rounds:
        with rig.store() as root:
            _one_store(root, min(_A_STORE, rounds - found.rounds), random_, found)
    return found


def _one_store(root: Path, kills: int, random_: random.Random, found: rig.Found) -> None:
    acknowledged: set[str] = set()
    for number in range(kills):
        when = f"kill-{found.rounds}"
        acknowledged |= set(_killed(root, random_, str(found.rounds), first=number == 0))
        found.rounds += 1
        rig.look(root, acknowledged, found, when)
        rig.settle(root, acknowledged, found, when, marker=when)
    found.acknowledged += len(acknowledged)


def _killed(root: Path, random_: random.Random, name: str, *, first: bool) -> list[str]:
    """Start a writer, kill it, and return what it had acknowledged."""
    pipe = rig.Pipe()
    order = [random_.choice((rig.decide, rig.decide, rig.checkpoint, rig.take_in)) for _ in range(20)]
    pid = rig.forked(partial(_write, root, order, name, pipe))
    time.sleep(random_.uniform(0, _LONGEST) / (1 if first or random_.random() < 0.5 else 4))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return pipe.markers()


def _write(root: Path, order: list[object], name: str, pipe: rig.Pipe) -> None:
    for number, work in enumerate(order):
        assert callable(work)
        work(root, f"{name}-{number}", pipe.acknowledge)


if __name__ == "__main__":
    sys.exit(rig.main("kills", run, rounds=1000, what="kills"))
