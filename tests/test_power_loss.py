"""Nothing that was acknowledged is lost when the power goes, at whatever block of a write."""

from __future__ import annotations

import pytest
from tests.faults import power

from examples import examples

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(power.why_not()), reason=f"power loss: {power.why_not()}")]


@pytest.mark.slow(seconds=18)
def test_every_state_of_the_disk_holds_what_was_acknowledged():
    """States of a real ext4: after each block of a checkpoint, and with any part of what was not yet flushed."""
    states = examples(200)
    result = power.run(states, seed=1)

    assert result.states == states
    assert result.acknowledged > states
    assert result.faults == []


def test_a_store_that_never_syncs_is_found_out():
    """The harness can fail: without fsync, acknowledged records are gone."""
    assert power.run(40, seed=1, work=power.BROKEN["anything"]).lost


def test_a_store_that_syncs_its_journal_alone_is_found_out():
    """The route file's fsync is not for nothing: without it an empty file is found."""
    assert power.run(60, seed=1, work=power.BROKEN["the route file"]).torn
