"""Any text comes back from file and journal as it was, and forges neither heading, key, fence, marker nor footer."""

from __future__ import annotations

import pytest
from tests.faults.roundtrip import run

from examples import examples


@pytest.mark.ci
def test_a_hundred_contexts_and_records_of_hostile_text_come_back_as_they_were() -> None:
    assert run(100, jobs=1) == []


@pytest.mark.release(seconds=6)
def test_many_contexts_and_records_of_hostile_text_come_back_as_they_were() -> None:
    assert run(examples(4_000), seed=2, jobs=2) == []


@pytest.mark.ci
def test_the_harness_catches_a_renderer_that_does_not_quote() -> None:
    found = "\n".join(run(150, jobs=1, broken=True))
    for fault in ("DamagedRouteFile", "at the margin", "the context is another"):
        assert fault in found
