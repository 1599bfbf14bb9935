"""Whatever lies in the store, in a transcript or on the command line: no crash, no hang, no escape, little memory."""

from __future__ import annotations

import pytest
from tests.faults.fuzz import KINDS, fuzz

from examples import examples


@pytest.mark.ci
def test_a_thousand_hostile_inputs_of_every_kind_are_read_or_refused() -> None:
    report = fuzz(1_000, jobs=1)
    assert report.failures == [], report
    assert set(report.cases) == set(KINDS)


@pytest.mark.release(seconds=6)
def test_many_hostile_inputs_are_read_or_refused() -> None:
    report = fuzz(examples(20_000), seed=4, jobs=2)
    print(report)
    assert report.failures == [], report
