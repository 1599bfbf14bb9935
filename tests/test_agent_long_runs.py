"""Runs that last: their streams stay short on the disk, whatever they store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ralf.agent import states
from ralf.agent.run import AgentRun

pytestmark = pytest.mark.ci


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures with which a short run is a long one."""
    for name, value in (("ROOM", 100_000), ("LEAST", 200_000)):
        monkeypatch.setattr(states, name, value)


def on_disk(root: Path) -> int:
    """Bytes of all files of a project, its index without what SQLite has still to move into it."""
    for index in root.rglob("index.db"):
        with closing(sqlite3.connect(index)) as db:
            db.execute("pragma wal_checkpoint(truncate)")
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


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
