"""Dropping a decision: it leaves what is in force, and nothing but a person's word brings it back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import ralf
from ralf import project as projects
from ralf.document.tree import to_tree
from ralf.errors import NotFound, RouteNotFound, UsageError
from ralf.model import Decision
from ralf.route import corrections, fold
from ralf.route.history import log
from ralf.storage import journal

ROUTE = "tide"
SQLITE = "Use SQLite in WAL mode for the session store"


def decided(root: Path, text: str = SQLITE, **more: str) -> str:
    return ralf.record_decision(ROUTE, text, root=root, **more).id  # type: ignore[arg-type]


def statuses_of(root: Path) -> dict[str, str]:
    return {item.id: item.status for item in ralf.get_context(ROUTE, root=root).decisions}


def brought(text: str, **more: object) -> dict[str, object]:
    """The payload of a checkpoint that brings one decision."""
    return {"decisions": [to_tree(Decision(decision=text, timestamp="t", origin="agent", **more))], "text": "x"}  # type: ignore[arg-type]


def append(root: Path, kind: str, payload: dict[str, object], id: str) -> None:  # noqa: A002
    from ralf.route.write import open_route

    with open_route(projects.find(root), ROUTE) as writer:
        writer.append(kind, payload, id=id)
        writer.render_file()


# ---- what it does ----


def test_a_dropped_decision_is_not_in_force_any_more_and_not_in_the_brief(tmp_path: Path) -> None:
    label = decided(tmp_path)
    dropped = corrections.drop(ROUTE, label, because="too slow", root=tmp_path)
    assert (dropped.decision.status, dropped.changed) == ("dropped", True)
    context = ralf.get_context(ROUTE, root=tmp_path)
    assert statuses_of(tmp_path) == {"DEC-001": "dropped"}
    assert SQLITE not in context.render(2_000, section="brief")
    (hit,) = ralf.search("SQLite WAL session store", root=tmp_path)
    assert hit.status == "dropped"
    assert ralf.why(ROUTE, label, root=tmp_path).status == "dropped"


def test_the_record_tells_why_and_not_the_words(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), because="too slow", root=tmp_path)
    *_, (_, record) = journal.read(projects.find(tmp_path).store, ROUTE)
    assert (record.kind, record.payload["because"], record.payload["tombstone"]["id"]) == (
        "drop",
        "too slow",
        "DEC-001",
    )
    assert "SQLite" not in str(record.payload)


def test_the_log_names_what_was_dropped_and_why(tmp_path: Path) -> None:
    first, second = decided(tmp_path), decided(tmp_path, "Keep the old columns")
    corrections.drop(ROUTE, second, root=tmp_path)
    corrections.drop(ROUTE, first, because="only a guess", root=tmp_path)
    found = [(event.id, event.text) for event in log(ROUTE, limit=2, root=tmp_path)]
    assert found == [(first, f"{SQLITE}; only a guess"), (second, "Keep the old columns")]


def test_dropping_twice_changes_nothing(tmp_path: Path) -> None:
    label = decided(tmp_path)
    corrections.drop(ROUTE, label, root=tmp_path)
    file = projects.find(tmp_path).route_file(ROUTE)
    before = file.read_bytes()
    again = corrections.drop(ROUTE, label, root=tmp_path)
    assert (again.changed, again.decision.status) == (False, "dropped")
    assert file.read_bytes() == before


def test_what_is_not_there_cannot_be_dropped(tmp_path: Path) -> None:
    with pytest.raises(RouteNotFound):
        corrections.drop(ROUTE, "DEC-001", root=tmp_path)
    decided(tmp_path)
    with pytest.raises(NotFound, match="DEC-002"):
        corrections.drop(ROUTE, "2", root=tmp_path)
    with pytest.raises(UsageError):
        corrections.drop("../x", "DEC-001", root=tmp_path)


def test_one_that_the_file_has_folded_away_can_be_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold.cap, "capped", lambda context: replace(context, decisions=context.decisions[-1:]))
    label = decided(tmp_path)
    decided(tmp_path, "Never push to main")
    assert label not in statuses_of(tmp_path)
    dropped = corrections.drop(ROUTE, label, root=tmp_path)
    assert (dropped.decision.decision, dropped.changed) == (SQLITE, True)
    assert [stone.id for stone in ralf.get_context(ROUTE, root=tmp_path).dropped] == [label]


# ---- it does not come back ----


@pytest.mark.parametrize("kind", ["checkpoint"])
def test_no_summariser_brings_it_back(tmp_path: Path, kind: str) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    append(tmp_path, kind, brought(SQLITE), "later")
    assert statuses_of(tmp_path) == {"DEC-001": "dropped"}


@pytest.mark.ci
def test_one_that_was_said_again_while_it_was_dropped_stays_dropped(tmp_path: Path) -> None:
    """The segment was read before, its record is written after the drop."""
    label = decided(tmp_path)
    corrections.drop(ROUTE, label, root=tmp_path)
    append(tmp_path, "checkpoint", brought(SQLITE, id=label, status="active"), "later")
    assert statuses_of(tmp_path) == {"DEC-001": "dropped"}


# ---- it comes back by a person's word ----


def test_deciding_the_same_text_again_brings_it_back_under_a_new_label(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    assert decided(tmp_path) == "DEC-002"
    assert statuses_of(tmp_path) == {"DEC-001": "dropped", "DEC-002": "active"}
    assert ralf.get_context(ROUTE, root=tmp_path).dropped == ()
    append(tmp_path, "checkpoint", brought(SQLITE), "later")
    assert statuses_of(tmp_path)["DEC-002"] == "active"


def test_an_agent_cannot_decide_again_what_a_person_dropped(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    with pytest.raises(UsageError, match="DEC-001"):
        decided(tmp_path, SQLITE, origin="agent")


# ---- by hand ----


def edit(root: Path, old: str, new: str) -> None:
    file = projects.find(root).route_file(ROUTE)
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def without(root: Path, label: str) -> None:
    """Take a decision out of the file, as a person does."""
    lines = projects.find(root).route_file(ROUTE).read_text(encoding="utf-8").split("\n")
    start = next(n for n, line in enumerate(lines) if f'id: "{label}"' in line)
    end = next(n for n in range(start + 1, len(lines)) if not lines[n].startswith("    "))
    projects.find(root).route_file(ROUTE).write_text("\n".join(lines[:start] + lines[end:]), encoding="utf-8")


def test_a_decision_that_a_person_takes_out_of_the_file_is_dropped_too(tmp_path: Path) -> None:
    decided(tmp_path)
    decided(tmp_path, "Never push to main")
    without(tmp_path, "DEC-001")
    append(tmp_path, "checkpoint", brought(SQLITE), "later")
    assert statuses_of(tmp_path) == {"DEC-002": "active"}
    assert [stone.id for stone in ralf.get_context(ROUTE, root=tmp_path).dropped] == ["DEC-001"]
    assert ralf.why(ROUTE, "DEC-001", root=tmp_path).status == "dropped"


def test_a_decision_whose_status_a_person_sets_to_dropped_is_dropped_too(tmp_path: Path) -> None:
    decided(tmp_path)
    edit(tmp_path, 'status: "active"', 'status: "dropped"')
    append(tmp_path, "checkpoint", brought(SQLITE), "later")
    assert statuses_of(tmp_path) == {"DEC-001": "dropped"}


def test_a_person_who_sets_it_to_active_again_brings_it_back(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    edit(tmp_path, 'status: "dropped"', 'status: "active"')
    append(tmp_path, "checkpoint", brought("Never push to main"), "later")
    context = ralf.get_context(ROUTE, root=tmp_path)
    assert ([item.status for item in context.decisions], context.dropped) == (["active", "active"], ())
