"""Two clones of a project's tasks, and what git makes of both."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ralf
import storekit
from kit import git
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.tasks import claims, editing, store
from taskskit import accept_tasks

pytestmark = pytest.mark.ci


class Clone:
    """A repository with tasks, and what its user does in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mine: list[str] = []

    def git(self, *words: str) -> int:
        """Run git; its exit status."""
        return git.tried(self.root, *words).returncode

    def commit(self) -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "tasks")

    def add(self) -> str:
        """Add a task."""
        self.mine.append(editing.add(f"Carry over table {len(self.mine)}", root=self.root).task.id)
        return self.mine[-1]

    def statuses(self) -> dict[str, str]:
        """All tasks, as ralf reads them."""
        return {state.task.id: state.task.status for state in store.list_tasks(root=self.root).tasks}


def two_clones(folder: Path, count: int) -> tuple[Clone, Clone]:
    """A repository with so many tasks, and a clone of it in which they were accepted."""
    one, two = (Clone(folder / name) for name in ("one", "two"))
    one.root.mkdir()
    one.git("init", "-q", "-b", "main")
    (one.root / "README").write_text("tide\n")
    for _ in range(count):
        one.add()
    one.commit()
    one.git("clone", "-q", str(one.root), str(two.root))
    accept_tasks(two.root)
    return one, two


def test_a_clone_that_finishes_every_task_and_one_that_adds_another_merge_without_a_conflict(tmp_path: Path) -> None:
    """Git takes a folder that is left empty for renamed, and moves what the other clone has added along with it."""
    one, two = two_clones(tmp_path, 2)
    for task in one.mine:
        claims.done("It is done.", task=task, root=one.root)
    one.commit()
    new = two.add()
    two.commit()
    assert one.git("pull", "-q", "--no-rebase", str(two.root)) == 0
    assert one.statuses() == {**dict.fromkeys(one.mine, "completed"), new: "pending"}


def owned(clone: Clone, own: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be the user of this clone from now on, who shares the route files; its root."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own))
    if not own.exists():
        ownership.adopt(Project(clone.root))  # what it was made with, under another folder
        ownership.init(Project(clone.root), share=True)
    return clone.root


def test_a_task_on_which_another_clone_has_worked_is_told_as_soon_as_a_pull_brings_what_it_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = two_clones(tmp_path, 2)
    task, other = one.mine
    root = owned(one, tmp_path / "own one", monkeypatch)
    accept_tasks(root)
    claims.claim(task, by="ann", root=root)
    ralf.record_decision(task, "Keep the old column", root=root)
    one.commit()
    root = owned(two, tmp_path / "own two", monkeypatch)
    accept_tasks(root)
    assert store.get(task, root=root).warnings == ()
    assert two.git("pull", "-q", "--no-rebase", str(one.root)) == 0
    told = f"{task}: "
    assert "has worked on it in another clone" in store.get(task, root=root).warnings[0]
    assert [bool(state.warnings) for state in store.list_tasks(root=root).tasks if state.task.id == other] == [False]
    listed = storekit.process("task", "list", cwd=root, XDG_CONFIG_HOME=str(tmp_path / "own two"))
    assert "has worked on it in another clone" in listed.err, listed
    claimed = claims.claim(task, by="bob", root=root)
    assert claimed.claim is not None
    assert claimed.warnings[0].startswith(told)


def test_a_task_that_is_held_while_a_pull_changes_its_file_is_told_with_its_holder(tmp_path: Path) -> None:
    one, two = two_clones(tmp_path, 1)
    (task,) = one.mine
    claims.claim(task, by="bob", root=two.root)
    editing.edit(task, title="Carry over the newest table", root=one.root)
    one.commit()
    assert two.git("pull", "-q", "--no-rebase", str(one.root)) == 0
    found = store.get(task, root=two.root)
    assert found.is_foreign
    assert f"{task}: a pull changed its file, but bob holds it: is another clone at it, too?" in found.warnings
    own = os.environ.get("XDG_CONFIG_HOME", "")
    assert "foreign, claimed by bob" in storekit.process("task", "list", cwd=two.root, XDG_CONFIG_HOME=own).out
