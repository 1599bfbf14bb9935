"""Signals of a run: each once, in order, none lost by a crash; pauses that end by a signal or by time."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ralf.agent import signals
from ralf.agent.model import Signal
from ralf.agent.run import AgentRun
from ralf.agent.signals import send_signal
from ralf.errors import RunEnded, UsageError
from runskit import dropped, elsewhere


def texts(run: AgentRun, name: str, most: int = 100) -> list[str]:
    """The data of all signals of a name that wait."""
    found = []
    while len(found) < most and (signal := run.wait_signal(name, 0)) is not None:
        found.append(signal.text)
    return found


def test_n_signals_are_received_n_times_in_order_and_then_none(tmp_path: Path) -> None:
    for number in range(5):
        send_signal("r", "feedback", f"{number}", by="me", root=tmp_path)
    with AgentRun("r", root=tmp_path) as run:
        first = run.wait_signal("feedback", 0)
        assert first is not None
        assert (first.name, first.text, first.by) == ("feedback", "0", "me")
        assert texts(run, "feedback") == ["1", "2", "3", "4"]
        run.save(b"")
        assert (run.state().signals, run.state().heard) == (5, 5)


@pytest.mark.parametrize("data", [b"", b"\xff\x00", b"z" * 300_000, "ü\n".encode()])
def test_the_data_of_a_signal_are_any_bytes(tmp_path: Path, data: bytes) -> None:
    sent = send_signal("r", "n", data, root=tmp_path)
    with AgentRun("r", root=tmp_path) as run:
        assert run.wait_signal("n", 0) == sent
        assert sent.data == data


def test_names_do_not_hinder_each_other(tmp_path: Path) -> None:
    for name in "abab":
        send_signal("r", name, name, root=tmp_path)
    run = AgentRun("r", root=tmp_path)
    assert texts(run, "b") == ["b", "b"]
    run.save(b"")
    dropped(run)
    send_signal("r", "b", "new", root=tmp_path)
    with AgentRun("r", root=tmp_path) as again:
        assert texts(again, "b") == ["new"]
        assert texts(again, "a") == ["a", "a"]
        assert texts(again, "never") == []


def test_a_time_out_is_a_normal_answer_and_takes_about_as_long_as_was_asked(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        begin = time.monotonic()
        assert run.wait_signal("n", 0.2) is None
        assert time.monotonic() - begin >= 0.2


@pytest.mark.ci
def test_a_waiting_run_gets_a_signal_that_another_process_sends(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        thread = threading.Thread(target=lambda: elsewhere(tmp_path, "send_signal('r', 'n', 'x', root=root)"))
        thread.start()
        signal = run.wait_signal("n", 60)
        thread.join()
        assert signal is not None
        assert signal.text == "x"


def test_the_same_id_is_sent_once_and_the_first_signal_returned(tmp_path: Path) -> None:
    first = send_signal("r", "n", "one", id="id 1", root=tmp_path)
    send_signal("r", "n", "two", root=tmp_path)
    assert send_signal("r", "n", "other", id="id 1", root=tmp_path) == first
    with AgentRun("r", root=tmp_path) as run:
        assert texts(run, "n") == ["one", "two"]


@pytest.mark.parametrize("given", [{"name": "a/b"}, {"id": ""}, {"id": "x" * 151}, {"id": "\n"}, {"run": ".."}])
def test_refused_names_and_ids_are_named(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="refused"):
        send_signal(**{"run": "r", "name": "n", "root": tmp_path, **given})


@pytest.mark.release(seconds=10)
def test_signals_of_many_senders_arrive_each_once_and_each_senders_in_order(tmp_path: Path) -> None:
    code = "for number in range(50): send_signal('r', 'n', f'{sys.argv[0]}{os.getpid()}:{number}', root=root)"
    threads = [threading.Thread(target=elsewhere, args=(tmp_path, code)) for _ in range(4)]
    for thread in threads:
        thread.start()
    found: list[str] = []
    with AgentRun("r", root=tmp_path) as run:
        while len(found) < 200:
            signal = run.wait_signal("n", 60)
            assert signal is not None
            found.append(signal.text)
        assert run.wait_signal("n", 0.2) is None
    for thread in threads:
        thread.join()
    assert len(set(found)) == 200
    for sender in {one.rpartition(":")[0] for one in found}:
        numbers = [int(one.rpartition(":")[2]) for one in found if one.rpartition(":")[0] == sender]
        assert numbers == list(range(50))


# ---- what a crash does ----


def test_a_signal_that_no_record_depends_on_is_received_again_after_a_crash(tmp_path: Path) -> None:
    send_signal("r", "n", "1", root=tmp_path)
    run = AgentRun("r", root=tmp_path)
    run.save(b"")
    assert texts(run, "n") == ["1"]
    dropped(run)
    assert texts(AgentRun("r", root=tmp_path), "n") == ["1"]


def test_what_a_saved_state_covers_is_not_received_again(tmp_path: Path) -> None:
    send_signal("r", "n", "1", root=tmp_path)
    run = AgentRun("r", root=tmp_path)
    assert texts(run, "n") == ["1"]
    run.save(b"knows 1")
    dropped(run)
    assert texts(AgentRun("r", root=tmp_path), "n") == []


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


def test_a_signal_that_is_to_come_again_is_not_covered_by_a_state_saved_before(tmp_path: Path) -> None:
    send_signal("r", "n", "1", root=tmp_path)
    run = AgentRun("r", root=tmp_path)
    assert texts(run, "n", 1) == ["1"]
    run.once("model", lambda _: "knows 1")
    dropped(run)
    second = AgentRun("r", root=tmp_path)
    second.save(b"knows nothing")
    dropped(second)
    third = AgentRun("r", root=tmp_path)
    third.continue_with(b"", state=b"knows nothing")
    assert texts(third, "n") == ["1"]
    third.save(b"knows 1")
    dropped(third)
    assert texts(AgentRun("r", root=tmp_path), "n") == []


def test_a_failed_attempt_hears_the_same_again(tmp_path: Path) -> None:
    send_signal("r", "n", "1", root=tmp_path)
    with AgentRun("r", root=tmp_path) as run:
        assert texts(run, "n") == ["1"]
        run.fail("no")
        assert texts(run, "n") == ["1"]
        run.continue_with(b"")
        assert texts(run, "n") == []


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


def test_signals_that_are_sent_while_the_inbox_is_read_are_received_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come between the look at the inbox's end and its reading."""
    read, left = signals.sent_to, ["b", "a"]

    def reading(*arguments: Any) -> Any:
        while left:
            send_signal("r", left.pop(0), root=tmp_path)
        return read(*arguments)

    send_signal("r", "a", root=tmp_path)
    monkeypatch.setattr(signals, "sent_to", reading)
    with AgentRun("r", root=tmp_path) as run:
        assert [run.wait_signal(name, 0) is not None for name in "abbaab"] == [True, True, False, True, False, False]


def test_every_step_hears_every_signal(tmp_path: Path) -> None:
    send_signal("r", "n", "x", root=tmp_path)
    for step in ("one", "two"):
        with AgentRun("r", step, root=tmp_path) as run:
            assert texts(run, "n") == ["x"]
            run.save(b"")
