"""The drop-in for `context_budget.py`: what it prints, how it ends, what it keeps, and when it makes a checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import storekit
from ralf_integrations.blackbox5 import context_budget
from ralf_integrations.blackbox5.context_budget import THRESHOLDS, ContextBudget
from storekit import Ran

ROUTE = "TASK-001"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run's folder in a project."""
    folder = tmp_path / ".autonomous" / "runs" / "run-20260201_120000"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    storekit.write_session(path, 1_500)
    return path


def called(capfd: pytest.CaptureFixture[str], *args: object) -> Ran:
    capfd.readouterr()
    status = context_budget.main([str(arg) for arg in args])
    return Ran(status, *capfd.readouterr())


def as_file(cwd: Path, *args: object, **more: str) -> Ran:
    """The command as a process of its own, as the loop calls it."""
    command = [sys.executable, "-m", "ralf_integrations.blackbox5.context_budget", *map(str, args)]
    env = {**storekit.environment(cwd, **more), "PYTHONPATH": ""}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, timeout=storekit.HANGS)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


# ---- the documented answers ----

TABLE = [
    (0, 0.0, None, 0),
    (80_000, 40.0, "subagent", 0),
    (139_999, 70.0, "subagent", 0),
    (140_000, 70.0, "warning", 0),
    (169_999, 85.0, "warning", 0),
    (170_000, 85.0, "critical", 3),
    (190_000, 95.0, "hard_limit", 2),
    (200_000, 100.0, "hard_limit", 2),
    (987_654, 493.83, "hard_limit", 2),
]


@pytest.mark.parametrize(("tokens", "percentage", "triggered", "status"), TABLE)
def test_check_prints_its_six_fields_and_ends_with_its_status(
    run_dir: Path,
    capfd: pytest.CaptureFixture[str],
    tokens: int,
    percentage: float,
    triggered: str | None,
    status: int,
) -> None:
    ran = called(capfd, "check", "--run-dir", run_dir, "--tokens", tokens, "--checkpoint-threshold", 0)
    assert list(ran.json().items()) == [
        ("current_tokens", tokens),
        ("max_tokens", 200_000),
        ("percentage", percentage),
        ("threshold_triggered", triggered),
        ("subagent_recommended", triggered is not None),
        ("subagent_already_spawned", False),
    ]
    assert ran.status == status
    strict = called(capfd, "check", "--tokens", tokens, "--strict-exit", "--checkpoint-threshold", 0)
    assert strict.status == {2: 4}.get(status, status)
    assert strict.json() == ran.json()


@pytest.mark.parametrize(
    ("command", "missing"),
    [("check", "--tokens"), ("recommend", "--tokens"), ("subagent-context", "--task")],
)
def test_a_missing_argument_is_status_1(capfd: pytest.CaptureFixture[str], command: str, missing: str) -> None:
    ran = called(capfd, command)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("Error: ") and missing in ran.err


def test_init_prints_five_lines_and_writes_the_state_file(run_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ran = called(capfd, "init", "--run-dir", run_dir)
    assert ran.status == 0
    assert len(ran.out.splitlines()) == 5 and str(run_dir / "context_budget.json") in ran.out
    tree = json.loads((run_dir / "context_budget.json").read_text())
    current = tree["current"]
    assert list(tree) == ["config", "current", "history"]
    assert tree["config"] == {
        "max_tokens": 200_000,
        "thresholds": {"subagent": 40, "warning": 70, "critical": 85, "hard_limit": 95},
    }
    assert list(current) == [
        *("current_tokens", "max_tokens", "percentage", "threshold_triggered", "action_taken", "timestamp"),
    ]
    assert (current["current_tokens"], current["percentage"], current["action_taken"]) == (0, 0.0, None)
    assert tree["history"] == [current]


# ---- the state file ----

TOOL: dict[str, Any] = {
    "config": {"max_tokens": 200_000, "thresholds": dict(THRESHOLDS)},
    "current": {
        "current_tokens": 52_000,
        "max_tokens": 200_000,
        "percentage": 26,
        "threshold_triggered": None,
        "action_taken": None,
        "timestamp": "2026-01-31T12:22:20Z",
    },
    "history": [{"timestamp": "2026-01-31T12:22:20Z", "tokens": 52_000, "action": "loop_41_complete"}],
}
ABSOLUTE: dict[str, Any] = {
    "max_tokens": 200_000,
    "thresholds": {"subagent": 80_000, "warning": 140_000, "critical": 170_000, "hard_limit": 190_000},
    "usage": {"current_tokens": 12_000, "percentage": 6.0},
    "actions_triggered": [],
    "initialized_at": "2026-01-31T06:06:16Z",
}
SHAPES: list[dict[str, Any]] = [
    TOOL,
    TOOL | {"loop": 41, "run_dir": "/srv/run"},
    {"run_id": "r", "task_id": "T", **TOOL["config"], "current": TOOL["current"], "history": []},
    ABSOLUTE,
    {"loop": 36, "model": "m", "files_read": 5},
]


def kept(path: Path) -> Any:
    return json.loads(path.read_text())["current"]["current_tokens"]


@pytest.mark.parametrize("tree", SHAPES)
def test_every_key_of_every_shape_is_kept(
    run_dir: Path, capfd: pytest.CaptureFixture[str], tree: dict[str, Any]
) -> None:
    path = run_dir / "context_budget.json"
    path.write_text(json.dumps(tree))
    assert called(capfd, "check", "--run-dir", run_dir, "--tokens", 60_000).status == 0
    after = json.loads(path.read_text())
    for key, value in tree.items():
        if key not in ("config", "current", "history"):
            assert after[key] == value, key
    assert after["history"][:-1] == tree.get("history", [])
    assert kept(path) == 60_000


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_state_file_that_is_none_is_set_aside_and_nothing_stops(
    run_dir: Path, capfd: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = run_dir / "context_budget.json"
    path.write_bytes(content)
    ran = called(capfd, "check", "--run-dir", run_dir, "--tokens", 60_000)
    assert (ran.status, ran.json()["current_tokens"]) == (0, 60_000)
    (aside,) = run_dir.glob("context_budget.json.damaged-*")
    assert aside.read_bytes() == content
    assert aside.name in ran.err
    assert kept(path) == 60_000


# ---- the checkpoint ----


def counts(root: Path) -> int:
    """The checkpoints of the route."""
    return len(storekit.checkpoints_of(root, ROUTE)) if storekit.journal_file(root, ROUTE).exists() else 0


@pytest.mark.ci
def test_a_checkpoint_is_made_once_per_crossing_also_by_new_processes(
    tmp_path: Path, run_dir: Path, session: Path
) -> None:
    steps = [(139_999, 0), (140_000, 1), (150_000, 1), (190_000, 1), (20_000, 1), (139_999, 1), (141_000, 2)]
    turn = 20
    for tokens, expected in steps:
        turn = storekit.grow(session, 500, turn)  # there is always something new
        args = ("--run-dir", run_dir, "--tokens", tokens, "--route", ROUTE, "--transcript", session)
        ran = as_file(tmp_path, "check", *args)
        assert counts(tmp_path) == expected, (tokens, ran.err)
        assert ran.json()["current_tokens"] == tokens


def test_a_checkpoint_that_fails_stops_nothing_and_is_tried_again(
    tmp_path: Path, run_dir: Path, session: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    args = ("check", "--run-dir", run_dir, "--tokens", 150_000, "--route", ROUTE, "--transcript", tmp_path / "later")
    ran = called(capfd, *args)
    assert (ran.status, ran.json()["threshold_triggered"]) == (0, "warning")
    session.rename(tmp_path / "later")
    assert called(capfd, *args).status == 0
    assert counts(tmp_path) == 1


def test_nothing_is_made_in_a_folder_that_is_no_project_or_is_switched_off(
    tmp_path: Path, run_dir: Path, session: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = tmp_path.parent / f"{tmp_path.name}-away"
    away.mkdir()
    monkeypatch.chdir(away)
    assert called(capfd, "check", "--run-dir", away, "--tokens", 150_000).status == 0
    assert sorted(path.name for path in away.iterdir()) == ["context_budget.json"]
    args = ("check", "--run-dir", run_dir, "--tokens", 150_000, "--route", ROUTE, "--transcript", session)
    monkeypatch.setenv("BB5_DISABLE_CHECKPOINTS", "1")
    assert called(capfd, *args).status == 0
    monkeypatch.delenv("BB5_DISABLE_CHECKPOINTS")
    assert called(capfd, *args, "--checkpoint-threshold", 0).status == 0
    assert not storekit.context_of(tmp_path).exists()


def test_our_own_class_does_what_is_attached_and_says_what_came_of_it() -> None:
    budget = ContextBudget()
    budget.actions["warning"].callback = lambda: 1 / 0
    assert "division by zero" in budget.execute_action("warning")
    assert budget.execute_action("subagent") and budget.execute_action("nothing")
    assert ContextBudget.estimate_tokens("x" * 403) == 100


# ---- what the client says ----


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session that Claude Code has kept of the project, whose window holds 150,000 tokens."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "none"))
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(tmp_path))
    path = tmp_path / "home" / "projects" / name / "0c1f8f2e-0000-4000-8000-000000000001.jsonl"
    path.parent.mkdir(parents=True)
    storekit.write_session(path, 1_500, path.stem)
    usage = {"input_tokens": 1_000, "cache_read_input_tokens": 148_000, "output_tokens": 1_000}
    message = {"role": "assistant", "model": "m", "id": "msg_x", "content": [{"type": "text", "text": "so"}]}
    record = {"type": "assistant", "sessionId": path.stem, "uuid": "u", "timestamp": "2026-03-02T08:00:00.000Z"}
    with path.open("a") as file:
        file.write(json.dumps(record | {"message": message | {"usage": usage}}) + "\n")
    return path


def test_auto_takes_the_clients_own_figure(run_dir: Path, client: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ran = called(capfd, "check", "--run-dir", run_dir, "--tokens", "auto", "--route", ROUTE)
    shown = ran.json()
    assert (ran.status, shown["threshold_triggered"], shown["max_tokens"]) == (0, "warning", 200_000)
    assert 149_000 <= shown["current_tokens"] <= 150_000
    assert storekit.checkpoints_of(run_dir.parents[2], ROUTE)[0][0] == client.stem
