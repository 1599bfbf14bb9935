"""What a person saves into a task's file that a write has displaced: it comes late, and nothing of it or of what was
written since is lost.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from clocks import within
from kit.git import commit, git, repository
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.storage import durable
from ralf.tasks import claims, editing, index, saves, store, trust, writing
from ralf.tasks.model import TaskState
from storekit import HANGS

pytestmark = pytest.mark.ci

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project that its user has opted in."""
    made = tmp_path / "project"
    made.mkdir()
    ownership.init(store.at(made).project, share=False)
    return made


_passed = [0.0]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Displaced files are looked at after `wait_out` and not before, however long a write takes on a busy machine."""
    _passed[0] = 0.0
    monkeypatch.setattr(saves, "_GRACE", HANGS)
    monkeypatch.setattr(saves, "time", SimpleNamespace(time=lambda: time.time() + _passed[0]))


def wait_out() -> None:
    time.sleep(2 * durable.GRACE + 0.1)
    _passed[0] += HANGS


def of(state: TaskState) -> Path:
    assert state.path is not None
    return state.path


def displaced(root: Path, text: str = "Begin") -> Path:
    """The file of a new task One that the next write, its priority, has displaced."""
    path = of(editing.add("One", id="TASK-one", text=text, root=root))
    editing.edit("One", priority=7, root=root)
    (hidden,) = durable.hidden_beside(path)
    return hidden


def late(hidden: Path, line: str = "saved late") -> None:
    """Save a line as a program does that had found the file before."""
    with hidden.open("a") as file:
        file.write(f"{line}\n")


def later(root: Path) -> tuple[str, ...]:
    """A write to another task, once displaced files are looked at; its warnings."""
    wait_out()
    return editing.add("Another one", root=root).warnings


def text_of(root: Path) -> list[str]:
    return store.get("TASK-one", root=root).task.text.splitlines()


def test_a_save_that_comes_late_into_a_displaced_file_takes_nothing_away_that_was_saved_into_ours(root: Path) -> None:
    path = of(editing.add("One", text="Begin", root=root))
    editing.edit("One", priority=7, root=root)
    with path.open("a") as file:
        file.write("saved into the new one\n")
    (displaced,) = durable.hidden_beside(path)
    with displaced.open("a") as file:  # by a program that had found it before
        file.write("saved late\n")
    wait_out()
    editing.edit("One", tags=["a"], root=root)
    editing.edit("One", tags=["a", "b"], root=root)
    task = store.get("One", root=root).task
    assert task.text.splitlines() == ["Begin", "saved into the new one", "saved late"]
    assert (task.priority, task.tags) == (7, ("a", "b"))


def test_a_save_that_comes_late_into_a_displaced_file_is_kept_where_the_task_has_moved_since(root: Path) -> None:
    path = of(editing.add("One", text="Begin", root=root))
    editing.edit("One", priority=7, root=root)
    (displaced,) = durable.hidden_beside(path)
    done = of(claims.done("Done", task="One", root=root))
    with displaced.open("a") as file:  # by a program that had found it before
        file.write("saved late\n")
    wait_out()
    editing.add("Two", root=root)
    task = store.get("One", root=root).task
    assert (task.status, task.priority) == ("completed", 7)
    assert task.text.splitlines()[:2] == ["Begin", "saved late"]
    wait_out()
    editing.add("Three", root=root)
    assert durable.hidden_beside(path) + durable.hidden_beside(done) == []


def test_a_save_that_takes_longer_than_the_next_writes_is_kept(root: Path) -> None:
    path = of(editing.add("One", text="Begin", root=root))
    editing.edit("One", priority=7, root=root)
    (displaced,) = durable.hidden_beside(path)
    with displaced.open("a") as file:  # by a program that had found it before
        for title in ("Two", "Three"):
            wait_out()
            editing.add(title, root=root)
        file.write("saved late\n")
    wait_out()
    editing.add("Four", root=root)
    assert store.get("One", root=root).task.text.splitlines() == ["Begin", "saved late"]


def test_a_save_into_a_file_whose_copy_stands_where_it_is_to_move_is_kept(root: Path) -> None:
    path = of(editing.add("One", text="Begin", root=root))
    target = path.parent.parent / "completed" / path.name

    def die_at_the_file() -> None:
        writing.Writer._bring_up = lambda *_, **__: os._exit(9)  # type: ignore[method-assign]
        claims.done("Done", task="One", root=root)

    writer = FORK.Process(target=die_at_the_file)
    writer.start()
    writer.join()
    assert writer.exitcode == 9
    target.parent.mkdir(exist_ok=True)
    shutil.copy(path, target)
    with path.open("a") as file:
        editing.add("Two", root=root)
        assert not path.exists()
        file.write("saved late\n")
    wait_out()
    editing.add("Three", root=root)
    task = store.get("One", root=root).task
    assert task.status == "completed"
    assert task.text.splitlines()[:2] == ["Begin", "saved late"]


def test_a_save_that_comes_late_is_kept_though_the_writer_died_and_each_change_since_stands(root: Path) -> None:
    path = of(editing.add("One", text="Begin", root=root))

    def die_after_the_file() -> None:
        writing.Writer.done = lambda self, work: (work(self), os._exit(9))  # type: ignore[method-assign,assignment]
        editing.edit("One", priority=7, root=root)

    writer = FORK.Process(target=die_after_the_file)
    writer.start()
    writer.join()
    assert writer.exitcode == 9
    (displaced,) = durable.hidden_beside(path)
    editing.edit("One", tags=["a"], root=root)
    with displaced.open("a") as file:  # by a program that had found it before
        file.write("saved late\n")
    wait_out()
    editing.add("Two", root=root)
    task = store.get("One", root=root).task
    assert (task.priority, task.tags) == (7, ("a",))
    assert task.text.splitlines() == ["Begin", "saved late"]


# ---- on what it was based ----


def test_what_a_late_save_changes_is_merged_line_by_line_and_field_by_field(root: Path) -> None:
    hidden = displaced(root, "Begin\nsecond\nthird")
    editing.edit("One", tags=["a"], root=root)
    text = hidden.read_text()
    hidden.write_text(
        text.replace("second", "second, corrected").replace("third\n", "").replace('created_by: "', 'created_by: "me, ')
    )
    assert later(root) == ()
    task = store.get("One", root=root).task
    assert text_of(root) == ["Begin", "second, corrected"]
    assert (task.priority, task.tags, task.created_by[:3]) == (7, ("a",), "me,")


def test_a_late_save_takes_back_no_text_that_was_written_or_deleted_since(root: Path) -> None:
    hidden = displaced(root, "Begin\npassword: x\nthird")
    path = hidden.parent / "TASK-one.md"
    path.write_text(path.read_text().replace("password: x\n", ""))
    editing.edit("One", tags=["a"], root=root)
    editing.edit("One", text="Begin\nthird\nwritten by an agent", root=root)
    late(hidden)
    assert later(root) == ()
    assert text_of(root) == ["Begin", "third", "written by an agent", "saved late"]


def test_a_field_that_both_changed_is_the_late_save_s_and_that_is_said(root: Path) -> None:
    hidden = displaced(root)
    hidden.write_text(hidden.read_text().replace("priority: 5", "priority: 9"))
    (warning,) = later(root)
    assert "priority: changed here and in the file: the file's '9' stands, not '7'" in warning
    assert store.get("One", root=root).task.priority == 9


def test_what_a_person_has_undone_is_not_done_again_by_a_late_save(root: Path) -> None:
    path = of(editing.add("One", id="TASK-one", text="Begin", root=root))
    before = path.read_bytes()
    editing.edit("One", priority=9, root=root)
    (hidden,) = durable.hidden_beside(path)
    path.write_bytes(before)
    late(hidden)
    later(root)
    assert (store.get("One", root=root).task.priority, text_of(root)) == (5, ["Begin", "saved late"])


@pytest.mark.parametrize("size", [0, 40])
def test_a_late_save_that_was_cut_off_takes_nothing_away(root: Path, size: int) -> None:
    hidden = displaced(root, "A long text\nthat took hours")
    path = hidden.parent / "TASK-one.md"
    before = path.read_bytes()
    os.truncate(hidden, size)
    assert len(later(root)) == 1
    assert path.read_bytes() == before


# ---- whose it is ----


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """A clone of another user whose task One its user has accepted."""
    editing.add("One", id="TASK-one", text="Begin", root=root)
    commit(repository(root))
    made = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(root), str(made))
    ownership.init(store.at(made).project, share=False)
    trust.trust(accept=[trust.EVERY], root=made)
    return made


def pulled(root: Path, clone: Path) -> None:
    """What somebody else wrote into the task, in the clone."""
    path = root / ".autonomous" / "tasks" / "active" / "TASK-one.md"
    path.write_text(path.read_text() + "\nof somebody else\n")
    git(root, "commit", "-qam", "Theirs")
    git(clone, "pull", "-q")


def test_a_late_save_makes_nothing_one_s_own_that_a_pull_brought(root: Path, clone: Path) -> None:
    path = of(editing.edit("One", priority=7, root=clone))
    (hidden,) = durable.hidden_beside(path)
    commit(clone)
    git(root, "pull", "-q", str(clone), "HEAD")
    late(hidden)
    pulled(root, clone)
    later(clone)
    state = store.get("TASK-one", root=clone)
    assert state.is_foreign
    assert state.task.text.split() == "Begin of somebody else saved late".split()
    with pytest.raises(UsageError, match="has not been accepted"):
        claims.claim("TASK-one", by="me", root=clone)


def test_a_late_save_makes_nothing_one_s_own_where_a_task_was_done_that_a_pull_had_changed(
    root: Path, clone: Path
) -> None:
    claim = claims.claim(by="me", root=clone).claim
    assert claim is not None
    pulled(root, clone)
    done = claims.done("Done", lease=claim.lease("TASK-one"), root=clone)
    (hidden,) = durable.hidden_beside(of(done))
    late(hidden)
    for _ in range(2):
        later(clone)
    state = store.get("TASK-one", root=clone)
    assert state.is_foreign
    assert "saved late" in state.task.text


def test_what_an_archive_brings_under_the_name_of_a_displaced_file_is_no_save(root: Path) -> None:
    hidden = displaced(root)
    hidden.write_text(hidden.read_text() + "of somebody else\n")
    os.utime(hidden, (1_700_000_000, 1_700_000_000))
    shutil.rmtree(store.at(root).project.cache / "tasks")
    for _ in range(3):
        later(root)
    assert text_of(root) == ["Begin"]


def test_a_late_save_makes_nothing_one_s_own_that_has_come_within_the_second(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "MANY", 0)  # then files are looked at once a second only
    hidden = displaced(root)
    editing.add("Two", id="TASK-two", root=root)
    late(hidden)
    wait_out()
    store.get("TASK-two", root=root)
    path = hidden.parent / "TASK-one.md"
    path.write_text(path.read_text() + "of somebody else\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    claims.claim("TASK-two", by="me", root=root)
    assert store.get("TASK-one", root=root).is_foreign


# ---- what stands in its way ----


def test_nothing_is_touched_where_the_folder_of_a_task_is_a_link_now(root: Path, tmp_path: Path) -> None:
    hidden = displaced(root)
    late(hidden)
    folder, outside = hidden.parent, tmp_path / "outside"
    folder.rename(outside)
    folder.symlink_to(outside)
    before = sorted(outside.iterdir())
    wait_out()
    with pytest.raises(UsageError, match="symbolic link"):
        editing.add("Two", root=root)
    assert sorted(outside.iterdir()) == before
    folder.unlink()
    outside.rename(folder)
    later(root)
    assert text_of(root) == ["Begin", "saved late"]


def test_a_save_that_cannot_be_merged_is_kept_apart_and_holds_up_no_other_one(root: Path) -> None:
    path = of(editing.add("Big", id="TASK-big", text="x" * 600_000, root=root))
    editing.edit("TASK-big", priority=7, root=root)
    (big,) = durable.hidden_beside(path)
    hidden = displaced(root)
    editing.edit("TASK-big", text="z" * 600_000, root=root)
    big.write_text(big.read_text().replace("x" * 600_000, "y" * 600_000))
    late(hidden)
    (warning,) = later(root)
    assert "cannot be merged: TASK-big: cannot be kept in a file" in warning
    assert "y" * 600_000 in next(path.parent.glob("TASK-big.displaced-*")).read_text()
    assert text_of(root) == ["Begin", "saved late"]


def test_a_late_save_is_taken_in_whole_once_the_disk_has_room_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = displaced(root, "Begin\nsecond\nthird")
    hidden.write_text(hidden.read_text().replace("second\n", "").replace("third", "third, mended"))
    with monkeypatch.context() as patched:

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr(saves.Saves, "replace", full)
        wait_out()
        (warning,) = claims.claim("One", by="me", root=root).warnings
    assert "No space left" in warning
    later(root)
    assert text_of(root) == ["Begin", "third, mended"]


def test_a_write_that_is_interrupted_forgets_no_late_save(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = displaced(root, "Begin\nsecond")
    hidden.write_text(hidden.read_text().replace("second\n", "saved late\n"))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for where, name in ((saves, "_is_removed"), (writing.Writer, "_take_late_saves")):
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(where, name, interrupted)
            later(root)
    later(root)
    assert text_of(root) == ["Begin", "saved late"]


def test_a_late_save_into_the_file_of_a_task_that_is_gone_gets_a_visible_name_after_a_week(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = displaced(root)
    late(hidden)
    (hidden.parent / "TASK-one.md").unlink()
    assert later(root) == ()
    monkeypatch.setattr(saves, "_GONE", 0)
    assert len(later(root)) == 1
    assert "saved late" in next(hidden.parent.glob("TASK-one.displaced-*")).read_text()


lists = st.lists(st.sampled_from("abcd"), max_size=8)


@given(lists, lists, lists)
def test_what_either_of_two_has_added_is_in_their_text_and_what_both_left_alone(
    base: list[str], one: list[str], other: list[str]
) -> None:
    merged, both = (
        Counter(found.split("\n"))
        for found in (saves.united(*map("\n".join, (base, one, other))), saves.with_both(*map("\n".join, (one, other))))
    )
    assert both >= Counter("\n".join(one).split("\n")) | Counter("\n".join(other).split("\n"))
    assert merged >= Counter(base) & Counter(one) & Counter(other)
    assert merged >= (Counter(one) - Counter(base)) | (Counter(other) - Counter(base))


def test_long_texts_are_compared_in_less_than_a_second() -> None:
    short = "\n\n".join(f"line {number}" for number in range(490))
    assert saves.united(short, short.replace("line", "une ligne"), short) == short.replace("line", "une ligne")
    base = "\n\n".join(f"line {number}" for number in range(10_000))

    def compared() -> None:
        merged = saves.united(base, base.replace("line 1\n", "line one\n"), base.replace("line 9998\n", "line X\n"))
        assert merged == base.replace("line 1\n", "line one\n").replace("line 9998\n", "line X\n")
        found = saves.with_both(base, base.replace("9", "nine")).split("\n")
        assert {*base.split("\n"), *base.replace("9", "nine").split("\n")} == set(found)

    within(1, compared)
