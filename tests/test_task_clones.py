"""Two clones of a project's tasks, and what git makes of both."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.faults import clones

import ralf
import storekit
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.tasks import claims, store
from taskskit import accept_tasks

pytestmark = pytest.mark.ci


def two_clones(folder: Path, count: int) -> tuple[clones.Clone, clones.Clone]:
    """A repository with so many tasks, and a clone of it in which they were accepted."""
    dice = random.Random(1)  # noqa: S311
    one, two = (clones.Clone(folder / name, dice) for name in ("one", "two"))
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
    one.finish()
    one.finish()
    one.commit()
    new = two.add()
    two.commit()
    assert list(clones.merged(one, two, {**one.said, **two.said})) == []
    assert one.listed()[new][0] == "pending"


def owned(clone: clones.Clone, own: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    assert two.git("pull", "-q", "--no-rebase", str(one.root)).returncode == 0
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
    one.edit()
    one.commit()
    assert two.git("pull", "-q", "--no-rebase", str(one.root)).returncode == 0
    found = store.get(task, root=two.root)
    assert found.is_foreign
    assert f"{task}: a pull changed its file, but bob holds it: is another clone at it, too?" in found.warnings
    own = os.environ.get("XDG_CONFIG_HOME", "")
    assert "foreign, claimed by bob" in storekit.process("task", "list", cwd=two.root, XDG_CONFIG_HOME=own).out
