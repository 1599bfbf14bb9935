"""A route that nobody writes to is archived by itself, reads as before, and is back with the next record; evidence goes
only where a person says so.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

import ralf
from ralf import project as projects
from ralf.config import Config
from ralf.errors import Damaged
from ralf.maintenance.evidence import drop_evidence
from ralf.maintenance.verify import verify
from ralf.route import history
from ralf.route.archive import archive
from storekit import Cli, context_of, journal_file, kept_bytes, records_of, route_file, write_session

DAY = 86_400.0

Later = Callable[[float], None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Have the clock say that some days have gone by."""
    clock = time.time
    return lambda days: monkeypatch.setattr(time, "time", lambda: clock() + days * DAY)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A route with three checkpoints and a decision, and three small ones."""
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 4_000)
    ralf.checkpoint("tide", root / "session.jsonl", root=root, segment_tokens=1_500)
    ralf.record_decision("tide", "Keep the levels in centimetres", rationale="as the logbook does", root=root)
    for number in range(3):
        ralf.record_decision(f"moon-{number}", f"Use the other side of moon {number}", root=root)
    return root


def seen(root: Path) -> dict[str, object]:
    """All that commands tell of the routes."""
    labels = [label for label, _ in history.checkpoints(projects.find(root), "tide")]
    return {
        "shown": [ralf.get_context(name, root=root).render() for name in ("tide", "moon-1")],
        "at": [history.context_at("tide", label, root=root) for label in labels],
        "why": [ralf.why("tide", label, root=root) for label in labels],
        "log": history.log("tide", root=root),
        "hits": [(hit.route, hit.id) for hit in ralf.search("centimetres", root=root)],
        "whole": verify(root=root),
    }


def listed(root: Path) -> list[str]:
    return sorted(one.route for one in ralf.list_routes(root=root))


@pytest.mark.ci
def test_the_next_write_archives_what_had_no_record_for_so_long_and_all_of_it_reads_as_before(
    project: Path, later: Later
) -> None:
    before, lines = seen(project), journal_file(project, "tide").read_bytes()
    later(Config().archive_days - 1)
    ralf.record_decision("new", "Go on", root=project)
    assert listed(project) == ["moon-0", "moon-1", "moon-2", "new", "tide"]
    later(400)
    ralf.record_decision("new", "Go on and on", root=project)
    assert listed(project) == ["new"]
    assert sorted(path.name for path in (context_of(project) / "routes" / "archive").iterdir()) == [
        *(f"moon-{number}.md" for number in range(3)),
        "tide.md",
    ]
    assert not journal_file(project, "tide").exists()
    assert journal_file(project, "tide").with_name("tide.jsonl.gz").stat().st_size < len(lines) / 2
    now = seen(project)
    assert {key: now[key] for key in before if key != "whole"} == {key: before[key] for key in before if key != "whole"}
    assert verify(root=project).findings == ()


def test_the_next_record_brings_a_route_back_as_it_was(project: Path, later: Later, cli: Cli) -> None:
    lines, shown = journal_file(project, "tide").read_bytes(), route_file(project, "tide").read_bytes()
    assert archive(projects.find(project), "tide")
    assert "archived" in cli("list").err
    assert cli("show", "tide").status == 0
    ralf.record_decision("tide", "Go on with the tide", root=project)
    assert "tide" in listed(project)
    assert journal_file(project, "tide").read_bytes().startswith(lines)
    assert route_file(project, "tide").read_bytes() != shown
    assert [path.name for path in (context_of(project) / "journal" / "routes").glob("tide*")] == ["tide.jsonl"]
    assert not list((context_of(project) / "routes" / "archive").iterdir())


def test_an_edit_of_an_archived_file_counts_and_so_does_a_save_at_its_old_place(project: Path) -> None:
    assert archive(projects.find(project), "tide")
    kept = projects.find(project).route_file("tide")
    assert kept.parent.name == "archive"
    old = kept.read_text()
    kept.write_text(old.replace("in centimetres", "in millimetres"))
    assert "in millimetres" in ralf.get_context("tide", root=project).render()
    ralf.record_decision("tide", "Go on", root=project)
    assert "in millimetres" in route_file(project, "tide").read_text()
    assert archive(projects.find(project), "moon-1")
    saved = projects.find(project).route_file("moon-1").read_text().replace("other side", "dark side")
    route_file(project, "moon-1").write_text(saved)
    ralf.record_decision("moon-1", "Go on", root=project)
    assert "dark side" in ralf.get_context("moon-1", root=project).render()


def test_a_killed_archiving_is_completed_by_the_next_look(project: Path, later: Later) -> None:
    store = projects.find(project).store
    head = store.head("routes/tide")
    assert head is not None and store.files is not None
    assert store.files.archive("routes/tide", head)  # and then it was killed
    assert "tide" not in listed(project) and route_file(project, "tide").exists()
    later(400)
    ralf.record_decision("new", "Go on", root=project)
    assert not route_file(project, "tide").exists()
    assert ralf.get_context("tide", root=project).decisions


@pytest.mark.ci
def test_what_an_earlier_version_archived_is_rewritten_by_the_next_record(tmp_path: Path, project: Path) -> None:
    """Its parts were gzip files that the journal's first line names."""
    import gzip
    import hashlib

    before = seen(project)
    path, top = journal_file(project, "tide"), context_of(project) / "archive" / "journal" / "routes" / "tide"
    lines = path.read_bytes().splitlines(keepends=True)
    part = b"".join(lines[:2])
    packed = gzip.compress(part)
    digest = hashlib.sha256(packed).hexdigest()
    top.mkdir(parents=True)
    (top / f"000001-{digest[:12]}.jsonl.gz").write_bytes(packed)
    last = f"{len(lines[0])}-{json.loads(lines[1])['sha256']}"
    named = [{"file": f"000001-{digest[:12]}.jsonl.gz", "size": len(part), "sha256": digest}]
    said = json.dumps({"offset": len(part), "last": last, "archived": named}, separators=(",", ":")).encode()
    sum_ = hashlib.sha256(said).hexdigest()[:32].encode()
    path.write_bytes(b'{"header":%s,"sha256":"%s"}\n' % (said, sum_) + b"".join(lines[2:]))
    files = kept_bytes(project)
    assert seen(project) == before
    assert kept_bytes(project) == files  # who reads changes nothing
    ralf.record_decision("tide", "Go on", root=project)
    assert path.read_bytes().startswith(b"".join(lines))
    assert not (context_of(project) / "archive").exists()


# ---- evidence ----


def blobs(root: Path) -> dict[str, Path]:
    return {path.name: path for path in (context_of(root) / "blobs").glob("??/*")}


def make_old(root: Path) -> None:
    for path in blobs(root).values():
        os.utime(path, (time.time() - 3_600,) * 2)


def digests(root: Path) -> list[str]:
    return [record["payload"]["evidence"] for record in records_of(root, "tide") if record["kind"] == "checkpoint"]


def test_evidence_goes_by_age_but_for_that_of_each_newest_checkpoint(project: Path) -> None:
    make_old(project)
    ended = datetime.fromisoformat(records_of(project, "tide")[0]["payload"]["period"][1]).timestamp()
    assert drop_evidence("10d", now=ended + 10 * DAY - 1, root=project).dropped == ()
    labels = [label for label, _ in history.checkpoints(projects.find(project), "tide")]
    report = drop_evidence("90d", root=project)
    assert [one.checkpoints for one in report.dropped] == [(label,) for label in labels[:-1]] != []
    assert len(blobs(project)) == len(digests(project))  # it was only looked at
    drop_evidence("90d", remove=True, root=project)
    assert list(blobs(project)) == digests(project)[-1:]
    assert ralf.why("tide", "cp-001", root=project).evidence == "pruned"
    assert not verify(root=project).damaged


def test_a_journal_that_cannot_be_read_keeps_all_evidence(project: Path) -> None:
    make_old(project)
    path = journal_file(project, "moon-0")
    path.write_bytes(path.read_bytes().replace(b'"kind"', b'"kinb"', 1))
    before = blobs(project)
    with pytest.raises(Damaged):
        drop_evidence("1d", remove=True, root=project)
    assert blobs(project) == before


def test_only_a_person_at_a_terminal_drops_evidence(project: Path, cli: Cli) -> None:
    make_old(project)
    before = blobs(project)
    cli.is_at_terminal = False
    refused = cli("gc", "--evidence-older-than", "1d")
    assert refused.status == 2 and "cp-001" in refused.out and f"ralf --root {project} show" in refused.err
    assert cli("gc", "--evidence-older-than", "1d", "--dry-run").status == 0
    assert cli("gc").status == 2
    assert blobs(project) == before
