"""Which files are tasks, and what a new task is called."""

from __future__ import annotations

from pathlib import Path

from ralf.tasks.folders import new_id, scan
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
