"""A run's states, calls, decisions and claims, as the process that holds it and the next one see them."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ralf.agent.model import Retry
from ralf.agent.run import AgentRun
from ralf.errors import (
    Claimed,
    NotFound,
    UnknownAnswer,
)
from runskit import dropped, elsewhere, started

TEXT = 'a "text" \\ of\ttwo\r\nlines, \u2028 öé \x00\x1b \U0001f600'.encode()


# ---- states ----


@pytest.mark.parametrize(
    "state",
    [
        b"",
        bytes(range(256)),
        os.urandom(400_000),
    ],
)
def test_a_state_comes_back_byte_for_byte_in_the_next_process_whatever_its_bytes_and_its_size(
    tmp_path: Path, state: bytes
) -> None:
    with AgentRun("r", root=tmp_path) as run:
        assert run.load() is None
        assert run.save(state) == 1
        assert run.load() == state
    with AgentRun("r", root=tmp_path) as again:
        assert again.load() == state
        assert again.save(state + b"2") == 2


def test_files_of_runs_are_for_their_user_alone(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        run.save(b"x" * 300_000)
        run.stream(b"y")
    for top in ("journal", "blobs", "locks"):
        for path in (tmp_path / ".autonomous" / "context" / top).rglob("*"):
            assert path.stat().st_mode & 0o077 == 0, path


# ---- the claim ----


@pytest.mark.ci
def test_a_live_holder_is_named_and_keeps_its_run(tmp_path: Path) -> None:
    code = "run = AgentRun('r', root=root, by='worker-1'); run.save(b'mine'); print('ready', flush=True); input()\n"
    with started(tmp_path, code) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with AgentRun("r", root=tmp_path) as run:
            assert run.status == "running"
            with pytest.raises(Claimed, match="worker-1"):
                run.load()
            with pytest.raises(Claimed):
                _ = run.is_open
        process.kill()
    with AgentRun("r", root=tmp_path) as run:
        assert run.status == "lost"
        assert run.load() == b"mine"
        assert run.term == 2
        assert run.state().losses == 1


@pytest.mark.ci
def test_a_long_call_keeps_its_claim_longer_than_the_lease(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path, lease=2.0) as run:

        def call(_: str) -> str:
            time.sleep(2.4)
            return elsewhere(tmp_path, "print(AgentRun('r', root=root).status)")

        assert run.once("long", call) == "running"


# ---- calls that are made once ----


def test_an_answered_call_is_never_made_again_in_its_iteration(tmp_path: Path) -> None:
    calls: list[str] = []

    def call(key: str) -> dict[str, Any]:
        calls.append(key)
        return {"text": "ö", "tuple": (1, 2), 3: None}

    wanted = {"text": "ö", "tuple": [1, 2], "3": None}
    run = AgentRun("r", root=tmp_path)
    assert run.once("model", call) == run.once("model", call) == wanted
    dropped(run)
    with AgentRun("r", root=tmp_path) as again:
        assert again.once("model", call) == wanted
        assert len(calls) == 1
        again.continue_with(b"")
        assert again.once("model", call) == wanted
        assert len(set(calls)) == 2


def test_what_a_call_raises_comes_through_and_it_is_repeated_with_the_same_idempotency_key(tmp_path: Path) -> None:
    keys: list[str] = []

    def fails(key: str) -> None:
        keys.append(key)
        raise ConnectionError

    with AgentRun("r", root=tmp_path) as run:
        for _ in range(2):
            with pytest.raises(ConnectionError):
                run.once("k", fails)
        assert run.once("k", lambda key: key) == keys[0] == keys[1]
        assert (run.state().calls, run.state().repeats) == (1, 2)


@pytest.mark.ci
def test_a_call_without_an_answer_is_stopped_or_looked_up_where_that_is_wanted(tmp_path: Path) -> None:
    elsewhere(tmp_path, "AgentRun('r', root=root).once('k', lambda key: die())")
    with AgentRun("r", root=tmp_path, unknown="stop") as run:
        with pytest.raises(UnknownAnswer) as raised:
            run.once("k", lambda _: 1 / 0)
        wanted = raised.value.idempotency_key
        assert run.once("k", lambda _: 1 / 0, unknown=lambda key: {wanted: b"found"}[key]) == b"found"
        assert run.once("k", lambda _: 1 / 0) == b"found"
        assert run.state().repeats == 0
    elsewhere(tmp_path, "AgentRun('s', root=root).once('k', lambda key: die())")
    with AgentRun("s", root=tmp_path, unknown=lambda _: None) as run:
        assert run.once("k", lambda _: "made again") == "made again"
        assert run.state().repeats == 1


def test_calls_of_several_threads_are_made_at_the_same_time_and_each_once(tmp_path: Path) -> None:
    barrier, made, found = threading.Barrier(4), list[str](), list[str]()
    with AgentRun("r", root=tmp_path) as run:

        def call(name: str) -> None:
            def answer(_: str) -> str:
                barrier.wait(30)
                made.append(name)
                return name

            found.append(run.once(name, answer))

        threads = [threading.Thread(target=call, args=(f"tool-{number % 4}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(made) == [f"tool-{number}" for number in range(4)]
    assert sorted(found) == sorted(2 * made)


# ---- decisions ----


def test_a_failure_keeps_state_answers_and_iteration_and_counts(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        run.save(b"state")
        run.once("k", lambda _: b"answer")
        run.fail("ValueError in line 3")
        assert run.is_open
        assert (run.iteration, run.attempt, run.load()) == (1, 2, b"state")
        assert run.once("k", lambda _: 1 / 0) == b"answer"
        run.fail_for_good("no way")
        assert (run.status, run.state().reason, run.is_open) == ("failed", "no way", False)


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


@pytest.mark.parametrize(
    ("retry", "delays"),
    [
        (Retry(initial=1, maximum=5, multiplier=2), [1, 2, 4, 5, 5]),
        (Retry("linear", initial=2, maximum=7), [2, 4, 6, 7, 7]),
        (Retry("fixed", initial=3, maximum=9), [3, 3, 3, 3, 3]),
    ],
)
def test_delays_grow_as_their_kind_says_up_to_the_maximum(retry: Retry, delays: list[float]) -> None:
    assert [retry.delay(attempt) for attempt in range(1, 6)] == delays
    assert retry.delay(100_000) == max(delays)


def test_a_reason_is_one_line_without_secrets(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    with AgentRun("r", root=tmp_path) as run:
        run.fail_for_good(f"bad\ntoken: {secret} " + "x" * 5_000)
        reason = run.state().reason
    assert "\n" not in reason
    assert secret not in reason
    assert len(reason) <= 500


# ---- stored results ----


def test_a_large_result_is_stored_once_and_fetched_by_its_reference(tmp_path: Path) -> None:
    blob = os.urandom(300_000)
    with AgentRun("r", root=tmp_path) as run:
        line = run.external("tool/call 1", blob)
        assert line == "[Result stored at r/tool/call 1, 300000 bytes]"
        records = run.state()
        assert run.external("tool/call 1", blob) == line
        assert run.state() == records
        run.external("other", b"small")
        assert run.external("tool/call 1", b"new") == "[Result stored at r/tool/call 1, 3 bytes]"
        assert (run.fetch(line), run.fetch("other")) == (b"new", b"small")
    again = AgentRun("r", root=tmp_path)
    assert again.fetch("tool/call 1") == b"new"
    assert again.term == 0
    with pytest.raises(NotFound):
        again.fetch("nothing")


# ---- many processes ----
