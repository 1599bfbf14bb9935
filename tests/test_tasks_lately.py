"""In a large tree files are looked at once a second: what a command shows or claims is as its file says nonetheless."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, strategies as st

from examples import examples  # noqa: F401  # the profile
from ralf.errors import NothingReady
from ralf.maintenance import ownership
from ralf.tasks import claims, editing, index, plan, store
from test_tasks_index import did, edited

HOUR = 3_600 * 10**9


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three tasks, the third after the second, whose tree counts as large and was looked at lately."""
    monkeypatch.setattr(index, "MANY", 0)
    monkeypatch.setattr(index, "LATELY", HOUR)
    ownership.init(store.at(tmp_path).project, share=False)
    editing.add("One", id="TASK-one", priority=9, root=tmp_path)
    editing.add("Two", id="TASK-two", priority=8, root=tmp_path)
    editing.add("Three", id="TASK-three", priority=10, after=["TASK-two"], root=tmp_path)
    look(tmp_path)
    return tmp_path


def look(root: Path) -> None:
    """Look at all files once their folders are settled."""
    time.sleep(0.1)
    store.at(root).write(lambda writer: None)


def path_of(root: Path, id_: str) -> Path:
    path = store.get(id_, root=root).path
    assert path is not None
    return path


def edit(path: Path, old: str, new: str) -> None:
    """Edit a file in place, as an editor does that truncates and writes: its folder does not change."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def close(path: Path) -> None:
    edit(path, 'status: "pending"', 'status: "completed"')


def reopen(path: Path) -> None:
    edit(path, 'status: "completed"', 'status: "pending"')


def first(root: Path) -> str:
    """The task that would be claimed next; its own file is looked at, and no other."""
    (state,) = store.at(root).ready()
    return state.task.id


# ---- edits in place ----


def test_a_task_that_is_shown_is_as_its_file_says(root: Path) -> None:
    edit(path_of(root, "TASK-two"), "# Two", "# Zwei")
    assert store.get("TASK-two", root=root).task.title == "Zwei"
    edit(path_of(root, "TASK-two"), "# Zwei", "# Deux")
    assert "Deux" in [state.task.title for state in store.list_tasks(root=root).tasks]


def test_a_task_whose_file_says_that_it_is_done_is_not_claimed(root: Path) -> None:
    close(path_of(root, "TASK-one"))
    assert claims.claim(by="me", root=root).task.id == "TASK-two"


@pytest.mark.ci
def test_a_task_is_not_claimed_whose_dependency_was_opened_again(root: Path) -> None:
    close(path_of(root, "TASK-two"))
    look(root)
    path = path_of(root, "TASK-two")
    look(root)
    assert first(root) == "TASK-three"
    reopen(path)
    assert claims.claim(by="me", root=root).task.id == "TASK-one"
    with pytest.raises(NothingReady, match=r"TASK-three waits for TASK-two \(pending\)"):
        claims.claim("TASK-three", by="you", root=root)


@pytest.mark.ci
def test_a_task_is_not_claimed_before_the_one_that_the_plan_puts_before_it_and_that_was_opened_again(
    root: Path,
) -> None:
    plan.serialize(every=2, root=root)
    done = claims.claim(by="me", root=root)
    finished = claims.done("Done", by="me", root=root)
    look(root)
    assert done.task.id == "TASK-one"
    assert finished.path is not None
    assert first(root) == "TASK-two"
    reopen(finished.path)
    assert claims.claim(by="me", root=root).task.id == "TASK-one"


@pytest.mark.ci
def test_an_edit_elsewhere_waits_for_the_next_look_at_all(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(path_of(root, "TASK-two"), "priority: 8", "priority: 10")
    look_of_old = first(root)
    assert look_of_old == "TASK-one"  # what the guide says: it may take a second
    monkeypatch.setattr(index, "LATELY", 0)
    assert first(root) == "TASK-two"


# ---- files that come, go and move ----


def test_a_file_that_comes_is_seen_at_once(root: Path) -> None:
    folder = path_of(root, "TASK-one").parent
    (folder / "TASK-new.md").write_text('---\nid: "TASK-new"\nstatus: "pending"\npriority: 10\n---\n\n# New\n')
    assert first(root) == "TASK-new"


@pytest.mark.parametrize("name", ["tasks/active/TASK-x.md", ".autonomous/tasks/working/TASK-x/task.md"])
def test_a_task_in_a_folder_that_was_not_there_is_seen_at_once(root: Path, name: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True)
    path.write_text('---\nid: "TASK-x"\nstatus: "pending"\n---\n\n# X\n')
    assert store.at(root).counts()["pending"] == 4


def test_a_file_that_goes_is_seen_at_once(root: Path) -> None:
    path_of(root, "TASK-one").unlink()
    assert first(root) == "TASK-two"


def test_a_file_that_moves_is_seen_at_once(root: Path) -> None:
    path = path_of(root, "TASK-one")
    (path.parents[1] / "cancelled").mkdir()
    path.rename(path.parents[1] / "cancelled" / "TASK-1.md")
    assert store.at(root).counts()["pending"] == 3
    path.with_name("TASK-two.md").rename(path.with_name("TASK-zwei.md"))
    assert store.get("TASK-two", root=root).path == path.with_name("TASK-zwei.md")


def test_a_save_that_replaces_a_file_is_seen_at_once(root: Path) -> None:
    path = path_of(root, "TASK-two")
    beside = path.with_suffix(".swp")
    beside.write_text(path.read_text().replace("priority: 8", "priority: 10"))
    beside.replace(path)
    assert first(root) == "TASK-two"


# ---- the index ----


@pytest.mark.ci
@given(st.integers(0, 1 << 32))
def test_a_list_of_all_says_what_every_file_says(seed: int) -> None:
    random = Random(seed)  # noqa: S311  # an example
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        patch.setattr(index, "MANY", 0)
        ownership.init(store.at(root).project, share=False)
        for _ in range(12):
            (edited if random.random() < 0.5 else did)(root, random)
            patch.setattr(index, "LATELY", HOUR)
            before = store.list_tasks(root=root)
            patch.setattr(index, "LATELY", 0)
            assert store.list_tasks(root=root) == before
