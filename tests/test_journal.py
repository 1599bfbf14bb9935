"""A route's journal: records go in and come out as they are, and what is no record is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from contexts import mapping, quick, text
from ralf import journal
from ralf.errors import Conflict, DamagedJournal
from ralf.filestore import FileStore
from ralf.journal import Record

ROUTE = "TASK-001"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


@given(payloads=st.lists(st.tuples(text, mapping), min_size=1, max_size=3))
@settings(quick, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_come_back_as_they_were(store: FileStore, payloads: list[tuple[str, dict[str, object]]]) -> None:
    before = list(journal.read(store, ROUTE))
    head = before[-1][0] if before else None
    written = []
    for number, (kind, payload) in enumerate(payloads, start=len(before) + 1):
        written.append(Record(number, kind, payload, "digest" * (number % 2)))
        head = journal.append(store, ROUTE, written[-1], id=f"{number}", after=head)
    found = list(journal.read(store, ROUTE))
    assert [record for _, record in found[len(before) :]] == written
    assert found[-1][0] == head


def test_a_record_is_one_line_that_any_tool_can_read(store: FileStore, tmp_path: Path) -> None:
    journal.append(store, ROUTE, Record(7, "edit", {"a": "two\nlines \u00e9"}, "d"), id="x", after=None)
    (line,) = (tmp_path / "journal" / "routes" / f"{ROUTE}.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["record"] == {
        "v": 1,
        "revision": 7,
        "parent": 6,
        "kind": "edit",
        "payload": {"a": "two\nlines \u00e9"},
        "render": "d",
    }
    assert "\u00e9" in line


def test_reading_goes_on_after_a_place(store: FileStore) -> None:
    head = None
    for number in range(1, 5):
        head = journal.append(store, ROUTE, Record(number, "x"), id=f"{number}", after=head)
    tokens = [token for token, _ in journal.read(store, ROUTE)]
    assert [record.revision for _, record in journal.read(store, ROUTE, after=tokens[1])] == [3, 4]


def test_of_two_writers_of_the_same_revision_one_is_told(store: FileStore) -> None:
    journal.append(store, ROUTE, Record(1, "x"), id="a", after=None)
    with pytest.raises(Conflict):
        journal.append(store, ROUTE, Record(1, "x"), id="b", after=None)
    assert [record.revision for _, record in journal.read(store, ROUTE)] == [1]


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[]",
        "5",
        '{"revision":"x","kind":"y","payload":{}}',
        '{"revision":1,"kind":"y","payload":5}',
        "{not json}",
    ],
)
def test_a_line_that_is_no_record_of_a_route_is_said_with_its_id(store: FileStore, line: str) -> None:
    head = journal.append(store, ROUTE, Record(1, "x"), id="first", after=None)
    store.append(journal.stream_of(ROUTE), line.encode(), id="the odd one", after=head)
    seen = []
    with pytest.raises(DamagedJournal, match="the odd one") as error:
        seen.extend(record.revision for _, record in journal.read(store, ROUTE))
    assert seen == [1]
    assert error.value.exit_status == 4


def test_keys_that_a_later_version_adds_to_a_record_are_passed_over(store: FileStore) -> None:
    line = b'{"v":2,"revision":3,"parent":2,"kind":"x","payload":{"a":1},"signed":"y"}'
    store.append(journal.stream_of(ROUTE), line, id="x", after=None)
    assert [record for _, record in journal.read(store, ROUTE)] == [Record(3, "x", {"a": 1})]
