"""Git rearranges the working tree, between and during writes: nothing acknowledged is lost.

Random sequences of stash, checkout, commit, rebase, reset and linked worktrees, in projects whose store is hidden from
git and in those that share their route files (`ralf init --share`), where git takes those away and puts old ones back.
Left out is what deletes ignored files, as git is asked to: `git clean -fdx`, `git stash --all`.

    python -m tests.faults.gits --rounds 1000
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.faults import broken, rig

from kit import git
from ralf import project
from ralf.errors import RalfError
from ralf.maintenance import ownership

KINDS = ("hidden", "shared")
_A_REPOSITORY = 10  # sequences
_STEPS = 6  # a sequence


class Repository:
    """A project under git, with a linked worktree now and then."""

    def __init__(self, folder: Path, *, shared: bool, random_: random.Random) -> None:
        self.root = folder / "project"
        self.linked = folder / "linked"
        self._random = random_
        self._number = 0
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        (self.root / "README").write_text("one\n")
        ownership.init(project.find(self.root), share=shared)
        self.commit()
        self.git("branch", "side")

    def git(self, *arguments: str) -> None:
        """Run git; what it refuses to do, for the tree's sake, it does not do."""
        git.tried(self.root, *arguments)

    def commit(self) -> None:
        """Change a file and commit everything."""
        self._number += 1
        (self.root / f"file-{self._random.randint(0, 3)}").write_text(f"{self._number}\n")
        self.git("add", "--all")
        self.git("commit", "-q", "-m", f"commit {self._number}")

    def stash(self) -> None:
        """Stash what is not committed, and mostly bring it back."""
        (self.root / "README").write_text(f"{self._number} stashed\n")
        self.git("stash", "push", "-q", *self._random.choice(([], ["--include-untracked"])))
        if self._random.random() < 0.7:
            self.git("stash", "pop", "-q")

    def checkout(self) -> None:
        """Go to a branch."""
        self.git("checkout", "-q", *self._random.choice(([], ["--force"])), self._random.choice(("main", "side")))

    def rebase(self) -> None:
        """Rebase onto a branch, or give up."""
        self.git("rebase", "-q", self._random.choice(("main", "side")))
        self.git("rebase", "--abort")

    def reset(self) -> None:
        """Throw away what is not committed, or more."""
        self.git("reset", "-q", "--hard", self._random.choice(("HEAD", "HEAD~1", "main")))

    def worktree(self) -> None:
        """Add the linked worktree, or remove it."""
        if self.linked.exists():
            self.git("worktree", "remove", "--force", str(self.linked))
        else:
            self.git("worktree", "add", "-q", "--detach", str(self.linked))

    def put_right(self) -> None:
        """End what was begun, as a person does who has read what git says."""
        self.git("rebase", "--abort")
        self.git("reset", "-q", "--hard")

    def step(self) -> str:
        """Do something to the tree; what."""
        steps: list[Callable[[], None]] = [
            self.commit, self.stash, self.checkout, self.rebase, self.reset, self.worktree
        ]  # fmt: skip
        chosen = self._random.choice(steps)
        chosen()
        return chosen.__name__


def run(size: rig.Rounds, seed: int, only: Sequence[str]) -> rig.Found:
    """So many sequences, in repositories of all kinds."""
    found = rig.Found()
    random_ = random.Random(seed)
    rig.warm()
    while found.rounds < size.rounds:
        for kind in only:
            sequences = min(_A_REPOSITORY, max(1, size.rounds // len(only)), size.rounds - found.rounds)
            if sequences > 0:
                with rig.store() as folder:
                    _one_repository(folder, kind, sequences, random_, found)
    return found


def _one_repository(folder: Path, kind: str, sequences: int, random_: random.Random, found: rig.Found) -> None:
    repository = Repository(folder, shared=kind == "shared", random_=random_)
    acknowledged: set[str] = set()
    rig.decide(repository.root, "before", acknowledged.add)
    for number in range(sequences):
        during = random_.random() < 0.5
        steps = (_during if during else _between)(repository, random_, f"{found.rounds}", acknowledged)
        repository.put_right()
        rig.settle(repository.root, acknowledged, found, f"{kind}: {' '.join(steps)}", marker=f"after-{number}")
        found.rounds += 1
    found.acknowledged += len(acknowledged)


def _between(repository: Repository, random_: random.Random, name: str, acknowledged: set[str]) -> list[str]:
    steps = []
    for number in range(_STEPS):
        steps.append(repository.step())
        root = repository.linked if repository.linked.exists() and random_.random() < 0.5 else repository.root
        rig.decide(root, f"{name}-{number}", acknowledged.add)
    return steps


def _during(repository: Repository, random_: random.Random, name: str, acknowledged: set[str]) -> list[str]:
    pipe, done = rig.Pipe(), repository.root.parent / "done"
    roots = (repository.root, repository.linked)
    writers = [rig.forked(partial(_write, root, f"{name}-{number}", pipe, done)) for number, root in enumerate(roots)]
    steps = []
    for _ in range(_STEPS):
        time.sleep(random_.uniform(0, 0.01))
        steps.append(repository.step())
    done.touch()
    for writer in writers:
        assert os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]) == 0
    done.unlink()
    acknowledged.update(pipe.markers())
    return ["during:", *steps]


def _write(root: Path, name: str, pipe: rig.Pipe, done: Path) -> None:
    """Decide until told to stop.

    A tree that git takes away has its store in the main one as long as its `.git` is there, at which a command looks
    once, when it begins. What is left of the tree afterwards is a folder like any other, and not looked at here.
    """
    main = root.parent / "project"
    number = 0
    while not done.exists():
        with suppress(RalfError, OSError):
            if project.find(root).folder.is_relative_to(main):
                rig.decide(main, f"{name}-{number}", pipe.acknowledge)
        number += 1
        time.sleep(0.002)


if __name__ == "__main__":
    sys.exit(rig.command("gits", rig.Rounds(), run, kinds=KINDS, broken=broken.VARIANTS))
