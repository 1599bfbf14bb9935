"""A command that is killed at any point leaves what it had, or what it was to make: the record first, then the file."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.faults.rig import killed_at

from ralf.maintenance import ownership
from ralf.storage import durable
from ralf.tasks import claims, editing, store
from ralf.tasks.model import TaskState


def fields(state: TaskState) -> tuple[object, ...]:
    return state.task.status, state.task.title, state.task.text, state.task.after


def looked_at(root: Path) -> list[str]:
    found = store.list_tasks(root=root).tasks
    return sorted(named(repr(fields(state)), {state.task.id: state.task.title for state in found}) for state in found)


def on_disk(root: Path) -> list[str]:
    paths = [path for path in (root / ".autonomous" / "tasks").rglob("*.md") if path.name[0] != "."]
    titles = {path.stem: path.read_text().rpartition("# ")[2].partition("\n")[0] for path in paths}
    return sorted(named(f"{path.parent.name}: {path.read_text()}", titles) for path in paths)


def named(text: str, titles: dict[str, str]) -> str:
    """A text in which the parts of a task, whose ids are random, are named by their titles."""
    for id_, title in titles.items():
        text = text.replace(id_, f"<{title}>") if title.startswith("Part") else text
    return text


WORKS: dict[str, Callable[[Path], object]] = {
    "add": lambda root: editing.add("New", text="Words", after=["One"], id="TASK-new", root=root),
    "edit": lambda root: editing.edit("TASK-one", text="Other words", priority=8, root=root),
    "done": lambda root: claims.done("It works", task="TASK-one", by="me", root=root),
    "fail": lambda root: claims.fail("It does not", task="TASK-one", by="me", root=root),
    "split": lambda root: editing.split("TASK-two", ["Part one", "Part two"], root=root),
    "cancel": lambda root: editing.edit("TASK-two", status="cancelled", root=root),
}


def look(root: Path, number: int, name: str, before: object, after: object, files: list[str]) -> object:
    """What is shown after a kill, which is what stands in the files after the next write."""
    shown = looked_at(root)
    assert shown in (before, after), (number, shown)
    claims.claim("TASK-three", by="next", root=root)  # a write that has nothing to do with it
    assert looked_at(root) == shown, number
    found = [text for text in on_disk(root) if "TASK-three" not in text.partition("status")[0]]
    if shown == after:
        assert [cut(text) for text in found] == files, number
    left = [path for path in (root / ".autonomous" / "tasks").rglob(".ralf-*") if path.suffix == ".tmp"]
    assert len(left) <= 1, number
    return shown


def cut(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("created"))


@pytest.mark.ci
def test_a_save_into_a_file_that_has_two_names_when_its_writer_dies_leaves_one_file_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ownership.init(store.at(tmp_path).project, share=False)
    task = editing.add("Carry the tide table over", root=tmp_path).task.id
    state = claims.claim(task, by="agent-1", root=tmp_path)
    assert state.claim is not None
    link = os.link

    def linked(*names: Path) -> None:
        link(*names)
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patched:
        patched.setattr(durable, "_renameat2", lambda: None)  # as on systems that move no file in one step
        patched.setattr(os, "link", linked)
        assert killed_at(-1, partial(claims.done, "Done", lease=state.claim.lease(task), root=tmp_path))
    first, second = files_of(tmp_path, task)
    with first.open("a") as file:
        file.write("A line of a person.\n")
    assert second.samefile(first)
    editing.add("Another one", root=tmp_path)
    (path,) = files_of(tmp_path, task)
    assert path.parent.name == "completed"
    assert "A line of a person.\n" in path.read_text()


def files_of(root: Path, task: str) -> list[Path]:
    return sorted((root / ".autonomous" / "tasks").rglob(f"{task}*.md"))
