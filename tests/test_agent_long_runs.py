"""Runs that last: their streams stay short on the disk, whatever they store and however they end their iterations."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ralf import api, project as projects
from ralf.agent import records, states
from ralf.agent.output import tail
from ralf.agent.run import AgentRun
from ralf.agent.signals import send_signal
from ralf.storage import journal
from runskit import elsewhere

pytestmark = pytest.mark.ci


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures with which a short run is a long one."""
    for module, name, value in (
        (states, "ROOM", 100_000),
        (states, "LEAST", 200_000),
        (states, "MOST", 1_000_000),
        (states, "_OFTEN", 16),
        (states, "LONG", 100_000),
        (journal, "LONG", 100_000),
    ):
        monkeypatch.setattr(module, name, value)


def live(root: Path, stream: str) -> int:
    """Bytes of a stream that are not archived."""
    found = projects.find(root).store.properties.files
    assert found is not None
    return found.path(stream).stat().st_size


def on_disk(root: Path) -> int:
    """Bytes of all files of a project."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def test_a_run_stays_short_whose_iterations_release_the_claim_and_save_no_state(tmp_path: Path) -> None:
    for number in range(120):
        with AgentRun("r", root=tmp_path, loop_delay=0.001) as run:
            run.once("k", lambda _, number=number: os.urandom(8_000).hex() + str(number))  # type: ignore[misc]
            run.continue_with(os.urandom(8_000))
        time.sleep(0.002)
    assert on_disk(tmp_path) < 1_200_000
    with AgentRun("r", root=tmp_path) as run:
        assert run.iteration == 121
        assert len(run.input) == 8_000
    assert api.verify(root=tmp_path).findings == ()


def test_records_without_contents_are_archived_too_and_the_next_process_continues(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        run.save(b"first")
        for number in range(400):
            run.once("k", lambda _: "x")
            run.continue_with(b"%d" % number, state=b"state %d" % number)
        assert live(tmp_path, run._log.stream) < 150_000
        assert [one.number for one in run.states()] == list(range(1, 402))
        assert run.load(400) == b"state 398"
    told = elsewhere(tmp_path, "run = AgentRun('r', root=root)\nprint(run.iteration, run.input, run.load())\n")
    assert told == "401 b'399' b'state 399'"
    assert api.verify(root=tmp_path).findings == ()


def test_results_that_replace_others_make_room_and_the_newest_of_each_key_stays(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        for number in range(60):
            run.external("page", b"%d" % number * 10_000)
            run.external(f"other-{number}", b"%d" % number)
            run.continue_with()
    assert on_disk(tmp_path) < 900_000
    run = AgentRun("r", root=tmp_path)
    assert run.fetch("page") == b"59" * 10_000
    assert [run.fetch(f"other-{number}") for number in range(60)] == [b"%d" % number for number in range(60)]


def test_output_and_signals_are_archived_as_they_grow_and_read_from_the_beginning(tmp_path: Path) -> None:
    with AgentRun("r", root=tmp_path) as run:
        for number in range(100):
            run.stream(b"%05d" % number + b"x" * 9_995)
            run._hold.output.flush(whole=True)
            send_signal("r", "n", b"%d" % number * 2_000, root=tmp_path)
        assert live(tmp_path, records.output_of("r", "main")) < 150_000
        assert live(tmp_path, records.inbox_of("r")) < 150_000
        assert [piece[:5] for piece in tail("r", root=tmp_path)] == [b"%05d" % number for number in range(100)]
        heard = [run.wait_signal("n", 0) for _ in range(101)]
    assert [one.data for one in heard if one is not None] == [b"%d" % number * 2_000 for number in range(100)]
    assert api.verify(root=tmp_path).findings == ()
