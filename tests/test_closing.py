"""When a route is closed, and what opens it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import handingkit
import ralf
import storekit
from ralf import routing
from ralf.errors import RouteNotFound, UsageError
from ralf.project import Project

ROUTE, DAY = "TASK-041", 86_400


def closed(root: Path) -> str:
    (one,) = (one for one in ralf.list_routes(root=root) if one.route == ROUTE)
    return one.closed


def written(root: Path, ago: float) -> None:
    """The journal of the route was written so many seconds ago."""
    os.utime(storekit.journal_file(root, ROUTE), (time.time() - ago,) * 2)


def done(root: Path, folder: str, ago: float) -> Path:
    """The task of the route was closed so many seconds ago."""
    path = root / ".autonomous" / "tasks" / folder / f"{ROUTE}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# Move the tide table\n")
    os.utime(path, (time.time() - ago,) * 2)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    handingkit.project(tmp_path)
    ralf.record_decision(ROUTE, "Use SQLite", root=tmp_path)
    return tmp_path


def test_a_route_that_somebody_closes_is_closed_until_its_next_record(root: Path) -> None:
    assert closed(root) == ""
    ralf.close_route(ROUTE, root=root)
    assert closed(root) == "closed"
    ralf.record_decision(ROUTE, "Use WAL", root=root)
    assert closed(root) == ""
    with pytest.raises(RouteNotFound):
        ralf.close_route("unknown", root=root)


def test_a_route_without_a_record_for_thirty_days_is_closed_until_its_next_one(root: Path) -> None:
    written(root, 29 * DAY)
    assert closed(root) == ""
    written(root, 31 * DAY)
    assert closed(root) == "30 days"
    ralf.record_decision(ROUTE, "Use WAL", root=root)
    assert closed(root) == ""


@pytest.mark.parametrize("folder", ["completed", "cancelled"])
def test_a_route_whose_task_is_done_is_closed_and_the_end_of_its_session_does_not_open_it(
    root: Path, folder: str
) -> None:
    written(root, 3 * DAY)
    done(root, folder, 60)
    assert closed(root) == "task done"
    log = handingkit.kept(root, "old")
    handingkit.log(log, "old", ("user", "Move the tide table from CSV to SQLite."), ("says", "Done: it is moved."))
    ralf.checkpoint(ROUTE, log, root=root)
    assert closed(root) == "task done"
    ralf.record_decision(ROUTE, "Use WAL after all", root=root)
    assert closed(root) == ""


@pytest.mark.parametrize("typed", ["TASK-01", "TASK-1", "task-0001", "TASK-0O1", "TASK-00l", "TSK-001", "TASK-0011"])
def test_a_name_with_the_same_number_written_otherwise_is_refused(root: Path, typed: str) -> None:
    ralf.record_decision("TASK-001", "Use SQLite", root=root)
    with pytest.raises(UsageError, match="did you mean TASK-001"):
        routing.check_typed(Project(root), typed)
