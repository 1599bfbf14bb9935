"""The drop-in for `context_budget.py`: what it prints, how it ends, what it keeps, and when it makes a checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import storekit
from ralf_integrations.blackbox5 import budget, context_budget
from ralf_integrations.blackbox5.budget import ThresholdAction, attach
from ralf_integrations.blackbox5.checkpointing import Checkpointing
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
    (139_999, 70.0, "subagent", 0),
    (140_000, 70.0, "warning", 0),
    (170_000, 85.0, "critical", 3),
    (190_000, 95.0, "hard_limit", 2),
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
    assert budget.read_state(path).tokens == 60_000


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


# ---- attached to the other tool's class ----


class Theirs:
    """As their class has it: actions by threshold, whose callbacks are called and whose errors are swallowed."""

    def __init__(self, run_dir: Path) -> None:
        self.max_tokens, self.run_dir, self.state_file = 200_000, run_dir, "context_budget.json"
        self.thresholds = dict(budget.THRESHOLDS)
        self.called: list[str] = []
        self.actions = {name: ThresholdAction(name, "…") for name in self.thresholds}

    def at(self, tokens: int, name: str) -> None:
        """Their own check, at so many tokens."""
        (self.run_dir / self.state_file).write_text(json.dumps({"current": {"current_tokens": tokens}}))
        callback = self.actions[name].callback
        if callback is not None:
            callback()


def test_attached_to_an_existing_class_it_checkpoints_each_crossing_and_calls_it(
    tmp_path: Path, run_dir: Path, session: Path
) -> None:
    theirs = Theirs(run_dir)
    theirs.actions["critical"].callback = lambda: theirs.called.append("critical")
    detach = attach(theirs, Checkpointing(run_dir, ROUTE, session))
    turn = 20
    steps = [(150_000, "warning", 1), (175_000, "critical", 1), (90_000, "subagent", 1), (141_000, "warning", 2)]
    for tokens, name, expected in steps:
        theirs.at(tokens, name)
        assert counts(tmp_path) == expected, tokens
        turn = storekit.grow(session, 500, turn)
    assert theirs.called == ["critical"]
    detach()
    theirs.at(175_000, "critical")
    assert (counts(tmp_path), theirs.called) == (2, ["critical", "critical"])
    assert theirs.actions["warning"].callback is None
