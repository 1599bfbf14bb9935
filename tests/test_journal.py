"""A route's journal: records go in and come out as they are, and what is no record is said."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import ralf
from ralf import project
from ralf.errors import DamagedJournal
from ralf.maintenance.forget import forget
from ralf.maintenance.repair import repair
from ralf.route.history import log
from ralf.route.why import why
from ralf.storage import journal
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Record
from storekit import context_of

ROUTE = "TASK-001"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[]",
        '{"revision":"x","kind":"y","payload":{}}',
        '{"revision":1e999,"kind":"y","payload":{}}',
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


MALFORMED: dict[str, tuple[str, dict[str, Any]]] = {
    "changes that are none": ("edit", {"changes": [1]}),
    "a document that is none": ("import", {"document": 1}),
    "a decision that is none": ("decision", {"decision": "x"}),
    "a source that is none": ("checkpoint", {"source": "x"}),
}


@pytest.mark.ci
@pytest.mark.parametrize("case", MALFORMED)
def test_a_record_whose_payload_does_not_fit_its_kind_is_reported_as_damage(tmp_path: Path, case: str) -> None:
    ralf.record_decision("tide", "Keep the old columns", root=tmp_path)
    store = project.find(tmp_path).store
    kind, payload = MALFORMED[case]
    journal.append(store, "tide", Record(2, kind, payload), id="x", after=store.head("routes/tide"))
    shutil.rmtree(context_of(tmp_path) / "cache")
    for read in (
        lambda: log("tide", root=tmp_path),
        lambda: why("tide", "DEC-001", root=tmp_path),
        lambda: ralf.search("old columns", route="tide", root=tmp_path),
        lambda: forget("tide", "DEC-001", root=tmp_path, dry_run=True),
        lambda: repair(root=tmp_path),
    ):
        with suppress(DamagedJournal):
            read()
