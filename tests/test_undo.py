"""Undo: a counter-record takes one write back, what came since stays, and an undo can be undone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import ralf
from ralf import project as projects
from ralf.document.tree import to_tree
from ralf.errors import Busy, NotFound
from ralf.maintenance.verify import verify
from ralf.route import history
from ralf.route.taking_back import undo
from storekit import MARKER, records_of, write_session

ROUTE = "tide"


def decide(root: Path, text: str, **more: str) -> str:
    return ralf.record_decision(ROUTE, text, origin=more.pop("origin", "user"), root=root, **more).id  # type: ignore[arg-type]


def in_force(root: Path) -> list[str]:
    return [item.decision for item in ralf.get_context(ROUTE, root=root).decisions if item.status == "active"]


def stored(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (root / ".autonomous").rglob("*") if path.is_file())


def content(root: Path) -> object:
    tree = to_tree(history.at_present(projects.find(root), ROUTE))
    return {key: value for key, value in tree.items() if key not in ("context_checkpoint", "folded")}


@pytest.mark.ci
def test_each_kind_of_write_is_taken_back_and_the_content_is_as_before(tmp_path: Path) -> None:
    decide(tmp_path, "Use SQLite")
    writes = {
        "decision": lambda: decide(tmp_path, "Use Postgres", supersedes="DEC-001"),
        "drop": lambda: ralf.api.drop(ROUTE, "DEC-001", root=tmp_path),
        "handover": lambda: ralf.api.hand_over(
            ROUTE, now="half done", decisions=["Use WAL"], open=["Who?"], root=tmp_path
        ),
        "goal": lambda: ralf.api.change(ROUTE, {"goal": "Another"}, root=tmp_path),
        "next": lambda: ralf.api.change(ROUTE, {"active_work": {"next_steps": ["Write it"]}}, root=tmp_path),
    }
    for name, write in writes.items():
        before = content(tmp_path)
        write()
        assert content(tmp_path) != before, name
        undone = undo(ROUTE, root=tmp_path)
        assert content(tmp_path) == before, name
        assert undone.revision == len(records_of(tmp_path, ROUTE))
    assert not verify(root=tmp_path).damaged


@pytest.mark.ci
def test_neither_a_checkpoint_nor_what_was_purged_is_taken_back(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 3_000)
    ralf.checkpoint(ROUTE, tmp_path / "session.jsonl", root=tmp_path)
    label = decide(tmp_path, f"The chart lies in the {MARKER}")
    decide(tmp_path, "Use SQLite")
    assert MARKER.encode() in stored(tmp_path)
    ralf.api.forget(ROUTE, label, root=tmp_path)
    undo(ROUTE, root=tmp_path)
    with pytest.raises((NotFound, Busy)):
        undo(ROUTE, 1, root=tmp_path)
    for event in history.log(ROUTE, root=tmp_path):
        try:
            undo(ROUTE, event.revision, root=tmp_path)
        except (Busy, NotFound):
            continue
    assert MARKER not in ralf.get_context(ROUTE, root=tmp_path).render()
    assert MARKER.encode() not in stored(tmp_path)


@pytest.mark.ci
def test_a_random_history_is_taken_back_write_by_write(tmp_path: Path) -> None:
    dice = random.Random(25)  # noqa: S311
    states = [None]
    for number in range(25):
        known = in_force(tmp_path) if number else []
        throw = dice.random()
        if throw < 0.6 or not known:
            decide(tmp_path, f"Decision {number}")
        elif throw < 0.8:
            labels = [one.id for one in ralf.get_context(ROUTE, root=tmp_path).decisions if one.status == "active"]
            ralf.api.drop(ROUTE, dice.choice(labels), root=tmp_path)
        else:
            ralf.api.change(ROUTE, {"goal": f"Step {number}"}, root=tmp_path)
        states.append(content(tmp_path))
    for state in reversed(states[1:-1]):
        undo(ROUTE, root=tmp_path)
        assert content(tmp_path) == state
    assert not verify(root=tmp_path).damaged
    assert ralf.search("Decision", root=tmp_path) is not None
