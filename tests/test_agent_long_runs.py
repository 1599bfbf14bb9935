"""Runs that last: their streams stay short on the disk, whatever they store and however they end their iterations."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from ralf import api
from ralf.agent import states
from ralf.agent.run import AgentRun

pytestmark = pytest.mark.ci


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures with which a short run is a long one."""
    for module, name, value in (
        (states, "ROOM", 100_000),
        (states, "LEAST", 200_000),
    ):
        monkeypatch.setattr(module, name, value)


def on_disk(root: Path) -> int:
    """Bytes of all files of a project, its index without what SQLite has still to move into it."""
    for index in root.rglob("index.db"):
        with closing(sqlite3.connect(index)) as db:
            db.execute("pragma wal_checkpoint(truncate)")
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
