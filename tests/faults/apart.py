"""Machines of one user that work while they are apart, by chance: they come to one history, byte for byte.

Each decides, edits files, drops, hands over, takes sessions, reverts and forgets, on routes that all have; adds to the
memory of one agent, edits it and drops from it; is cut off, dies in the middle of an exchange, loses its cache; and the
servers lose everything, or go back to a backup. Then all of them exchange until nothing waits: each has the same
journals and files, every record is there once, no label means two things, and what was forgotten is nowhere.

    python -m tests.faults.apart --rounds 200
    python -m tests.faults.apart --broken "labels as they are"     finds labels that mean two things
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Container, Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults import rig
from tests.faults.tenure import Fault
from tests.machines import Machine, several
from tests.storekit import write_session

import ralf
from ralf.errors import RalfError
from ralf.maintenance.forget import forget
from ralf.maintenance.purge import of_text, remains
from ralf.maintenance.verify import verify
from ralf.memory import rebase as memory_rebase, writing
from ralf.memory.model import DEFAULT_AGENT
from ralf.memory.records import Accepted, Dropped
from ralf.model import RouteContext
from ralf.route import corrections, handing_over, rebase
from ralf.storage import journal
from ralf.storage.journal import Entry

ROUTES = ("tide", "moon")

WORDS = ("gauge", "column", "table", "index", "cache", "decimal", "harbour", "buoy", "pier", "lock")


class Play:
    """Machines that work, are cut off, die in the middle of an exchange and come back, by chance."""

    def __init__(self, machines: list[Machine], dice: random.Random) -> None:
        self.machines = machines
        self.dice = dice
        self.said: dict[str, set[str]] = {route: set() for route in ROUTES}
        self.learned: set[str] = set()
        self.forgotten: list[tuple[str, str]] = []
        self.backup = machines[0].engine.backup()
        self.faults: list[Fault] = []

    def step(self) -> None:
        """One machine does one thing."""
        one = self.dice.choice(self.machines)
        work = (self.decide, self.decide, self.edit, self.drop, self.hand_over, self.checkpoint, self.revert)
        memory = (self.learn, self.learn, self.unlearn, self.edit_memory, self.accept)
        rare = (self.forget, self.harm)
        self.dice.choice((*work, *memory, *rare, *[self.exchange] * 3))(one, self.dice.choice(ROUTES))

    def text(self) -> str:
        """Words that nobody has said before."""
        return f"Use the {' '.join(self.dice.sample(WORDS, 3))} {self.dice.randrange(10**9)}"

    def decide(self, one: Machine, route: str) -> None:
        """Record a decision, at times in the place of another."""
        known = one.active(route) if self.has(one, route) else []
        text = self.text()
        more = {"supersedes": self.dice.choice(known)} if known and self.dice.random() < 0.3 else {}
        one.decide(route, text, **more)
        self.said[route].add(text)

    def edit(self, one: Machine, route: str) -> None:
        """Change a file by hand, and add a decision to it."""
        if not self.has(one, route):
            return
        path, text = one.file(route), self.text()
        found = path.read_text()
        reason = f"reason {self.dice.randrange(10**6)}"
        found = re.sub(r"(?m)^( +rationale:).*$", rf"\1 {reason}", found, count=1)
        found = found.replace("decisions:\n", f'decisions:\n  - decision: "{text}"\n', 1)
        path.write_text(found)
        self.said[route].add(text)
        if self.dice.random() < 0.7:
            self.decide(one, route)

    def drop(self, one: Machine, route: str) -> None:
        """Drop a decision."""
        if self.has(one, route) and (known := [*one.active(route)]):
            with suppress(RalfError):
                corrections.drop(route, self.dice.choice(known), because="it was wrong", root=one.root)

    def hand_over(self, one: Machine, route: str) -> None:
        """Hand over, with a decision."""
        text = self.text()
        handing_over.hand_over(route, why=self.text(), decisions=[text], root=one.root)
        self.said[route].add(text)

    def checkpoint(self, one: Machine, route: str) -> None:
        """Take a session that only this machine has."""
        session = f"s-{self.dice.randrange(10**9)}"
        path = one.root / f"{session}.jsonl"
        write_session(path, 400, session)
        ralf.checkpoint(route, path, root=one.root)

    def revert(self, one: Machine, route: str) -> None:
        """Go back, which is not to take anything of the others' away."""
        if self.has(one, route) and self.dice.random() < 0.3:
            revision = ralf.get_context(route, root=one.root).revision
            if revision > 2:
                corrections.revert(route, f"r{revision - 1}", root=one.root)

    # ---- the memory ----

    def learn(self, one: Machine, _: str) -> None:
        """Add an item, at times one that another machine may have added, too."""
        text = self.text()
        match self.dice.randrange(3):
            case 0:
                one.remember("fact", text=text, origin="person")
            case 1:
                one.remember("pattern", text=text, origin="agent", status="offered")
            case _:
                one.remember("preference", key=self.dice.choice(WORDS), value=text, origin="person")
                return  # the newest value of a key stands
        self.learned.add(text)

    def unlearn(self, one: Machine, _: str) -> None:
        """Drop an item."""
        if known := sorted(one.remembered()):
            writing.record(one.project, DEFAULT_AGENT, [Dropped(self.dice.choice(known), "wrong", origin="person")])

    def accept(self, one: Machine, _: str) -> None:
        """Accept what was offered."""
        if known := sorted(label for label, item in one.remembered().items() if item.status == "offered"):
            writing.record(one.project, DEFAULT_AGENT, [Accepted(self.dice.choice(known))])

    def edit_memory(self, one: Machine, _: str) -> None:
        """Change an item in the file, and add one to it; at times to a file that was opened before an exchange."""
        if not one.memory_file.exists():
            return
        found, text = one.memory_file.read_text(), self.text()
        if self.dice.random() < 0.5:
            self.exchange(one, "")
        found = re.sub(r"(?m)^(- \[fact-\d+\] .*?)( \(\d+ uses)", rf"\1 {text}\2", found, count=1)
        one.memory_file.write_text(found)
        writing.record(one.project, DEFAULT_AGENT, [])

    def exchange(self, one: Machine, _: str) -> None:
        """Exchange, at times only a part."""
        one.engine.away, one.engine.dies_after = False, self.dice.choice((-1, -1, self.dice.randrange(12)))
        one.exchange(whole=self.dice.random() < 0.3)
        one.engine.away, one.engine.dies_after = False, -1

    def forget(self, one: Machine, route: str) -> None:
        """Forget a text wherever it is."""
        known = sorted(text for text in self.said[route] if text in one.words(route))
        if known:
            text = self.dice.choice(known)
            forget(route, text=text, root=one.root)
            self.said[route].discard(text)
            self.forgotten.append((route, text))

    def harm(self, one: Machine, _: str) -> None:
        """Lose what is a cache, or the engine everything; restore it from an older backup, or back it up."""
        match self.dice.randrange(6):
            case 0 | 1:
                shutil.rmtree(one.project.cache, ignore_errors=True)
            case 2:
                one.engine.lose_everything()
            case 3:
                one.engine.restore(self.backup)
            case _:
                self.backup = one.engine.backup()

    @staticmethod
    def has(one: Machine, route: str) -> bool:
        """Whether the machine knows the route."""
        return any(found.route == route for found in ralf.list_routes(root=one.root))


def judged(play: Play) -> Iterator[Fault]:
    """What is wrong once the machines have exchanged all they have."""
    for _ in range(3):
        for one in play.machines:
            found = one.exchange()
            if found.problem:
                yield "problem", found.problem
    first = play.machines[0]
    names = sorted(one.route for one in ralf.list_routes(root=first.root))
    for one in play.machines:
        if waiting := one.exchange().waiting:
            yield "waits", f"{waiting} records wait on {one.root.name}"
        if sorted(each.route for each in ralf.list_routes(root=one.root)) != names:
            yield "unlike", f"{one.root.name} has other routes than {names}"
            continue
        for route in names:
            if one.journal(route) != first.journal(route):
                yield "unlike", f"the journal of {route} on {one.root.name}"
            elif one.file(route).read_bytes() != first.file(route).read_bytes():
                yield "unlike", f"the file of {route} on {one.root.name}"
        for finding in verify(root=one.root).findings:
            if finding.damage:
                yield "damaged", f"{finding.path}: {finding.what}"
    for route, said in play.said.items():
        yield from _judged_route(first, route, said)
    yield from _judged_memory(play)
    for route, text in play.forgotten:
        for one in play.machines:
            if left := remains(one.project.folder, of_text(route, text).wording):
                yield "told", f"{one.root.name} has {text!r} still: {left}"
        if text.encode() in play.machines[0].engine.everything():
            yield "told", f"the engine has {text!r} still"


def _judged_route(one: Machine, route: str, said: set[str]) -> Iterator[Fault]:
    records = one.journal(route)
    if len({id_ for id_, _ in records}) != len(records):
        yield "doubled", f"{route} has a record twice"
    revisions = [json.loads(record)["revision"] for _, record in records]
    if revisions != list(range(1, len(records) + 1)):
        yield "order", f"{route} has the revisions {revisions}"
    text = b"\n".join(record for _, record in records).decode()
    for words in sorted(said):
        if words not in text:
            yield "lost", f"{route} has nothing of {words!r}"
    for label, words_of in labels_given(one, route).items():
        if len(words_of) > 1:
            yield "label", f"{label} of {route} is {sorted(words_of)}"


def _judged_memory(play: Play) -> Iterator[Fault]:
    """What is wrong with the memory: machines have different ones, a record is there twice or out of order, a label was
    given to two items, an item is in no record.
    """
    first = play.machines[0]
    records = first.memory_journal()
    for one in play.machines:
        if one.memory_journal() != records:
            yield "unlike", f"the memory's journal on {one.root.name}"
        elif records and one.memory_file.read_bytes() != first.memory_file.read_bytes():
            yield "unlike", f"the memory's file on {one.root.name}"
    if len({id_ for id_, _ in records}) != len(records):
        yield "doubled", "the memory has a record twice"
    trees = [json.loads(record) for _, record in records]
    if [tree["n"] for tree in trees] != list(range(1, len(records) + 1)):
        yield "order", f"the memory has the revisions {[tree['n'] for tree in trees]}"
    given: dict[str, set[str]] = {}
    for delta in [delta for tree in trees for delta in tree["deltas"]]:
        if delta["kind"] == "add" and delta["item"]["kind"] != "preference":
            given.setdefault(delta["item"]["id"], set()).add(delta["item"]["text"])
    for label, texts in given.items():
        if len(texts) > 1:
            yield "label", f"{label} of the memory is {sorted(texts)}"
    for text in sorted(play.learned - set().union(*given.values())):
        yield "lost", f"the memory has nothing of {text!r}"


def labels_given(one: Machine, route: str) -> dict[str, set[str]]:
    """The words of all decisions that records bring, by their labels."""
    found: dict[str, set[str]] = {}
    for _, record in journal.read(one.project.store, route):
        payload = record.payload
        added = (
            c["value"]
            for c in payload.get("changes", ())
            if c["at"][:1] == ["decisions"] and len(c["at"]) == 2 and "value" in c
        )
        for item in [*payload.get("decisions", ()), *filter(None, [payload.get("decision")]), *added]:
            found.setdefault(item["id"], set()).add(item["decision"])
    return found


def as_they_are(
    _: str, entries: Iterable[Entry], *, onto: RouteContext, known: Container[str] = (), **__: object
) -> Iterator[Entry]:
    """In place of `rebase.rebased`: only the revisions are put right. A check of the check."""
    for number, entry in enumerate((one for one in entries if one.id not in known), start=onto.revision + 1):
        record = re.sub(
            rb'"revision":[0-9]+,"parent":[0-9]+', b'"revision":%d,"parent":%d' % (number, number - 1), entry.record
        )
        yield entry._replace(record=record)


def play(top: Path, number: int, seed: int, *, is_broken: bool = False) -> Play:
    """One history, in a folder that is thrown away.

    is_broken  records that wait keep their labels, whatever other machines have given them to
    """
    dice = random.Random(f"{seed} {number}")
    with pytest.MonkeyPatch.context() as patch, several(top, patch) as make:
        if is_broken:
            patch.setattr(rebase, "rebased", as_they_are)
            patch.setattr(memory_rebase.Rebase, "_added", lambda *_, again: {})
        found = Play(make(dice.randint(2, 4)), dice)
        for _ in range(dice.randint(8, 40)):
            found.step()
        found.faults = list(judged(found))
    return found


@dataclass(frozen=True)
class Size:
    """How many histories, and the number of the first, to play one again."""

    rounds: int = 100
    first: int = 0


def run(size: Size, given: argparse.Namespace) -> rig.Found:
    """So many histories."""
    found = rig.Found()
    for number in range(size.first, size.first + size.rounds):
        with tempfile.TemporaryDirectory(prefix="ralf-apart-") as top:
            done = play(Path(top), number, given.seed, is_broken=bool(given.broken))
        found.rounds += 1
        found.acknowledged += sum(map(len, done.said.values()))
        for kind, example in done.faults:
            found.note(kind, f"history {number}: {example}")
    return found


BROKEN = {"labels as they are": nullcontext}
"""`play` puts it into each history by itself."""

if __name__ == "__main__":
    status = rig.command(
        "apart",
        Size,
        run,
        of="items",
        faults=("lost", "doubled", "label", "unlike", "order", "waits", "problem", "damaged", "told"),
        broken=BROKEN,
    )
    sys.exit(status)
