"""Random histories of a route: differences are exact, reverts give back what was, and the check itself can fail."""

from __future__ import annotations

import pytest
from tests.faults import histories

from examples import examples


def test_in_random_histories_differences_are_exact_and_reverts_give_back_what_was() -> None:
    assert histories.chunk(1, 0, 40) == []


@pytest.mark.slow
def test_in_many_random_histories_too() -> None:
    assert histories.run(examples(1_000), seed=2) == []


@pytest.mark.slow
@pytest.mark.parametrize("variant", histories.BROKEN)
def test_a_broken_apply_and_a_broken_revert_are_found(variant: str) -> None:
    assert histories.chunk(1, 0, 60, variant) != []
    assert histories.chunk(1, 0, 1) == []
