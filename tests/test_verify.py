"""Verify names whatever is damaged and lets be what is not; a repair mends it from the journal and keeps every copy."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import ralf
from ralf.finding.search import search
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.project import Project
from ralf.route.archive import archive
from ralf.storage.filestore import FileStore
from storekit import Cli, cache_of, context_of, journal_file, route_file, write_session

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 2_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root, segment_tokens=400)
    ralf.record_decision("tide", "Keep the levels in centimetres", rationale="as the logbook does", root=root)
    search("harbour level", root=root)
    return root


@pytest.fixture
def journal(project: Path) -> Path:
    return journal_file(project, "tide")


def found(root: Path) -> list[tuple[str, bool]]:
    """Path and damage of each finding; what lies in the cache begins with `cache/`, whatever its folder is called."""
    cache = f"{cache_of(root).relative_to(context_of(root)).as_posix()}/"
    return [
        (finding.path.relative_to(context_of(root)).as_posix().replace(cache, "cache/"), finding.damage)
        for finding in verify(root=root).findings
    ]


def records(root: Path) -> list[bytes]:
    return [entry.record for entry in FileStore(context_of(root)).read("routes/tide")]


def change_line(journal: Path, number: int, change: Callable[[bytes], bytes]) -> bytes:
    lines = journal.read_bytes().splitlines(keepends=True)
    before, lines[number] = lines[number], change(lines[number])
    journal.write_bytes(b"".join(lines))
    return before


def kept_aside(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in context_of(root).rglob("*.damaged") if path.is_file())


# ---- what is no damage ----


def test_a_store_that_nobody_harmed_is_whole(project: Path, cli: Cli) -> None:
    done = cli("doctor", "--store")
    assert (done.status, done.err) == (0, "")
    assert "no damage" in done.out
    assert repair(root=project).done == ()


def test_what_a_crash_leaves_behind_is_said_and_is_no_damage(project: Path, journal: Path, cli: Cli) -> None:
    with journal.open("ab") as file:
        file.write(b'{"id":"x","length":10')
    route_file(project, "tide").unlink()
    (context_of(project) / "blobs" / ".ralf-x-0123456789ab.tmp").write_bytes(b"half")
    assert {damage for _, damage in found(project)} == {False}
    assert len(found(project)) == 3
    assert cli("doctor", "--store").status == 0
    repair(root=project)
    assert found(project) == []


# ---- a journal ----


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"kind"', b'"kinb"', 1),
        lambda line: b"\xff" * 50 + b"\n",
        lambda line: line[: len(line) // 2] + b"\n" + line[len(line) // 2 :],
        lambda line: b"",
    ],
)
def test_a_damaged_record_is_named_and_those_behind_it_stay_readable(
    project: Path, journal: Path, cli: Cli, change: Callable[[bytes], bytes]
) -> None:
    before = records(project)
    change_line(journal, 1, change)
    harmed = journal.read_bytes()
    assert cli("doctor", "--store").status == 4
    assert ("journal/routes/tide.jsonl", True) in found(project)
    assert cli("doctor", "--repair").status == 0
    assert found(project) == [] or all(not damage for _, damage in found(project))
    assert [record for record in before if record in records(project)] == [
        record for record in before if record in harmed
    ]
    revisions = [json.loads(record)["revision"] for record in records(project)]
    assert revisions == sorted(set(revisions))
    assert repair(root=project).done == ()


# ---- an archived journal ----


@pytest.mark.parametrize("cut", [1, 9, 300], ids=["its end", "its sum", "some lines"])
def test_of_a_damaged_archived_journal_what_can_be_read_goes_on(project: Path, cut: int) -> None:
    shown = ralf.get_context("tide", root=project)
    assert archive(Project(project), "tide")
    (packed,) = (context_of(project) / "journal" / "routes").glob("*.gz")
    whole = packed.read_bytes()
    packed.write_bytes(whole[:-cut])
    assert verify(root=project).damaged
    assert not repair(root=project).after.damaged
    assert {item.decision for item in ralf.get_context("tide", root=project).decisions} == {
        item.decision for item in shown.decisions
    }
    assert kept_aside(project) == whole[:-cut]


def test_a_file_that_cannot_be_read_is_moved_aside_and_written_anew(project: Path) -> None:
    path = route_file(project, "tide")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"decisions:", b"decisions: ]["))
    assert found(project) == [("routes/tide.md", True)]
    repair(root=project)
    assert path.read_bytes() == content
    assert (context_of(project) / "routes/tide.md.damaged").read_bytes() != content


def test_a_damaged_blob_is_moved_aside_and_why_says_that_it_is_gone(project: Path, cli: Cli) -> None:
    digest = json.loads(records(project)[0])["payload"]["evidence"]
    path = context_of(project) / "blobs" / digest[:2] / digest
    path.write_bytes(b"broken")
    assert found(project) == [(path.relative_to(context_of(project)).as_posix(), True)]
    repair(root=project)
    assert kept_aside(project) == b"broken"
    assert [damage for _, damage in found(project)] == [False]
    assert cli("show", "tide", "cp-001").status == 3


# ---- the file, the cache, the blobs ----


def test_lost_evidence_is_damage_until_a_repair_records_it_dropped_evidence_is_not(project: Path, cli: Cli) -> None:
    blobs = sorted((context_of(project) / "blobs").glob("??/*"))
    blobs[0].unlink()
    FileStore(context_of(project)).drop_blob(blobs[1].name)
    assert sorted(found(project)) == [(f"blobs/{one.name[:2]}/{one.name}", one == blobs[0]) for one in blobs[:2]]
    assert cli("doctor", "--store").status == 4
    assert cli("doctor", "--repair").status == 0
    assert [damage for _, damage in found(project)] == [False, False]
    assert repair(root=project).done == ()


# ---- what lies about ----


@pytest.mark.parametrize("lay", [lambda path: path.symlink_to("/etc/passwd"), lambda path: path.mkdir(), os.mkfifo])
@pytest.mark.parametrize("what", ["journal/routes/tide.jsonl", "routes/tide.md"])
def test_what_is_no_file_is_named_and_moved_aside(project: Path, what: str, lay: Callable[[Path], None]) -> None:
    path = context_of(project) / what
    path.unlink()
    lay(path)
    assert what in [name for name, _ in found(project)]
    assert not repair(root=project).after.damaged
    assert ralf.get_context("tide", root=project).decisions
    assert verify(root=project).damaged is False


@pytest.mark.parametrize("folder", ["blobs", "blobs/aa", "journal/routes"])
def test_what_dead_writers_left_is_swept(project: Path, folder: str) -> None:
    name = "tide.json.99.tmp" if folder == "cache/routes" else ".ralf-tide.jsonl-0123456789ab.tmp"
    path = context_of(project) / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    os.utime(path, (time.time() - 7_200,) * 2)
    assert found(project) == [(f"{folder}/{name}", False)]
    repair(root=project)
    assert not path.exists()
