"""`ralf import`: what it prints, how it ends, and what it says of a client's sessions."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path

import pytest

import kit.command
import ralf
from ralf_cli.importing import SOURCES as NAMED
from ralf_migrations.migrate import SOURCES
from storekit import HANGS, Cli, Ran, environment, read_terminal
from test_migrate import DECISIONS, every_source, put


class Migrate:
    """`ralf import` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capfd = monkeypatch, capfd

    def __call__(self, root: Path, *args: str, home: Path | None = None) -> Ran:
        """Migrate into `root`, for a user who lives there or at `home`."""
        with self._monkeypatch.context() as patch:
            for name, value in environment(home or root).items():
                patch.setenv(name, value)
            patch.chdir(root)
            return Cli(root, patch, self._capfd)("import", *args)


@pytest.fixture
def migrate(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Migrate:
    return Migrate(monkeypatch, capfd)


def test_what_became_of_every_file_and_where_the_account_is_is_said(tmp_path: Path, migrate: Migrate) -> None:
    every_source(tmp_path)
    done = migrate(tmp_path, "decisions-md")
    assert done.lines[1].split()[:2] == ["runs/executor/run-0042/DECISIONS.md", "TASK-42"]
    assert (done.status, "migrations/decisions-md.json" in done.err) == (0, True), done.err


def test_every_source_can_be_named() -> None:
    assert tuple(SOURCES) == NAMED


def test_a_dry_run_says_so_and_writes_nothing(tmp_path: Path, migrate: Migrate) -> None:
    every_source(tmp_path)
    done = migrate(tmp_path, "timeline-memory", "--dry-run", "--json")
    tree = done.json()
    assert (done.status, tree["dry_run"], len(tree["files"])) == (0, True, 2)
    assert tree["files"][0]["fields"][0].keys() == {"name", "fate", "where", "count"}
    assert not (tmp_path / ".autonomous" / "context").exists()


def test_unreadable_files_are_listed_and_give_4_and_nothing_found_gives_0(tmp_path: Path, migrate: Migrate) -> None:
    assert migrate(tmp_path, "decisions-md").status == 0
    put(tmp_path, "runs/executor/run-0042/DECISIONS.md", DECISIONS)
    put(tmp_path, "runs/executor/run-0043/DECISIONS.md", b"\xff\xfe\x00")
    done = migrate(tmp_path, "decisions-md")
    assert done.status == 4
    assert "run-0042/DECISIONS.md" in done.out and "run-0043/DECISIONS.md" in done.out


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("floppy",), 2),
        (("decisions-md", "nowhere"), 3),
        (("decisions-md", "--since", "30d"), 2),
        (("claude-code", "."), 2),
        (("claude-code", "--since", "yesterday"), 2),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_status(
    args: tuple[str, ...], status: int, tmp_path: Path, migrate: Migrate
) -> None:
    assert migrate(tmp_path, *args).status == status


def test_a_clients_sessions_are_taken_and_those_of_before_left(tmp_path: Path, migrate: Migrate) -> None:
    root, home = tmp_path / "project", tmp_path / "home"
    root.mkdir()
    folder = home / ".claude" / "projects" / "".join(c if c.isalnum() else "-" for c in str(root))
    folder.mkdir(parents=True)
    text = "Please replace the sensors of the gauge at Hoek before the spring tide."
    record = {"type": "user", "sessionId": "s-1", "cwd": str(root), "timestamp": "2026-02-01T10:00:00Z", "uuid": "u1"}
    record |= {"message": {"role": "user", "content": text}}
    session = folder / "s-1.jsonl"
    session.write_text(json.dumps(record) + "\n")
    os.utime(session, (1_700_000_000, 1_700_000_000))
    planned = migrate(root, "claude-code", "--dry-run", "--json", home=home).json()
    assert [one["session"] for one in planned["files"]] == ["s-1"]
    assert not (root / ".autonomous").exists()
    for since, count in (("2026-01-01", 0), ("2023-01-01", 1), ("2023-01-01", 1)):
        assert migrate(root, "claude-code", "--since", since, home=home).status == 0
        assert sum(one.checkpoint_count for one in ralf.list_routes(root=root)) == count


@pytest.mark.ci
def test_a_terminal_shows_how_far_it_is(tmp_path: Path) -> None:
    every_source(tmp_path)
    main, side = pty.openpty()
    environ = environment(tmp_path, TERM="xterm")
    with kit.command.start("import", "run-folders", cwd=tmp_path, env=environ, stderr=side) as process:
        os.close(side)
        shown = read_terminal(main)
        assert process.wait(HANGS) == 0
    assert "files" in shown
    assert "\u2501" in shown  # the bar
