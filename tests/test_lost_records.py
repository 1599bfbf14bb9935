"""A journal that is older than its route file: what the file still shows of the lost records is taken in, and said."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.faults import cuts

import ralf
from ralf.format import routefile
from ralf.maintenance import ownership
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.project import Project
from ralf.route.corrections import drop
from storekit import Cli, context_of, copied, journal_file, records_of, route_file

pytestmark = pytest.mark.ci

RECORDS = 12


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A route of twelve records: decisions, one that replaces another, a drop and an edit."""
    root = tmp_path_factory.mktemp("lost") / "project"
    root.mkdir()
    ownership.init(Project(root), share=False)
    for number in range(1, 9):
        ralf.record_decision("tide", f"Choose {number}", rationale="so", root=root)
    ralf.record_decision("tide", "Choose otherwise", supersedes="DEC-001", root=root)
    drop("tide", "DEC-002", root=root)
    path = route_file(root, "tide")
    path.write_text(
        path.read_text().replace("\ndecisions:", "\nnoted: true\ndecisions:").replace("Choose 3", "Choose III")
    )
    ralf.record_decision("tide", "Choose at last", root=root)
    assert len(records_of(root, "tide")) == RECORDS
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path / "project")


def cut(root: Path, count: int) -> None:
    """Leave a journal its first records only."""
    path = journal_file(root, "tide")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:count]))


def said(context: ralf.RouteContext) -> dict[str, tuple[str, str]]:
    return {item.decision: (item.id, item.status) for item in context.decisions}


def test_wherever_a_journal_is_cut_the_next_write_takes_in_what_the_file_still_shows(
    made: Path, tmp_path: Path
) -> None:
    before = ralf.get_context("tide", root=made)
    for count in range(1, RECORDS):
        root = copied(made, tmp_path / f"cut-{count}")
        cut(root, count)
        assert any(str(RECORDS) in finding.what for finding in verify(root=root).findings if finding.damage)
        read = ralf.get_context("tide", root=root)
        assert said(read) == said(before) and read.extra == {"noted": True}
        assert str(RECORDS) in read.warnings[0]
        warnings: list[str] = []
        given = ralf.record_decision("tide", "Go on", root=root, warn=warnings.append)
        assert len(warnings) == 1
        after = ralf.get_context("tide", root=root)
        assert said(after) == said(before) | {"Go on": (given.id, "active")}
        assert given.id not in {item.id for item in before.decisions}
        assert [stone.id for stone in after.dropped] == ["DEC-002"] and after.extra == {"noted": True}
        assert after.warnings == ()
        report = verify(root=root)
        assert not report.damaged
        notes = [finding.what for finding in report.findings]
        assert any(f"{count + 1} to {RECORDS}" in note for note in notes), notes


def test_what_a_person_wrote_into_the_newer_file_comes_in_with_it(project: Path) -> None:
    path = route_file(project, "tide")
    path.write_text(path.read_text().replace("Choose 8", "Choose eight"))
    cut(project, 4)
    ralf.record_decision("tide", "Go on", root=project)
    found = said(ralf.get_context("tide", root=project))
    assert {"Choose eight", "Choose 7", "Choose at last", "Go on"} <= found.keys() and "Choose 8" not in found


def test_a_newer_file_is_taken_in_without_a_cache_where_it_goes_on_from_the_journal(project: Path) -> None:
    cut(project, 5)
    shutil.rmtree(context_of(project) / "cache")
    route_file(project, "tide").write_bytes(route_file(project, "tide").read_bytes())
    ralf.record_decision("tide", "Go on", root=project)
    assert {"Choose 8", "Choose at last", "Go on"} <= said(ralf.get_context("tide", root=project)).keys()


def test_a_newer_file_that_another_route_began_stays_foreign_and_as_it_is(project: Path) -> None:
    cut(project, 5)
    shutil.rmtree(context_of(project) / "cache")
    path = route_file(project, "tide")
    text = path.read_text()
    created = routefile.parse(text.encode(), path).created
    path.write_text(text.replace(f'created: "{created}"', 'created: "2001-01-01T00:00:00Z"'))
    left = path.read_bytes()
    ralf.record_decision("tide", "Go on", root=project)
    assert path.read_bytes() == left
    assert ralf.get_context("tide", root=project).foreign


def test_a_journal_that_went_on_after_it_was_cut_keeps_its_own_under_their_labels(project: Path) -> None:
    """A copy of the journal that was written to elsewhere comes back beside the newer file."""
    before = ralf.get_context("tide", root=project).decisions[-1].timestamp
    file = route_file(project, "tide").read_bytes()
    cut(project, 6)
    route_file(project, "tide").unlink()
    while before == datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"):  # of one label and second, two are one reworded
        time.sleep(0.02)
    own = ralf.record_decision("tide", "Decided elsewhere", root=project)
    route_file(project, "tide").write_bytes(file)
    ralf.record_decision("tide", "Go on", root=project)
    found = said(ralf.get_context("tide", root=project))
    assert found["Decided elsewhere"] == (own.id, "active")
    assert {"Choose 7", "Choose 8", "Choose at last", "Go on"} <= found.keys()
    assert len({label for label, _ in found.values()}) == len(found)


def test_a_journal_without_any_record_is_rebuilt_from_the_file_and_reported(project: Path) -> None:
    before = said(ralf.get_context("tide", root=project))
    journal_file(project, "tide").write_bytes(b"")
    assert verify(root=project).damaged
    assert ralf.get_context("tide", root=project).warnings
    warnings: list[str] = []
    ralf.record_decision("tide", "Go on", root=project, warn=warnings.append)
    assert warnings
    assert said(ralf.get_context("tide", root=project)).items() >= before.items()


@pytest.mark.parametrize("count", [0, 7])
def test_a_repair_takes_in_what_the_newer_file_shows(project: Path, cli: Cli, count: int) -> None:
    before = said(ralf.get_context("tide", root=project))
    cut(project, count)
    done = cli("context", "verify", "--repair", root=project)
    assert done.status == 0
    assert not repair(root=project).done
    assert said(ralf.get_context("tide", root=project)) == before


def test_what_was_taken_in_by_a_writer_that_died_is_not_taken_in_twice(project: Path) -> None:
    file = route_file(project, "tide").read_bytes()
    cut(project, 7)
    ralf.record_decision("tide", "Go on", root=project)
    drop("tide", "DEC-008", root=project)
    route_file(project, "tide").write_bytes(file)
    ralf.record_decision("tide", "Go further", root=project)
    found = said(ralf.get_context("tide", root=project))
    assert found["Choose 8"] == ("DEC-008", "dropped")
    assert len(found) == len(ralf.get_context("tide", root=project).decisions)


def test_stores_that_are_half_copied_at_random_lose_nothing() -> None:
    found = cuts.run(12, 7, cuts.KINDS)
    assert (found.rounds, found.examples) == (12, {})
    assert found.acknowledged > 3
