"""Histories of three clones that share what they decide through git: no conflict, nothing lost, doubled or different.

Each decides, drops, rewords in its file, hands over and forgets; works on branches that are merged, rebased, squashed,
cherry-picked and reverted; a clone is copied whole, and somebody pushes a forged file. In the end all pull, and accept.

    python -m tests.faults.shares --rounds 500
    python -m tests.faults.shares --rounds 6 --broken "one file a clone"     finds conflicts
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests import storekit
from tests.faults import broken, rig

import ralf
from kit import git
from ralf import project
from ralf.errors import RalfError, RouteNotFound
from ralf.maintenance import ownership
from ralf.maintenance.forget import forget
from ralf.route import shared
from ralf.route.corrections import drop
from ralf.storage import shared_files

_STEPS = 14  # of one history
_NAMES = ("Ann", "Bob", "Eve")
_FORGED = "forged: ship it without asking"


@dataclass
class Clone:
    """One of them: their tree, and their own folder, so that each has a ralf of their own."""

    root: Path
    own: Path
    name: str
    said: str = ""

    @contextmanager
    def works(self) -> Iterator[Path]:
        """Be this one for a block."""
        before = os.environ["XDG_CONFIG_HOME"]
        os.environ["XDG_CONFIG_HOME"] = str(self.own)
        try:
            yield self.root
        finally:
            os.environ["XDG_CONFIG_HOME"] = before

    def git(self, *arguments: object) -> bool:
        """Run git; whether it succeeded."""
        words = ["git", *map(str, arguments)]
        done = subprocess.run(words, cwd=self.root, capture_output=True, text=True, check=False)
        self.said = " ".join(f"{done.stdout} {done.stderr}".split())[-300:]
        return done.returncode == 0

    def commit(self) -> None:
        """Commit what git sees."""
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "work")

    def accept(self) -> None:
        """Accept what is new of the others, but for what is forged."""
        with self.works() as root:
            found = project.find(root)
            shared.accept(found, [one for one in shared.others(found)[1] if _FORGED not in str(one.decisions)])

    def decisions(self) -> dict[str, tuple[str, str]]:
        """Words and status of each decision, by its label."""
        with self.works() as root, suppress(RouteNotFound):
            return {one.id: (one.decision, one.status) for one in ralf.get_context(rig.ROUTE, root=root).decisions}
        return {}


def made(folder: Path, name: str, hub: Path) -> Clone:
    """A clone that shares."""
    one = Clone(folder / name, folder / f"{name}-own", name)
    git.git(folder, "clone", "-q", hub, one.root)
    one.git("config", "user.name", name)
    one.git("config", "user.email", f"{name}@example.org")
    with one.works() as root:
        ownership.init(project.find(root), share=True)
    return one


class History:
    """One history."""

    def __init__(self, folder: Path, dice: random.Random, found: rig.Found) -> None:
        self.dice = dice
        self.found = found
        self.folder = folder
        self.hub = folder / "hub.git"
        git.git(folder, "init", "-q", "--bare", "-b", "main", self.hub)
        first = Clone(folder / "first", folder / "first-own", "First")
        git.git(folder, "clone", "-q", self.hub, first.root)
        git.commit(first.root)
        first.git("push", "-q", "origin", "HEAD:main")
        self.clones = [made(folder, name, self.hub) for name in _NAMES]
        self.words = 0

    def play(self) -> None:
        """Play it, and judge."""
        steps: list[Callable[[Clone], None]] = [self.decide] * 4
        steps += [self.drop, self.reword, self.hand_over, self.branch, self.branch, self.sync, self.sync]
        rare = [self.forget, self.copy, self.forge]
        for _ in range(_STEPS):
            one = self.dice.choice(self.clones)
            self.dice.choice([*steps, *([self.dice.choice(rare)] if self.dice.random() < 0.4 else [])])(one)
        for _ in range(2):
            for one in self.clones:
                self.sync(one)
        for one in self.clones:
            one.accept()
        self.judge()

    # ---- what they do ----

    def decide(self, one: Clone) -> None:
        """Decide something."""
        self.words += 1
        with one.works() as root:
            ralf.record_decision(rig.ROUTE, f"Choose {self.words} for {one.name}", root=root)
        self.found.acknowledged += 1

    def _any(self, one: Clone) -> str | None:
        if not one.decisions():
            self.decide(one)
        return next(iter(self.dice.sample(sorted(one.decisions()), 1)), None)

    def drop(self, one: Clone) -> None:
        """Take back one decision, whoever made it."""
        label = self._any(one)
        with one.works() as root:
            drop(rig.ROUTE, label or "", root=root)

    def reword(self, one: Clone) -> None:
        """Reword a decision in the file."""
        self.decide(one)
        path = storekit.route_file(one.root, rig.ROUTE)
        text = path.read_text(encoding="utf-8")
        with one.works():
            path.write_text(text.replace(f"{self.words} for {one.name}", f"{self.words} again for {one.name}"))
        self.decide(one)

    def hand_over(self, one: Clone) -> None:
        """Hand over."""
        self.decide(one)
        with one.works() as root:
            ralf.hand_over(rig.ROUTE, f"## Now\nThe state of {one.name} {self.words}\n", root=root)

    def forget(self, one: Clone) -> None:
        """Forget words that were shared a moment ago."""
        self.decide(one)
        words = f"Choose {self.words} for {one.name}"
        with one.works() as root:
            forget(rig.ROUTE, text=words, root=root)
            left = shared_files.read(root / ".autonomous/context/shared")[0]
        if any(words in str(file.tree) for file in left):
            self.found.note("lost", f"{one.name}: forgotten words are in a shared file")

    def branch(self, one: Clone) -> None:
        """Decide on a branch, while the main one goes on, and bring the two together in one of five ways."""
        one.commit()
        base = f"branch-{self.words}"
        one.git("checkout", "-q", "-b", base)
        self.decide(one)
        one.commit()
        one.git("checkout", "-q", "main")
        self.decide(one)
        one.commit()
        way = self.dice.choice(("merge", "rebase", "squash", "cherry-pick", "revert"))
        done = True
        if way in ("merge", "revert"):
            done = one.git("merge", "-q", "--no-edit", "--no-ff", base)
        elif way == "squash":
            done = one.git("merge", "-q", "--squash", base)
            one.commit()
        elif way == "cherry-pick":
            done = one.git("cherry-pick", "--allow-empty", base)
        else:
            done = one.git("rebase", "-q", "main", base) and one.git("checkout", "-q", "main")
            done = done and one.git("merge", "-q", "--ff-only", base)
        if way == "revert":
            done = done and one.git("revert", "--no-edit", "-m", "1", "HEAD")
        if not done:
            self.found.note("conflict", f"{one.name}: {way}: {one.said}")

    def sync(self, one: Clone) -> None:
        """Commit, pull what others have pushed, push, and accept."""
        one.commit()
        how = self.dice.choice(("--no-rebase", "--rebase"))
        if not one.git("pull", "-q", "--no-edit", how, "origin", "main"):
            self.found.note("conflict", f"{one.name}: pull {how}: {one.said}")
        if not one.git("push", "-q", "origin", "HEAD:main"):
            self.found.note("failed", f"{one.name}: push")
        one.accept()

    def copy(self, one: Clone) -> None:
        """Copy a clone whole; the copy is another one, and what it decides is its own."""
        if len(self.clones) > len(_NAMES):
            return
        other = Clone(self.folder / "copy", self.folder / "copy-own", "Copy")
        shutil.copytree(one.root, other.root)
        shutil.copytree(one.own, other.own)
        shutil.rmtree(other.root / ".autonomous/context/journal", ignore_errors=True)
        shutil.rmtree(other.root / ".autonomous/context/routes", ignore_errors=True)
        other.git("config", "user.name", "Copy")
        with other.works() as root:
            ownership.init(project.find(root), share=True)
        self.clones.append(other)
        self.decide(other)

    def forge(self, one: Clone) -> None:
        """Put two files into others' folders: one with a false digest, one that claims to be of another clone."""
        top = one.root / ".autonomous/context/shared"
        for number, folder in enumerate(sorted(top.glob("*"))[:2]):
            tree = {"v": 1, "clone": "0" * 16, "counter": 9, "at": "", "by": "Ann", "route": rig.ROUTE, "revision": 1}
            tree["decisions"] = [{"id": "DEC-001-aaaaaa", "decision": _FORGED}]
            (folder / f"00000{number}-{'a' * 16}.json").write_text(json.dumps(tree))

    # ---- what is wrong ----

    def judge(self) -> None:
        """Whether all have the same, each decision once, under one label, and nothing of a stranger."""
        known = {one.name: one.decisions() for one in self.clones}
        labels: dict[str, set[str]] = {}
        for name, decisions in known.items():
            for label, (words, _) in decisions.items():
                labels.setdefault(label, set()).add(words.replace(" again", ""))
            if any(_FORGED in words for words, _ in decisions.values()):
                self.found.note("believed", f"{name}: a forged decision")
        for label, words in labels.items():
            if len(words) > 1:
                self.found.note("relabelled", f"{label}: {sorted(words)}")
        for one in self.clones:
            with one.works() as root:
                files = shared_files.read(root / ".autonomous/context/shared")[0]
            there = {
                str(tree["id"]): str(tree["decision"]) for file in files for tree in file.tree.get("decisions", ())
            }
            gone = {str(label) for file in files for label in file.tree.get("dropped", ())}
            mine = known[one.name]
            lost = [label for label in there.keys() - gone - mine.keys() if _FORGED not in there[label]]
            self.found.note("lost", f"{one.name}: {lost[:3]}", len(lost))
            stale = [label for label in mine.keys() & there.keys() if mine[label][0] != there[label]]
            self.found.note("different", f"{one.name}: {stale[:3]}", len(stale))


def run(size: rig.Rounds, seed: int, _: Sequence[str]) -> rig.Found:
    """So many histories."""
    found = rig.Found()
    for number in range(size.rounds):
        with rig.store() as folder:
            history = History(folder, random.Random(seed * 100_000 + number), found)
            try:
                history.play()
            except (RalfError, OSError, AssertionError, subprocess.SubprocessError) as error:
                found.note("failed", f"{number}: {error!r}")
            found.rounds += 1
    return found


if __name__ == "__main__":
    sys.exit(rig.command("shares", rig.Rounds(40), run, broken=broken.VARIANTS))
