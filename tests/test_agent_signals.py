"""Signals of a run: each once, in order, none lost by a crash; pauses that end by a signal or by time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ralf.agent.model import Signal
from ralf.agent.run import AgentRun
from ralf.agent.signals import send_signal
from ralf.errors import RunEnded
from runskit import dropped, elsewhere


def texts(run: AgentRun, name: str, most: int = 100) -> list[str]:
    """The data of all signals of a name that wait."""
    found = []
    while len(found) < most and (signal := run.wait_signal(name, 0)) is not None:
        found.append(signal.text)
    return found


@pytest.mark.ci
def test_a_waiting_run_gets_a_signal_that_another_process_sends(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        thread = threading.Thread(target=lambda: elsewhere(tmp_path, "send_signal('r', 'n', 'x', root=root)"))
        thread.start()
        signal = run.wait_signal("n", 60)
        thread.join()
        assert signal is not None
        assert signal.text == "x"


# ---- what a crash does ----


def test_outcomes_that_a_call_depends_on_come_again_in_order_time_outs_too(tmp_path: Path) -> None:
    run = AgentRun("r", root=tmp_path)
    assert run.wait_signal("n", 0) is None
    send_signal("r", "n", "1", root=tmp_path)
    assert texts(run, "n", 1) == ["1"]
    assert run.once("model", lambda _: "knows 1") == "knows 1"
    dropped(run)
    send_signal("r", "n", "2", root=tmp_path)
    again = AgentRun("r", root=tmp_path)
    assert again.wait_signal("n", 60) is None
    assert texts(again, "n") == ["1", "2"]
    assert again.once("model", lambda _: 1 / 0) == "knows 1"


# ---- pauses ----


@pytest.mark.ci
def test_a_pause_releases_the_run_and_leaves_its_state(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        run.save(b"state")
        assert run.once("k", lambda _: b"answer") == b"answer"
        run.pause("go", 3600)
        state = run.state()
        assert (state.status, state.waits_for, state.iteration) == ("paused", "go", 1)
        assert not run.is_open
        with pytest.raises(RunEnded, match="go"):
            run.save(b"")
        send_signal("r", "other", root=tmp_path)
        assert not run.is_open
    elsewhere(tmp_path, "send_signal('r', 'go', 'yes', root=root)")
    second = AgentRun("r", root=tmp_path)
    assert (second.resumed, second.load(), second.iteration) == ("signal", b"state", 1)
    dropped(second)
    with AgentRun("r", root=tmp_path) as third:
        assert isinstance(third.resumed_by, Signal)
        assert third.resumed_by.text == "yes"
        assert third.wait_signal("go", 0) is None
        assert third.once("k", lambda _: 1 / 0) == b"answer"
        third.continue_with(b"")
        assert (third.resumed, third.resumed_by) == ("", None)
