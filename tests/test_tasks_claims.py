"""Claims: one holder each, a lease that lives and dies, a number that fences, and an answer for everyone who asks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralf.errors import Claimed, NotFound, NothingReady, StaleLease, TaskNotFound, UsageError
from ralf.tasks import claims, editing, keeping, leases, origin, store
from ralf.tasks.model import TaskState

FORK = multiprocessing.get_context("fork")


def lease(state: TaskState) -> str:
    assert state.claim is not None
    return state.claim.lease(state.task.id)


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + seconds)


# ---- whoever has it already ----


@pytest.mark.ci
def test_a_claim_that_was_written_before_its_command_died_is_told_by_the_next_call(tmp_path: Path) -> None:
    editing.add("One", root=tmp_path)
    editing.add("Two", root=tmp_path)
    process = FORK.Process(target=lambda: (claims.claim(by="me", root=tmp_path), os.kill(os.getpid(), signal.SIGKILL)))
    process.start()
    process.join()
    again = claims.claim(by="me", root=tmp_path)
    assert again.task.title == "One"
    assert again.warnings
    assert again.claim == store.get("One", root=tmp_path).claim
    assert claims.claim("One", by="me", root=tmp_path).claim == again.claim
    assert store.get("Two", root=tmp_path).claim is None


@pytest.mark.ci
def test_two_processes_of_one_name_do_not_get_the_same_task(tmp_path: Path) -> None:
    editing.add("One", root=tmp_path)
    editing.add("Two", root=tmp_path)
    with sleeper() as one, sleeper() as two:
        first = claims.claim(by="me", process=one.pid, root=tmp_path)
        second = claims.claim(by="me", process=two.pid, root=tmp_path)
        again = claims.claim(by="me", process=one.pid, root=tmp_path)
        one.kill()
        two.kill()
    assert (first.task.title, second.task.title) == ("One", "Two")
    assert again.claim == first.claim


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


def test_a_holder_whose_process_runs_keeps_its_task_beyond_the_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editing.add("One", root=tmp_path)
    with sleeper() as process:
        claims.claim(by="busy", seconds=1, process=process.pid, root=tmp_path)
        later(monkeypatch, 1.2)
        with pytest.raises(Claimed):
            claims.claim("One", by="two", root=tmp_path)
        process.kill()


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


def test_ten_silent_minutes_lose_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editing.add("One", root=tmp_path)
    claims.claim(by="silent", root=tmp_path)
    later(monkeypatch, 600)
    assert store.get("One", root=tmp_path).claim is not None
    assert store.list_tasks(root=tmp_path).counts["claimed"] == 1
    later(monkeypatch, 301)
    assert store.get("One", root=tmp_path).claim is None
    counts = store.list_tasks(root=tmp_path).counts
    assert (counts["claimed"], counts["ready"]) == (0, 1)


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


def test_the_lease_of_the_environment_says_which_task_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editing.add("One", root=tmp_path)
    state = claims.claim(by="me", root=tmp_path)
    monkeypatch.setenv("RALF_LEASE", lease(state))
    assert claims.progress("Half", root=tmp_path).progress == "Half"
    assert claims.done("All", root=tmp_path).summary == "All"


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


@pytest.mark.ci
def test_an_agent_goes_on_with_tasks_of_its_own_role_or_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editing.add("One", root=tmp_path)
    editing.add("Guide", role="writer", priority=9, root=tmp_path)
    editing.add("Two", root=tmp_path)
    monkeypatch.setenv("RALF_AGENT", "loop-w1-a")
    monkeypatch.setenv("RALF_LEASE", lease(claims.claim("One", root=tmp_path)))
    claims.done("First", root=tmp_path)
    assert claims.claim(root=tmp_path).task.title == "Two"
    claims.done("Second", root=tmp_path)
    with pytest.raises(NothingReady, match="1 ready for other roles"):
        claims.claim(root=tmp_path)
    assert claims.claim(role="writer", root=tmp_path).task.title == "Guide"


def test_a_lease_of_no_task_is_refused_with_the_variable_that_names_it_and_hinders_no_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editing.add("One", root=tmp_path)
    for told in ("junk", "TASK-gone:3"):
        monkeypatch.setenv("RALF_LEASE", told)
        with pytest.raises((UsageError, TaskNotFound)) as error:
            claims.progress("Half", root=tmp_path)
        assert "RALF_LEASE" in error.value.hint
        assert claims.claim(by="me", root=tmp_path).task.title == "One"


def test_a_lost_lease_is_refused_even_if_its_holder_has_another_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for title in ("One", "Two"):
        editing.add(title, root=tmp_path)
    state = claims.claim("One", by="me", seconds=1, root=tmp_path)
    later(monkeypatch, 1.1)
    claims.claim("One", by="other", root=tmp_path)
    monkeypatch.setenv("RALF_AGENT", "me")
    monkeypatch.setenv("RALF_LEASE", lease(state))
    claims.claim("Two", root=tmp_path)
    with pytest.raises(StaleLease, match="other"):
        claims.done("All", root=tmp_path)


@pytest.mark.ci
def test_signs_of_life_under_the_first_lease_keep_the_tasks_that_the_agent_claims_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for title in ("One", "Two", "Three"):
        editing.add(title, root=tmp_path)
    monkeypatch.setenv("RALF_AGENT", "busy")
    first = lease(claims.claim("One", root=tmp_path))
    monkeypatch.setenv("RALF_LEASE", first)
    for title in ("Two", "Three"):
        claims.done("Ready", root=tmp_path)
        held = lease(claims.claim(title, seconds=60, root=tmp_path))
        file = leases.file_of(store.at(tmp_path).project, held)
        long_ago = time.time() - 1_000
        os.utime(file, (long_ago, long_ago))
        keeping.touch(root=tmp_path)  # as hooks do, which know the environment alone
        assert file.stat().st_mtime > long_ago + 900


def test_who_says_no_lease_is_known_by_name(tmp_path: Path) -> None:
    editing.add("One", root=tmp_path)
    editing.add("Two", root=tmp_path)
    with pytest.raises(NotFound):
        claims.done("What?", by="me", root=tmp_path)
    claims.claim(by="me", root=tmp_path)
    assert claims.progress("Half", by="me", root=tmp_path).task.title == "One"
    with pytest.raises(Claimed, match="by me"):
        claims.done("Not mine", task="One", by="other", root=tmp_path)
    claims.claim("Two", by="me", root=tmp_path)
    with pytest.raises(UsageError, match="holds several tasks"):
        claims.done("Which?", by="me", root=tmp_path)
    assert claims.done("By hand", task="Two", by="me", root=tmp_path).task.status == "completed"


def test_a_person_completes_a_task_that_nobody_has(tmp_path: Path) -> None:
    editing.add("One", root=tmp_path)
    state = claims.done("By hand", task="One", by="person", root=tmp_path)
    assert state.task.status == "completed"
    assert [(one.by, one.outcome) for one in state.attempts] == [("person", "done")]


def test_a_failed_task_holds_up_what_waits_for_it_until_it_is_tried_again(tmp_path: Path) -> None:
    one = editing.add("One", root=tmp_path)
    two = editing.add("Two", after=["One"], root=tmp_path)
    claims.claim(by="me", root=tmp_path)
    failed = claims.fail("No key", by="me", root=tmp_path)
    assert (failed.task.status, failed.reason, failed.failures) == ("failed", "No key", 1)
    assert store.get("Two", root=tmp_path).waits_for == (one.task.id,)
    with pytest.raises(NothingReady, match=rf"{two.task.id} waits for {one.task.id} \(failed\)") as error:
        claims.claim(by="me", root=tmp_path)
    assert error.value.exit_status == 3
    assert claims.retry("One", root=tmp_path).task.status == "pending"
    assert claims.claim(by="me", root=tmp_path).task.title == "One"


def test_progress_survives_a_claim_and_is_of_one_task_alone(tmp_path: Path) -> None:
    editing.add("One", root=tmp_path)
    editing.add("Two", root=tmp_path)
    state = claims.claim(by="me", root=tmp_path)
    claims.progress("Half of one", lease=lease(state), root=tmp_path)
    claims.release(lease=lease(state), outcome="killed", note="SIGKILL", root=tmp_path)
    again = claims.claim(by="me", root=tmp_path)
    assert again.progress == "Half of one"
    assert (again.attempts[0].outcome, again.attempts[0].note) == ("killed", "SIGKILL")
    claims.done("One", by="me", root=tmp_path)
    assert claims.claim(by="me", root=tmp_path).progress == ""


# ---- which task ----


@pytest.mark.ci
def test_priority_goes_before_age_and_the_own_role_before_any(tmp_path: Path) -> None:
    for title, priority, role in (("a", 5, ""), ("b", 5, ""), ("c", 9, ""), ("d", 1, "tester"), ("e", 10, "builder")):
        editing.add(title, priority=priority, role=role, root=tmp_path)
    ready = store.list_tasks(ready=True, root=tmp_path).tasks
    assert [state.task.title for state in ready] == ["e", "c", "a", "b", "d"]
    got = [claims.claim(by=f"t{number}", role="tester", root=tmp_path).task.title for number in range(4)]
    assert got == ["d", "c", "a", "b"]
    with pytest.raises(NothingReady, match="1 ready for other roles"):
        claims.claim(by="t4", role="tester", root=tmp_path)
    assert claims.claim(by="any", root=tmp_path).task.title == "e"


def test_a_claim_of_what_is_not_there_or_not_pending_says_so(tmp_path: Path) -> None:
    with pytest.raises(NothingReady):
        claims.claim(root=tmp_path)
    editing.add("Mend the login", root=tmp_path)
    with pytest.raises(TaskNotFound, match=r"closest: .* \(Mend the login\)"):
        claims.claim("Mend the logn", root=tmp_path)
    claims.done("Mended", task="Mend the login", root=tmp_path)
    with pytest.raises(UsageError, match="is completed"):
        claims.claim("Mend the login", root=tmp_path)
    with pytest.raises(UsageError, match="a lease lasts"):
        claims.claim(seconds=0, root=tmp_path)
    with pytest.raises(UsageError, match="not a lease"):
        claims.renew("nonsense", root=tmp_path)


def test_secrets_reach_neither_stream_nor_file(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    editing.add(f"Use {secret}", text=f"token: {secret}", root=tmp_path)
    claims.claim(by="me", root=tmp_path)
    claims.progress(f"with {secret}", by="me", root=tmp_path)
    claims.done(f"used {secret}", by="me", root=tmp_path)
    held = [path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert held == []
