"""Rules are kept, and pastes are not promoted, on prompts whose author had not seen the code."""

from __future__ import annotations

import pytest
from tests import honest
from tests.honest import Taken


@pytest.mark.parametrize(("name", "count"), honest.SETS.items())
def test_every_prompt_is_long_and_holds_its_labels(name: str, count: int) -> None:
    prompts = list(honest.rows("prompts", name))
    assert len(prompts) == count
    for row in prompts:
        assert len(row["text"]) > 2_000
        assert all(label in row["text"] for label in (*row["rules"], *row["not_rules"]))
    for row in honest.rows("pastes", name):
        assert all(label in row["text"] for label in (row["request"], *row["foreign"], *row["own_rules"]))


@pytest.mark.parametrize(
    ("name", "listed", "decided", "taken"),
    [("dev", 0.85, 0.92, 0.05), ("held", 0.9, 0.98, 0.05), ("second", 0.73, 0.78, 0.11), ("third", 0.65, 0.73, 0.16)],
)
def test_the_rules_of_a_long_prompt_are_kept(name: str, listed: float, decided: float, taken: float) -> None:
    """The last two were written after the weights were set: what is kept holds, what is listed is less."""
    found = honest.measured(name)
    assert found.kept >= 0.95 * found.rules
    assert found.listed >= listed * found.rules
    assert found.decided >= decided * found.rules
    assert found.taken <= taken * found.traps
    assert found.traps_decided <= (taken + 0.08) * found.traps


@pytest.mark.parametrize(
    ("name", "promoted", "own_listed"), [("dev", 0, 6), ("held", 0, 8), ("second", 0, 2), ("third", 10, 5)]
)
def test_what_is_pasted_is_not_promoted_and_what_is_said_beside_it_is_kept(
    name: str, promoted: int, own_listed: int
) -> None:
    """Of the third set, at which nobody has looked, ten sentences of pastes without any mark pass."""
    found = honest.measured(name)
    assert found.promoted <= promoted
    assert (found.lost, found.own_kept) == (0, found.own)
    assert found.own_listed >= own_listed


def test_the_measure_tells_a_rule_that_is_listed_from_one_that_is_only_kept() -> None:
    taken = Taken.of("From now on, never push to main. The build is slow.")
    assert taken.lists("never push to main")
    assert taken.keeps("The build is slow")
    assert not taken.lists("The build is slow")
    assert not taken.keeps("Tabs, not spaces")
