"""A run's states, calls, decisions and claims, as the process that holds it and the next one see them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralf.agent.model import Retry
from ralf.agent.run import AgentRun
from runskit import elsewhere

# ---- states ----


# ---- the claim ----


@pytest.mark.ci
def test_a_long_call_keeps_its_claim_longer_than_the_lease(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path, lease=2.0) as run:

        def call(_: str) -> str:
            time.sleep(2.4)
            return elsewhere(tmp_path, "print(AgentRun('r', root=root).status)")

        assert run.once("long", call) == "running"


# ---- calls that are made once ----


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
