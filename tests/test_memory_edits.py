"""Random edits by hand of a memory's file lose no field, and what a memory costs does not grow with it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.faults.remembered import run

from examples import examples
from ralf.memory import writing
from ralf.memory.writing import new_item
from ralf.project import Project, find


def test_random_edits_by_hand_lose_no_field_and_change_nothing_else() -> None:
    assert run(examples(4_000), seed=3) == []


def test_the_harness_catches_a_parser_that_forgets_fields_that_it_does_not_know() -> None:
    assert "extra" in "\n".join(run(60, broken=True))


def filled(root: Path, count: int) -> Project:
    """A project with a memory of so many items, and an index of them."""
    root.mkdir()
    project = find(root)
    words = "redis socket timeout cargo compose lint module cache".split()
    items = [
        new_item("trap", command=f"make target-{n}", error=f"{words[n % 8]} {words[n % 5]} {n}", origin="mechanical")
        for n in range(count)
    ]
    writing.record(project, "main", items, whole=False)
    return project


def seconds(project: Project) -> float:
    """The least CPU time of a look for a task, of several."""
    least = 10.0
    for _ in range(15):
        began = time.process_time()
        found = writing.candidates(find(project.root), "main", ["redis", "timeout", "cargo"], limit=20)
        least = min(least, time.process_time() - began)
        assert 20 <= len(found.items) <= 60
    return least


@pytest.mark.slow(seconds=30)
def test_a_look_for_a_task_in_ten_thousand_items_takes_at_most_twice_what_it_takes_in_a_hundred(tmp_path: Path) -> None:
    few, many = filled(tmp_path / "few", 100), filled(tmp_path / "many", 10_000)
    assert seconds(many) <= 2 * seconds(few)
