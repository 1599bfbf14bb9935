"""A plan in force: which task is ready and may be claimed, and what stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralf.errors import DamagedPlan, NothingReady
from ralf.tasks import claims, editing, serializing, store


def made(root: Path, *titles: str, **more: object) -> list[str]:
    return [editing.add(title, id=f"TASK-{title}", root=root, **more).task.id for title in titles]  # type: ignore[arg-type]


def ready(root: Path) -> list[str]:
    return [state.task.title for state in store.list_tasks(ready=True, root=root).tasks]


@pytest.mark.ci
def test_one_task_of_a_chain_after_the_other_is_ready(tmp_path: Path) -> None:
    made(tmp_path, "a", "b", "c")
    made(tmp_path, "x", "y", role="tester")
    assert ready(tmp_path) == ["a", "b", "c", "x", "y"]
    tasks = tmp_path / ".autonomous" / "tasks"
    files = {path: path.read_bytes() for path in tasks.rglob("*.md")}
    serializing.serialize(every=1, root=tmp_path)
    assert {path: path.read_bytes() for path in tasks.rglob("*.md")} == files
    assert ready(tmp_path) == ["a", "x"]
    assert store.get("c", root=tmp_path).waits_for == ("TASK-b",)
    claims.claim("a", by="me", root=tmp_path)
    with pytest.raises(NothingReady, match=r"TASK-b waits for TASK-a \(pending\)"):
        claims.claim("b", by="you", root=tmp_path)
    claims.done("Done", task="a", by="me", root=tmp_path)
    assert ready(tmp_path) == ["b", "x"]
    claims.done("Out of order", task="c", by="me", root=tmp_path)
    assert ready(tmp_path) == ["b", "x"]
    claims.retry("a", root=tmp_path)
    assert ready(tmp_path) == ["a", "x"]
    assert store.get("b", root=tmp_path).waits_for == ("TASK-a",)
    (tasks / "plan.yaml").unlink()
    assert ready(tmp_path) == ["a", "b", "x", "y"]


def test_a_plan_that_cannot_be_read_is_told_and_nothing_passes_it(tmp_path: Path) -> None:
    made(tmp_path, "a", "b")
    serializing.serialize(root=tmp_path)
    (tmp_path / ".autonomous" / "tasks" / "plan.yaml").write_text("chains: [")
    with pytest.raises(DamagedPlan, match=r"plan\.yaml"):
        claims.claim(root=tmp_path)
    assert "plan.yaml" in store.list_tasks(root=tmp_path).warnings[0]


@pytest.mark.ci
def test_a_task_that_is_split_has_its_parts_planned_in_its_place(tmp_path: Path) -> None:
    first, second = made(tmp_path, "a", "b")
    (third,) = made(tmp_path, "c", after=[first])
    serializing.serialize(root=tmp_path)
    parts = [state.task.id for state in editing.split(first, ["One half", "The other half"], root=tmp_path)]
    order = [*serializing.serialize(root=tmp_path)]
    assert [each for each in order if each != second] == [*parts, third]
