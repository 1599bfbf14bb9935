"""The proposal's own commands and class, on the routes of a project."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
import storekit
from ralf.errors import UsageError
from ralf_integrations.blackbox5 import context_checkpoint, context_reader
from ralf_integrations.blackbox5.context_reader import ContextReader

ROUTE = "TASK-001"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of a tree, with a route."""
    root = tmp_path / "tree" / "5-project-memory" / "blackbox5"
    (root / ".autonomous").mkdir(parents=True)
    session = tmp_path / "session.jsonl"
    storekit.write_session(session, 2_000)
    ralf.checkpoint(ROUTE, session, root=root)
    for number in range(5):
        ralf.record_decision(ROUTE, f"Keep table {number} as --- it is", rationale="read by others", root=root)
    return root


def test_a_project_is_found_by_its_folder_its_name_and_the_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert ContextReader(project).list_routes() == [ROUTE]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BB5_HOME", str(tmp_path / "tree"))
    assert ContextReader("blackbox5").list_routes() == [ROUTE]
    monkeypatch.setenv("BLACKBOX5_HOME", str(tmp_path / "none"))
    assert ContextReader("blackbox5").list_routes() == []
    monkeypatch.setenv("BB5_MEMORY_PATH", str(tmp_path / "tree" / "5-project-memory"))
    assert ContextReader("blackbox5").list_routes() == [ROUTE]
    assert ContextReader(None).list_routes() == [ROUTE]
    monkeypatch.setenv("BB5_PROJECT", "another")
    assert ContextReader(None).list_routes() == []
    monkeypatch.setenv("RALF_PROJECT_DIR", str(project / ".autonomous"))
    assert ContextReader(None).list_routes() == [ROUTE]


def test_a_context_is_what_the_front_matter_has_with_dashes_in_its_values(project: Path) -> None:
    tree = ContextReader(project).get_context(ROUTE)
    assert tree is not None
    assert tree["context_checkpoint"]["route"] == ROUTE
    assert [one["decision"] for one in tree["decisions"]][-1] == "Keep table 4 as --- it is"
    assert tree["checkpoint_history"][0]["checkpoint_id"] == "cp-001"
    assert tree["active_work"]
    assert tree["history"]


def test_max_history_is_kept_to(project: Path, tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    turn = 40
    for _ in range(4):
        turn = storekit.grow(session, 400, turn)
        ralf.checkpoint(ROUTE, session, root=project)
    reader = ContextReader(project)
    for most in (0, 1, 3):
        tree = reader.get_context(ROUTE, max_history=most)
        assert tree is not None
        ids = [one["checkpoint_id"] for one in tree["checkpoint_history"]]
        assert ids == [f"cp-{number:03d}" for number in range(1, 6)][5 - most :]


def test_a_summary_tells_the_work_and_the_last_decisions(project: Path) -> None:
    text = ContextReader(project).get_summary(ROUTE)
    assert text.startswith(f"Route: {ROUTE}\nAgent: ")
    assert "Checkpoints: 1" in text
    assert text.count("Keep table") == 3


def test_a_route_that_is_not_there_is_none_and_a_refused_name_is_refused(project: Path) -> None:
    reader = ContextReader(project)
    assert reader.get_context("TASK-777") is None
    assert reader.get_summary("TASK-777") == "No context found for route: TASK-777"
    with pytest.raises(UsageError):
        reader.get_context("../../etc/passwd")


def test_the_commands_list_and_read(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert context_reader.main(["list", "--project", str(project)]) == 0
    header, fence, listed, _ = capfd.readouterr().out.splitlines()
    assert (header, listed) == ("Available contexts:", f"  - {ROUTE}") and "not instructions" in fence
    assert context_reader.main(["read", "--route", ROUTE, "--project", str(project)]) == 0
    out = capfd.readouterr().out
    assert "Keep table 4 as --- it is" in out
    assert "not instructions" in out
    assert context_reader.main(["read", "--route", "TASK-777", "--project", str(project)]) == 3
    assert context_reader.main(["read", "--route", "a/b", "--project", str(project)]) == 2
    with pytest.raises(SystemExit) as raised:
        context_reader.main(["read"])
    assert raised.value.code == 2


def test_the_commands_init_check_and_create(project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    at = ("--project", str(project), "--route")
    assert context_checkpoint.main(["init", *at, "TASK-002"]) == 0
    assert capfd.readouterr().out.startswith("Initialized context for: TASK-002")
    assert not storekit.route_file(project, "TASK-002").exists()
    for tokens, due in ((49_999, False), (50_000, True)):
        assert context_checkpoint.main(["check", *at, "TASK-002", "--tokens", str(tokens)]) == 0
        assert capfd.readouterr().out == f"Should checkpoint: {due}\n"
    session = tmp_path / "other.jsonl"
    storekit.write_session(session, 1_000, "s-2")
    create = ["create", *at, "TASK-002", "--tokens", "50000", "--transcript", str(session)]
    assert context_checkpoint.main(create) == 0
    assert capfd.readouterr().out.startswith("Created checkpoint: cp-001 in ")
    assert context_checkpoint.main(create) == 0
    assert capfd.readouterr().out.startswith("Nothing new")
    assert context_checkpoint.main(["create", *at, "../x"]) == 2
    assert context_checkpoint.main(["check", *at, "TASK-002"]) == 2


def test_a_count_that_falls_is_another_sessions(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    consumed = ralf.get_context(ROUTE, root=project).total_tokens_consumed
    for tokens, due in ((consumed + 50_000, True), (consumed + 49_999, False), (1_000, False)):
        context_checkpoint.main(["check", "--project", str(project), "--route", ROUTE, "--tokens", str(tokens)])
        assert capfd.readouterr().out == f"Should checkpoint: {due}\n", tokens


def test_without_a_session_and_a_runs_folder_create_says_what_to_name(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(project / "none"))
    assert context_checkpoint.main(["create", "--project", str(project), "--route", "TASK-002"]) == 3
    assert "--run-dir" in capfd.readouterr().err
