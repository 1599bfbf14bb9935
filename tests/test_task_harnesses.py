"""The harnesses of tasks, as a person starts them: each finds nothing in ours, and what a broken one does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples import examples
from test_fault_harnesses import faults, harness

pytestmark = [pytest.mark.slow, pytest.mark.agents]

QUICK = {
    "claims, one winner": ("--rounds", 8, "--racers", 8, "--only", "one winner"),
    "claims, a long list": ("--tasks", 24, "--workers", 4, "--only", "long list"),
    "claims, kills": ("--kills", 6, "--only", "kills"),
    "clones": ("--rounds", 2),
}
"""Those of a second or two."""


@pytest.mark.parametrize("name", QUICK)
def test_a_small_run_finds_nothing(tmp_path: Path, name: str) -> None:
    done = harness(name.partition(", ")[0], *QUICK[name], cwd=tmp_path)
    assert faults(done) == []
    assert "| case | figure | target |" in done.stdout


WHOLE = {
    "claims": (
        *(20, "--rounds", examples(60), "--commands", examples(16)),
        *("--tasks", examples(400), "--kills", examples(100)),
    ),
    "loops": (50, "--rounds", examples(36), "--at-once", 3),
    "clones": (15, "--rounds", examples(60)),
}
"""Those that take longer: how many seconds in `.ci/run`, and how much of what is promised; all of it is one command,
whose last figures are in `benchmarks/RESULTS.md`.
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow(seconds=size[0])) for name, size in WHOLE.items()]
)
def test_a_larger_run_finds_nothing(tmp_path: Path, name: str) -> None:
    done = harness(name, *WHOLE[name][1:], cwd=tmp_path)
    assert faults(done) == []
    assert "| case | figure | target |" in done.stdout


BROKEN = {
    "no compare and swap, one winner": ("doubled|nobody|unfenced", "--rounds", 12, "--only", "one winner"),
    "no compare and swap, long list": ("doubled|unfenced|failed", "--tasks", 60, "--only", "long list"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN)
def test_claims_that_are_a_read_and_a_write_are_found(tmp_path: Path, case: str) -> None:
    fault, *arguments = BROKEN[case]
    done = harness("claims", *arguments, "--broken", case.partition(", ")[0], cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(rf"(?m)^({fault}): ", done.stderr)
