"""The harnesses of tasks, as a person starts them: each finds nothing in ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import examples
from test_fault_harnesses import faults, harness

pytestmark = [pytest.mark.release]

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
        *(20, "--rounds", examples(60)),
        *("--tasks", examples(400), "--kills", examples(100)),
    ),
    "loops": (50, "--rounds", examples(36), "--at-once", 3),
    "clones": (15, "--rounds", examples(60)),
}
"""Those that take longer: how many seconds in `.ci/run`, and how much of what is promised; all of it is one command,
whose last figures are in `benchmarks/RESULTS.md`.
"""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.release(seconds=size[0])) for name, size in WHOLE.items()]
)
def test_a_larger_run_finds_nothing(tmp_path: Path, name: str) -> None:
    done = harness(name, *WHOLE[name][1:], cwd=tmp_path)
    assert faults(done) == []
    assert "| case | figure | target |" in done.stdout
