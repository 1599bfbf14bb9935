"""Two clones share their route files by git: what one decides, drops, rewords or replaces reaches the other once it is
accepted, and nothing of either is undone, doubled or lost on the way.

Each round one of the two works, and commits; the other pulls, works on beside the pulled file now and then, accepts it,
commits, and the first pulls that.

    python -m tests.faults.shares --rounds 500
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests import storekit
from tests.faults import rig

import ralf
from kit import git
from ralf import project
from ralf.errors import RalfError
from ralf.maintenance import ownership, trust
from ralf.route.corrections import drop

KINDS = ("pulled at once", "worked beside")
_A_PAIR = 10  # rounds


@dataclass
class Clone:
    """One of the two: their tree, and their own folder, so that each has a ralf of their own."""

    root: Path
    own: Path
    number: int = field(default=0)

    @contextmanager
    def works(self) -> Iterator[Path]:
        """Be this one for a block."""
        before = os.environ["XDG_CONFIG_HOME"]
        os.environ["XDG_CONFIG_HOME"] = str(self.own)
        try:
            yield self.root
        finally:
            os.environ["XDG_CONFIG_HOME"] = before

    def git(self, *arguments: object) -> None:
        """Run git; it has to succeed."""
        git.git(self.root, *arguments)

    def decisions(self) -> dict[str, tuple[str, str]]:
        """Label and status of each decision of theirs, by its words."""
        with self.works() as root:
            return {one.decision: (one.id, one.status) for one in ralf.get_context(rig.ROUTE, root=root).decisions}

    def work(self, random_: random.Random, name: str) -> None:
        """Decide, and drop, reword or replace one of the decisions."""
        with self.works() as root:
            active = [one for one in ralf.get_context(rig.ROUTE, root=root).decisions if one.status == "active"]
            chosen = random_.choice(active)
            kind = random_.choice(("nothing", "drop", "reword", "replace"))
            replaced = chosen.id if kind == "replace" else None
            ralf.record_decision(rig.ROUTE, f"Choose {name}", supersedes=replaced, root=root)
            if kind == "drop":
                drop(rig.ROUTE, chosen.id, root=root)
            elif kind == "reword":
                path = storekit.route_file(root, rig.ROUTE)
                text = path.read_text(encoding="utf-8")
                path.write_text(text.replace(f'"{chosen.decision}"', f'"{chosen.decision} again"', 1), encoding="utf-8")
                ralf.record_decision(rig.ROUTE, f"Choose {name} then", root=root)

    def commit(self) -> None:
        """Commit what git sees."""
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "more")


def run(rounds: int, seed: int, only: Sequence[str]) -> rig.Found:
    """So many rounds, in pairs of clones that begin anew now and then."""
    found = rig.Found()
    random_ = random.Random(seed)
    while found.rounds < rounds:
        with rig.store() as folder:
            pair = _pair(folder)
            for number in range(min(_A_PAIR, rounds - found.rounds)):
                beside = random_.choice(list(only)) == "worked beside"
                try:
                    _one(*pair, random_, f"{number}", found, beside=beside)
                except (RalfError, OSError, AssertionError) as error:
                    found.note("failed", f"{number}: {error!r}")
                    break
                pair = pair[::-1]
                found.rounds += 1
    return found


def _pair(folder: Path) -> tuple[Clone, Clone]:
    one, other = (Clone(folder / name, folder / f"{name}-own") for name in ("one", "other"))
    one.root.mkdir()
    one.git("init", "-q", "-b", "main")
    with one.works() as root:
        ownership.init(project.find(root), share=True)
        for number in range(4):
            ralf.record_decision(rig.ROUTE, f"Choose first {number}", root=root)
    one.commit()
    other.root.mkdir()
    other.git("clone", "-q", one.root, ".")
    with other.works() as root:
        ownership.init(project.find(root), share=True)
        trust.accept_route(project.find(root), rig.ROUTE)
    other.commit()
    return other, one


def _one(worker: Clone, puller: Clone, random_: random.Random, name: str, found: rig.Found, *, beside: bool) -> None:
    """The worker works and commits; the puller pulls and accepts, and passes the merged file on."""
    before = puller.decisions()
    worker.work(random_, f"w-{name}")
    worker.commit()
    theirs = worker.decisions()
    puller.git("pull", "-q", "--ff-only", worker.root, "HEAD")
    with puller.works() as root:
        shown = "\n".join(ralf.get_context(rig.ROUTE, root=root).foreign_notes)
        if beside:
            ralf.record_decision(rig.ROUTE, f"Choose beside-{name}", root=root)
        accepted = trust.accept_route(project.find(root), rig.ROUTE)
    now = puller.decisions()
    found.acknowledged += len(theirs)
    lost = theirs.keys() - now.keys()
    found.note("lost", f"{name}: {sorted(lost)[:3]}", len(lost))
    undone = [words for words, (_, status) in theirs.items() if words in now and now[words][1] != status]
    found.note("undone", f"{name}: {undone[:3]}", len(undone))
    back = (now.keys() & before.keys()) - theirs.keys()
    found.note("undone", f"{name}: reworded, and there as before: {sorted(back)[:3]}", len(back))
    if beside and f"Choose beside-{name}" not in now:
        found.note("lost", f"{name}: what was decided beside the pulled file")
    labels = [label for label, _ in now.values()]
    found.note("doubled", f"{name}: {labels}", len(labels) - len(set(labels)))
    untold = [words for words in theirs.keys() - before.keys() if words not in shown]
    untold += [words for words, at in theirs.items() if before.get(words, at)[1] != at[1] and words not in shown]
    found.note("untold", f"{name}: {untold[:3]}", len(untold))
    if accepted.warnings:
        found.note("left", f"{name}: {accepted.warnings[0]}")
    puller.commit()
    worker.git("pull", "-q", "--ff-only", puller.root, "HEAD")
    with worker.works() as root:
        trust.accept_route(project.find(root), rig.ROUTE)
    worker.commit()
    puller.git("pull", "-q", "--ff-only", worker.root, "HEAD")
    with puller.works() as root:
        trust.accept_route(project.find(root), rig.ROUTE)
    if _statuses(worker) != _statuses(puller):
        found.note("apart", f"{name}: {_statuses(worker).items() ^ _statuses(puller).items()}")
    puller.commit()
    worker.git("pull", "-q", "--ff-only", puller.root, "HEAD")


def _statuses(clone: Clone) -> dict[str, str]:
    return {words: status for words, (_, status) in clone.decisions().items()}


if __name__ == "__main__":
    sys.exit(rig.main("shares", run, rounds=20, what="rounds of two clones", kinds=KINDS))
