"""A plan in force, with the real store: which task is claimed next, and what stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralf.errors import NothingReady
from ralf.tasks import claims, editing, serializing
from ralf.tasks.model import Evidence, Task


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".autonomous").mkdir(parents=True)
    return tmp_path / "project"


def add(root: Path, names: str, **fields: object) -> None:
    after: tuple[str, ...] = ()
    for name in names.split():
        editing.add_all([Task(id=name, title=f"Do {name}", **{"after": after, **fields})], root=root)  # type: ignore[arg-type]


def take(root: Path, **which: object) -> str:
    """Claim the next task; its id."""
    return claims.claim(by=f"agent {which}", root=root, **which).task.id  # type: ignore[arg-type]


def files(root: Path) -> dict[str, bytes]:
    tasks = root / ".autonomous" / "tasks"
    return {path.name: path.read_bytes() for path in tasks.rglob("*.md")}


@pytest.mark.ci
def test_a_chain_does_one_task_after_the_other_and_task_files_stay_as_they_are(root: Path) -> None:
    add(root, "T-a T-b T-c")
    before = files(root)
    serializing.serialize(every=2, root=root)
    assert files(root) == before
    assert take(root) == "T-a"
    with pytest.raises(NothingReady):
        claims.claim(by="another", root=root)
    claims.done("It is done and tested.", task="T-a", by="agent {}", evidence=Evidence(), root=root)
    assert take(root) == "T-b"


@pytest.mark.ci
def test_a_task_that_is_split_has_its_parts_planned_in_its_place(root: Path) -> None:
    add(root, "T-a T-b T-c")
    editing.edit("T-c", after=("T-a",), root=root)
    serializing.serialize(root=root)
    parts = [state.task.id for state in editing.split("T-a", ["One half", "The other half"], root=root)]
    order = [*serializing.serialize(root=root)]
    assert [each for each in order if each in (*parts, "T-c")] == [*parts, "T-c"]
