"""Generated sessions with a hook after every step: every threshold gives a checkpoint, none two, none too soon."""

from __future__ import annotations

import os

import pytest
from tests.faults import rig, thresholds

import hookkit
from ralf import environment

pytestmark = pytest.mark.ci


@pytest.fixture(autouse=True)
def _nobody_s_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith(hookkit.MEANT)]:
        monkeypatch.delenv(variable)
    monkeypatch.setattr(environment, "start_detached", environment.start_detached)  # the harness puts its own there


@pytest.mark.parametrize("detached", [False, True])
def test_every_threshold_of_generated_sessions_gives_one_checkpoint(detached: bool) -> None:
    found = thresholds.one(3 if detached else 1, 1, thresholds.Size(most=60_000, threshold=6_000, detached=detached))
    assert found.examples == {}
    assert found.acknowledged > 2


def test_so_it_is_at_50_000_tokens_in_longer_sessions() -> None:
    found = rig.Found()
    for number in range(4):
        found.add(thresholds.one(number, 5, thresholds.Size()))
    assert found.examples == {}
    assert found.acknowledged > 2
