"""Whatever lies in the store, in a transcript or on the command line: no crash, no hang, no escape, little memory."""

from __future__ import annotations

import re

import pytest
from tests.faults.fuzz import KINDS, fuzz

from examples import examples


def test_a_thousand_hostile_inputs_of_every_kind_are_read_or_refused() -> None:
    report = fuzz(1_000, jobs=1)
    assert report.failures == [], report
    assert set(report.cases) == set(KINDS)


@pytest.mark.slow(seconds=6)
def test_many_hostile_inputs_are_read_or_refused() -> None:
    report = fuzz(examples(20_000), seed=4, jobs=2)
    print(report)
    assert report.failures == [], report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "cases", "fault"),
    [
        ("unguarded front matter", 300, "Error|Hang"),  # too deep: by the speed of the machine
        ("unguarded name", 300, "escape"),
        ("unguarded transcript", 60, "Hang"),  # one case in fourteen
        ("unguarded cache", 7, "MB"),
    ],
)
def test_the_fuzzer_catches_a_reader_without_its_guards(kind: str, cases: int, fault: str) -> None:
    report = fuzz(cases, jobs=1, only=kind)
    assert any(re.search(fault, failure) for failure in report.failures), report
