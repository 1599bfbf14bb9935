"""`ralf import`: what it finds by itself, what it prints, and how it ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import ralf
from ralf.tasks import store
from ralf_migrations.importing import SOURCES, client_names
from ralf_migrations.task_lists import PLACES
from storekit import Cli, Ran, environment, kept_bytes
from test_importing import DECISIONS, every_source, put, state_of


class Import:
    """`ralf import` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capfd = monkeypatch, capfd

    def __call__(self, root: Path, *args: str) -> Ran:
        """Import into `root`, for a user who lives beside it."""
        with self._monkeypatch.context() as patch:
            for name, value in environment(root.with_name("home")).items():
                patch.setenv(name, value)
            patch.chdir(root)
            return Cli(root, patch, self._capfd)("import", *args)


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Import:
    return Import(monkeypatch, capfd)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


def a_session(root: Path) -> Path:
    """A session that Claude Code has kept of the project."""
    folder = root.with_name("home") / ".claude" / "projects" / "".join(c if c.isalnum() else "-" for c in str(root))
    folder.mkdir(parents=True)
    text = "Please replace the sensors of the gauge at Hoek before the spring tide."
    record = {"type": "user", "sessionId": "s-1", "cwd": str(root), "timestamp": "2026-02-01T10:00:00Z", "uuid": "u1"}
    record |= {"message": {"role": "user", "content": text}}
    (folder / "s-1.jsonl").write_text(json.dumps(record) + "\n")
    return folder / "s-1.jsonl"


def a_list(root: Path, place: str = ".beads/issues.jsonl") -> Path:
    issue = {"id": "bd-1", "title": "Calibrate", "status": "open", "issue_type": "task"}
    return put(root, place, json.dumps(issue) + "\n")


@pytest.mark.ci
def test_everything_that_is_there_is_found_and_taken_once(root: Path, take: Import) -> None:
    every_source(root)
    a_list(root)
    session = a_session(root)
    sources = state_of(root)
    dry = take(root, "--dry-run", "--json").json()
    assert not (root / ".autonomous" / "context").exists()
    assert {one["source"] for one in dry["files"]} == set(SOURCES) - {"decisions-md"} | {"claude-code"}
    done = take(root)
    assert done.status == 0, done.err
    for name in ("runs/executor/run-0042 → TASK-42", "RALF-CONTEXT.md → planner", "Calibrate", session.name):
        assert name in done.out
    assert [state.task.title for state in store.list_tasks(root=root).tasks] == ["Calibrate"]
    routes = {one.route for one in ralf.list_routes(root=root) if one.checkpoint_count}
    assert {"TASK-42", "TASK-7", "TASK-TIDE-003B", "gauge-worker", "planner"} < routes
    before = kept_bytes(root)
    again = take(root, "--json").json()
    assert (again["written"], [one["what"] for one in again["tasks"][0]["tasks"]]) == (0, ["unchanged"])
    assert kept_bytes(root) == before
    assert {path: state_of(root)[path] for path in sources} == sources


def test_where_nothing_is_found_it_says_where_it_looked(root: Path, take: Import) -> None:
    done = take(root)
    assert done.status == 0
    for name in (*SOURCES, *PLACES, *client_names(), str(root)):
        assert name in done.out, name
    assert not (root / ".autonomous").exists()
    assert str(root / "runs") in take(root, "decisions-md", str(put(root, "runs/x", "").parent)).out


def test_only_what_is_named_is_taken(root: Path, take: Import) -> None:
    every_source(root)
    a_list(root)
    assert take(root, "decisions-md", "runs/executor").status == 0
    assert [one.route for one in ralf.list_routes(root=root)] == ["TASK-42"]
    assert take(root, "agents", "RALF-CONTEXT.md").status == 0
    assert {one.route for one in ralf.list_routes(root=root)} == {"TASK-42", "TASK-TIDE-003B", "planner"}
    assert store.list_tasks(root=root).tasks == ()
    assert take(root, str(a_list(root, "elsewhere/list.jsonl"))).status == 0
    assert len(store.list_tasks(root=root).tasks) == 1


def test_unreadable_files_are_listed_and_give_4(root: Path, take: Import) -> None:
    put(root, "runs/executor/run-0042/DECISIONS.md", DECISIONS)
    put(root, "runs/executor/run-0043/DECISIONS.md", b"\xff\xfe\x00")
    done = take(root, "decisions-md")
    assert done.status == 4
    assert "run-0042/DECISIONS.md → TASK-42: 1 checkpoint" in done.out and "run-0043/DECISIONS.md" in done.out


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("floppy",), 3),
        (("decisions-md", "nowhere"), 3),
        (("claude-code", "."), 2),
        (("claude-code", "--since", "soon"), 2),
        (("tasks", "photo.png"), 4),
        (("photo.png",), 4),
        (("tasks",), 3),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_status(
    args: tuple[str, ...], status: int, root: Path, take: Import
) -> None:
    put(root, "photo.png", b"\x89PNG\r\n\x1a\n")
    assert take(root, *args).status == status


def test_a_clients_sessions_are_taken_and_those_of_before_left(root: Path, take: Import) -> None:
    os.utime(a_session(root), (1_700_000_000, 1_700_000_000))
    for since, count in (("2026-01-01", 0), ("2023-01-01", 1), ("2023-01-01", 1)):
        assert take(root, "claude-code", "--since", since).status == 0
        assert sum(one.checkpoint_count for one in ralf.list_routes(root=root)) == count
