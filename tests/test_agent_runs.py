"""A run's states, calls, decisions and claims, as the process that holds it and the next one see them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ralf
from ralf import api, project as projects
from ralf.agent.async_run import AsyncAgentRun
from ralf.agent.listing import cancel_run, forget_run, get_run, list_runs, retry_run
from ralf.agent.output import tail
from ralf.agent.run import AgentRun
from ralf.agent.signals import send_signal
from ralf.errors import Claimed, RunEnded, RunNotFound, UsageError
from runskit import elsewhere
from storekit import HANGS

# ---- decisions ----


@pytest.mark.ci
def test_a_delay_goes_on_in_another_process_when_its_time_has_come(tmp_path: Path) -> None:
    elsewhere(tmp_path, "run = AgentRun('r', root=root, loop_delay=1.0); run.continue_with(b'x'); die()")
    with AgentRun("r", root=tmp_path) as run:
        state = run.state()
        assert state.status == "waiting"
        assert not run.is_open
        while not run.is_open:
            time.sleep(0.02)
        assert datetime.now(UTC) >= datetime.fromisoformat(state.not_before)
        assert (run.iteration, run.input) == (2, b"x")


def test_a_reason_is_one_line_without_secrets(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    with AgentRun("r", root=tmp_path) as run:
        run.fail_for_good(f"bad\ntoken: {secret} " + "x" * 5_000)
        reason = run.state().reason
    assert "\n" not in reason
    assert secret not in reason
    assert len(reason) <= 500


# ---- the output of a step ----


def test_what_was_streamed_is_durable_before_the_next_record(tmp_path: Path) -> None:
    count = 0
    with AgentRun("r", root=tmp_path) as run:
        for act in (
            lambda: run.save(b""),
            lambda: run.once("k", lambda _: 1),
            lambda: run.external("x", b"y"),
            lambda: run.continue_with(b""),
            lambda: run.complete(b""),
        ):
            run.stream(b"a")
            run.stream(b"b")
            act()
            count += 1
            assert b"".join(tail("r", root=tmp_path)) == b"ab" * count


# ---- runs as those see them who do not hold them ----


@pytest.mark.ci
def test_a_list_has_each_status_and_no_content(tmp_path: Path) -> None:
    AgentRun("completed", root=tmp_path).complete(b"secret result")
    AgentRun("failed", root=tmp_path).fail_for_good("why")
    AgentRun("dead", root=tmp_path).give_up("used up")
    AgentRun("paused", root=tmp_path).pause("go", 60)
    AgentRun("waiting", root=tmp_path).continue_with(b"", delay=60)
    AgentRun("cancelled", root=tmp_path).fail("x")
    cancel_run("cancelled", reason="enough", root=tmp_path)
    elsewhere(tmp_path, "AgentRun('lost', root=root).save(b'secret state'); die()")
    with AgentRun("running", root=tmp_path, by="me") as run:
        run.save(b"secret state")
        found = list_runs(root=tmp_path)
        assert {one.run for one in found.runs} == {one.status for one in found.runs}
        assert len(found.runs) == 8
        assert [one.run for one in list_runs(status="paused", root=tmp_path).runs] == ["paused"]
        assert found.counts == list_runs(status="paused", root=tmp_path).counts
        state = get_run("running", root=tmp_path)
        assert (state.by, state.states, state.size, state.ended) == ("me", 1, 12, False)
        assert (get_run("cancelled", root=tmp_path).reason, get_run("dead", root=tmp_path).ended) == ("enough", True)
    assert "secret" not in repr(found)
    with pytest.raises(UsageError):
        list_runs(status="x", root=tmp_path)


def test_a_retry_reopens_what_ended_badly_and_lets_go_on_what_waits(tmp_path: Path) -> None:
    for name, act in {
        "failed": lambda run: run.fail_for_good("x"),
        "dead": lambda run: run.give_up("x"),
        "paused": lambda run: run.pause("go", 60),
        "waiting": lambda run: run.fail("x", retry_after=60),
    }.items():
        run = AgentRun(name, root=tmp_path)
        run.save(b"state")
        act(run)  # type: ignore[no-untyped-call]
        assert not run.is_open
        state = retry_run(name, root=tmp_path)
        assert (state.status, state.attempt, state.not_before, state.reason) == ("waiting", 1, "", "")
        assert run.is_open
        assert run.load() == b"state"
        assert run.resumed == ("retried" if name == "paused" else "")
        with pytest.raises(Claimed):
            retry_run(name, root=tmp_path)
        run.complete()
        with pytest.raises(RunEnded):
            retry_run(name, root=tmp_path)
        with pytest.raises(RunEnded):
            cancel_run(name, root=tmp_path)


# ---- calls within calls, threads, event loops ----


def test_coroutines_of_two_loops_and_a_thread_make_a_call_once(tmp_path: Path) -> None:
    run = AgentRun("r", root=tmp_path)
    shared = AsyncAgentRun.over(run)
    calls: list[int] = []
    answers: list[object] = []

    async def model(_: str) -> int:
        calls.append(1)
        await asyncio.sleep(0.2)
        return 7

    def loop() -> None:
        async def work() -> list[Any]:
            return await asyncio.gather(shared.once("k", model), shared.once("k", model))

        answers.extend(asyncio.run(work()))

    def plain() -> None:
        answers.append(run.once("k", lambda _: calls.append(1) or time.sleep(0.2) or 7))  # type: ignore[func-returns-value]

    threads = [threading.Thread(target=work, daemon=True) for work in (loop, loop, plain)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS)
    assert (len(calls), answers) == (1, [7] * 5)
    run.close()


def test_a_coroutine_s_call_within_itself_is_refused_and_a_cancelled_one_leaves_the_key_free(tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncAgentRun("r", root=tmp_path) as run:

            async def inner(_: str) -> Any:
                return await run.once("k", lambda _: 1)

            with pytest.raises(UsageError):
                await asyncio.wait_for(run.once("k", inner), HANGS)

            async def slow(_: str) -> None:
                await asyncio.sleep(HANGS)

            task = asyncio.create_task(run.once("k", slow))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.wait_for(run.once("k", lambda _: 3), HANGS) == 3

    asyncio.run(work())


# ---- agent forget ----


WORDS = "the badger sleeps behind the mill"


def holding(root: Path, words: str) -> list[str]:
    """The files below the project in which words stand, compressed ones aside."""
    return [
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and words.encode() in path.read_bytes()
    ]


@pytest.mark.ci(seconds=3)
def test_a_run_that_holds_forgotten_words_is_dropped_and_no_other_one(tmp_path: Path) -> None:
    ralf.record_decision("route-1", "Use the mill", root=tmp_path)
    binary, large = b"\xff\x00" + WORDS.encode() + b"\x80tail", os.urandom(300_000) + WORDS.encode()

    def streamed(run: AgentRun) -> None:
        for piece in (WORDS[:9], WORDS[9:20], WORDS[20:] + "!"):
            run.stream(piece.encode())
            time.sleep(0.06)

    for name, hold in {
        "bytes": lambda run: run.save(binary),
        "large": lambda run: run.external("tool", large),
        "answer": lambda run: run.once("k", lambda _: WORDS),
        "output": streamed,
        "other": lambda run: run.save(b"the badger"),
    }.items():
        with AgentRun(name, root=tmp_path) as run:
            hold(run)
    send_signal("other", "n", b"wake", root=tmp_path)
    looked = api.forget("route-1", text=WORDS, dry_run=True, root=tmp_path)
    assert {"runs/bytes/main", "runs/large/main", "runs/answer/main", "output/output/main"} <= set(looked.records)
    report = api.forget("route-1", text=WORDS, root=tmp_path)
    assert report.left == ()
    assert [one.run for one in list_runs(root=tmp_path).runs] == ["other"]
    assert holding(tmp_path, "badger sleeps") == []
    assert api.verify(root=tmp_path).findings == ()


@pytest.mark.ci
def test_nothing_is_forgotten_while_a_process_holds_a_run_that_has_the_words(tmp_path: Path) -> None:
    ralf.record_decision("route-1", f"Say that {WORDS}", root=tmp_path)
    with AgentRun("r", root=tmp_path) as run:
        run.save(WORDS.encode())
        with pytest.raises(Claimed):
            api.forget("route-1", text=WORDS, root=tmp_path)
        assert run.load() == WORDS.encode()
    assert api.forget("route-1", text=WORDS, root=tmp_path).left == ()


def test_contents_stand_in_no_brief_search_listing_message_or_cache(tmp_path: Path) -> None:
    ralf.record_decision("route-1", "Use the mill", root=tmp_path)
    with AgentRun("r", root=tmp_path, input=WORDS.encode()) as run:
        run.save(WORDS.encode())
        run.stream(WORDS.encode())
        run.external("tool", WORDS.encode())
        send_signal("r", "n", WORDS, root=tmp_path)
        for act in (lambda: run.load(9), lambda: run.fetch("no"), lambda: run.once("k", lambda _: {WORDS})):
            with pytest.raises(Exception, match="r") as raised:
                act()
            assert WORDS not in str(raised.value)
        assert WORDS not in repr(run.wait_signal("n", 0))
        run.complete(WORDS.encode())
    assert not any("badger" in hit.text for hit in ralf.search(WORDS, root=tmp_path))
    assert WORDS not in ralf.get_context("route-1", root=tmp_path).render()
    assert WORDS not in repr(list_runs(root=tmp_path))
    found = holding(tmp_path, WORDS)
    assert all(".autonomous/context/journal/" in path for path in found)
    assert api.verify(root=tmp_path).findings == ()


# ---- a whole run ----


def test_a_forgotten_run_leaves_nothing_but_blobs_that_others_name(tmp_path: Path) -> None:
    shared, own = os.urandom(300_000), os.urandom(300_000)
    for name in ("r", "s"):
        with AgentRun(name, root=tmp_path) as run:
            run.save(shared)
            run.stream(WORDS.encode())
            send_signal(name, "n", WORDS, root=tmp_path)
    with AgentRun("r", "second", root=tmp_path) as run:
        run.external("tool", own)
    store = projects.find(tmp_path).store
    assert len(list(store.blobs())) == 2
    assert forget_run("r", root=tmp_path) > 5
    assert len(list(store.blobs())) == 1
    assert list(projects.find(tmp_path).store.streams("")) != []
    assert not any("/r" in stream for stream in projects.find(tmp_path).store.streams(""))
    with AgentRun("s", root=tmp_path) as run:
        assert run.load() == shared
    with pytest.raises(RunNotFound, match="closest: s"):
        forget_run("ss", root=tmp_path)
    with AgentRun("r", root=tmp_path) as run:
        assert run.load() is None
        assert run.wait_signal("n", 0) is None
    assert api.verify(root=tmp_path).findings == ()


# ---- old contents ----


@pytest.mark.ci
def test_records_that_a_clone_brought_are_not_believed(tmp_path: Path) -> None:
    """Another user's store, copied here: its run does not exist, and its state is never loaded."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for folder in (theirs, ours):
        folder.mkdir()
    with AgentRun("mine", root=ours) as run:
        run.save(b"ours")
    code = (
        "run = AgentRun('r', root=root); run.save(b'pickle'); send_signal('r', 'n', 'x', root=root); run.stream(b'y')"
    )
    home = os.environ["XDG_CONFIG_HOME"]
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path / "home")
    try:
        elsewhere(theirs, code)
    finally:
        os.environ["XDG_CONFIG_HOME"] = home
    for stream in ("runs/r/main", "signals/r", "output/r/main"):
        target = ours / ".autonomous" / "context" / "journal" / f"{stream}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((theirs / ".autonomous" / "context" / "journal" / f"{stream}.jsonl").read_bytes())
    assert [one.run for one in list_runs(root=ours).runs] == ["mine"]
    with pytest.raises(UsageError, match="not written by your ralf"), AgentRun("r", root=ours) as run:
        run.save(b"own")
