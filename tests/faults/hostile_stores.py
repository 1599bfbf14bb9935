"""Hostile stores: clones, archives, templates, pulls, parent folders, worktrees and shared machines that bring a store
of somebody else's, through every hook, command and MCP tool. `tests.faults.judged` has the contract; each scenario says
in one sentence what the attacker does.

    python -m tests.faults.hostile_stores [--only WORD] [--jobs N]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from tests.faults import hostile_pulls, hostile_repositories, hostile_surroundings
from tests.faults.staged import SCENARIOS, Rig

__all__ = ["SCENARIOS", "Rig", "hostile_pulls", "hostile_repositories", "hostile_surroundings"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all scenarios, or those whose name has a word; print what came of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.hostile_stores")
    parser.add_argument("--only", default="", help="only scenarios with this in their name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="so many at once")
    given = parser.parse_args(arguments)
    wanted = [name for name in SCENARIOS if given.only in name]
    print("| scenario | what the attacker does | result |\n| --- | --- | --- |", flush=True)
    with own_folder() as folder, ThreadPoolExecutor(given.jobs) as pool:
        rigs: SimpleQueue[Rig] = SimpleQueue()
        made = [_rig(folder / str(number)) for number in range(min(given.jobs, len(wanted)))]
        for rig in made:
            rigs.put(rig)
        failed = sum(pool.map(lambda name: _played(rigs, name), wanted))
    print(f"\n{len(wanted)} scenarios: {len(wanted) - failed} hold, {failed} do not", flush=True)
    if not all(rig.sees_reads for rig in made):
        print("this file system does not keep when a file was read: reads outside were not looked for")
    return 1 if failed else 0


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder whose name has no letters left to chance: what is told of it is searched for words of three letters."""
    folder = Path(tempfile.gettempdir()) / f"ralf-stores-{os.getpid()}-{time.time_ns()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _rig(folder: Path) -> Rig:
    folder.mkdir()
    return Rig(folder)


def _played(rigs: SimpleQueue[Rig], name: str) -> bool:
    rig = rigs.get()
    try:
        faults = rig.play(name)
    finally:
        rigs.put(rig)
    lines = [f"| {name} | {SCENARIOS[name].__doc__} | {f'{len(faults)} faults' if faults else 'holds'} |"]
    print("\n".join([*lines, *(f"    {fault}" for fault in faults)]), flush=True)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
