"""What a later version of ralf has written stays as it is, is said, and keeps nothing else from being read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ralf
from ralf.maintenance.repair import repair
from ralf.maintenance.verify import verify
from ralf.model import FORMAT_VERSION
from ralf.project import Project
from ralf.storage import journal
from storekit import Cli, journal_file, records_of, route_file

ROUTE = "tide"
LATER: dict[str, dict[str, Any]] = {
    "decision": {"decision": "a text where a tree was", "id": "DEC-007"},
    "edit": {"changes": {"decisions": ["DEC-001"]}},
    "checkpoint": {"source": ["s", 0, 100], "decisions": "none", "facts": 3},
    "drop": {"tombstone": "DEC-001"},
    "import": {"document": 1},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    ralf.record_decision(ROUTE, "Keep the levels in centimetres", rationale="as the logbook does", root=root)
    return root


def append_later(root: Path, kind: str, payload: dict[str, Any]) -> bytes:
    """Append what a later version would: a record of its format, under this user's seal."""
    store, stream = Project(root).store, journal.stream_of(ROUTE)
    revision = len(records_of(root, ROUTE)) + 1
    record = {"v": 3, "revision": revision, "parent": revision - 1, "kind": kind, "payload": payload, "render": ""}
    store.append(stream, journal.encoded(record), id=f"later-{revision}", after=store.head(stream))
    return journal_file(root, ROUTE).read_bytes()


@pytest.mark.ci
@pytest.mark.parametrize("kind", LATER)
def test_a_record_of_a_later_format_is_passed_over_said_and_kept(project: Path, cli: Cli, kind: str) -> None:
    whole = append_later(project, kind, LATER[kind])
    for number in range(2):
        context = ralf.get_context(ROUTE, root=project)
        assert [item.decision for item in context.decisions if item.id == "DEC-001"] == [
            "Keep the levels in centimetres"
        ]
        assert context.warnings
        assert ralf.search("levels in centimetres", root=project)[0].id == "DEC-001"
        ralf.record_decision(ROUTE, f"Round the levels {number} times", root=project)
    assert [finding.damage for finding in verify(root=project).findings] == [False]
    assert repair(root=project).done == ()
    assert journal_file(project, ROUTE).read_bytes().startswith(whole)
    assert f"{kind}/3" in cli("log", ROUTE).out
    assert cli("show", ROUTE).err


def test_a_route_file_of_a_later_format_is_never_written(project: Path, cli: Cli) -> None:
    path = route_file(project, ROUTE)
    theirs = path.read_text(encoding="utf-8").replace(f'version: "{FORMAT_VERSION}"', 'version: "9.0.0"')
    path.write_text(theirs, encoding="utf-8")
    ralf.record_decision(ROUTE, "Round the levels", root=project)
    assert [item.decision for item in ralf.get_context(ROUTE, root=project).decisions][-1] == "Round the levels"
    cli("show", ROUTE).complains(4, path, "9.0.0")
    cli("doctor", "--repair")
    assert path.read_text(encoding="utf-8") == theirs
