"""Random histories of a route: differences are exact, and reverts give back what was."""

from __future__ import annotations

import pytest
from tests.faults import histories, rig

from examples import examples


@pytest.mark.ci
def test_in_random_histories_differences_are_exact_and_reverts_give_back_what_was() -> None:
    assert histories.run(rig.Rounds(40), 1).examples == {}


@pytest.mark.release
def test_in_many_random_histories_too() -> None:
    assert histories.run(rig.Rounds(examples(1_000)), 2).examples == {}
