"""Where a session stands is what the journal says, with or without the cache, whatever has happened to it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from ralf.errors import DamagedJournal
from ralf.project import Project
from ralf.route.offsets import IngestOffset, ingest_offset
from ralf.storage import journal
from ralf.storage.journal import Record
from ralf.transcripts.events import Position

ROUTE = "TASK-001"
AT = {"byte": 10, "line": 1}
PENDING = (
    {"tool": "Bash", "call_id": "c1", "input": {"command": "make"}, "text": "make", "timestamp": "", "cwd": "/srv"}
    | {"start": AT, "end": AT},
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.prepare()
    return made


class Writer:
    """Appends records to the route's journal."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.count = 0

    def append(self, kind: str, payload: dict[str, Any]) -> None:
        """One more record."""
        self.count += 1
        head = self.project.store.head(journal.stream_of(ROUTE))
        record = Record(self.count, kind, payload)
        journal.append(self.project.store, ROUTE, record, id=f"{self.project.root}-{self.count}", after=head)

    def take(self, session: str, to_byte: int, pending: tuple[dict[str, Any], ...] = ()) -> IngestOffset:
        """A checkpoint of a session up to a byte; where the session stands then."""
        line = to_byte // 10
        source = {"session": session, "to_byte": to_byte, "to_line": line, "head": f"h{to_byte}", "tail": f"t{to_byte}"}
        self.append("checkpoint", {"source": source, "pending": list(pending)})
        return IngestOffset(session, Position(to_byte, line), f"h{to_byte}", f"t{to_byte}", pending)


@pytest.fixture
def writer(project: Project) -> Writer:
    return Writer(project)


def test_a_session_stands_at_the_end_of_its_last_checkpoint(project: Project, writer: Writer) -> None:
    for byte in (100, 200, 300):
        expected = writer.take("s", byte, PENDING)
        assert ingest_offset(project, ROUTE, "s") == expected
    writer.append("decision", {"decision": {"decision": "d"}})
    assert ingest_offset(project, ROUTE, "s") == expected


def test_a_session_read_again_from_its_start_stands_where_the_second_reading_is(
    project: Project, writer: Writer
) -> None:
    writer.take("s", 500)
    expected = writer.take("s", 100)
    assert ingest_offset(project, ROUTE, "s") == expected


@pytest.mark.parametrize(
    "source", [{"to_byte": value} for value in ("x", [1], -1, math.inf)] + [{"to_byte": 1, "to_line": None}]
)
def test_a_record_that_does_not_say_how_far_it_goes_is_damage(
    project: Project, writer: Writer, source: dict[str, Any]
) -> None:
    writer.append("checkpoint", {"source": {"session": "s", **source}})
    with pytest.raises(DamagedJournal):
        ingest_offset(project, ROUTE, "s")
