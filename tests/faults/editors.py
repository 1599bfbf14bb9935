"""A person saves the route file while writers write, in place and by rename: no save is lost, nor any record.

Each save is of what the editor had read when it was opened, with a note of its own, and is then looked for in the
journal. Saves in place are made as editors make them: emptied and written in one go, in pieces with a pause between
them, now and then a long one; saves by rename come whole, also on a system that cannot exchange two names.

    python -m tests.faults.editors --rounds 20000
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from unittest.mock import patch

from tests import storekit
from tests.faults import broken, rig

from ralf.storage import durable

_PAUSE = 0.01  # seconds between two saves, on the average
_OPEN = 0.005  # between reading the file and saving it, at most
_A_STORE = 100  # saves before a new store is begun: each leaves a note in the file for ever
_WRITERS = 2


def _at_once(path: Path, text: str, random_: random.Random) -> None:
    path.write_text(text, encoding="utf-8")


def _in_pieces(path: Path, text: str, random_: random.Random) -> None:
    """With a pause between the pieces: the file is open, empty, then half there."""
    pause = random_.choice((0, 0.001, 0.005, 0.02))
    with path.open("w", encoding="utf-8", buffering=1) as file:
        size = max(1, len(text) // random_.randint(2, 5))
        for start in range(0, len(text), size):
            time.sleep(pause)
            file.write(text[start : start + size])
            file.flush()


def _slowly(path: Path, text: str, random_: random.Random) -> None:
    """Longer than any writer waits."""
    if random_.random() < 0.9:
        _in_pieces(path, text, random_)
        return
    with path.open("w", encoding="utf-8") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        time.sleep(0.15)
        file.write(text[len(text) // 2 :])


def _by_rename(path: Path, text: str, random_: random.Random) -> None:
    made = path.with_name(f".{path.name}.swp")
    made.write_text(text, encoding="utf-8")
    os.replace(made, path)


WAYS: dict[str, Callable[[Path, str, random.Random], None]] = {
    "at once": _at_once,
    "in pieces": _in_pieces,
    "slowly": _slowly,
    "by rename": _by_rename,
    "without an exchange": _by_rename,
}


def run(size: rig.Rounds, seed: int, only: Sequence[str]) -> rig.Found:
    """So many saves, in all ways."""
    found = rig.Found()
    rig.warm()
    while found.rounds < size.rounds:
        for way in only:
            saves = min(_A_STORE, max(1, size.rounds // len(only)), size.rounds - found.rounds)
            lacking = (
                patch.object(durable, "_renameat2", lambda: None) if way == "without an exchange" else nullcontext()
            )
            if saves > 0:
                with rig.store() as root, lacking:
                    _one_store(root, way, saves, f"{seed} {found.rounds}", found)
                found.rounds += saves
    return found


def _one_store(root: Path, way: str, saves: int, seed: str, found: rig.Found) -> None:
    pipe, done = rig.Pipe(), root / "done"
    before: list[str] = []
    rig.decide(root, "before", before.append)
    writers = [rig.forked(partial(_write, root, f"w{number}", pipe, done)) for number in range(_WRITERS)]
    editor = rig.forked(partial(_edit, root, way, saves, seed, pipe))
    found.note("failed", f"{way}: the editor ended with an error", bool(os.waitpid(editor, 0)[1]))
    done.touch()
    for writer in writers:
        found.note("failed", f"{way}: a writer ended with an error", bool(os.waitpid(writer, 0)[1]))
    acknowledged = {*before, *pipe.markers()}
    found.acknowledged += len(acknowledged)
    rig.settle(root, acknowledged, found, f"{way}, {seed}", marker="after")


def _edit(root: Path, way: str, saves: int, seed: str, pipe: rig.Pipe) -> None:
    random_ = random.Random(seed)
    path = storekit.route_file(root, rig.ROUTE)
    made = 0
    while made < saves:
        try:
            text = rig.edited(path.read_text(encoding="utf-8"), str(made))
        except FileNotFoundError:  # for a moment, where two names cannot be exchanged
            continue
        time.sleep(random_.uniform(0, _OPEN))
        if f"\nnote_{made}: true" in text:
            WAYS[way](path, text, random_)
            pipe.acknowledge(f"note_{made}")
            made += 1
        time.sleep(random_.uniform(0, 2 * _PAUSE))


def _write(root: Path, name: str, pipe: rig.Pipe, done: Path) -> None:
    number = 0
    while not done.exists():
        rig.decide(root, f"{name}-{number}", pipe.acknowledge)
        number += 1


if __name__ == "__main__":
    sys.exit(rig.command("editors", rig.Rounds(400), run, kinds=WAYS, broken=broken.VARIANTS))
