"""The files of tasks: a person edits them at any moment, git and archives bring them, and nothing of it is lost."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from random import Random

import pytest

from kit.git import commit, git, repository
from ralf.errors import NothingReady, UsageError
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.tasks import claims, editing, store, trust
from taskskit import accept_tasks, of, opted_in, without_index

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return opted_in(tmp_path)


def write(root: Path, name: str, status: str = "pending", more: str = "", folder: str = "active") -> Path:
    path = root / ".autonomous" / "tasks" / folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nid: {name}\nstatus: {status}\n{more}---\n\n# Task {name}\n\nWords of {name}.\n")
    return path


# ---- a person's edits ----


def saved(path: Path, line: str, *, in_place: bool, after: float) -> None:
    """Save a line into a file, as an editor does, after some seconds."""
    time.sleep(after)
    if in_place:
        with path.open("a") as file:
            file.write(f"{line}\n")
    else:
        beside = path.with_suffix(".swp")
        beside.write_text(f"{path.read_text()}{line}\n")
        beside.replace(path)


@pytest.mark.ci
@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("moments", [10, pytest.param(60, marks=pytest.mark.ci(seconds=4))])
def test_a_save_at_any_moment_of_a_write_is_not_lost(root: Path, moments: int, in_place: bool) -> None:
    path = of(editing.add("One", text="Begin", root=root))
    random = Random(7)  # noqa: S311  # the same moments in every run
    for number in range(moments):
        after = random.uniform(0, 0.02)
        editor = FORK.Process(
            target=saved, args=(path, f"line {number}"), kwargs={"in_place": in_place, "after": after}
        )
        editor.start()
        began = time.monotonic()
        while time.monotonic() - began < 0.025:
            editing.edit("One", priority=random.randint(1, 10), root=root)
        editor.join()
        assert editor.exitcode == 0
        editing.edit("One", tags=[f"tag {number}"], root=root)
        lost = [one for one in range(number + 1) if f"\nline {one}\n" not in path.read_text()]
        assert lost == []


def test_a_file_that_cannot_be_read_is_told_beside_those_that_can(root: Path) -> None:
    editing.add("One", root=root)
    path = write(root, "TASK-torn")
    path.write_text("---\nid: [\n---\n")
    found = store.list_tasks(root=root)
    assert [state.task.title for state in found.tasks] == ["One"]
    assert [where for where, _ in found.damaged] == [path]
    assert claims.claim(by="me", root=root).task.title == "One"
    with pytest.raises(NothingReady, match="1 cannot be read"):
        claims.claim(by="you", root=root)


# ---- foreign files ----


def cloned(root: Path, tmp_path: Path) -> Path:
    """A clone of a project with the tasks of `root`, opted in by its user."""
    commit(repository(root))
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(root), str(clone))
    ownership.init(store.at(clone).project, share=False)
    return clone


@pytest.mark.ci
def test_whoever_has_a_task_completes_it_though_a_pull_has_changed_it_and_it_stays_foreign(
    root: Path, tmp_path: Path
) -> None:
    editing.add("One", id="TASK-one", root=root)
    clone = cloned(root, tmp_path)
    accept_tasks(clone)
    state = claims.claim(by="me", root=clone)
    editing.edit("One", text="Do something else", root=root)
    git(root, "commit", "-qam", "changed")
    git(clone, "pull", "-q")
    assert store.get("One", root=clone).is_foreign
    assert state.claim is not None
    done = claims.done("Done", lease=state.claim.lease("TASK-one"), root=clone)
    assert (done.task.status, done.summary, done.is_foreign) == ("completed", "Done", True)
    assert "Do something else" in of(done).read_text()
    with pytest.raises(UsageError, match="has not been accepted"):
        claims.retry("One", root=clone)
    without_index(clone)
    assert store.get("One", root=clone).is_foreign
    accept_tasks(clone)
    assert claims.retry("One", root=clone).task.text == "Do something else"


def test_a_tree_of_ralfs_own_loop_is_accepted_whole_claimed_and_moved_as_it_is(root: Path) -> None:
    tree = root / ".autonomous" / "tasks" / "active" / "TASK-ARCH-028-routes"
    tree.mkdir(parents=True)
    (tree / "task.md").write_text(
        "# TASK-ARCH-028: Routes hold placeholders\n\n**Status:** in_progress\n**Priority:** HIGH\n"
    )
    (tree / "notes.md").write_text("kept\n")
    os.utime(tree / "task.md", (1_700_000_000, 1_700_000_000))
    assert list(trust.files_of(Project(root))) == ["TASK-ARCH-028"]
    accept_tasks(root)
    state = claims.claim(by="me", root=root)
    assert (state.task.id, state.task.priority, state.task.status) == ("TASK-ARCH-028", 8, "pending")
    done = claims.done("Filled in", by="me", root=root)
    moved = root / ".autonomous" / "tasks" / "completed" / "TASK-ARCH-028-routes"
    assert done.path == moved / "task.md"
    assert (moved / "notes.md").read_text() == "kept\n"
    assert "**Status:** completed\n**Priority:** HIGH\n" in (moved / "task.md").read_text()
    assert not tree.exists()
    claims.retry("TASK-ARCH-028", root=root)
    assert tree.exists()
    assert not store.get("TASK-ARCH-028", root=root).is_foreign
