"""Recording decisions: durable, labelled, in the file at once, and never twice."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
from ralf import project as projects
from ralf.document.tree import to_tree
from ralf.errors import Busy, UsageError
from ralf.model import Decision
from ralf.route import corrections


@pytest.mark.parametrize("said", ["dec-1", "DEC-1", "Dec-001", "1", " DEC-001 ", "0001"])
def test_the_label_of_what_a_decision_replaces_is_taken_as_why_takes_it(tmp_path: Path, said: str) -> None:
    ralf.record_decision("tide", "Use Flask", root=tmp_path)
    made = ralf.record_decision("tide", "Use FastAPI", supersedes=said, root=tmp_path)
    assert made.supersedes == "DEC-001"
    assert ralf.get_context("tide", root=tmp_path).decisions[0].superseded_by == made.id


def test_what_is_superseded_already_is_not_superseded_silently_again(tmp_path: Path) -> None:
    old = ralf.record_decision("r", "Use X", root=tmp_path)
    ralf.record_decision("r", "Use Y", supersedes=old.id, root=tmp_path)
    with pytest.raises(Busy, match="DEC-001 is superseded by DEC-002 already"):
        ralf.record_decision("r", "Use Z", supersedes=old.id, root=tmp_path)


# ---- dropping a decision ----


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


# ---- it does not come back ----


def test_no_summariser_brings_it_back(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    append(tmp_path, "checkpoint", brought(SQLITE), "later")
    assert statuses_of(tmp_path) == {"DEC-001": "dropped"}


# ---- it comes back by a person's word ----


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


def test_a_person_who_sets_it_to_active_again_brings_it_back(tmp_path: Path) -> None:
    corrections.drop(ROUTE, decided(tmp_path), root=tmp_path)
    edit(tmp_path, 'status: "dropped"', 'status: "active"')
    append(tmp_path, "checkpoint", brought("Never push to main"), "later")
    context = ralf.get_context(ROUTE, root=tmp_path)
    assert ([item.status for item in context.decisions], context.dropped) == (["active", "active"], ())
