"""Everything at once: decisions, checkpoints, saves, drops, reverts, forgetting, archiving, repairs and reads, on two
routes, in processes that are killed at any moment. At the end all that was acknowledged is there once, or forgotten.

    python -m tests.faults.mixed --rounds 100
    python -m tests.faults.mixed --rounds 20 --workers 16 --lives 1000      that nobody kills

A round is two seconds of six processes. A worker does one thing after the other until it is killed; another one then
takes its place.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests import storekit
from tests.faults import broken, rig
from tests.faults.forget import found_in

import ralf
from ralf import project
from ralf.errors import Busy, NotFound, RalfError
from ralf.maintenance.forget import forget
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.route import archive, corrections, history
from ralf.route.taking_back import revert

ROUTES = ("TASK-1", "TASK-2")
_SECONDS = 2.0  # of a round


@dataclass(frozen=True)
class Size:
    """How many rounds, of how many workers, and seconds from one kill to the next on the average."""

    rounds: int = 10
    workers: int = 6
    lives: float = 0.12


Say = Callable[..., None]


class _Worker:
    """One process: what it does, and what it has said that it did."""

    def __init__(self, root: Path, name: str, seed: str, say: Say) -> None:
        self.root, self.name, self.say = root, name, say
        self.rng = random.Random(seed)
        self.count = 0

    def run(self) -> None:
        works = [work for work, share in SHARES.items() for _ in range(share)]
        while True:
            work = self.rng.choice(works)
            marker = f"{self.name}{self.count:04d}x"
            self.count += 1
            try:
                work(self, marker, self.rng.choice(ROUTES))
            except Busy:
                pass
            except Exception as error:
                self.say("failed", work.__name__, f"{error!r}\n{traceback.format_exc()[-1800:]}")

    # ---- writing ----

    def decide(self, marker: str, route: str) -> None:
        why = f"since {marker} was the word of the harbour master"
        ralf.record_decision(route, f"Choose for the tide table d-{marker}", rationale=why, root=self.root)
        self.say("kept", route, f"d-{marker}")

    def checkpoint(self, marker: str, route: str) -> None:
        path = self.root / f"session-{self.name}-{route}.jsonl"
        session = path.stem
        asked = f"Please carry c-{marker} of the tide table over to the new reader."
        turn = storekit.turn(7, session)
        first = {**turn[0], "type": "user", "message": {"role": "user", "content": asked}}
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(record) + "\n" for record in (first, *turn)))
        if ralf.checkpoint(route, path, root=self.root).checkpoints:
            self.say("kept", route, f"c-{marker}")

    def save(self, marker: str, route: str) -> None:
        """A person saves: one at a time, for two would lose each other's work, and nobody what is being forgotten."""
        with _alone(self.root):
            rig.save(self.root, marker, partial(self.say, "kept", route), route)

    def take_in(self, marker: str, route: str) -> None:
        self.save(marker, route)
        with suppress(NotFound):
            corrections.take_in(route, root=self.root)

    def drop(self, marker: str, route: str) -> None:
        found = [item.id for item in ralf.get_context(route, root=self.root).decisions]
        if found:
            with suppress(NotFound):  # forgotten meanwhile
                corrections.drop(route, self.rng.choice(found), root=self.root)

    def revert(self, marker: str, route: str) -> None:
        now = ralf.get_context(route, root=self.root).revision
        if now:
            revert(route, f"r{self.rng.randint(max(0, now - 12), now)}", root=self.root)

    # ---- forgetting ----

    def forget(self, marker: str, route: str) -> None:
        """A decision with its words, or a marker wherever it stands."""
        with _alone(self.root):
            context = ralf.get_context(route, root=self.root)
            found = {item.decision.split()[-1]: item.id for item in context.decisions if " d-" in item.decision}
            found |= {item.request.split()[2]: "" for item in context.facts.requests if " c-" in item.request}
            if not found:
                return
            word = self.rng.choice(sorted(found))
            label = found[word] if self.rng.random() < 0.5 else ""
            self.say("begun", route, word, label)
            try:
                done = forget(route, label or None, text=None if label else word, root=self.root)
            except NotFound:
                return
            self.say("forgotten", route, word)
            if done.left:
                self.say("left", route, word, ", ".join(done.left))

    # ---- keeping ----

    def archive(self, marker: str, route: str) -> None:
        archive.archive(project.find(self.root), route)

    def repair(self, marker: str, route: str) -> None:
        done = repair(self.rng.choice((route, None)), root=self.root)
        for one in done.done:
            if "moved to" in one.what or "kept in" in one.what or "written anew: " in one.what:
                self.say("failed", "repair", f"{one.path} {one.what}")

    def verify(self, marker: str, route: str) -> None:
        bad = [finding for finding in verify(root=self.root).findings if finding.damage]
        if bad:
            self.say("failed", "verify", str(bad[:3]))

    # ---- reading ----

    def read(self, marker: str, route: str) -> None:
        context = ralf.get_context(route, root=self.root)
        if context.warnings:
            self.say("failed", "read", str(context.warnings))
        ralf.list_routes(root=self.root)
        for _ in history.records(project.find(self.root), route):
            pass

    def search(self, marker: str, route: str) -> None:
        ralf.search("tide table", root=self.root)


SHARES = {
    _Worker.decide: 8,
    _Worker.checkpoint: 3,
    _Worker.save: 2,
    _Worker.take_in: 1,
    _Worker.drop: 1,
    _Worker.revert: 2,
    _Worker.forget: 2,
    _Worker.archive: 2,
    _Worker.repair: 1,
    _Worker.verify: 1,
    _Worker.read: 3,
    _Worker.search: 1,
}


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    descriptor = os.open(root / "person.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def run(size: Size, seed: int, only: Sequence[str]) -> rig.Found:
    """So many rounds, each on a store of its own."""
    found = rig.Found(rounds=size.rounds)
    rig.warm()
    for work in [work for work in SHARES if work.__name__ not in only]:
        del SHARES[work]
    for number in range(seed, seed + size.rounds):
        with rig.store() as root:
            _round(root, size, number, found)
    return found


def _round(root: Path, size: Size, seed: int, found: rig.Found) -> None:
    rng = random.Random(seed)
    for route in ROUTES:
        ralf.record_decision(route, f"Begin with {route}", root=root)
    log = os.open(root / "said.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)

    def say(*words: str) -> None:
        os.write(log, json.dumps(words).encode() + b"\n")

    def started(number: int) -> int:
        nonlocal begun
        begun += 1
        return rig.forked(_Worker(root, f"{chr(97 + number)}{begun:03d}", f"{seed} {begun}", say).run)

    begun = 0
    children = [started(number) for number in range(size.workers)]
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        time.sleep(min(rng.uniform(0, 2 * size.lives), end - time.monotonic()) if time.monotonic() < end else 0)
        if size.lives > _SECONDS:
            continue
        number = rng.randrange(size.workers)
        _kill(children[number])
        children[number] = started(number)
    for child in children:
        _kill(child)
    os.close(log)
    said = [json.loads(line) for line in (root / "said.log").read_text().splitlines()]
    try:
        _judge(root, said, found, f"seed {seed}")
    except (RalfError, OSError, AssertionError) as error:
        found.note("unsound", f"seed {seed}: {error!r}")


def _kill(child: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _judge(root: Path, said: list[list[str]], found: rig.Found, when: str) -> None:
    for words in said:
        if words[0] == "failed":
            found.note(f"failed: {words[1]}", f"{when}: {words[2]}")
        elif words[0] == "left":
            found.note("left by a forget", f"{when}: {words[1:]}")
    forgotten = {word for kind, _, word, *_ in said if kind == "forgotten"}
    for kind, route, word, *label in said:
        if kind == "begun" and word not in forgotten:
            with suppress(NotFound):
                forget(route, label[0] or None, text=None if label[0] else word, root=root)
            forgotten.add(word)
    for route in ROUTES:
        rig.decide(root, "settled", str, route)  # what the dead have left of the other one is swept, too
    for route in ROUTES:
        ours = {word for kind, where, word, *_ in said if kind == "kept" and where == route} - forgotten
        found.acknowledged += len(ours)
        rig.settle(root, ours, found, f"{when} {route}", marker="after", route=route)
    for path in sorted(storekit.context_of(root).rglob("*")):
        if path.is_file() and (words := found_in(path, sorted(forgotten))):
            found.note("not forgotten", f"{when}: {path} {words}")
    report = verify(root=root)
    for finding in report.findings:
        if finding.damage:
            found.note("unsound", f"{when}: {finding}")
    if list(storekit.context_of(root).rglob("*.damaged")):
        found.note("unsound", f"{when}: a repair took something for damaged")
    for route in ROUTES:
        archive.archive(project.find(root), route)


if __name__ == "__main__":
    works = [work.__name__ for work in SHARES]
    sys.exit(rig.command("mixed", Size(), run, kinds=works, broken=broken.VARIANTS))
