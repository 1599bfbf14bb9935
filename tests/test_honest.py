"""Rules are kept, and pastes are not promoted, on prompts whose author had not seen the code."""

from __future__ import annotations

import pytest
from tests import honest
from tests.honest import Taken


@pytest.mark.parametrize("half", honest.HALVES)
def test_every_prompt_is_long_and_holds_its_labels(half: str) -> None:
    prompts = list(honest.rows("prompts", half))
    assert len(prompts) == 30
    for row in prompts:
        assert len(row["text"]) > 2_000
        assert all(label in row["text"] for label in (*row["rules"], *row["not_rules"]))
    for row in honest.rows("pastes", half):
        assert all(label in row["text"] for label in (row["request"], *row["foreign"], *row["own_rules"]))


@pytest.mark.parametrize(("half", "listed", "decided"), [("dev", 0.85, 0.92), ("held", 0.9, 0.98)])
def test_the_rules_of_a_long_prompt_are_kept(half: str, listed: float, decided: float) -> None:
    found = honest.measured(half)
    assert found.kept >= 0.95 * found.rules
    assert found.listed >= listed * found.rules
    assert found.decided >= decided * found.rules
    assert found.taken <= 0.05 * found.traps
    assert found.traps_decided <= 0.1 * found.traps


@pytest.mark.parametrize(("half", "own_listed"), [("dev", 6), ("held", 8)])
def test_what_is_pasted_is_not_promoted_and_what_is_said_beside_it_is_kept(half: str, own_listed: int) -> None:
    found = honest.measured(half)
    assert found.promoted == 0
    assert (found.lost, found.own_kept) == (0, found.own)
    assert found.own_listed >= own_listed


def test_the_measure_tells_a_rule_that_is_listed_from_one_that_is_only_kept() -> None:
    taken = Taken.of("From now on, never push to main. The build is slow.")
    assert taken.lists("never push to main")
    assert taken.keeps("The build is slow")
    assert not taken.lists("The build is slow")
    assert not taken.keeps("Tabs, not spaces")
