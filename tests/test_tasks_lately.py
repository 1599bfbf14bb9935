"""In a large tree files are looked at once a second: what a command shows or claims is as its file says nonetheless."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, strategies as st

from examples import examples  # noqa: F401  # the profile
from ralf.errors import NothingReady, TaskNotFound
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


def test_a_task_is_found_by_the_title_that_its_file_has_now(root: Path) -> None:
    edit(path_of(root, "TASK-two"), "# Two", "# The second")
    assert store.get("The second", root=root).task.id == "TASK-two"
    edit(path_of(root, "TASK-two"), "# The second", "# Zwei")
    with pytest.raises(TaskNotFound):
        store.get("The second", root=root)


def test_a_task_whose_file_says_that_it_is_done_is_not_claimed(root: Path) -> None:
    close(path_of(root, "TASK-one"))
    assert claims.claim(by="me", root=root).task.id == "TASK-two"


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


def test_a_claim_that_finds_nothing_looks_at_every_file(root: Path) -> None:
    paths = {id_: path_of(root, id_) for id_ in ("TASK-one", "TASK-two", "TASK-three")}
    for path in paths.values():
        close(path)
    look(root)
    path = path_of(root, "TASK-two")
    look(root)
    with pytest.raises(NothingReady):
        claims.claim(by="me", root=root)
    reopen(path)
    assert claims.claim(by="me", root=root).task.id == "TASK-two"


def test_a_damaged_file_is_reported_until_it_is_mended(root: Path) -> None:
    path = path_of(root, "TASK-one")
    whole = path.read_text()
    path.write_text("---\nid: [\n---\n")
    assert [where for where, _ in store.list_tasks(root=root).damaged] == [path]
    path.write_text(whole)
    assert store.list_tasks(root=root).damaged == ()
    assert store.get("TASK-one", root=root).task.title == "One"


def test_an_edit_elsewhere_waits_for_the_next_look_at_all(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(path_of(root, "TASK-two"), "priority: 8", "priority: 10")
    look_of_old = first(root)
    assert look_of_old == "TASK-one"  # what the guide says: it may take a second
    monkeypatch.setattr(index, "LATELY", 0)
    assert first(root) == "TASK-two"


def test_saves_of_one_length_within_one_tick_of_the_clock_are_all_seen(root: Path) -> None:
    path = path_of(root, "TASK-two")
    for number in range(200):
        title = f"Two {number:03}"
        path.write_text(f'---\nid: "TASK-two"\nstatus: "pending"\n---\n\n# {title}\n')
        assert store.get("TASK-two", root=root).task.title == title


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


def test_a_file_that_comes_while_its_folder_is_not_settled_is_seen_at_once(root: Path) -> None:
    folder = path_of(root, "TASK-one").parent
    for number in range(50):
        (folder / f"TASK-n{number}.md").write_text(f'---\nid: "TASK-n{number}"\nstatus: "pending"\n---\n\n# N\n')
        assert store.at(root).counts()["pending"] == 4 + number


def test_a_folder_whose_next_change_might_not_show_is_not_relied_on(root: Path) -> None:
    path = path_of(root, "TASK-two")
    os.utime(path.parent, (time.time() + 3_600,) * 2)  # as if it had changed in this very tick of the clock
    look(root)
    edit(path, "priority: 8", "priority: 10")
    assert first(root) == "TASK-two"


# ---- the index ----


def test_an_index_that_is_lost_looks_at_every_file(root: Path) -> None:
    edit(path_of(root, "TASK-two"), "priority: 8", "priority: 10")
    shutil.rmtree(store.at(root).project.cache / "tasks")
    assert first(root) == "TASK-two"


def test_small_trees_are_looked_at_by_every_command(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MANY", 500)
    shutil.rmtree(store.at(root).project.cache / "tasks")
    look(root)
    edit(path_of(root, "TASK-two"), "priority: 8", "priority: 10")
    assert first(root) == "TASK-two"


def test_a_reader_does_not_wait_for_whoever_writes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "LATELY", 0)
    tasks = store.at(root)
    (place,) = (tasks.project.cache / "tasks").glob("*.sqlite")
    writer, reader = index.Index(tasks.project, place), index.Index(tasks.project, place)
    with writer.alone():
        began = time.monotonic()
        reader.renew()
        assert reader.counts()["pending"] == 3
        assert time.monotonic() - began < 10
    assert reader.db.execute("pragma busy_timeout").fetchone() == (30_000,)  # a later read waits for a commit
    writer.close()
    reader.close()


def test_an_edit_that_another_process_takes_in_meanwhile_is_seen(root: Path) -> None:
    tasks = store.at(root)
    edit(path_of(root, "TASK-two"), "# Two", "# Zwei")
    (place,) = (tasks.project.cache / "tasks").glob("*.sqlite")
    reader, other = index.Index(tasks.project, place), index.Index(tasks.project, place)

    def asked() -> str:
        with reader.as_one():
            title = reader.states(["TASK-two"])["TASK-two"][0].task.title
        other.renew()
        return title

    reader.renew(lately=True)
    assert asked() == "Two"
    edit(path_of(root, "TASK-two"), "# Zwei", "# Deux")
    reader.renew(lately=True)
    assert reader.sure(asked) == "Deux"
    reader.close()
    other.close()


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
