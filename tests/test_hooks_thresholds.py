"""Generated sessions with a hook after every step: every threshold gives a checkpoint, none two, none too soon."""

from __future__ import annotations

import os

import pytest
from tests.faults import thresholds

import hookkit
from ralf import environment

pytestmark = pytest.mark.ci


@pytest.fixture(autouse=True)
def _nobody_s_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith(hookkit.MEANT)]:
        monkeypatch.delenv(variable)
    monkeypatch.setattr(environment, "start_detached", environment.start_detached)  # the harness puts its own there


def test_every_threshold_of_generated_sessions_gives_one_checkpoint() -> None:
    report = thresholds.one(1, 1, 60_000, 6_000, processes=False)
    assert report.faults == []
    assert report.crossings > 2


def test_so_it_is_with_the_processes_that_hooks_start() -> None:
    report = thresholds.one(3, 1, 60_000, 6_000, processes=True)
    assert report.faults == []
    assert report.checkpoints > 2


def test_so_it_is_at_50_000_tokens_in_longer_sessions() -> None:
    report = thresholds.Report()
    for number in range(4):
        report.add(thresholds.one(number, 5, 400_000, 50_000, processes=False))
    print(report)
    assert report.faults == []
    assert report.crossings > 2


@pytest.mark.parametrize(("broken", "fault"), thresholds.BROKEN.items())
def test_the_harness_finds_what_is_broken(monkeypatch: pytest.MonkeyPatch, broken: str, fault: str) -> None:
    thresholds.break_on_purpose(broken, monkeypatch.setattr)
    report = thresholds.one(1, 1, 200_000, 10_000, processes=False)
    assert any(f": {fault}: " in found for found in report.faults), report
