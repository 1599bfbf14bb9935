"""Random edits by hand of a memory's file lose no field, and what a memory costs does not grow with it."""

from __future__ import annotations

import pytest
from tests.faults.remembered import run

from examples import examples


@pytest.mark.ci
def test_random_edits_by_hand_lose_no_field_and_change_nothing_else() -> None:
    assert run(examples(4_000), seed=3) == []


@pytest.mark.ci
def test_the_harness_catches_a_parser_that_forgets_fields_that_it_does_not_know() -> None:
    assert "extra" in "\n".join(run(60, broken=True))
