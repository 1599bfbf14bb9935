"""The machinery of documents, by a memory: edits of its file count once, and the index may be gone at any time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ralf
from ralf.document import index as indexes
from ralf.memory import writing
from ralf.memory.family import new_item
from ralf.memory.writing import path_of
from ralf.project import Project, find

TEXTS = ["the gauge at Dover speaks feet", "the pier closes at noon", "ask Ada about the cranes"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = find(tmp_path)
    for text in TEXTS:
        writing.record(made, "main", [new_item("fact", text=text, origin="person")])
    return made


def texts(project: Project) -> list[str]:
    return [item.text for item in writing.load(project, "main").items]


# ---- the index ----


@pytest.mark.parametrize("more", [(), ("and one more", "and another")], ids=["of equal size", "longer"])
def test_a_journal_that_another_replaces_is_read_anew_whatever_the_index_holds(
    project: Project, more: tuple[str, ...]
) -> None:
    """As a backup that is put back, or a forget that was killed half-way."""
    journal = project.root / ".autonomous/context/journal/agents/main.jsonl"
    begin, file = journal.read_bytes(), path_of(project, "main").read_bytes()
    writing.record(project, "main", [new_item("fact", text="the ferry is blue", origin="person")])
    first = journal.read_bytes()
    journal.write_bytes(begin)
    path_of(project, "main").write_bytes(file)
    for text in ("the ferry is gray", *more):
        writing.record(project, "main", [new_item("fact", text=text, origin="person")])
    assert texts(project) == [*TEXTS, "the ferry is gray", *more]
    made = journal.with_name("put-back")
    made.write_bytes(first)
    made.replace(journal)
    path_of(project, "main").unlink()
    assert texts(project) == [*TEXTS, "the ferry is blue"]
    made_now = writing.record(project, "main", [new_item("fact", text="last", origin="person")])
    assert [item.text for item in made_now.items] == [*TEXTS, "the ferry is blue", "last"]


@pytest.mark.parametrize("asked", range(6))
def test_an_index_that_becomes_unusable_within_a_write_or_a_read_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: int
) -> None:
    for number in range(3):
        ralf.record_decision("tide", f"Decision {number}", root=tmp_path)
    ask, left = indexes.Index.ask, [asked]

    def failing(self: indexes.Index, statement: str, *values: str) -> list[tuple[Any, ...]]:
        left[0] -= 1
        if left[0] < 0:
            raise indexes.Unusable
        return ask(self, statement, *values)

    with monkeypatch.context() as patched:
        patched.setattr(indexes.Index, "ask", failing)
        ralf.record_decision("tide", "Decision 3", root=tmp_path)
        left[0] = asked
        shown = ralf.get_context("tide", root=tmp_path).decisions
    assert [item.decision for item in shown] == [f"Decision {number}" for number in range(4)]
    assert ralf.get_context("tide", root=tmp_path).decisions == shown
