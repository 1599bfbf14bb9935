"""What every store with leases must do, and what runs and tasks make of it: only a lease says whether a holder lives.

The words are those of `ralf.storage.journal.Leases`.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from leasing_store import Engine, LeasingStore

import natskit
from ralf import project as projects
from ralf.agent.listing import cancel_run, get_run, list_runs, retry_run
from ralf.agent.run import AgentRun
from ralf.agent.runner import run_agent
from ralf.errors import Claimed, Fenced, RunCancelled, StaleLease
from ralf.storage.journal import Leases, Store
from ralf.storage.kept_lease import KeptLease
from ralf.tasks import claims, editing, keeping, store as tasks_store
from ralf.tasks.refresh import refresh
from ralf_integrations.loop.work import Work
from storekit import HANGS

KINDS = ["LeasingStore", *(pytest.param(kind, marks=pytest.mark.release) for kind in natskit.SERVERS)]


def leasing(kind: str, folder: Path) -> Store:
    """A store for a folder whose leases end soon: a server removes one after whole seconds, at the earliest."""
    if kind == "LeasingStore":
        store = LeasingStore(folder)
        store.engine.seconds = 2.0
        return store
    servers = natskit.SERVERS[kind]
    servers.ready()
    return servers(folder, lease=2)


@pytest.fixture(params=KINDS)
def leases(request: pytest.FixtureRequest, tmp_path: Path) -> Leases:
    found = leasing(request.param, tmp_path).leases
    assert found is not None
    return found


SLACK = 1.0
"""Seconds that a busy machine may take beyond the time that something lasts."""


def ended_within(leases: Leases, name: str, seconds: float) -> float:
    """After how many seconds nobody has a lease any more."""
    began = time.monotonic()
    while leases.holder(name) is not None:
        assert time.monotonic() - began < seconds, "it does not end"
        time.sleep(0.02)
    return time.monotonic() - began


# ---- the contract ----


def test_a_lease_has_one_holder_until_it_is_released(leases: Leases) -> None:
    assert leases.holder("runs/r/main") is None
    token = leases.take("runs/r/main", "ann 1")
    for _ in range(2):
        with pytest.raises(Claimed, match="ann 1") as refused:
            leases.take("runs/r/main", "bob 2")
        assert refused.value.since
    assert leases.holder("runs/r/main") == "ann 1"
    leases.release("runs/r/main", token)
    assert leases.holder("runs/r/main") is None
    leases.release("runs/r/main", token)
    second = leases.take("runs/r/main", "bob 2")
    leases.release("runs/r/main", token)
    assert leases.holder("runs/r/main") == "bob 2"
    assert leases.renew("runs/r/main", second) != token


@pytest.mark.release
def test_a_lease_ends_by_itself_however_often_it_was_renewed(leases: Leases) -> None:
    token = leases.take("runs/r/main", "ann")
    for _ in range(4):
        time.sleep(0.4 * leases.seconds)
        token = leases.renew("runs/r/main", token)
        assert leases.holder("runs/r/main") == "ann"
    assert ended_within(leases, "runs/r/main", leases.seconds + SLACK) > leases.seconds / 2
    with pytest.raises(Fenced) as refused:
        leases.renew("runs/r/main", token)
    assert refused.value.lost
    leases.take("runs/r/main", "bob")
    with pytest.raises(Fenced) as refused:
        leases.renew("runs/r/main", token)
    assert refused.value.lost
    assert leases.holder("runs/r/main") == "bob"


@pytest.mark.release
def test_a_lease_may_last_longer_than_the_others_and_is_resumed_by_its_holders_name(leases: Leases) -> None:
    token = leases.take("tasks/T", "ann T:1", seconds=60)
    leases.take("tasks/U", "bob U:2")
    time.sleep(1.2 * leases.seconds)
    assert leases.held("tasks/") == {"tasks/T"}
    assert leases.resume("tasks/T", "ann T:1") == token
    for name, holder in (("tasks/T", "bob T:1"), ("tasks/U", "bob U:2"), ("tasks/none", "ann")):
        with pytest.raises(Fenced) as refused:
            leases.resume(name, holder)
        assert refused.value.lost
    leases.renew("tasks/T", token, seconds=leases.seconds)
    assert ended_within(leases, "tasks/T", leases.seconds + SLACK)


def test_of_many_who_take_a_lease_at_once_one_gets_it(leases: Leases) -> None:
    got: list[str] = []
    barrier = threading.Barrier(6, timeout=20)

    def take(name: str) -> None:
        barrier.wait()
        with suppress(Claimed):
            leases.take("tasks/T", name)
            got.append(name)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(take, [f"agent-{number}" for number in range(6)]))
    assert got == [leases.holder("tasks/T")]


def test_a_name_may_have_dots_and_those_that_are_held_are_listed_by_what_they_begin_with(leases: Leases) -> None:
    token = leases.take("runs/r.v2/main", "ann")
    leases.take("tasks/TASK-1", "bob")
    assert leases.held("runs/") == {"runs/r.v2/main"}
    assert leases.held("output/") == frozenset()
    leases.release("runs/r.v2/main", token)
    assert leases.held("runs/") == frozenset()


# ---- a lease that a process keeps ----


@pytest.mark.release
def test_a_kept_lease_lasts_until_it_is_ended_and_others_wait_for_that(leases: Leases) -> None:
    kept = KeptLease(leases, "runs/r/main", "ann", 60.0)
    kept.take()
    time.sleep(1.5 * leases.seconds)
    assert leases.holder("runs/r/main") == "ann"
    other = KeptLease(leases, "runs/r/main", "bob", 60.0)
    with pytest.raises(Claimed):
        other.take_within(0.1)
    threading.Timer(0.2, kept.end).start()
    other.take_within(5.0)
    assert leases.holder("runs/r/main") == "bob"
    assert not kept.is_held
    assert not kept.is_lost
    other.end()


@pytest.mark.release
def test_a_kept_lease_that_is_dropped_or_whose_holder_is_silent_ends(leases: Leases) -> None:
    dropped, silent = KeptLease(leases, "a", "ann", 60.0), KeptLease(leases, "b", "bob", 0.1)
    dropped.take()
    silent.take()
    del dropped
    gc.collect()
    for name in ("a", "b"):
        ended_within(leases, name, leases.seconds + SLACK)
    silent.touch()
    deadline = time.monotonic() + HANGS
    while not silent.is_lost:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    KeptLease(leases, "a", "again", 60.0).take()


# ---- an engine that is away ----


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The engine in memory of the project at `tmp_path`, which a test may take away."""
    monkeypatch.setattr(projects, "open_store", LeasingStore)
    found = LeasingStore(tmp_path / ".autonomous" / "context").engine
    found.seconds = 2.0
    yield found
    found.is_away = False


@pytest.mark.release
def test_while_the_engine_is_away_nothing_is_recorded_and_then_the_run_goes_on(tmp_path: Path, engine: Engine) -> None:
    run = AgentRun("r", root=tmp_path)
    run.save(b"1")
    engine.is_away = True
    for call in (
        lambda: run.save(b"2"),
        lambda: run.once("k", lambda _: 1),
        run.load,
        lambda: run.wait_signal("n", 0),
        run.complete,
    ):
        with pytest.raises(Fenced, match=r"^r: nothing can be recorded") as refused:
            call()
        assert "ralf doctor" in refused.value.hint
    with pytest.raises(Fenced, match=r"^s: "):
        AgentRun("s", root=tmp_path).save(b"")
    engine.is_away = False
    assert run.save(b"2") == 2
    time.sleep(3 * engine.seconds)
    assert run.save(b"3") == 3
    run.close()
    assert get_run("r", root=tmp_path).status == "waiting"


@pytest.mark.release
def test_a_holder_that_was_cut_off_goes_on_unless_somebody_has_claimed_the_step_since(
    tmp_path: Path, engine: Engine
) -> None:
    run, other = AgentRun("r", root=tmp_path, by="ann"), AgentRun("r", root=tmp_path, by="bob")
    run.save(b"1")
    engine.lose("runs/r/main")  # as when the process was stopped for longer than the lease lasts
    time.sleep(engine.seconds)
    assert run.save(b"2") == 2
    with pytest.raises(Claimed, match="by ann since"):
        other.save(b"")
    engine.lose("runs/r/main")
    assert other.save(b"3") == 3
    for call in (lambda: run.save(b"4"), run.heartbeat):
        with pytest.raises(StaleLease, match=r"its claim, term 1, was lost; bob has it now, term 2"):
            call()
    assert other.load() == b"3"


@pytest.mark.release
def test_a_runner_counts_no_attempt_while_the_engine_is_away(tmp_path: Path, engine: Engine) -> None:
    tries: list[int] = []

    def handler(run: AgentRun) -> None:
        tries.append(run.attempt)
        if len(tries) == 1:
            engine.is_away = True
            threading.Timer(0.1, setattr, (engine, "is_away", False)).start()
            try:
                run.save(b"")
            finally:
                time.sleep(0.3)
        run.complete(b"done")

    assert run_agent(handler, "r", root=tmp_path).status == "completed"
    assert tries == [1, 1]

    def cut_off(run: AgentRun) -> None:
        engine.is_away = True
        run.save(b"")

    with pytest.raises(Fenced):
        run_agent(cut_off, "s", root=tmp_path)
    engine.is_away = False
    time.sleep(2 * engine.seconds)
    state = get_run("s", root=tmp_path)
    assert (state.status, state.attempt) == ("lost", 1)


def test_an_answer_that_could_not_be_recorded_is_recorded_later_and_the_call_not_made_again(
    tmp_path: Path, engine: Engine
) -> None:
    calls: list[str] = []

    def call(key: str) -> bytes:
        calls.append(key)
        engine.is_away = len(calls) == 1
        return b"x" * 300_000

    with AgentRun("r", root=tmp_path) as run:
        for _ in range(2):
            with pytest.raises(Fenced):
                run.once("k", call)
        engine.is_away = False
        assert len(run.once("k", call)) == 300_000
        assert len(calls) == 1
        run.complete()


def test_a_task_is_neither_claimed_nor_completed_while_the_engine_is_away(tmp_path: Path, engine: Engine) -> None:
    editing.add("One", root=tmp_path)
    editing.add("Two", root=tmp_path)
    claims.claim("One", by="ann", root=tmp_path)
    engine.is_away = True
    for call in (
        lambda: claims.claim("Two", by="bob", root=tmp_path),
        lambda: claims.done("It is", by="ann", root=tmp_path),
        lambda: claims.progress("Half", by="ann", root=tmp_path),
    ):
        with pytest.raises(Fenced, match=r"^tasks: nothing can be recorded"):
            call()
    engine.is_away = False
    assert claims.claim("Two", by="bob", root=tmp_path).claim is not None
    assert claims.done("It is", by="ann", root=tmp_path).task.status == "completed"


# ---- runs and tasks ----


@pytest.fixture(params=KINDS)
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(projects, "open_store", lambda folder, **_: leasing(request.param, folder))
    return tmp_path


def lasts(root: Path) -> float:
    """How many seconds a lease of the project lasts."""
    leases = projects.find(root).store.leases
    assert leases is not None
    return leases.seconds


@pytest.mark.release
def test_a_run_is_held_for_as_long_as_its_holder_lives_and_free_at_once_when_it_is_released(root: Path) -> None:
    seconds = lasts(root)
    run, other = AgentRun("r", root=root, by="ann"), AgentRun("r", root=root, by="bob")
    run.save(b"1")
    time.sleep(1.5 * seconds)
    with pytest.raises(Claimed, match="by ann"):
        other.save(b"2")
    assert [(one.status, one.by) for one in list_runs(root=root).runs] == [("running", "ann")]
    run.continue_with(b"", delay=0.001)
    began = time.monotonic()
    time.sleep(0.002)
    assert other.save(b"2") == 2
    assert time.monotonic() - began < seconds / 2
    other.close()


def test_a_cancelled_run_is_free_before_its_holder_notices(root: Path) -> None:
    run = AgentRun("r", root=root)
    run.save(b"1")
    cancel_run("r", root=root)
    assert retry_run("r", root=root).status == "waiting"
    assert AgentRun("r", root=root).save(b"2") == 2
    with pytest.raises((RunCancelled, StaleLease)):
        run.save(b"3")


@pytest.mark.release
def test_a_task_is_free_when_the_lease_of_its_claim_has_ended_and_the_late_holder_is_refused(root: Path) -> None:
    editing.add("One", root=root)
    first = claims.claim(by="ann", seconds=1, root=root)
    assert first.claim is not None
    lease = first.claim.lease(first.task.id)
    with pytest.raises(Claimed, match="by ann"):
        claims.claim("One", by="bob", root=root)
    time.sleep(1.3)
    assert tasks_store.get("One", root=root).claim is None
    second = claims.claim(by="bob", seconds=60, root=root)
    for late in (claims.done, claims.progress, claims.fail):
        with pytest.raises(StaleLease, match="bob holds the task now"):
            late("Late", lease=lease, root=root)
    assert claims.done("In time", by="bob", root=root).task.status == "completed"
    assert second.claim is not None
    assert [one.outcome for one in tasks_store.get("One", root=root).attempts] == ["lost", "done"]


@pytest.mark.release
def test_signs_of_life_renew_a_task_and_take_its_lease_anew_where_nobody_has_it(root: Path) -> None:
    editing.add("One", root=root)
    state = claims.claim(by="ann", seconds=1, root=root)
    assert state.claim is not None
    lease = state.claim.lease(state.task.id)
    for sign in (
        lambda: claims.progress("Half", by="ann", root=root),
        lambda: claims.renew(lease, root=root),
        lambda: keeping.touch(lease, root=root),
        lambda: claims.claim(by="ann", root=root),
    ):
        time.sleep(0.6)
        sign()
        assert tasks_store.get("One", root=root).claim is not None
    time.sleep(1.3)
    assert tasks_store.get("One", root=root).claim is None
    claims.progress("More", lease=lease, root=root)
    assert tasks_store.get("One", root=root).claim is not None
    claims.release(lease=lease, root=root)
    assert claims.claim(by="bob", root=root).claim is not None


@pytest.mark.release
def test_a_loop_that_is_started_again_keeps_the_claims_of_its_agents(tmp_path: Path, engine: Engine) -> None:
    editing.add("One", root=tmp_path)
    work = Work(projects.find(tmp_path))
    state = claims.claim(by="loop-1", seconds=1, root=tmp_path)  # as the loop did that was killed
    assert state.claim is not None
    lease = state.claim.lease(state.task.id)
    work.adopt(lease)
    time.sleep(2 * engine.seconds)
    assert work.ready_for((), 1, others=True, without=()) == []
    work.release(lease, "crashed", "its agent has died")
    assert engine.held("tasks/") == frozenset()
    work.adopt(lease)
    assert engine.held("tasks/") == frozenset()
    again = work.claim(state.task.id, by="loop-2", process=os.getpid(), born=0)
    assert again is not None
    time.sleep(2 * engine.seconds)
    assert engine.held("tasks/") == {f"tasks/{state.task.id}"}


def test_a_short_command_of_an_agent_and_its_refresh_renew_its_lease_when_that_is_due(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    editing.add("One", root=tmp_path)
    state = claims.claim(by="ann", root=tmp_path)
    assert state.claim is not None
    lease = state.claim.lease(state.task.id)
    monkeypatch.setenv("RALF_LEASE", lease)
    monkeypatch.chdir(tmp_path)
    (due,) = projects.find(tmp_path).cache.glob("leases/*.due")

    def renewals() -> list[int]:
        found = []
        for sign in (keeping.touch, lambda: refresh(by="ann", root=tmp_path)):
            before = engine.renewals
            sign()
            found.append(engine.renewals - before)
            os.utime(due, (time.time() - 1, time.time() - 1))
        return found

    assert renewals() == [0, 1]
    assert renewals() == [1, 1]
    engine.is_away = True
    keeping.touch()  # it is tried again in half a minute, and nobody else waits until then
    assert due.stat().st_mtime > time.time() + 20
