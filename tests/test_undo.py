"""Undo: a counter-record takes one write back, what came since stays, and an undo can be undone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import ralf
from ralf import project as projects
from ralf.document.tree import to_tree
from ralf.errors import Busy
from ralf.maintenance.verify import verify
from ralf.route import history
from ralf.route.taking_back import undo

ROUTE = "tide"


def decide(root: Path, text: str, **more: str) -> str:
    return ralf.record_decision(ROUTE, text, origin=more.pop("origin", "user"), root=root, **more).id  # type: ignore[arg-type]


def in_force(root: Path) -> list[str]:
    return [item.decision for item in ralf.get_context(ROUTE, root=root).decisions if item.status == "active"]


def content(root: Path) -> object:
    tree = to_tree(history.at_present(projects.find(root), ROUTE))
    return {key: value for key, value in tree.items() if key not in ("context_checkpoint", "folded")}


def test_a_write_that_a_later_one_built_on_is_not_taken_back(tmp_path: Path) -> None:
    decide(tmp_path, "One")
    decide(tmp_path, "Two", supersedes="DEC-001")
    with pytest.raises(Busy, match="was changed after r1"):
        undo(ROUTE, 1, root=tmp_path)
    assert in_force(tmp_path) == ["Two"]


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
