"""Whatever lies in the store, in a transcript or on the command line: no crash, no hang, no escape, little memory."""

from __future__ import annotations

import pytest
from tests.faults import fuzz, rig

from examples import examples


@pytest.mark.ci
def test_a_thousand_hostile_inputs_of_every_kind_are_read_or_refused() -> None:
    assert fuzz.run(rig.Rounds(1_000, jobs=1), 1).examples == {}


@pytest.mark.release(seconds=6)
def test_many_hostile_inputs_are_read_or_refused() -> None:
    assert fuzz.run(rig.Rounds(examples(20_000)), 4).examples == {}
