"""What changed and what happened, in words: by subject, by decision, and never what only the cap has moved."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
import ralf.errors
from ralf.document import merge
from ralf.document.tree import to_tree
from ralf.model import (
    RouteContext,
)
from ralf.route.comparing import in_words
from ralf.route.history import context_at, diff
from storekit import copied, grow, route_file, write_session


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    number = write_session(root / "session.jsonl", 1_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root)
    ralf.record_decision("tide", "Keep the old columns", rationale="readers depend on them", root=root)
    grow(root / "session.jsonl", 1_000, number)
    ralf.checkpoint("tide", root / "session.jsonl", root=root)
    ralf.record_decision("tide", "Use WAL", alternatives=["a server: too much"], root=root)
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    copied(made, tmp_path / "project")
    return tmp_path / "project"


def words(before: RouteContext, after: RouteContext) -> list[tuple[str, str, str, str]]:
    return [(told.subject, told.what, told.id, told.text) for told in in_words(before, after)]


# ---- between two moments of a route ----


@pytest.mark.ci
@pytest.mark.parametrize(
    ("one", "other"), [("cp-001", "cp-002"), ("r4", "r0"), ("2", "r2"), ("cp-2", "now"), ("r3", "r3")]
)
def test_the_changes_applied_to_the_one_moment_are_the_other(project: Path, one: str, other: str) -> None:
    path = route_file(project, "tide")
    path.write_text(
        path.read_text(encoding="utf-8").replace('began_as: "', 'goal: "By hand"\nbegan_as: "', 1), encoding="utf-8"
    )
    found = diff("tide", one, other, root=project)
    before, after = (
        ralf.get_context("tide", root=project) if moment == "now" else context_at("tide", moment, root=project)
        for moment in (one, other)
    )
    assert merge.apply(to_tree(before), found.changes) == to_tree(after)
    assert (not found.words) == (one == other)
