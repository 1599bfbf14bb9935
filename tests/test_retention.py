"""Retention: old evidence goes when it is asked for, and nothing else ever does."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import ralf
from ralf import config
from ralf.config import parse_size
from ralf.errors import Damaged, UsageError
from ralf.route.archive import GRACE, Pruned, parse_age, prune
from storekit import Cli, Listing, configure, context_of, journal_file, kept_bytes, records_of, write_session

BEGIN = datetime(2026, 3, 1, 8, tzinfo=UTC).timestamp()  # about when the made sessions took place
DAY = 86_400.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A route with three checkpoints, and one with one, whose blobs were put an hour ago."""
    root = tmp_path_factory.mktemp("made")
    write_session(root / "session.jsonl", 7_000)
    write_session(root / "other.jsonl", 1_000, "s-2")
    ralf.checkpoint("tide", root / "session.jsonl", root=root, segment_tokens=3_000, summarizer=Listing())
    ralf.checkpoint("moon", root / "other.jsonl", root=root)
    make_old(root)
    return root


def make_old(root: Path, seconds: float = 3_600) -> None:
    for path in blobs(root).values():
        os.utime(path, (time.time() - seconds,) * 2)


def blobs(root: Path) -> dict[str, Path]:
    return {path.name: path for path in (context_of(root) / "blobs").rglob("*") if path.is_file()}


def digests(root: Path, route: str = "tide") -> list[str]:
    return [record["payload"]["evidence"] for record in records_of(root, route) if record["kind"] == "checkpoint"]


def labels(pruned: tuple[Pruned, ...]) -> list[tuple[str, tuple[str, ...], str]]:
    return [(one.route, one.checkpoints, one.reason) for one in pruned]


OLD = [("tide", ("cp-001",), "age"), ("tide", ("cp-002",), "age")]


# ---- what goes ----


@pytest.mark.ci
def test_nothing_goes_by_default(project: Path) -> None:
    report = prune(root=project, remove=True)
    assert (report.pruned, report.freed, report.just_put) == ((), 0, 0)
    assert report.kept == sum(path.stat().st_size for path in blobs(project).values())


@pytest.mark.ci
def test_what_is_older_goes_and_the_newest_of_each_route_stays(project: Path) -> None:
    report = prune(older_than="90d", remove=True, root=project)
    assert labels(report.pruned) == OLD
    assert blobs(project).keys() == {digests(project)[-1], *digests(project, "moon")}
    assert report.removed


def test_what_ended_later_than_that_stays(project: Path) -> None:
    make_old(project, time.time() - BEGIN)
    first = datetime.fromisoformat(records_of(project, "tide")[0]["payload"]["period"][1]).timestamp()
    assert prune(older_than="10d", now=first + 10 * DAY - 1, root=project).pruned == ()
    assert labels(prune(older_than="10d", now=first + 10 * DAY + 1, root=project).pruned) == OLD[:1]


def test_the_oldest_goes_until_what_is_left_takes_less(project: Path) -> None:
    sizes = {name: path.stat().st_size for name, path in blobs(project).items()}
    one, two, three = digests(project)
    total = sum(sizes.values())
    assert prune(keep_under=str(total), root=project).pruned == ()
    report = prune(keep_under=str(total - 1), root=project)
    assert (labels(report.pruned), report.kept) == ([("tide", ("cp-001",), "size")], total - sizes[one])
    report = prune(keep_under="1", remove=True, root=project)
    assert [reason for _, _, reason in labels(report.pruned)] == ["size", "size"]
    assert report.freed == sizes[one] + sizes[two]
    assert three in blobs(project)


def test_what_two_checkpoints_share_stays_while_one_needs_it(project: Path) -> None:
    """The same session in a second route: its newest checkpoint there is not the newest here."""
    path = project / "part.jsonl"
    first = records_of(project, "tide")[0]["payload"]["source"]["to_byte"]
    path.write_bytes((project / "session.jsonl").read_bytes()[:first])
    ralf.checkpoint("copy", path, root=project, segment_tokens=3_000)
    make_old(project)
    assert digests(project, "copy") == digests(project)[:1]
    assert labels(prune(older_than="90d", remove=True, root=project).pruned) == OLD[1:]
    assert digests(project)[0] in blobs(project)
    write_session(project / "more.jsonl", 500, "s-3")
    ralf.checkpoint("copy", project / "more.jsonl", root=project)
    make_old(project)
    assert labels(prune(older_than="90d", root=project).pruned) == [
        ("copy, tide", ("copy cp-001", "tide cp-001"), "age")
    ]


def test_what_no_record_names_goes_unless_it_was_just_put(project: Path) -> None:
    """A process that dies between blob and record leaves one; one that is under way has one, too."""
    from ralf import project as projects

    store = projects.find(project).store
    digest = store.put_blob([b"left behind"])
    assert prune(root=project).just_put == 1
    assert prune(root=project, remove=True).pruned == ()
    os.utime(blobs(project)[digest], (time.time() - GRACE - 5,) * 2)
    assert labels(prune(root=project, remove=True).pruned) == [("", (), "unused")]
    assert digest not in blobs(project)


def test_what_a_record_of_an_unknown_kind_names_stays(project: Path) -> None:
    from ralf import project as projects
    from ralf.storage import journal

    store = projects.find(project).store
    digest = store.put_blob([b"for a later version"])
    record = journal.Record(1, "later", {"blob": digest})
    journal.append(store, "future", record, id="later-1", after=None)
    make_old(project)
    assert prune(root=project, older_than="1d", remove=True).removed
    assert digest in blobs(project)


def test_what_was_put_again_meanwhile_stays(project: Path) -> None:
    os.utime(blobs(project)[digests(project)[0]])
    report = prune(older_than="90d", remove=True, root=project)
    assert (labels(report.pruned), report.just_put) == (OLD[1:], 1)


@pytest.mark.ci
def test_evidence_of_unknown_age_goes_by_size_only_and_last(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("User: please look at it once more, it is slow\n\nAgent: I will do so.\n" * 300)
    ralf.checkpoint("plain", tmp_path / "plain.txt", root=tmp_path, segment_tokens=2_000, as_text=True)
    write_session(tmp_path / "session.jsonl", 5_000)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path, segment_tokens=3_000)
    make_old(tmp_path)
    assert {one.route for one in prune(older_than="1d", root=tmp_path).pruned} == {"tide"}
    routes = [one.route for one in prune(keep_under="1", root=tmp_path).pruned]
    assert len(routes) >= 2
    total = sum(path.stat().st_size for path in blobs(tmp_path).values())
    assert [one.route for one in prune(keep_under=str(total - 1), root=tmp_path).pruned] == ["tide"]


# ---- what stays ----


def test_to_look_changes_no_byte(project: Path) -> None:
    before = kept_bytes(project, cache=True)
    report = prune(older_than="1d", keep_under="1", root=project)
    assert (len(report.pruned), report.removed) == (2, False)
    assert kept_bytes(project, cache=True) == before


NOTED = ("locks/archive.lock", "archive/gone")
"""The lock, and which evidence is not missed from now on."""


@pytest.mark.ci
def test_pruning_touches_nothing_but_blobs_and_the_search_index(project: Path) -> None:
    before = kept_bytes(project)
    prune(older_than="1d", remove=True, root=project)
    after = {name: content for name, content in kept_bytes(project).items() if name not in NOTED}
    assert {name for name in before if name not in after} == {f"blobs/{d[:2]}/{d}" for d in digests(project)[:2]}
    assert {name: content for name, content in before.items() if name in after} == after


def test_after_pruning_why_names_the_place_and_search_finds_only_the_decision(project: Path) -> None:
    asked = "level part_1 1 cm, station 1"
    first = {hit.kind for hit in ralf.search(asked, route="tide", root=project, limit=20) if hit.id == "cp-001"}
    assert "evidence" in first
    prune(older_than="1d", remove=True, root=project)
    hits = ralf.search(asked, route="tide", root=project, limit=20)
    assert not [hit for hit in hits if hit.kind == "evidence" and hit.id in ("cp-001", "cp-002")]
    assert ralf.search("batch size 0 instead", route="tide", root=project)[0].kind == "decision"
    assert ralf.why("tide", "DEC-001", root=project).evidence == "pruned"


def test_a_checkpoint_goes_on_after_pruning(project: Path) -> None:
    prune(older_than="1d", remove=True, root=project)
    from storekit import grow

    grow(project / "session.jsonl", 500, 100)
    assert len(ralf.checkpoint("tide", project / "session.jsonl", root=project).checkpoints) == 1


def test_with_a_damaged_journal_nothing_goes(project: Path) -> None:
    path = journal_file(project, "moon")
    path.write_bytes(path.read_bytes().replace(b"part_0", b"part_x", 1))
    before = blobs(project).keys()
    with pytest.raises(Damaged):
        prune(older_than="1d", remove=True, root=project)
    assert blobs(project).keys() == before


def test_a_project_without_anything_has_nothing_to_prune(tmp_path: Path) -> None:
    assert prune(older_than="1d", remove=True, root=tmp_path).pruned == ()
    assert list(tmp_path.iterdir()) == []


# ---- how it is said ----


@pytest.mark.parametrize(("text", "days"), [("90d", 90), ("4w", 28), ("12h", 0.5), ("90", 90), (" 1 d ", 1), ("0d", 0)])
def test_an_age_is_read(text: str, days: float) -> None:
    assert parse_age(text) == timedelta(days=days)


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("1.5 gb", 1_500_000_000), ("10k", 10_000), ("7", 7), ("7B", 7)]
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "soon", "-3d", "3y", "1.5d", "1e9"])
def test_no_age_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_age(text)


@pytest.mark.parametrize("text", ["", "much", "-3MB", "3PB", "1e9", "MB"])
def test_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size(text)


def test_age_and_size_can_be_configured(project: Path) -> None:
    path = configure(project, "evidence_days: 90\n")
    assert labels(prune(root=project).pruned) == OLD
    assert prune(older_than="99999d", root=project).pruned == ()
    path.write_text('evidence_size: "1KB"\n')
    assert len(prune(root=project).pruned) == 2
    path.write_text("evidence_size: plenty\n")
    with pytest.raises(UsageError, match=r"config\.yaml"):
        config.load(path)


def test_the_command_looks_first_and_removes_when_told_to(cli: Cli, project: Path) -> None:
    before = kept_bytes(project)
    for more in ((), ("--dry-run",), ("--dry-run", "--yes")):
        ran = cli("context", "prune", "--older-than", "90d", *more)
        assert (ran.status, ran.err) == (0, "")
        assert "cp-001" in ran.out and "--yes" in ran.out
        assert kept_bytes(project) == before
    ran = cli("context", "prune", "--older-than", "90d", "--yes")
    assert ran.lines[-1].startswith("removed ")
    assert len(blobs(project)) == 2
    assert cli("context", "prune", "--older-than", "90d", "--yes").lines[0].startswith("removed 0 bytes")
    made = cli("context", "prune", "--keep-under", "1MB", "--json").json()
    assert (made["pruned"], made["freed"], made["removed"]) == ([], 0, False)
