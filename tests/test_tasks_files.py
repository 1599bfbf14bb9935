"""The files of tasks: a person edits them at any moment, git and archives bring them, and nothing of it is lost."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest
from tests.faults.rig import killed_at

import storekit
from examples import step
from kit.git import commit, git, repository
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.tasks import claims, editing, origin, store, trust
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


# ---- what people do to the files of tasks between and during writes ----


def moved(path: Path, folder: str, name: str = "") -> Path:
    target = path.parents[1] / folder / (name or path.name)
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    return target


@pytest.mark.ci
@pytest.mark.parametrize("index", ["kept", "deleted"])
@pytest.mark.parametrize(
    ("status", "folder", "words", "then"),
    [
        ("pending", "completed", {}, "completed"),
        ("completed", "active", {}, "pending"),
        ("completed", "cancelled", {}, "cancelled"),
        ("failed", "completed", {}, "completed"),
        ("pending", "completed", {'"pending"': '"failed"'}, "failed"),  # a word that was changed, too, says more
        ("pending", "completed", {"Words": "Other words"}, "completed"),
        ("pending", "active", {'"pending"': '"completed"'}, "completed"),
    ],
)
def test_the_folder_of_a_task_is_its_status(
    root: Path, index: str, status: str, folder: str, words: dict[str, str], then: str
) -> None:
    editing.add("One", id="TASK-one", text="Words", root=root)
    path = of(editing.edit("One", status=status, root=root))
    path = moved(path, folder)
    for old, new in words.items():
        path.write_text(path.read_text().replace(old, new))
    for write in (lambda: None, lambda: editing.add("Two", root=root), lambda: editing.add("Three", root=root)):
        if index == "deleted":
            without_index(root)
        write()
        state = store.get("One", root=root)
        assert (state.task.status, state.warnings) == (then, ())
        assert ("Other words" in state.task.text) == ("Words" in words)
    assert of(state).parent.name == (then if then in ("completed", "cancelled") else "active")
    assert f'status: "{then}"' in of(state).read_text()


def test_a_save_into_what_the_last_write_displaced_is_merged_and_nothing_is_taken_out_by_it(root: Path) -> None:
    path = of(editing.add("One", id="TASK-one", text="Begin", root=root))
    stale = path.read_text()
    editing.edit("One", priority=7, text="Begin\n\nGo on", root=root)
    path.write_text(path.read_text() + "saved\n")
    prev = root / ".autonomous/context/prev/tasks/TASK-one.md"
    assert prev.read_text() == stale
    prev.write_text(stale.replace("Begin", "Begin\nlate"))
    claims.done("Done", task="One", root=root)
    task = store.get("One", root=root).task
    assert (task.priority, task.status) == (7, "completed")
    assert {"Begin", "late", "Go on", "saved"} <= set(task.text.split("\n"))


@pytest.mark.ci
@pytest.mark.parametrize("left", [None, b"", b"---\nid: \0\0\0\0"])
def test_what_a_loss_of_power_has_taken_of_files_is_made_anew_by_the_records(
    root: Path, left: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [editing.add(f"Task {number}", text="Words", root=root) for number in range(3)]
    for state in before:
        of(state).unlink()
        if left is not None:
            of(state).write_bytes(left)
            os.utime(of(state), (1, 1))  # it was before the machine began again
    monkeypatch.setattr(origin, "boot", lambda: "another run of the machine")
    if left != b"":  # an index that outlives it knows no more than one that does not
        without_index(root)
    assert [state.task for state in store.list_tasks(root=root).tasks] == [state.task for state in before]
    claims.claim(by="me", root=root)
    assert all("Words" in of(state).read_text() for state in before)
    of(before[0]).unlink()  # by a person
    without_index(root)
    assert len(store.list_tasks(root=root).tasks) == 2


# ---- tasks killed ----


def shown(root: Path) -> list[str]:
    """What a list of the tasks says of each."""
    tasks = [state.task for state in store.list_tasks(root=root).tasks]
    return named(root, [f"{task.title}: {task.status}, {task.text}, {task.after}" for task in tasks])


def filed(root: Path) -> list[str]:
    """The folder of each file, and all that it says from its title on."""
    paths = [path for path in (root / ".autonomous" / "tasks").rglob("*.md") if path.name[0] != "."]
    return named(root, [f"{path.parent.name}: {path.read_text().partition('# ')[2]}" for path in paths])


def named(root: Path, found: list[str]) -> list[str]:
    """The same in order; a task, whose id may be random, is named by its title."""
    for task in [state.task for state in store.list_tasks(root=root).tasks]:
        found = [text.replace(task.id, task.title) for text in found]
    return sorted(found)


WORKS: dict[str, Callable[[Path], object]] = {
    "add": lambda root: editing.add("New", text="Words", after=["One"], id="TASK-new", root=root),
    "edit": lambda root: editing.edit("TASK-one", text="Other words", priority=8, root=root),
    "done": lambda root: claims.done("It works", task="TASK-one", by="me", root=root),
    "fail": lambda root: claims.fail("It does not", task="TASK-one", by="me", root=root),
    "split": lambda root: editing.split("TASK-two", ["Part one", "Part two"], root=root),
    "cancel": lambda root: editing.edit("TASK-two", status="cancelled", root=root),
}


@pytest.mark.release(seconds=15)
@pytest.mark.parametrize("name", WORKS)
def test_a_kill_leaves_before_or_after_and_the_next_write_completes_the_file(tmp_path: Path, name: str) -> None:
    made, seen = tmp_path / "made", set()
    made.mkdir()
    ownership.init(Project(made), share=False)
    for id_, after in (("one", []), ("two", ["TASK-one"]), ("three", []), ("four", ["TASK-two"])):
        editing.add(id_.title(), id=f"TASK-{id_}", after=after, root=made)
    claims.claim("TASK-one", by="me", root=made)
    whole = storekit.copied(made, tmp_path / "whole")
    WORKS[name](whole)
    before, after = shown(made), shown(whole)
    claims.claim("TASK-three", by="next", root=whole)
    assert after != before
    for number in itertools.count(0, step()):
        root = storekit.copied(made, tmp_path / str(number))
        is_killed = killed_at(number, partial(WORKS[name], root))
        found = shown(root)
        assert found in (before, after), number
        seen.add(found == after)
        claims.claim("TASK-three", by="next", root=root)  # a write that has nothing to do with it
        assert shown(root) == found, number
        assert found == before or filed(root) == filed(whole), number
        if not is_killed:
            break
    assert seen == {True, False} and found == after
