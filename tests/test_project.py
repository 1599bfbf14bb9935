"""Where a project is, whose store a git worktree uses, and which route is meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import kit.git
import ralf
import storekit
from kit.git import commit, git
from ralf import config
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.transcripts.reader import newest_logs
from storekit import context_of, records_of


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "client"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "main tree"
    root.mkdir()
    commit(kit.git.repository(root), message="begin")
    return root


# ---- which project ----


def test_stash_clean_and_checkout_touch_nothing_that_was_acknowledged(repository: Path) -> None:
    ralf.record_decision("tide", "One", root=repository)
    before = storekit.kept_bytes(repository)
    (repository / "x").write_text("x")
    git(repository, "stash", "--include-untracked")
    git(repository, "checkout", "-q", "-b", "other")
    git(repository, "clean", "-fdq")
    git(repository, "reset", "-q", "--hard")
    assert storekit.kept_bytes(repository) == before


# ---- linked worktrees ----


def test_a_linked_worktree_uses_the_store_of_the_main_one(repository: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "-q", "-b", "side", linked)
    ralf.record_decision("tide", "Said in the main one", root=repository)
    ralf.record_decision("tide", "Said in the linked one", root=linked)
    said = [decision.decision for decision in ralf.get_context("tide", root=linked).decisions]
    assert said == ["Said in the main one", "Said in the linked one"]
    assert len(records_of(repository, "tide")) == 2
    assert not (linked / ".autonomous").exists()


@pytest.mark.ci
def test_two_linked_worktrees_and_the_main_one_write_one_journal_without_a_gap(
    repository: Path, tmp_path: Path
) -> None:
    roots = [repository, tmp_path / "one", tmp_path / "two"]
    for root in roots[1:]:
        git(repository, "worktree", "add", "-q", "-b", root.name, root)
    code = "import sys, ralf\nfor n in range(5): ralf.record_decision('tide', f'{sys.argv[1]} {n}', root='.')"
    storekit.finished([storekit.start(code, root.name, cwd=root) for root in roots])
    assert [record["revision"] for record in records_of(repository, "tide")] == list(range(1, 16))


# ---- which route ----


def test_sessions_of_this_project_are_found_newest_first(tmp_path: Path) -> None:
    root = tmp_path / "my project.x"
    root.mkdir()
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(root))
    folder = tmp_path / "client" / "projects" / name
    assert newest_logs(Project(root)) == []
    folder.mkdir(parents=True)
    for number, file in enumerate(("b.jsonl", "a.jsonl", "c.txt")):
        (folder / file).write_text("{}")
        os.utime(folder / file, (number, number))
    assert [path.name for path in newest_logs(Project(root))] == ["a.jsonl", "b.jsonl"]


# ---- opting in and out ----


def test_hooks_are_switched_by_one_line_and_all_else_stays_as_it_is(tmp_path: Path) -> None:
    ownership.init(Project(tmp_path), share=False)
    path = context_of(tmp_path) / "config.yaml"
    before = "# mine\nthreshold: 9000   # so\nhooks:  on  # keep this\nwindow: 100000\n"
    path.write_text(before)
    assert ownership.switch(Project(tmp_path), on=False)
    assert path.read_text() == before.replace("hooks:  on", "hooks: off")
    assert config.load(path).hooks == "off"
    assert not ownership.switch(Project(tmp_path), on=False)
    assert ownership.switch(Project(tmp_path), on=True)
    assert path.read_text() == before.replace("hooks:  on", "hooks: on")
    path.write_text("threshold: 9000")
    assert ownership.switch(Project(tmp_path), on=False)
    assert path.read_text() == "threshold: 9000\nhooks: off\n"
