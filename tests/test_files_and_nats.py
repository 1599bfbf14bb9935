"""`store: files+nats`: routes lie in files, and machines that were apart come to one history. The engine is one in
memory here; `tests/test_files_and_nats_servers.py` has real servers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.faults import apart
from tests.machines import Machine, Makes, machines
from tests.storekit import context_of, write_session

import ralf
from ralf.errors import Fenced
from ralf.maintenance.forget import forget, forget_route
from ralf.maintenance.verify import verify
from ralf.route import why as provenance
from ralf.storage.filestore import FileStore
from ralf_integrations.stores import exchange

pytestmark = pytest.mark.ci  # of what is to go

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
        assert one.memory_journal() == first.memory_journal()
        assert one.remembered() == first.remembered()
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


@pytest.mark.release(seconds=5)
@pytest.mark.parametrize("number", range(3))
def test_machines_come_to_one_history_whatever_each_did_while_it_was_apart(tmp_path: Path, number: int) -> None:
    """Nothing is lost or there twice, and no label means two things; more of it: `python -m tests.faults.apart`."""
    assert apart.play(tmp_path, number, seed=7).faults == []


@pytest.mark.release(seconds=5)
def test_the_harness_finds_labels_that_were_left_as_they_are(tmp_path: Path) -> None:
    found = (apart.play(tmp_path / str(number), number, seed=7, is_broken=True).faults for number in range(10))
    assert any("label" in dict(faults) for faults in found)


# ---- forgetting ----


def test_a_route_that_was_forgotten_here_goes_everywhere_and_what_others_recorded_since_stays(machines: Makes) -> None:
    one, two, three = machines(3)
    one.decide("tide", "We keep the old columns")
    one.decide("moon", "We keep the phases")
    agree(one, two, three)
    two.engine.away = True
    two.decide("tide", "Gauges are read twice")
    forget_route("tide", root=one.root)
    agree(one, three)
    assert [found.route for found in ralf.list_routes(root=three.root)] == ["moon"]
    assert b"old columns" not in one.engine.everything()
    two.engine.away = False
    agree(one, two, three)
    assert one.decisions("tide") == {"DEC-001": "Gauges are read twice"}
    assert "old columns" not in two.words("tide") + two.file("tide").read_text()
    for each in (one, two, three):
        assert [finding for finding in verify(root=each.root).findings if finding.damage] == []


def test_a_run_that_lies_in_files_from_before_does_not_hide_the_one_on_the_servers(machines: Makes) -> None:
    (one,) = machines(1)
    FileStore(context_of(one.root)).append("runs/r-1/main", b"{}", id="a", after=None)
    store = one.project.store
    assert store.head("runs/r-1/main") is None
    assert store.properties.files is not None
    assert not store.properties.files.path("runs/r-1/main").exists()


def test_what_is_forgotten_while_the_servers_are_away_is_forgotten_there_later(machines: Makes) -> None:
    one, two = machines(2)
    one.decide("tide", "We keep the old columns", rationale="the harbour master reads them")
    agree(one, two)
    one.engine.away = True
    forget("tide", text="the harbour master", root=one.root)
    assert b"harbour master" in one.engine.everything()
    one.engine.away = False
    agree(one, two)
    assert b"harbour master" not in one.engine.everything()
    assert "harbour master" not in two.words("tide") + two.file("tide").read_text()


def test_what_two_machines_forgot_of_one_record_is_gone_with_both(machines: Makes) -> None:
    one, two = machines(2)
    one.decide("tide", "We keep the old columns", rationale="the harbour master and the pilot station read them")
    agree(one, two)
    forget("tide", text="harbour master", root=one.root)
    forget("tide", text="pilot station", root=two.root)
    agree(one, two)
    for words in (one.words("tide"), two.file("tide").read_text(), one.engine.everything().decode()):
        assert "harbour master" not in words
        assert "pilot station" not in words
        assert "We keep the old columns" in words


# ---- servers that are away, or have lost everything ----


def test_servers_that_lost_everything_are_filled_again_from_the_files(machines: Makes) -> None:
    one, two = machines(2)
    texts = [f"Column {number} is kept" for number in range(5)]
    for text in texts:
        one.decide("tide", text)
    agree(one, two)
    one.engine.lose_everything()
    assert two.exchange().delivered == 5
    agree(one, two)
    assert list(two.decisions("tide").values()) == texts
    assert two.engine.everything().count(b'"revision":') == 5


def test_evidence_is_on_each_machine_after_an_exchange(machines: Makes) -> None:
    one, two = machines(2)
    path = one.root / "session.jsonl"
    write_session(path, 2_000)
    ralf.checkpoint("tide", path, root=one.root)
    agree(one, two)
    two.engine.away = True
    assert provenance.why("tide", "cp-001", root=two.root).evidence == "kept"


def test_what_a_person_saved_into_a_file_is_on_the_other_machine(machines: Makes) -> None:
    one, two = machines(2)
    one.decide("tide", "We keep the old columns", rationale="they are read")
    agree(one, two)
    path = one.file("tide")
    path.write_text(path.read_text().replace("they are read", "the harbour reads them"))
    agree(one, two)
    assert "the harbour reads them" in two.file("tide").read_text()


def test_both_values_are_kept_where_two_machines_changed_a_field(machines: Makes) -> None:
    one, two = machines(2)
    one.decide("tide", "We keep the old columns", rationale="they are read")
    agree(one, two)
    for machine, reason in ((one, "the harbour reads them"), (two, "the pilots read them")):
        path = machine.file("tide")
        path.write_text(path.read_text().replace("they are read", reason))
        ralf.record_decision("tide", f"It is so because {reason}", root=machine.root)
    agree(one, two)
    found = ralf.get_context("tide", root=one.root)
    assert found.decisions[0].rationale == "the pilots read them"
    assert "the harbour reads them" in str(found.unresolved)


def test_without_servers_a_run_is_fenced_and_a_route_is_not(machines: Makes) -> None:
    (one,) = machines(1)
    one.engine.away = True
    one.decide("tide", "We keep the old columns")
    found = one.exchange()
    assert (found.waiting, found.is_away) == (1, True)
    store = one.project.store
    with pytest.raises(Fenced):
        store.append("runs/r-1/main", b"{}", id="a", after=None)
    with pytest.raises(Fenced):
        list(store.read("tasks"))


def test_an_exchange_right_after_another_one_delivers_what_came_in_between(machines: Makes) -> None:
    (one,) = machines(1)
    for number in range(3):
        one.decide("tide", f"Column {number} is kept")
        found = exchange.exchange(one.project)
        assert found is not None
        assert (found.waiting, found.delivered) == (0, 1)


def test_an_attempt_that_failed_is_not_repeated_at_once(machines: Makes) -> None:
    (one,) = machines(1)
    one.engine.away = True
    one.decide("tide", "We keep the old columns")
    one.exchange()
    one.engine.away = False
    found = exchange.exchange(one.project)
    assert found is not None
    assert (found.waiting, found.delivered) == (1, 0)
    assert one.exchange().delivered == 1


# ---- a machine that dies ----


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("has_begun", [False, True])
def test_a_machine_that_dies_while_it_takes_records_in_goes_on_and_serves_what_it_has(
    machines: Makes, monkeypatch: pytest.MonkeyPatch, after: bool, has_begun: bool
) -> None:
    """Before its journal is replaced, and after that, before the file shows it; of a route that both had, or began."""
    one, two = machines(2)
    if has_begun:
        one.decide("tide", "We keep the old columns")
        agree(one, two)
    one.decide("tide", "Gauges are read twice")
    one.exchange()
    two.decide("tide", "Floats are cast to decimals", rationale="they drift")
    path = two.file("tide")
    path.write_text(path.read_text().replace("they drift", "they drift by a millimetre"))
    write_anew = FileStore.write_anew

    def dies(self: FileStore, *arguments: Any, **named: Any) -> None:
        if after:
            write_anew(self, *arguments, **named)
        os._exit(9)

    if not (child := os.fork()):
        monkeypatch.setattr(FileStore, "write_anew", dies)
        two.exchange()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    found = ralf.get_context("tide", root=two.root)
    assert (found.warnings, found.foreign) == ((), False)
    assert [item.rationale for item in found.decisions if "Floats" in item.decision] == ["they drift by a millimetre"]
    agree(one, two)
    assert sorted(one.decisions("tide").values()) == sorted(
        ["Gauges are read twice", "Floats are cast to decimals", *["We keep the old columns"] * has_begun]
    )
    assert ralf.get_context("tide", root=one.root).body.before == ""


def test_an_edit_of_a_file_whose_labels_have_changed_since_is_one_of_the_same_decision(machines: Makes) -> None:
    """The editor was open while another machine's records came in."""
    one, two = machines(2)
    one.decide("tide", "We keep the old columns", rationale="they are read")
    agree(one, two)
    one.decide("tide", "Gauges are read twice", rationale="they stick")
    one.exchange()
    two.decide("tide", "Floats are cast to decimals", rationale="they drift")
    opened = two.file("tide").read_text()
    two.exchange()
    assert "they stick" in two.file("tide").read_text()
    two.file("tide").write_text(opened.replace("they drift", "they drift by a millimetre"))
    agree(one, two)
    found = ralf.get_context("tide", root=one.root)
    assert {item.decision: item.rationale for item in found.decisions} == {
        "We keep the old columns": "they are read",
        "Gauges are read twice": "they stick",
        "Floats are cast to decimals": "they drift by a millimetre",
    }
