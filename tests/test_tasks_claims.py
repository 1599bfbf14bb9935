"""Claims: one holder each, a lease that lives and dies, a number that fences, and an answer for everyone who asks."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import moveskit
import ralf
from ralf import project as projects
from ralf.errors import Claimed, NothingReady, StaleLease
from ralf.maintenance import ownership
from ralf.tasks import claims, editing, keeping, origin, store
from ralf.tasks.model import TaskState
from ralf.tasks.refresh import refresh
from ralf_integrations.loop.work import Work
from taskskit import allow


def lease(state: TaskState) -> str:
    assert state.claim is not None
    return state.claim.lease(state.task.id)


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + seconds)


# ---- leases ----


def test_a_holder_whose_lease_ran_out_gets_its_own_task_before_others_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editing.add("One", root=tmp_path)
    first = claims.claim(by="me", seconds=1, root=tmp_path)
    editing.add("Two", priority=9, root=tmp_path)
    later(monkeypatch, 1.1)
    again = claims.claim(by="me", root=tmp_path)
    assert again.task.title == "One"
    assert again.warnings
    with pytest.raises(StaleLease):
        claims.done("Late", lease=lease(first), root=tmp_path)


def test_a_holder_whose_process_is_dead_loses_the_task_at_once(tmp_path: Path) -> None:
    editing.add("One", root=tmp_path)
    with sleeper() as process:
        claims.claim(by="one", process=process.pid, root=tmp_path)
        with pytest.raises(NothingReady):
            claims.claim(by="two", root=tmp_path)
        process.send_signal(signal.SIGKILL)
        while origin.born(process.pid):  # also while it is dead and nobody has waited for it
            time.sleep(0.01)
        assert claims.claim(by="two", root=tmp_path).task.title == "One"


@pytest.mark.ci
def test_signs_of_life_keep_a_claim_and_are_no_records(tmp_path: Path) -> None:
    editing.add("One", root=tmp_path)
    state = claims.claim(by="busy", seconds=3, root=tmp_path)
    tasks = store.at(tmp_path)
    head = tasks.project.store.head("tasks")
    for _ in range(8):
        time.sleep(0.4)
        keeping.touch(lease(state), root=tmp_path)
    with pytest.raises(Claimed):
        claims.claim("One", by="two", root=tmp_path)
    assert tasks.project.store.head("tasks") == head
    assert claims.renew(lease(state), root=tmp_path).claim == state.claim


# ---- how a claim ends ----


def test_done_is_said_twice_and_done_once(tmp_path: Path) -> None:
    editing.add("One", root=tmp_path)
    state = claims.claim(by="me", root=tmp_path)
    first = claims.done("It works", lease=lease(state), root=tmp_path)
    second = claims.done("It works", lease=lease(state), root=tmp_path)
    assert first.task.status == second.task.status == "completed"
    assert second.summary == "It works"
    assert "already" in second.warnings[-1]
    assert len(second.attempts) == 1


@pytest.mark.ci
def test_an_agent_that_goes_on_with_the_next_task_reports_on_that_one_without_a_word_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for title in ("One", "Two", "Three"):
        editing.add(title, root=tmp_path)
    monkeypatch.setenv("RALF_AGENT", "loop-w1-a")
    monkeypatch.setenv("RALF_LEASE", lease(claims.claim("One", root=tmp_path)))
    claims.done("First", root=tmp_path)
    assert "already" in claims.done("First, again", root=tmp_path).warnings[-1]
    claims.claim("Two", root=tmp_path)
    assert claims.progress("Half", root=tmp_path).task.title == "Two"
    assert claims.done("Second", root=tmp_path).task.title == "Two"
    claims.claim("Three", root=tmp_path)
    assert claims.fail("Cannot", root=tmp_path).task.title == "Three"
    monkeypatch.setenv("RALF_AGENT", "another")
    with pytest.raises(StaleLease):
        claims.progress("Half", root=tmp_path)


def test_secrets_reach_neither_stream_nor_file(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    editing.add(f"Use {secret}", text=f"token: {secret}", root=tmp_path)
    claims.claim(by="me", root=tmp_path)
    claims.progress(f"with {secret}", by="me", root=tmp_path)
    claims.done(f"used {secret}", by="me", root=tmp_path)
    held = [path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert held == []


# ---- what is recorded when a task is done ----


@pytest.fixture
def root(tmp_path: Path) -> Path:
    ownership.init(store.at(tmp_path).project, share=False)
    return tmp_path


@pytest.mark.ci
def test_a_command_runs_without_the_lock(root: Path) -> None:
    allow(root)
    editing.add("Slow", verify="test ! -e other || exit 1; sleep 1", root=root)
    editing.add("Other", root=root)
    import threading

    thread = threading.Thread(target=claims.done, args=("It works",), kwargs={"task": "Slow", "by": "a", "root": root})
    thread.start()
    claims.claim("Other", by="b", root=root)
    assert thread.is_alive()
    thread.join()
    assert store.get("Slow", root=root).task.status == "completed"


def test_a_stale_holders_command_does_not_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(root)
    editing.add("One", verify="touch ran", root=root)
    state = claims.claim(by="a", root=root)
    assert state.claim is not None
    claims.release(by="a", root=root)
    with pytest.raises(ralf.errors.StaleLease):
        claims.done("Late", lease=state.claim.lease(state.task.id), root=root)
    assert not (root / "ran").exists()


# ---- tasks whose route was renamed ----


def test_a_task_whose_route_was_renamed_goes_on_with_what_was_recorded_for_it(tmp_path: Path) -> None:
    editing.add("Do the login", id="TASK-001", root=tmp_path)
    ralf.record_decision("login", "Use JWT tokens", root=tmp_path)
    moveskit.told(tmp_path, "TASK-001", "login")
    claims.claim("TASK-001", by="fixer", root=tmp_path)
    found = refresh(by="fixer", task="TASK-001", root=tmp_path)
    assert found.context is not None and found.context.route == "login"
    assert "Use JWT tokens" in found.render()
    assert found.warnings == ()
    project = projects.find(tmp_path)
    assert Work(project).context("TASK-001") is not None and Work(project).context("TASK-002") is None


def test_a_task_that_comes_after_one_of_a_renamed_route_is_told_what_was_decided_there(tmp_path: Path) -> None:
    editing.add("Do the login", id="TASK-001", root=tmp_path)
    editing.add("Do the logout", id="TASK-002", after=["TASK-001"], root=tmp_path)
    ralf.record_decision("login", "Use JWT tokens", root=tmp_path)
    ralf.hand_over("login", now="The server runs on port 8460", root=tmp_path)
    moveskit.told(tmp_path, "TASK-001", "login")
    found = refresh(by="fixer", task="TASK-002", root=tmp_path)
    assert [(item.id, item.decision) for item in found.decisions] == [("login DEC-001", "Use JWT tokens")]
    assert "port 8460" in found.render()
