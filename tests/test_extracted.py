"""What rules of earlier versions took for decisions: search finds it, and nobody is handed it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ralf
from ralf.project import Project
from ralf.route import edits, write
from storekit import route_file

RULE = "We use batch size 5 instead of 6."


def of_an_earlier_version(root: Path, *decisions: dict[str, Any]) -> None:
    """Append a checkpoint as an earlier version wrote it, with decisions that its rules made."""
    payload = {
        "title": "Batches",
        "text": "- Looked at the batches.",
        "tokens": 900,
        "period": ["2026-03-01T08:00:00Z", "2026-03-01T08:10:00Z"],
        "summarizer": "extractive",
        "source": {"session": "s-1", "from_line": 0, "to_line": 40},
        "decisions": [{"id": "", "origin": "user", "timestamp": "2026-03-01T08:05:00Z", **one} for one in decisions],
    }
    with write.open_route(Project(root), "tide") as route:
        route.absorb_edits()
        route.append("checkpoint", edits.labelled(route.context, "checkpoint", payload), id="earlier")
        route.render_file()


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A route with one recorded decision, and what rules took for two more."""
    ralf.record_decision("tide", "Store sessions in SQLite", root=tmp_path)
    again = {"decision": "Keep no sessions", "origin": "agent", "supersedes": "DEC-001"}
    of_an_earlier_version(tmp_path, {"decision": RULE, "kind": "rule"}, again)
    return tmp_path


def test_what_rules_extracted_is_found_and_not_handed_over(earlier: Path) -> None:
    context = ralf.get_context("tide", root=earlier)
    origins = {item.decision: (item.origin, item.status) for item in context.decisions}
    assert origins[RULE] == ("extracted", "active")
    assert origins["Store sessions in SQLite"] == ("unknown", "active"), "what rules made replaces nothing"
    assert RULE not in context.render() and "Store sessions in SQLite" in context.render()
    (hit,) = (hit for hit in ralf.search("batch size", root=earlier) if hit.kind == "decision")
    assert (hit.text, hit.status) == (RULE, "extracted")


def test_whoever_records_what_was_extracted_has_decided_it(earlier: Path) -> None:
    made = ralf.record_decision("tide", RULE, origin="user", root=earlier)
    context = ralf.get_context("tide", root=earlier)
    (now,) = (item for item in context.decisions if item.decision == RULE)
    assert (now.id, now.origin) == (made.id, "user")
    assert RULE in context.render()


def test_an_edit_of_a_file_of_an_earlier_version_does_not_make_it_a_decision(earlier: Path) -> None:
    path = route_file(earlier, "tide")
    text = path.read_text(encoding="utf-8").replace('origin: "extracted"', 'origin: "user"')
    path.write_text(text.replace("Store sessions in SQLite", "Store sessions in one SQLite"), encoding="utf-8")
    ralf.record_decision("tide", "Number the stations from one", root=earlier)
    context = ralf.get_context("tide", root=earlier)
    assert {item.origin for item in context.decisions if item.decision == RULE} == {"extracted"}
    assert "Store sessions in one SQLite" in context.render()
