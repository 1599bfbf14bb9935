"""What is done to a route after a person's edit of its file that no write has absorbed yet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ralf
from ralf.maintenance.forget import forget
from ralf.model import Decision
from ralf.route import routefile
from ralf.route.corrections import drop
from storekit import journal_file, route_file

ROUTE = "tide"
BY_HAND = "Name tables in the singular"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for text in ("Keep the old columns", "Store the ledger rows in partitions by month"):
        ralf.record_decision(ROUTE, text, root=tmp_path)
    return tmp_path


@pytest.fixture
def path(root: Path) -> Path:
    return route_file(root, ROUTE)


def add(path: Path, label: str = "DEC-003") -> None:
    """Add a decision, as a person does in an editor."""
    text = path.read_text(encoding="utf-8")
    added = f'  - id: "{label}"\n    decision: "{BY_HAND}"\n    status: "active"\n'
    path.write_text(re.sub(r"(\ndecisions:\n(?:  .*\n)+)", lambda found: found[1] + added, text), encoding="utf-8")


def decisions(root: Path) -> dict[str, Decision]:
    """The decisions after the next write."""
    ralf.record_decision(ROUTE, "Go on", root=root)
    file = route_file(root, ROUTE)
    found = routefile.parse(file.read_bytes(), file).decisions
    assert found == ralf.get_context(ROUTE, root=root).decisions
    return {item.decision: item for item in found}


def test_a_decision_that_a_person_wrote_into_the_file_can_be_dropped(root: Path, path: Path) -> None:
    add(path)
    assert drop(ROUTE, "DEC-003", root=root).changed
    assert decisions(root)[BY_HAND].status == "dropped"


@pytest.mark.ci
@pytest.mark.parametrize("what", [{"text": BY_HAND}, {"id": "DEC-003"}])
def test_what_a_person_wrote_into_the_file_can_be_forgotten(root: Path, path: Path, what: dict[str, str]) -> None:
    add(path)
    forget(ROUTE, root=root, **what)
    assert BY_HAND not in path.read_text(encoding="utf-8")
    assert BY_HAND.encode() not in journal_file(root, ROUTE).read_bytes()
