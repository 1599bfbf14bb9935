"""Where a session stands is what the journal says, with or without the cache, whatever has happened to it."""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ralf.errors import DamagedJournal
from ralf.project import Project
from ralf.route import offsets
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


@pytest.fixture
def cache(project: Project) -> Path:
    return project.cache / "sessions" / f"{ROUTE}.jsonl"


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


def test_a_session_that_the_route_has_nothing_of_stands_at_its_start(project: Project, writer: Writer) -> None:
    assert ingest_offset(project, ROUTE, "s") == IngestOffset("s")
    writer.append("decision", {})
    assert ingest_offset(project, ROUTE, "s") == IngestOffset("s")
    writer.take("other", 100)
    assert ingest_offset(project, ROUTE, "s") == IngestOffset("s")


def test_a_session_stands_at_the_end_of_its_last_checkpoint(project: Project, writer: Writer) -> None:
    for byte in (100, 200, 300):
        expected = writer.take("s", byte, PENDING)
        assert ingest_offset(project, ROUTE, "s") == expected
    writer.append("decision", {"decision": {"decision": "d"}})
    assert ingest_offset(project, ROUTE, "s") == expected


def test_sessions_of_one_route_stand_each_for_itself(project: Project, writer: Writer) -> None:
    expected = {name: writer.take(name, byte) for name, byte in [("a", 100), ("b", 50), ("a", 200), ("ab", 70)]}
    assert {name: ingest_offset(project, ROUTE, name) for name in expected} == expected


def test_a_session_read_again_from_its_start_stands_where_the_second_reading_is(
    project: Project, writer: Writer
) -> None:
    writer.take("s", 500)
    expected = writer.take("s", 100)
    assert ingest_offset(project, ROUTE, "s") == expected


@pytest.mark.parametrize("name", ['a","byte":9', 'a"', "\u00e9\u2028", "a\\", "", "a\nb", "{", "\U0001f980"])
def test_a_session_may_have_any_name(project: Project, writer: Writer, name: str) -> None:
    writer.take("a", 100)
    expected = writer.take(name, 200, ({**PENDING[0], "text": f'{{"session":"{name}",'},))
    writer.take("b", 300)
    assert ingest_offset(project, ROUTE, name) == expected
    assert ingest_offset(project, ROUTE, "a").position.byte == 100


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\n"),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:-9]),
        lambda path: path.write_bytes(b"\xff\n"),
        lambda path: path.write_bytes(b"\nrubbish\n"),
        lambda path: path.write_bytes(b"\n" + offsets.with_sums(b"\n", [b'{"token":"0-00"}'])),
        lambda path: path.write_bytes(b"\n" + offsets.with_sums(b"\n", [b'{"token":"99999-00"}'])),
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["lost", "empty", "bare", "torn", "torn far", "bytes", "rubbish", "of another journal", "ahead", "a folder"],
)
def test_a_cache_that_cannot_be_used_changes_nothing(
    project: Project, writer: Writer, cache: Path, harm: Callable[[Path], object]
) -> None:
    one, other = writer.take("one", 100), writer.take("other", 200)
    ingest_offset(project, ROUTE, "one")
    harm(cache)
    assert ingest_offset(project, ROUTE, "one") == one
    assert ingest_offset(project, ROUTE, "other") == other
    later = writer.take("one", 300)
    assert ingest_offset(project, ROUTE, "one") == later


def test_no_byte_of_the_cache_is_believed_that_is_another_than_was_written(
    project: Project, writer: Writer, cache: Path
) -> None:
    writer.take("one", 100)
    one, other = writer.take("one", 200), writer.take("other", 300)
    ingest_offset(project, ROUTE, "one")
    whole = cache.read_bytes()
    for place, byte in enumerate(whole):
        cache.write_bytes(whole[:place] + bytes([byte ^ 1]) + whole[place + 1 :])
        assert (ingest_offset(project, ROUTE, "one"), ingest_offset(project, ROUTE, "other")) == (one, other)
    assert cache.read_bytes() == whole


def test_asking_again_does_not_read_the_journal(project: Project, writer: Writer, cache: Path) -> None:
    expected = writer.take("s", 100)
    ingest_offset(project, ROUTE, "s")
    before = cache.stat().st_ino, cache.stat().st_mtime_ns
    assert ingest_offset(project, ROUTE, "s") == expected
    assert (cache.stat().st_ino, cache.stat().st_mtime_ns) == before  # it is read, and not written


def test_a_journal_that_was_made_anew_is_not_taken_for_the_old_one(project: Project, writer: Writer) -> None:
    writer.take("s", 900)
    writer.take("s", 1000)
    ingest_offset(project, ROUTE, "s")
    (project.folder / "journal" / "routes" / f"{ROUTE}.jsonl").unlink()
    assert ingest_offset(project, ROUTE, "s") == IngestOffset("s")
    expected = Writer(project).take("s", 100)
    assert ingest_offset(project, ROUTE, "s") == expected


def test_a_cache_that_cannot_be_written_costs_nothing(project: Project, writer: Writer) -> None:
    expected = writer.take("s", 100)
    project.cache.mkdir(parents=True, exist_ok=True)
    (project.cache / "sessions").write_text("in the way")
    assert ingest_offset(project, ROUTE, "s") == expected


def test_two_readers_that_renew_the_cache_at_once_leave_it_right(project: Project, writer: Writer, cache: Path) -> None:
    writer.take("s", 100)
    ingest_offset(project, ROUTE, "s")
    before = cache.read_bytes()
    writer.take("s", 200)
    ingest_offset(project, ROUTE, "s")
    added = cache.read_bytes().removeprefix(before)
    expected = writer.take("s", 300)
    ingest_offset(project, ROUTE, "s")
    cache.write_bytes(cache.read_bytes() + added)  # the slower one
    assert ingest_offset(project, ROUTE, "s") == expected
    assert ingest_offset(project, ROUTE, "s") == expected


@pytest.mark.parametrize("place", ["ralf.route.offsets.lines_since", "fcntl.flock"])
def test_of_two_who_renew_the_cache_at_once_one_writes(
    project: Project, writer: Writer, cache: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    writer.take("s", 100)
    ingest_offset(project, ROUTE, "s")
    expected = writer.take("s", 200)
    with monkeypatch.context() as patched:

        def slower(*args: Any) -> Any:
            patched.undo()
            assert ingest_offset(project, ROUTE, "s") == expected
            return pkgutil.resolve_name(place)(*args)

        patched.setattr(place, slower)
        assert ingest_offset(project, ROUTE, "s") == expected
    assert cache.read_bytes() == b"\n" + offsets.lines_since(project, ROUTE, None)


def test_who_renews_the_cache_from_a_journal_that_is_purged_meanwhile_leaves_none(
    project: Project, writer: Writer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = writer.take("s", 100)
    lines_since = offsets.lines_since

    def purged(*args: Any) -> bytes:
        found = lines_since(*args)
        project.store.replace(journal.stream_of(ROUTE), lambda entry: entry.record + b" ")
        return found

    monkeypatch.setattr(offsets, "lines_since", purged)
    assert ingest_offset(project, ROUTE, "s") == expected
    assert not cache.exists()


CARRIED = {
    "pending": [
        None,
        1,
        "x",
        [1],
        {"a": 1},
        [{}],
        [{**PENDING[0], "text": 1}],
        [{**PENDING[0], "start": {"byte": "1"}}],
    ],
    "asked": [None, 1, [], {"text": 1}, {"text": "x"}, {"text": "x", "start": AT, "end": {"byte": 1, "line": None}}],
    "tails": [None, 1, [], {"user": 1}, {"user": ["x"]}],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in CARRIED.items() for value in values])
def test_what_a_record_hands_on_counts_for_nothing_where_no_writer_of_ours_made_it(
    project: Project, writer: Writer, key: str, value: object
) -> None:
    writer.append("checkpoint", {"source": {"session": "s", "to_byte": 10, "to_line": 1}, key: value})
    for _ in range(2):  # from the journal, and from the cache
        assert ingest_offset(project, ROUTE, "s") == IngestOffset("s", Position(10, 1))


@pytest.mark.parametrize(
    "source", [{"to_byte": value} for value in ("x", [1], -1, math.inf)] + [{"to_byte": 1, "to_line": None}]
)
def test_a_record_that_does_not_say_how_far_it_goes_is_damage(
    project: Project, writer: Writer, source: dict[str, Any]
) -> None:
    writer.append("checkpoint", {"source": {"session": "s", **source}})
    with pytest.raises(DamagedJournal, match="where the session"):
        ingest_offset(project, ROUTE, "s")
