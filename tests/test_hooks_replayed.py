"""Real sessions through the hooks: no stretch of 50,000 tokens without a checkpoint, and little is handed over."""

from __future__ import annotations

import os

import pytest
from tests.faults import replayed

import hookkit
from ralf import environment


@pytest.fixture(autouse=True)
def _nobody_s_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith(hookkit.MEANT)]:
        monkeypatch.delenv(variable)
    monkeypatch.setattr(environment, "start_detached", environment.start_detached)  # the harness puts its own there


@pytest.mark.ci
def test_two_sessions_on_a_route_are_cut_below_50_000_tokens_and_cost_a_twentieth() -> None:
    (report,) = replayed.runs(["made"], 110_000)
    assert report.faults == []
    assert [reason for reason, _ in report.segments] == ["threshold", "session-end"] * 2
    assert report.handed > 300


@pytest.mark.ci
@pytest.mark.parametrize(
    ("broken", "fault", "size"),
    [("hints that look too far ahead", "late", 160_000), ("briefs that cost what they may", "dear", 24_000)],
)
def test_the_harness_finds_what_is_broken(monkeypatch: pytest.MonkeyPatch, broken: str, fault: str, size: int) -> None:
    assert replayed.BROKEN[broken] == fault
    replayed.break_on_purpose(broken, monkeypatch.setattr)
    (report,) = replayed.runs(["made"], size)
    assert any(f": {fault}: " in found for found in report.faults), report


@pytest.mark.release
@pytest.mark.parametrize("kind", ["data", "chain", "cases"])
def test_so_it_is_with_real_sessions(kind: str) -> None:
    if not replayed.SHARED.is_dir():
        pytest.skip("the evaluation data are not there")
    faults = [fault for report in replayed.runs([kind], 300_000) for fault in report.faults]
    assert faults == []
