"""Dropping a decision: it leaves what is in force, and nothing but a person's word brings it back."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
from ralf import project as projects
from ralf.document.tree import to_tree
from ralf.errors import UsageError
from ralf.model import Decision
from ralf.route import corrections

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
