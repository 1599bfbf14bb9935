"""Two clones work on the tasks of one project, each on its own, and git merges what they did to the files."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from examples import examples
from ralf.errors import DamagedTask
from ralf.tasks.folders import KEEP
from ralf.tasks.model import Task
from ralf.tasks.taskfile import parse, place, render

FOLDER = Path(".autonomous/tasks")
KEPT = FOLDER / KEEP

WORDS = "fix add test the login form route file reader of a for journal parser and docs claim token lease".split()

Files = dict[Path, bytes]


class Clone:
    """The task files of a clone, and what is done to them."""

    def __init__(self, dice: random.Random, files: Files) -> None:
        self.dice = dice
        self.files = dict(files)

    def ids(self) -> list[str]:
        """The ids of its tasks."""
        return sorted(parse(content, path).id for path, content in self.files.items() if path != KEPT)

    def path_of(self, id_: str) -> Path:
        """Where a task stands."""
        return next(p for p, content in self.files.items() if p != KEPT and parse(content, p).id == id_)

    def words(self, most: int) -> str:
        """Some words."""
        return " ".join(self.dice.choices(WORDS, k=self.dice.randint(2, most)))

    def name(self) -> str:
        """An id as `new_id` makes them, but the same in every run."""
        return "TASK-" + "".join(self.dice.choices("0123456789bcdfghjkmnpqrstvwxyz", k=5))

    def add(self) -> None:
        """Add a task."""
        task = Task(
            id=next(id_ for id_ in iter(self.name, "") if id_ not in self.ids()),
            title=self.words(6),
            text="\n".join(self.words(12) for _ in range(self.dice.randint(0, 6))),
            priority=self.dice.randint(3, 8),
            after=tuple(self.dice.sample(self.ids(), k=min(len(self.ids()), self.dice.randint(0, 2)))),
            created=f"2026-11-26T09:{self.dice.randint(10, 59)}:00Z",
            created_by=self.dice.choice(["ann@one", "bob@two"]),
        )
        self.files[place(FOLDER, task)] = render(task)

    def change(self, id_: str) -> None:
        """Finish a task, or change it."""
        path = self.path_of(id_)
        before = self.files.pop(path)
        task = parse(before, path)
        status = self.dice.choice(["completed", "completed", "completed", "failed", "cancelled", "pending"])
        task = replace(task, status=status)
        if self.dice.random() < 0.4:
            task = replace(task, title=self.words(6), priority=self.dice.randint(1, 10), tags=("a", "b"))
        self.files[place(FOLDER, task, path)] = render(task, before)

    def work(self, own: list[str]) -> None:
        """Add some tasks, and finish or edit some of the clone's own."""
        for _ in range(self.dice.randint(0, 4)):
            self.add()
        for id_ in own:
            if self.dice.random() < 0.7:
                self.change(id_)


class Repository:
    """A repository without a work tree; commits are made of what files hold."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "--bare", ".")

    def git(self, *arguments: str, content: bytes = b"") -> tuple[int, bytes]:
        """The exit status and the output of a command."""
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        done = subprocess.run(command, cwd=self.folder, input=content, capture_output=True, check=False)
        return done.returncode, done.stdout or done.stderr

    def commit(self, commits: list[tuple[str, str, Files]]) -> None:
        """Make commits, each of a name, the name of the one before it, and its files."""
        stream = []
        for name, parent, files in commits:
            stream.append(f"commit refs/heads/{name}\ncommitter a <a@b> 1700000000 +0000\ndata 1\nx\n".encode())
            stream.append(f"from refs/heads/{parent}\n".encode() if parent else b"")
            stream.append(b"deleteall\n")
            for path, content in files.items():
                stream.append(f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n")
        status, said = self.git("fast-import", "--quiet", content=b"".join(stream))
        assert status == 0, said

    def merge(self, one: str, other: str) -> Files | None:
        """The files of the merge, None where git reports a conflict."""
        status, said = self.git("merge-tree", "--write-tree", one, other)
        assert status in (0, 1), said
        return None if status else self.files(said.decode().split("\n")[0])

    def files(self, tree: str) -> Files:
        """The files of a tree."""
        _, listed = self.git("ls-tree", "-rz", tree)
        rows = [row.split(b"\t") for row in listed.split(b"\0") if row]
        _, blob = self.git("cat-file", "--batch", content=b"".join(row[0].split()[2] + b"\n" for row in rows))
        found: Files = {}
        for _, name in rows:
            head, _, rest = blob.partition(b"\n")
            size = int(head.split()[2])
            found[Path(name.decode())], blob = rest[:size], rest[size + 1 :]
        return found


def histories(count: int, seed: int) -> Iterator[tuple[Files, Clone, Clone]]:
    for number in range(count):
        dice = random.Random(seed * 100_000 + number)  # noqa: S311 - dice
        first = Clone(dice, {KEPT: b""})
        for _ in range(dice.randint(1, 12)):
            first.add()
        base = first.files
        ours, theirs = Clone(dice, base), Clone(dice, base)
        ids = first.ids()
        dice.shuffle(ids)
        half = dice.randint(0, len(ids))
        ours.work(ids[:half])
        theirs.work(ids[half:])
        yield base, ours, theirs


def merged_share(folder: Path, count: int, seed: int) -> float:
    """The share of histories that git merges; each merge has all that both did."""
    repository = Repository(folder)
    made = list(histories(count, seed))
    repository.commit(
        [
            commit
            for number, (base, ours, theirs) in enumerate(made)
            for commit in (
                (f"base{number}", "", base),
                (f"ours{number}", f"base{number}", ours.files),
                (f"theirs{number}", f"base{number}", theirs.files),
            )
        ]
    )
    clean = 0
    for number, (base, ours, theirs) in enumerate(made):
        files = repository.merge(f"ours{number}", f"theirs{number}")
        if files is None:
            continue
        clean += 1
        expected = dict(base)
        for clone in (ours, theirs):
            for path in base.keys() - clone.files.keys():
                expected.pop(path, None)
            expected |= {path: content for path, content in clone.files.items() if base.get(path) != content}
        assert files == expected
    return clean / count


def test_git_merges_what_two_clones_did_to_different_tasks(tmp_path: Path) -> None:
    assert merged_share(tmp_path, 30, seed=1) >= 0.95


@pytest.mark.slow(seconds=15)
def test_git_merges_many_histories_of_two_clones(tmp_path: Path) -> None:
    assert merged_share(tmp_path, examples(500), seed=2) >= 0.95


def test_a_folder_from_which_all_tasks_went_takes_no_new_ones_along(tmp_path: Path) -> None:
    """Without a file that stays in `active`, git says that it was renamed to `completed`."""
    tasks = [Task(id=f"TASK-{n}", title=f"Task {n}", text="text\n" * 5) for n in range(5)]
    base = {place(FOLDER, task): render(task) for task in tasks}
    done = [replace(task, status="completed") for task in tasks]
    ours = {place(FOLDER, task): render(task, render(old)) for task, old in zip(done, tasks, strict=True)}
    new = Task(id="TASK-new", title="New", text="other\n" * 5)
    theirs = base | {place(FOLDER, new): render(new)}
    repository = Repository(tmp_path)
    for name, kept in (("without", {}), ("with", {KEPT: b""})):
        repository.commit(
            [(f"{name}-base", "", base | kept), (f"{name}-ours", f"{name}-base", ours | kept),
             (f"{name}-theirs", f"{name}-base", theirs | kept)]
        )  # fmt: skip
    assert repository.merge("without-ours", "without-theirs") is None
    assert repository.merge("with-ours", "with-theirs") == ours | {place(FOLDER, new): render(new), KEPT: b""}


def test_a_task_that_both_finished_otherwise_is_marked_and_never_read_as_an_edit(tmp_path: Path) -> None:
    task = Task(id="TASK-1", title="A", text="text")
    before = render(task)
    repository = Repository(tmp_path)
    ours, theirs = (render(replace(task, status=status), before) for status in ("failed", "pending"))
    theirs = theirs.replace(b"pending", b"cancelled")
    path = place(FOLDER, task)
    repository.commit([("base", "", {path: before}), ("a", "base", {path: ours}), ("b", "base", {path: theirs})])
    assert repository.merge("a", "b") is None
    _, said = repository.git("merge-tree", "--write-tree", "a", "b")
    content = repository.files(said.decode().split("\n")[0])[path]
    with pytest.raises(DamagedTask, match="conflict markers"):
        parse(content, path)
