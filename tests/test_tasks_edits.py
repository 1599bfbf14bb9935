"""What people do to the files of tasks between and during writes: each is seen at once, recorded, and kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralf.tasks import claims, editing, origin, store
from taskskit import of, opted_in, without_index


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return opted_in(tmp_path)


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


def test_a_save_that_cannot_be_merged_is_kept_beside_the_file_and_said(root: Path) -> None:
    path = of(editing.add("One", id="TASK-one", text="Begin", root=root))
    editing.edit("One", priority=7, root=root)
    (root / ".autonomous/context/prev/tasks/TASK-one.md").write_text("---\nid: [\n---\n")
    (warning,) = editing.add("Two", root=root).warnings
    (kept,) = path.parent.glob("*.displaced-*")
    assert str(kept) in warning and kept.read_text() == "---\nid: [\n---\n"
    assert editing.add("Three", root=root).warnings == ()


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
