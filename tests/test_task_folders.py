"""Which files are tasks, and what a new task is called."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from clocks import in_line
from ralf.tasks import folders
from ralf.tasks.folders import new_id, place, scan
from ralf.tasks.taskfile import parse, render
from ralf.text.cleaning import is_valid

LETTERS = set("0123456789bcdfghjkmnpqrstvwxyz")


def made(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("# A\n")


def found(root: Path) -> list[str]:
    return sorted(str(path) for path in scan(root / ".autonomous/tasks"))


def test_every_task_file_is_found_and_nothing_else(tmp_path: Path) -> None:
    ours = (
        ".autonomous/tasks/active/TASK-7k3q.md",
        ".autonomous/tasks/active/fix-the-form.md",
        ".autonomous/tasks/active/TASK-1-slug/task.md",
        ".autonomous/tasks/active/TASK-1-slug/subtasks/TASK-2/task.md",
        ".autonomous/tasks/active/HOOKS/tasks/TASK-3-log.md",
        ".autonomous/tasks/active/completed/IMP-4.md",
        ".autonomous/tasks/completed/2026-02/TASK-5/task.md",
        ".autonomous/tasks/completed/TASK-6/TASK.md",
        ".autonomous/tasks/cancelled/x.md",
        ".autonomous/tasks/improvements/IMP-20260209-130000.md",
        ".autonomous/tasks/working/TASK-7/task.md",
        ".autonomous/tasks/TASK-8.md",
        "tasks/active/TASK-9/task.md",
        "tasks/active/TASK-10-loose.md",
        "tasks/completed/2026-02/TASK-11.md",
    )
    made(tmp_path, *ours)
    made(
        tmp_path,
        ".autonomous/tasks/plan.yaml",
        ".autonomous/tasks/README.md",
        ".autonomous/tasks/notes.md",
        ".autonomous/tasks/other/TASK-1.md",
        ".autonomous/tasks/active/README.md",
        ".autonomous/tasks/active/index.md",
        ".autonomous/tasks/active/.hidden.md",
        ".autonomous/tasks/active/_draft.md",
        ".autonomous/tasks/active/TASK-TEMPLATE.md",
        ".autonomous/tasks/active/template.md",
        ".autonomous/tasks/active/notes.txt",
        ".autonomous/tasks/active/TASK-1-slug/PLAN.md",
        ".autonomous/tasks/active/.git/task.md",
        ".autonomous/tasks/working/TASK-7/run-1/TASK-CONTEXT.md",
        ".autonomous/tasks/templates/task.md",
        "tasks/active/AGENT_CONTEXT.md",
        "tasks/celery.md",
        "tasks/completed/.index/2026-02-index.md",
    )
    assert found(tmp_path) == sorted(ours)


def test_no_link_is_followed(tmp_path: Path) -> None:
    made(tmp_path, "outside/active/TASK-1.md", ".autonomous/tasks/active/TASK-2.md")
    tasks = tmp_path / ".autonomous/tasks"
    (tasks / "active/TASK-3.md").symlink_to(tmp_path / "outside/active/TASK-1.md")
    (tasks / "active/TASK-4").symlink_to(tmp_path / "outside/active")
    (tasks / "completed").symlink_to(tmp_path / "outside/active")
    (tasks / "active/loop").symlink_to(tasks)
    os.mkfifo(tasks / "active/TASK-5.md")
    assert found(tmp_path) == [".autonomous/tasks/active/TASK-2.md"]


@pytest.mark.ci
def test_ten_thousand_files_take_little_more_time_than_one_stat_each(tmp_path: Path) -> None:
    tasks = tmp_path / ".autonomous/tasks"
    (tasks / "active").mkdir(parents=True)
    for number in range(10_000):
        (tasks / f"active/TASK-{number:05}.md").touch()
    assert len(scan(tasks)) == 10_000

    def taken(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    by_hand = partial(taken, lambda: [os.stat(entry.path) for entry in os.scandir(tasks / "active")])
    in_line(by_hand, partial(taken, lambda: len(scan(tasks))), most=2.8)  # 1.9


@pytest.mark.ci
def test_a_task_that_moves_is_found_where_it_was_placed(tmp_path: Path) -> None:
    tasks = tmp_path / ".autonomous/tasks"
    made(tmp_path, ".autonomous/tasks/active/TASK-1/task.md", ".autonomous/tasks/active/TASK-1/PLAN.md")
    path = tmp_path / next(iter(scan(tasks)))
    task = replace(parse(path.read_bytes(), path), status="completed")
    there = place(tasks, task, path)
    path.write_bytes(render(task, path.read_bytes()))
    there.parent.parent.mkdir()
    path.parent.rename(there.parent)
    assert [tmp_path / found for found in scan(tasks)] == [there]
    assert parse(there.read_bytes(), there).status == "completed"
    assert (there.parent / "PLAN.md").exists()


# ---- ids ----


def free(_: str) -> bool:
    return False


def test_an_id_is_short_and_can_be_a_file_a_route_and_nothing_else() -> None:
    ids = {new_id(0, free) for _ in range(500)}
    assert len(ids) > 490
    for id_ in ids:
        assert is_valid(id_)
        assert len(id_) == len("TASK-7k3q")
        assert set(id_[5:]) <= LETTERS
        assert not id_[5:].isdecimal()


def test_an_id_that_is_taken_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["bcdf", "2345", "bcdg"])
    monkeypatch.setattr(folders, "_drawn", lambda _: next(drawn))
    assert new_id(1, lambda id_: id_ == "TASK-bcdf") == "TASK-bcdg"
