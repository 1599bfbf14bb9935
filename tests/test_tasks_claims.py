"""Claims: one holder each, a lease that lives and dies, a number that fences, and an answer for everyone who asks."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralf.errors import Claimed, NothingReady, StaleLease
from ralf.tasks import claims, editing, keeping, origin, store
from ralf.tasks.model import TaskState


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
