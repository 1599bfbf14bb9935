"""`store: files+nats`: routes lie in files, and machines that were apart come to one history. The engine is one in
memory here; `tests/test_files_and_nats_servers.py` has real servers.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults import apart
from tests.machines import Machine, Makes, machines

import ralf

__all__ = ["machines"]


def agree(*all_: Machine) -> None:
    """Exchange until nothing is left, and hold the machines to one another."""
    for _ in range(3):
        for one in all_:
            found = one.exchange()
            assert found.problem == ""
    first = all_[0]
    names = sorted(one.route for one in ralf.list_routes(root=first.root))
    for one in all_:
        assert one.exchange().waiting == 0
        assert sorted(each.route for each in ralf.list_routes(root=one.root)) == names
        for route in names:
            assert one.journal(route) == first.journal(route)
            assert one.file(route).read_bytes() == first.file(route).read_bytes()


def test_another_machine_has_what_was_recorded_here(machines: Makes) -> None:
    one, two = machines(2)
    one.decide("tide", "We keep the old columns")
    assert one.exchange().delivered == 1
    assert two.exchange().taken_in == 1
    assert two.decisions("tide") == {"DEC-001": "We keep the old columns"}
    agree(one, two)


def test_what_two_machines_recorded_while_they_were_apart_is_all_there_once(machines: Makes) -> None:
    one, two = machines(2)
    one.decide("tide", "We keep the old columns")
    agree(one, two)
    one.decide("tide", "Gauges are read twice")
    two.decide("tide", "Floats are cast to decimals")
    two.decide("tide", "No column is renamed", supersedes="DEC-002")
    agree(one, two)
    assert one.decisions("tide") == {
        "DEC-001": "We keep the old columns",
        "DEC-002": "Gauges are read twice",
        "DEC-003": "Floats are cast to decimals",
        "DEC-004": "No column is renamed",
    }
    superseded = ralf.get_context("tide", root=one.root).decisions[2]
    assert (superseded.status, superseded.superseded_by) == ("superseded", "DEC-004")


@pytest.mark.parametrize("number", range(3))
def test_machines_come_to_one_history_whatever_each_did_while_it_was_apart(tmp_path: Path, number: int) -> None:
    """Nothing is lost or there twice, and no label means two things; more of it: `python -m tests.faults.apart`."""
    assert apart.play(tmp_path, number, seed=7).faults == []
