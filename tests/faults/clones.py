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
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import rig, tenure
from tests.faults.tenure import Fault

from kit import git
from ralf.errors import RalfError
from ralf.project import Project
from ralf.tasks import claims, editing, serializing, store, trust
from ralf.tasks.model import Task

KINDS = ("different tasks", "with sequences", "the same task")
"""What the clones do: tasks of their own alone; each may also put its tasks into a sequence; both change one task."""
MOST_CONFLICTS = 0.05  # of the histories with different tasks
_MARKERS = (b"<<<<<<< ", b">>>>>>> ")


class Clone:
    """A repository with tasks, and what its user does in it."""

    def __init__(self, root: Path, _: Path, dice: random.Random) -> None:
        self.root = root
        self.dice = dice
        self.mine: list[str] = []
        self.said: dict[str, tuple[str, str]] = {}  # status and words, of each task that this clone has changed

    def git(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run git."""
        return git.tried(self.root, *words)

    def commit(self) -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "tasks")

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
        for task in self._some(3):
            state = store.get(task, root=self.root)
            if state.task.status == "pending" and not state.waits_for:
                self._claimed(task, lambda lease: claims.done("It is done.", lease=lease, root=self.root))
                return

    def fail(self) -> None:
        """Give a task up."""
        for task in self._some(1):
            state = store.get(task, root=self.root)
            if state.task.status == "pending" and not state.waits_for:
                self._claimed(task, lambda lease: claims.fail("The gauge is gone.", lease=lease, root=self.root))

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

    def serialize(self) -> None:
        """Put the tasks into a sequence."""
        serializing.serialize(every=2, root=self.root)

    def _claimed(self, task: str, end: Callable[[str], object]) -> None:
        claim = claims.claim(task, by="clone", root=self.root).claim
        assert claim is not None
        end(claim.lease(task))
        self._note(task)

    def _some(self, count: int) -> list[str]:
        return self.dice.sample(self.mine, min(count, len(self.mine)))

    def _note(self, task: str) -> None:
        found = store.get(task, root=self.root).task
        self.said[task] = (found.status, _words(found))

    def listed(self) -> dict[str, tuple[str, str]]:
        """Status and words of all tasks, as ralf reads them."""
        tasks = [state.task for state in store.list_tasks(root=self.root).tasks]
        return {task.id: (task.status, _words(task)) for task in tasks}


def _words(task: Task) -> str:
    return f"{task.title}\n\n{task.text}".strip()


@dataclass
class Merged:
    """What became of one history.

    expected    status and words of each task; None where both clones changed it
    listed      what ralf reads afterwards, and the paths of the files that it cannot read
    conflicts   files that git could not merge; `marked`: those of them with markers in them
    files       statuses by the files alone
    """

    kind: str
    expected: dict[str, tuple[str, str] | None]
    listed: dict[str, tuple[str, str]] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    said: str = ""
    aborted: dict[str, tuple[str, str]] | None = None


def judged(merged: Merged) -> Iterator[Fault]:
    """What is wrong with a merge."""
    for name in merged.conflicts:
        if name not in merged.marked:
            yield "unmarked", f"{name}: git could not merge it, and no marker is in it: {merged.said}"
        if not any(name.endswith(Path(damaged).name) for damaged in merged.damaged):
            yield "unsaid", f"{name}: a conflict that `ralf task list` does not report"
    hidden = {Path(name).stem for name in merged.conflicts}
    yield from tenure.lost(set(merged.expected) - hidden, merged.listed)
    yield from tenure.lost(merged.expected, {**merged.files, **dict.fromkeys(hidden)})
    for task, expected in merged.expected.items():
        if " and " in merged.files.get(task, ""):
            yield "doubled", f"{task} has two files: {merged.files[task]}"
        got = merged.listed.get(task)
        if expected is not None and got is not None and task not in hidden and got != expected:
            yield "wrong", f"{task} is {got}, not {expected}"
    if not merged.conflicts and merged.damaged:
        yield "damaged", f"merged without a conflict, and not read: {merged.damaged}"


def play(number: int, seed: int, kind: str) -> Merged:
    """One history, from two repositories that are thrown away."""
    dice = random.Random(f"{seed} {number} {kind}")
    with tempfile.TemporaryDirectory(prefix="ralf-clones-") as top:
        one, two = (Clone(Path(top) / name, Path(top), dice) for name in ("one", "two"))
        one.root.mkdir()
        one.git("init", "-q", "-b", "main")
        (one.root / "README").write_text("tide\n")
        for _ in range(dice.randint(0, 6)):
            one.add()
        if kind == "the same task":
            one.add()
        one.commit()
        one.git("clone", "-q", str(one.root), str(two.root))
        trust.accept(Project(two.root), trust.files_of(Project(two.root)))
        known = dict(one.said)
        shared = list(one.mine)
        dice.shuffle(shared)
        both = shared[:1] if kind == "the same task" else []
        cut = dice.randint(len(both), len(shared))
        one.mine, two.mine = shared[len(both) : cut], shared[cut:]
        one.said, two.said = {}, {}
        for clone in (one, two):
            _lived(clone, kind)
            for task in both:
                editing.edit(task, title=f"Table {dice.randrange(10**9)}", root=clone.root)
            clone.commit()
        expected: dict[str, tuple[str, str] | None] = {**known, **one.said, **two.said, **dict.fromkeys(both)}
        return merge(one, two, Merged(kind, expected))


def _lived(clone: Clone, kind: str) -> None:
    steps = [clone.add, clone.add, clone.add_behind, clone.finish, clone.finish, clone.finish, clone.fail, clone.edit]
    steps += [clone.save]
    for _ in range(clone.dice.randint(1, 6)):
        clone.dice.choice(steps)()
        if clone.dice.random() < 0.3:
            clone.commit()
    if kind == "with sequences" and clone.dice.random() < 0.7:
        clone.serialize()


def merge(one: Clone, two: Clone, found: Merged) -> Merged:
    """Merge what the second clone has committed into the first one, and look at it."""
    before = one.listed()
    one.git("fetch", "-q", str(two.root), "main")
    done = one.git("merge", "-q", "--no-edit", "FETCH_HEAD")
    found.said = (done.stdout + done.stderr).strip()[-400:]
    names = one.git("diff", "--name-only", "--diff-filter=U", "-z").stdout.split("\0")
    found.conflicts = [name for name in names if name]
    found.marked = [name for name in found.conflicts if all(marker in _bytes(one.root / name) for marker in _MARKERS)]
    try:
        listed = store.list_tasks(root=one.root)
    except RalfError as error:
        found.damaged = [error.where]
    else:
        found.listed = {state.task.id: (state.task.status, _words(state.task)) for state in listed.tasks}
        found.damaged = [str(path) for path, _ in listed.damaged]
        found.damaged += [said.partition(": ")[0] for said in listed.warnings if "plan.yaml: " in said]
    found.files = tenure.statuses(one.root)
    if found.conflicts:
        one.git("merge", "--abort")
        after = one.listed()
        if after != before:
            found.expected |= before
            found.listed = after
    return found


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def run(size: rig.Rounds, seed: int, only: Sequence[str] = KINDS) -> rig.Found:
    """So many histories of different tasks, a tenth of each other kind; with how many conflicts each."""
    found = rig.Found()
    for kind in only:
        count = size.rounds if kind == KINDS[0] else max(1, size.rounds // 10)
        conflicts = 0
        for number in range(size.first, size.first + count):
            merged = play(number, seed, kind)
            found.rounds += 1
            found.acknowledged += len(merged.expected)
            conflicts += bool(merged.conflicts)
            for fault, example in judged(merged):
                found.note(fault, f"{kind}, history {number}: {example}")
        found.figures[f"{kind}: histories with a conflict"] = f"{conflicts} of {count}"
        if kind == KINDS[0] and conflicts > MOST_CONFLICTS * count:
            found.note("conflicts", f"{conflicts} of {count} histories with {kind}; the last said: {merged.said}")
    return found


if __name__ == "__main__":
    sys.exit(rig.command("clones", rig.Rounds(), run, kinds=KINDS))
