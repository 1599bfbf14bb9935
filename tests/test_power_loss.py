"""Nothing that was acknowledged is lost when the power goes, at whatever block of a write."""

from __future__ import annotations

import pytest
from tests.faults import power

from examples import examples

pytestmark = [pytest.mark.release, pytest.mark.skipif(bool(power.why_not()), reason=f"power loss: {power.why_not()}")]


@pytest.mark.release(seconds=18)
def test_every_state_of_the_disk_holds_what_was_acknowledged():
    """States of a real ext4: after each block of a checkpoint, and with any part of what was not yet flushed."""
    states = examples(200)
    found = power.run(states, seed=1)
    assert (found.rounds, dict(found.examples)) == (states, {})
    assert found.acknowledged > states
