"""`ralf trust` as a person types it: what it shows, what it asks, and what an answer changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.planted import commit_all, git, put_route

import ralf
from ralf.memory import writing
from ralf.memory.family import new_item
from ralf.project import Project
from storekit import earlier_store, on_a_terminal, route_file

pytestmark = pytest.mark.ci


def typed(project: Path, *args: str, answers: str, **variables: str) -> tuple[int, str]:
    """Run `ralf trust …` on a terminal at which these answers are typed; its exit status and what it wrote."""
    return on_a_terminal(project, "trust", *args, answer=answers, **{"TERM": "dumb"} | variables)


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A project with the store of an earlier version that had opted in, and no log of its sessions."""
    return earlier_store(tmp_path / "project")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose repository brings a route file with rules, named `tide`."""
    evil = tmp_path / "evil"
    evil.mkdir()
    git(evil, "init", "-q")
    put_route(evil, "tide")
    commit_all(evil)
    git(tmp_path, "clone", "-q", str(evil), str(tmp_path / "clone"))
    return tmp_path / "clone"


def decided(root: Path, route: str = "tide") -> list[tuple[str, str]]:
    """The decisions of a route that are not foreign, and their origins."""
    context = ralf.get_context(route, root=root)
    return [] if context.foreign else [(item.decision, item.origin) for item in context.decisions]


def test_a_whole_store_of_an_earlier_version_is_shown_and_accepted(earlier: Path) -> None:
    assert decided(earlier) == []
    status, said = typed(earlier, answers="y\ny\ny\ny\n")
    assert status == 0, said
    assert "routes/tide: " in said
    assert decided(earlier)
    assert not Project(earlier).owner.has_opted_in


def test_a_project_that_was_moved_is_shown_whole_and_accepted(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    ralf.record_decision("tide", "Keep metres", root=before)
    before.rename(after)
    assert decided(after) == []
    status, said = typed(after, answers="y\n\n\n")
    assert status == 0, said
    assert "Keep metres" in said
    assert [text for text, _ in decided(after)] == ["Keep metres"]


def test_a_route_that_came_with_a_clone_is_shown_whole_and_imported(clone: Path) -> None:
    lines = route_file(clone, "tide").read_text().splitlines()
    status, said = typed(clone, "tide", answers="y\n")
    assert status == 0, said
    assert "route tide: not written by your ralf" in said
    assert all(line.strip() in said for line in lines)
    assert "tide: accepted" in said
    context = ralf.get_context("tide", root=clone)
    assert not context.foreign
    assert {item.origin for item in context.decisions} == {"import"}


def test_a_memory_file_that_came_from_elsewhere_is_shown_whole_and_counts_once_it_is_accepted(tmp_path: Path) -> None:
    writing.record(Project(tmp_path), "main", [new_item("fact", text="Ada keeps the key", origin="person")])
    theirs = "# Agent Memory - main\n\n## Tool Preferences\n\n- push: ask first\n"
    theirs += "\n---\n\n*Edit freely: ralf takes changes in.*\n"
    path = writing.path_of(Project(tmp_path), "main")
    path.write_text(theirs)
    assert [item.text for item in writing.load(Project(tmp_path), "main").items] == ["Ada keeps the key"]
    status, said = typed(tmp_path, "main", answers="y\n")
    assert status == 0, said
    assert "- push: ask first" in said
    assert "push" in [item.key for item in writing.load(Project(tmp_path), "main").items]
