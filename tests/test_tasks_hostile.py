"""What a repository brings into folders of tasks never runs, never passes for this user's, and leads nowhere else."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

import storekit
from clocks import slower
from kit.git import commit, git, repository
from ralf.errors import NothingReady, UsageError
from ralf.maintenance import ownership
from ralf.tasks import claims, editing, store, writing
from ralf.tasks.refresh import refresh
from taskskit import accept_tasks, opted_in, without_index

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return opted_in(tmp_path)


def cloned(root: Path, tmp_path: Path) -> Path:
    """A clone of a project with the tasks of `root`, all accepted by its user."""
    commit(repository(root))
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(root), str(clone))
    ownership.init(store.at(clone).project, share=False)
    accept_tasks(clone)
    return clone


@pytest.mark.ci
def test_a_file_in_a_commit_that_is_called_like_a_displaced_save_is_not_taken_for_one(
    root: Path, tmp_path: Path
) -> None:
    task = editing.add("One", id="TASK-one", text="As agreed.", root=root)
    clone = cloned(root, tmp_path)
    claims.release(claims.claim(by="me", root=clone).task.id, by="me", root=clone)
    editing.edit("One", priority=7, root=clone)
    assert task.path is not None
    hidden = task.path.with_name(".ralf-TASK-one.md-0123456789ab-0123456789ab.old")
    hidden.write_text(task.path.read_text().replace("As agreed.", "Something else."))
    git(root, "add", "-f", ".autonomous/tasks")
    git(root, "commit", "-qm", "hidden")
    git(clone, "commit", "-qam", "mine")
    git(clone, "pull", "-q", "--no-rebase")
    without_index(clone)
    assert editing.edit("One", priority=8, root=clone).task.text == "As agreed."
    state = store.get("One", root=clone)
    assert (state.task.text, state.task.priority, state.is_foreign) == ("As agreed.", 8, False)


def dying(root: Path) -> None:
    """Complete the task in a process that dies between the record and the file."""

    def work() -> None:
        writing.Writer._bring = lambda *_, **__: os._exit(9)  # type: ignore[method-assign]
        claims.done("Done", task="One", by="me", root=root)

    child = FORK.Process(target=work)
    child.start()
    child.join()
    assert child.exitcode == 9


@pytest.mark.ci
def test_a_change_that_is_pulled_before_a_dead_writer_s_file_is_completed_stays_foreign(
    root: Path, tmp_path: Path
) -> None:
    editing.add("One", id="TASK-one", root=root)
    clone = cloned(root, tmp_path)
    dying(clone)
    editing.edit("One", text="Something else.", root=root)
    git(root, "commit", "-qam", "changed")
    git(clone, "pull", "-q")
    editing.add("Two", root=clone)
    state = store.get("One", root=clone)
    assert (state.task.status, state.task.text, state.is_foreign) == ("completed", "Something else.", True)
    with pytest.raises(UsageError, match="has not been accepted"):
        claims.retry("One", root=clone)


@pytest.mark.ci
def test_a_dead_writer_s_file_is_not_completed_through_a_symbolic_link(root: Path, tmp_path: Path) -> None:
    path = editing.add("One", id="TASK-one", root=root).path
    assert path is not None
    dying(root)
    (tmp_path / "elsewhere").mkdir()
    (path.parents[1] / "completed").symlink_to(tmp_path / "elsewhere")
    assert editing.add("Two", root=root).warnings
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert path.exists()
    (path.parents[1] / "completed").unlink()
    editing.add("Three", root=root)
    assert "completed" in (path.parents[1] / "completed" / path.name).read_text()


@pytest.mark.ci
def test_a_change_by_a_person_before_a_dead_writer_s_file_is_completed_stays_theirs(root: Path, tmp_path: Path) -> None:
    path = editing.add("One", id="TASK-one", text="As agreed.", root=root).path
    clone = cloned(root, tmp_path)
    dying(clone)
    assert path is not None
    mine = clone / path.relative_to(root)
    mine.write_text(mine.read_text().replace("As agreed.", "As I say."))
    editing.add("Two", root=clone)
    state = store.get("One", root=clone)
    assert (state.task.status, state.task.text, state.is_foreign) == ("completed", "As I say.", False)


@pytest.mark.parametrize("name", ["tasks", "tasks/active", "tasks/completed"])
def test_no_task_is_written_through_a_symbolic_link(root: Path, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = root / ".autonomous" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)

    def both() -> None:
        editing.add("One", root=root)
        claims.done("Done", task="One", root=root)

    with pytest.raises(UsageError, match="is a symbolic link: not followed") as error:
        both()
    assert str(link) in str(error.value)
    assert list(elsewhere.iterdir()) == []
    assert [one.task.status for one in store.list_tasks(root=root).tasks] == ["pending"] * (name == "tasks/completed")


def test_a_file_that_is_too_large_for_a_task_is_named_and_not_read_and_the_others_are(root: Path) -> None:
    for number in range(5):
        editing.add(f"Task {number}", root=root)
    large = root / ".autonomous" / "tasks" / "active" / "TASK-large.md"
    with large.open("wb") as file:
        file.truncate(1 << 33)
    without_index(root)
    found = store.list_tasks(root=root)
    assert len(found.tasks) == 5
    ((path, problem),) = found.damaged
    assert path == large and problem


@pytest.mark.release(seconds=10)
@pytest.mark.parametrize("more", ["", "  - role: again\n    tasks: [T7]\n"])
def test_a_plan_of_very_many_chains_takes_time_by_its_size_alone(root: Path, more: str) -> None:
    editing.add("One", root=root)
    chains = "".join(f"  - role: r{number}\n    tasks: [T{number}]\n" for number in range(40_000))
    (root / ".autonomous" / "tasks" / "plan.yaml").write_text(f"version: 1\nchains:\n{chains}{more}")
    begun = time.process_time()
    found = store.list_tasks(root=root)  # once: the next look takes it from the index
    took = time.process_time() - begun
    assert took < 15 or took < 15 * slower(time.process_time)  # by its square it took minutes
    assert len(found.warnings) == bool(more)


def test_the_tasks_of_a_folder_that_cannot_be_read_are_not_taken_for_gone(root: Path) -> None:
    path = editing.add("One", root=root).path
    assert path is not None
    path.parent.chmod(0)
    try:
        with storekit.as_modes_say():
            for look in (store.list_tasks, claims.claim, refresh):
                with pytest.raises(PermissionError, match="active"):
                    look(root=root)
    finally:
        path.parent.chmod(0o755)
    assert [one.task.title for one in store.list_tasks(root=root).tasks] == ["One"]


@pytest.mark.ci
@pytest.mark.parametrize("then", ["add", "edit", "claim"])
def test_a_task_that_is_done_stays_done_while_its_file_cannot_be_written(root: Path, then: str) -> None:
    path = editing.add("One", id="TASK-one", root=root).path
    assert path is not None
    closed = path.parents[1] / "completed"
    closed.mkdir()
    closed.chmod(0o555)
    try:
        with storekit.as_modes_say():
            done = claims.done("Done", task="One", root=root)
            assert done.warnings
            for _ in range(2):
                if then == "edit":
                    editing.edit("One", priority=9, tags=("late",), root=root)
                elif then == "add":
                    editing.add("Other", root=root)
                else:
                    with pytest.raises(NothingReady):
                        claims.claim(by="me", root=root)
                assert store.get("One", root=root).task.status == "completed"
    finally:
        closed.chmod(0o755)
    editing.add("Last", root=root)
    state = store.get("One", root=root)
    assert (state.task.status, state.path, path.exists()) == ("completed", closed / "TASK-one.md", False)
    assert (state.task.priority, state.task.tags) == ((9, ("late",)) if then == "edit" else (5, ()))
    assert state.summary == "Done"
