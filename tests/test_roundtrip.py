"""Any text comes back from file and journal as it was, and forges neither heading, key, fence, marker nor footer."""

from __future__ import annotations

import pytest
from tests.faults import rig, roundtrip

from examples import examples


@pytest.mark.ci
def test_a_hundred_contexts_and_records_of_hostile_text_come_back_as_they_were() -> None:
    assert roundtrip.run(rig.Rounds(100, jobs=1), 1).examples == {}


@pytest.mark.release(seconds=6)
def test_many_contexts_and_records_of_hostile_text_come_back_as_they_were() -> None:
    assert roundtrip.run(rig.Rounds(examples(4_000)), 2).examples == {}
