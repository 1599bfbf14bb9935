"""What is old moves to compressed files by itself, reads there as before, and is never in neither place."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import signal
import time
import tracemalloc
import zlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

import ralf
from ralf.finding.search import search
from ralf.maintenance.verify import verify
from ralf.project import Project
from ralf.route import archive as archives, history
from ralf.route.archive import NEWEST, archive
from ralf.storage.filestore import FileStore
from storekit import Cli, configure, context_of, grow, journal_file, start, write_session, zipped

pytestmark = pytest.mark.ci  # of what is to go

BEGIN = datetime(2026, 3, 1, 8, tzinfo=UTC).timestamp()  # about when the made sessions took place
DAY = 86_400.0
NOW = BEGIN + 100 * DAY
STREAM = "routes/tide"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A route with some thirty checkpoints, none of them archived, and one with one."""
    root = tmp_path_factory.mktemp("made")
    context_of(root).mkdir(parents=True)
    configure(root, "archive_days: 0\n")
    write_session(root / "session.jsonl", 16_000)
    write_session(root / "other.jsonl", 500, "s-2")
    ralf.checkpoint("tide", root / "session.jsonl", root=root, segment_tokens=600)
    ralf.checkpoint("moon", root / "other.jsonl", root=root)
    (context_of(root) / "config.yaml").unlink()
    return root


def seen(root: Path) -> dict[str, object]:
    """All that commands tell of the route, with what it takes to tell it read anew."""
    shutil.rmtree(context_of(root) / "cache", ignore_errors=True)
    store = FileStore(context_of(root))
    checkpoints = list(history.checkpoints(Project(root), "tide"))
    evidence = [str(record.payload["evidence"]) for _, record in checkpoints]
    return {
        "entries": list(store.read(STREAM)),
        "blobs": [store.open_blob(digest).read() for digest in evidence],
        "at": [history.context_at("tide", label, root=root) for label in ("cp-001", "cp-015", checkpoints[-1][0])],
        "why": ralf.why("tide", "cp-002", root=root),
        "hits": [(hit.id, hit.text) for hit in search("harbour level station", root=root)],
        "route": ralf.get_context("tide", root=root).render(),
    }


def count(root: Path) -> int:
    return len(list(FileStore(context_of(root)).read(STREAM)))


def live(root: Path) -> list[bytes]:
    return [line for line in journal_file(root, "tide").read_bytes().splitlines() if line.startswith(b'{"id":')]


def test_what_is_archived_reads_as_before(project: Path) -> None:
    before = seen(project)
    report = archive(root=project, now=NOW)
    assert [(one.route, one.records) for one in report.routes] == [("tide", count(project) - NEWEST)]
    assert len(live(project)) == NEWEST
    assert seen(project) == before


def test_the_archive_is_of_ordinary_files_that_hold_the_lines_and_the_words(project: Path) -> None:
    lines = live(project)
    archive(root=project, now=NOW)
    parts = sorted((context_of(project) / "archive" / "journal" / "routes" / "tide").iterdir())
    assert b"".join(gzip.decompress(part.read_bytes()) for part in parts).splitlines() == lines[:-NEWEST]
    named = json.loads(journal_file(project, "tide").read_bytes().splitlines()[0])["header"]["archived"]
    assert [(one["file"], one["sha256"]) for one in named] == [
        (part.name, hashlib.sha256(part.read_bytes()).hexdigest()) for part in parts
    ]
    archived = [path for path in (context_of(project) / "archive" / "blobs").rglob("*") if path.is_file()]
    assert archived
    for path in archived:
        assert hashlib.sha256(zlib.decompress(path.read_bytes())).hexdigest() == path.name
        assert not (context_of(project) / "blobs" / path.name[:2] / path.name).exists()


def test_what_is_young_stays_and_so_do_the_newest_records_of_a_route(project: Path) -> None:
    assert archive(root=project, now=BEGIN + 80 * DAY).routes == ()
    archive(root=project, now=NOW)
    assert archive("tide", older_than="0d", root=project).routes == ()
    assert archive("moon", older_than="0d", root=project).routes == ()
    assert len(live(project)) == NEWEST


def test_archiving_is_off_when_it_is_configured_so(project: Path) -> None:
    configure(project, "archive_days: 0\n")
    assert archive(root=project, now=NOW).routes == ()
    assert archive(root=project, now=NOW, older_than="90d").routes != ()


def test_a_dry_run_tells_what_would_move_and_moves_nothing(project: Path, cli: Cli) -> None:
    before = {path: path.read_bytes() for path in context_of(project).rglob("*") if path.is_file()}
    told = cli("context", "archive", "--older-than", "1d", "--dry-run")
    assert told.status == 0
    assert "would move" in told.out
    assert "tide" in told.out
    assert {path: path.read_bytes() for path in context_of(project).rglob("*") if path.is_file()} == before
    assert "moved" in cli("context", "archive", "--older-than", "1d").out
    assert "moved 0 records" in cli("context", "archive", "--older-than", "1d").out


def test_the_command_names_a_damaged_journal_and_does_the_others(project: Path, cli: Cli) -> None:
    path = journal_file(project, "moon")
    path.write_bytes(path.read_bytes().replace(b'"kind"', b'"kinb"', 1))
    done = cli("context", "archive", "--older-than", "1d", "--json")
    assert done.status == 4
    assert [one["route"] for one in json.loads(done.out)["routes"]] == ["tide"]
    assert "verify --repair" in done.err


# ---- by itself ----


def test_a_checkpoint_moves_a_little_of_what_is_old_the_evidence_first(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock says that all of it is old."""
    monkeypatch.setattr(archives, "LITTLE", 20_000)
    before = count(project)
    for turns, moved in ((200, False), (220, True)):
        grow(project / "session.jsonl", 1_500, turns)
        ralf.checkpoint("tide", project / "session.jsonl", root=project, segment_tokens=600)
        assert any(blob.archived for blob in FileStore(context_of(project)).blobs())
        assert (len(live(project)) < count(project)) == moved
    assert len(live(project)) >= NEWEST
    assert count(project) > before


def test_a_clock_that_jumped_moves_no_more_than_a_little_at_a_time(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "LITTLE", 20_000)
    total, before = count(project), live(project)
    while True:
        for _ in ("evidence", "records"):
            archives.a_little(Project(project), "tide", now=NOW + 10_000 * DAY)
        left = live(project)
        moved = before[: len(before) - len(left)]
        if not moved:
            break
        assert before[len(moved) :] == left
        frames = 200 * len(moved)  # what is bounded is the records in them
        assert sum(map(len, moved)) < 20_000 + max(map(len, moved)) + frames
        before = left
    assert len(left) == NEWEST
    assert count(project) == total


def test_little_moves_only_where_it_pays(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_LONGEST", 1_000)
    archives.a_little(Project(project), "tide", now=NOW)
    assert len(live(project)) == count(project)


def test_blobs_that_an_earlier_version_put_into_zip_files_are_blobs_like_others(tmp_path: Path) -> None:
    store = FileStore(context_of(tmp_path))
    words = {store.put_blob([bytes([n]) * 900]): bytes([n]) * 900 for n in range(6)}
    first, second, *rest = words
    zips = zipped(tmp_path, [first, second]), zipped(tmp_path, rest)
    listed = {blob.digest: blob for blob in store.blobs()}
    assert listed.keys() == words.keys()
    assert all(blob.archived and blob.size for blob in listed.values())
    store.drop_blob(first)
    assert not any(path.exists() for path in zips)
    assert {blob.digest: blob.archived for blob in store.blobs()} == dict.fromkeys((second, *rest), True)
    assert store.put_blob([words[first]]) == first
    assert store.archive_blobs(words) > 0
    for digest, content in words.items():
        assert store.has_blob(digest)
        assert store.open_blob(digest).read() == content
    assert not verify(root=tmp_path).findings
    for digest in words:
        store.drop_blob(digest)
    assert list(store.blobs()) == []
    assert not [path for path in (context_of(tmp_path) / "archive" / "blobs").rglob("*") if path.is_file()]


def test_evidence_that_a_checkpoint_that_stays_shares_stays_with_it(project: Path) -> None:
    store = FileStore(context_of(project))
    entries = list(store.read(STREAM))
    digest = json.loads(entries[0].record)["payload"]["evidence"]
    newest = json.loads(entries[-1].record)
    newest["payload"]["evidence"] = digest
    store.replace(STREAM, lambda one: json.dumps(newest).encode() if one.id == entries[-1].id else one.record)
    archive(root=project, now=NOW)
    assert {blob.digest: blob.archived for blob in store.blobs()}[digest] is False


# ---- whatever dies ----


@pytest.mark.release
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_moment_it_loses_nothing_and_done_again_it_completes(project: Path, seed: int) -> None:
    before = seen(project)
    code = (
        "import sys, time\nfrom ralf.route.archive import archive\nimport ralf.checkpoint\nprint('go', flush=True)\n"
        f"archive(root=sys.argv[1], now={NOW})\n"
    )
    for number in range(3):
        child = start(code, project, cwd=project)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep((seed * 3 + number) * 0.004)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert seen(project) == before
    archive(root=project, now=NOW)
    assert seen(project) == before
    assert len(live(project)) == NEWEST
    left = [path.name for path in context_of(project).rglob("*") if path.name.endswith(".tmp")]
    assert left == []
    parts = json.loads(journal_file(project, "tide").read_bytes().splitlines()[0])["header"]["archived"]
    assert sorted(os.listdir(context_of(project) / "archive/journal/routes/tide")) == [one["file"] for one in parts]


def test_a_part_that_swells_when_it_is_unpacked_costs_a_writer_little(tmp_path: Path) -> None:
    ralf.record_decision("r", "Go on", root=tmp_path)
    folder = tmp_path / ".autonomous" / "context" / "archive" / "journal" / "routes" / "r"
    folder.mkdir(parents=True)
    machine = zlib.compressobj(9, zlib.DEFLATED, 31)
    swelling = b"".join(machine.compress(b"\n" * (1 << 20)) for _ in range(16)) + machine.flush()
    (folder / "000001-aaaaaaaaaaaa.jsonl.gz").write_bytes(swelling)
    tracemalloc.start()
    try:
        ralf.record_decision("r", "Stop", root=tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 96 << 20  # with a list of its lines 160 MB
    finally:
        tracemalloc.stop()
    assert not any(folder.iterdir())
