"""Random histories of two clones that each add, change and finish tasks: git merges them, or says where it cannot.

Real repositories with `.autonomous/tasks` committed. A merge without a conflict has every task once, as the clone has
it that changed it. One with a conflict has markers in a file that `ralf task list` names, and loses nothing.

    python -m tests.faults.clones --rounds 500
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.faults import rig, tenure
from tests.faults.tenure import Fault

from kit import git
from ralf.errors import RalfError
from ralf.project import Project
from ralf.tasks import claims, editing, serializing, store, trust

KINDS = ("different tasks", "with sequences", "the same task")
"""What the clones do: tasks of their own alone; each may also put its tasks into a sequence; both change one task."""
MOST_CONFLICTS = 0.05  # of the histories with different tasks
_MARKERS = (b"<<<<<<< ", b">>>>>>> ")
Listed = dict[str, tuple[str, str]]
"""Status and words of tasks."""


class Clone:
    """A repository with tasks, and what its user does in it."""

    def __init__(self, root: Path, dice: random.Random) -> None:
        self.root = root
        self.dice = dice
        self.mine: list[str] = []
        self.said: Listed = {}  # of each task that this clone has changed

    def git(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run git."""
        return git.tried(self.root, *words)

    def commit(self) -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "tasks")

    def listed(self) -> Listed:
        """All tasks, as ralf reads them."""
        tasks = [state.task for state in store.list_tasks(root=self.root).tasks]
        return {task.id: (task.status, f"{task.title}\n\n{task.text}".strip()) for task in tasks}

    # ---- what a user does ----

    def add(self, after: Sequence[str] = ()) -> str:
        """Add a task."""
        title = f"Carry over table {self.dice.randrange(10**9)}"
        text = "\n".join(f"Read column {number} first." for number in range(self.dice.randrange(4)))
        state = editing.add(title, text=text, priority=self.dice.randint(1, 10), after=tuple(after), root=self.root)
        self._note(state.task.id)
        self.mine.append(state.task.id)
        return state.task.id

    def add_behind(self) -> None:
        """Add a task that waits for one of this clone's."""
        self.add(self._some(1))

    def finish(self) -> None:
        """Complete a task that is ready."""
        self._end(lambda lease: claims.done("It is done.", lease=lease, root=self.root))

    def fail(self) -> None:
        """Give a task up."""
        self._end(lambda lease: claims.fail("The gauge is gone.", lease=lease, root=self.root))

    def edit(self) -> None:
        """Change a task by command."""
        for task in self._some(1):
            editing.edit(task, title=f"Carry over table {self.dice.randrange(10**9)}", priority=1, root=self.root)
            self._note(task)

    def save(self) -> None:
        """Change the text of a task in an editor."""
        for task in self._some(1):
            path = store.get(task, root=self.root).path
            if path is not None:
                path.write_text(path.read_text() + f"\nMind column {self.dice.randrange(99)}.\n")
                self._note(task)

    def live(self, kind: str) -> None:
        """Do a few of these, and commit now and then."""
        steps = [self.add, self.add, self.add_behind, self.finish, self.finish, self.finish, self.fail]
        for _ in range(self.dice.randint(1, 6)):
            self.dice.choice([*steps, self.edit, self.save])()
            if self.dice.random() < 0.3:
                self.commit()
        if kind == "with sequences" and self.dice.random() < 0.7:
            serializing.serialize(every=2, root=self.root)

    def _end(self, end: Callable[[str], object]) -> None:
        for task in self._some(3):
            state = store.get(task, root=self.root)
            if state.task.status == "pending" and not state.waits_for:
                claim = claims.claim(task, by="clone", root=self.root).claim
                assert claim is not None
                end(claim.lease(task))
                self._note(task)
                return

    def _some(self, count: int) -> list[str]:
        return self.dice.sample(self.mine, min(count, len(self.mine)))

    def _note(self, task: str) -> None:
        found = store.get(task, root=self.root).task
        self.said[task] = (found.status, f"{found.title}\n\n{found.text}".strip())


def play(dice: random.Random, kind: str) -> Iterator[Fault]:
    """What is wrong with one history, of two repositories that are thrown away."""
    with tempfile.TemporaryDirectory(prefix="ralf-clones-") as top:
        one, two = (Clone(Path(top) / name, dice) for name in ("one", "two"))
        one.root.mkdir()
        one.git("init", "-q", "-b", "main")
        (one.root / "README").write_text("tide\n")
        for _ in range(dice.randint(0, 6) + (kind == "the same task")):
            one.add()
        one.commit()
        one.git("clone", "-q", str(one.root), str(two.root))
        trust.accept(Project(two.root), trust.files_of(Project(two.root)))
        known, shared = dict(one.said), list(one.mine)
        dice.shuffle(shared)
        both = shared[:1] if kind == "the same task" else []
        cut = dice.randint(len(both), len(shared))
        one.mine, two.mine = shared[len(both) : cut], shared[cut:]
        one.said, two.said = {}, {}
        for clone in (one, two):
            clone.live(kind)
            for task in both:
                editing.edit(task, title=f"Table {dice.randrange(10**9)}", root=clone.root)
            clone.commit()
        yield from merged(one, two, {**known, **one.said, **two.said}, both)


def merged(one: Clone, two: Clone, expected: Listed, both: Sequence[str] = ()) -> Iterator[Fault]:
    """Merge what the second clone has committed into the first one; what is wrong with what is there then.

    both  tasks that both have changed
    """
    before = one.listed()
    one.git("fetch", "-q", str(two.root), "main")
    done = one.git("merge", "-q", "--no-edit", "FETCH_HEAD")
    said = (done.stdout + done.stderr).strip()[-400:]
    names = one.git("diff", "--name-only", "--diff-filter=U", "-z").stdout.split("\0")
    conflicts = [name for name in names if name]
    damaged, listed = _read(one)
    for name in conflicts:
        path = one.root / name
        if not path.is_file() or not all(marker in path.read_bytes() for marker in _MARKERS):
            yield "unmarked", f"{name}: git could not merge it, and no marker is in it: {said}"
        if not any(name.endswith(Path(each).name) for each in damaged):
            yield "unsaid", f"{name}: a conflict that `ralf task list` does not report"
    if conflicts:
        yield "conflict", f"{conflicts}: {said}"
    if damaged and not conflicts:
        yield "damaged", f"merged without a conflict, and not read: {damaged}"
    hidden = {Path(name).stem for name in conflicts}
    files = tenure.statuses(one.root)
    yield from tenure.lost(expected, {**files, **dict.fromkeys(hidden)})
    for task, status in files.items():
        if " and " in status:
            yield "doubled", f"{task} has two files: {status}"
    if conflicts:
        one.git("merge", "--abort")
        if one.listed() != before:
            yield "wrong", "after the merge was aborted the tasks are others"
        return
    yield from tenure.lost(expected, listed)
    for task, said_ in expected.items():
        if task not in both and listed.get(task, said_) != said_:
            yield "wrong", f"{task} is {listed[task]}, not {said_}"


def _read(clone: Clone) -> tuple[list[str], Listed]:
    """The paths of the files that ralf cannot read, and what it reads."""
    try:
        found = store.list_tasks(root=clone.root)
    except RalfError as error:
        return [error.where], {}
    damaged = [str(path) for path, _ in found.damaged]
    return damaged + [said.partition(": ")[0] for said in found.warnings if "plan.yaml: " in said], clone.listed()


def run(size: rig.Rounds, seed: int, only: Sequence[str] = KINDS) -> rig.Found:
    """So many histories of different tasks, a tenth of each other kind."""
    found = rig.Found()
    for kind in only:
        count = size.rounds if kind == KINDS[0] else max(1, size.rounds // 10)
        conflicts = []
        for number in range(size.first, size.first + count):
            found.rounds += 1
            for fault, example in play(random.Random(f"{seed} {number} {kind}"), kind):
                if fault == "conflict":
                    conflicts.append(example)
                else:
                    found.note(fault, f"{kind}, history {number}: {example}")
        found.figures[f"{kind}: histories with a conflict"] = f"{len(conflicts)} of {count}"
        if kind == KINDS[0]:
            found.note("conflicts", str(conflicts[:1]), len(conflicts) > MOST_CONFLICTS * count)
    return found


if __name__ == "__main__":
    sys.exit(rig.command("clones", rig.Rounds(), run, kinds=KINDS))
