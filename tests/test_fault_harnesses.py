"""The harnesses that break the write path: each finds what a broken one loses, and nothing in ours."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults import variants
from tests.faults.figures import SKIPPED

from examples import examples, step

NATS = ("nats",)
"""Harnesses of `test_nats_harness.py`."""


def faults(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a run has found. Not what took long: that is for a machine which does nothing else."""
    return [line for line in done.stderr.splitlines() if not line.startswith("slow: ")]


def harness(name: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`python -m tests.faults.NAME`, as a person starts it; skips the test where the harness cannot run."""
    done = variants.started(name, *arguments, home=cwd)
    if done.returncode == SKIPPED:
        pytest.skip(done.stderr.strip())
    print(done.stdout)  # the figures, in the report of a failure and with -rP
    return done


def broken(wanted: Iterator[variants.Variant]) -> pytest.MarkDecorator:
    """A test for each of these variants."""
    marked = [pytest.param(each, id=str(each), marks=pytest.mark.release(seconds=each.seconds)) for each in wanted]
    return pytest.mark.parametrize("variant", marked)


def finds(variant: variants.Variant, home: Path) -> None:
    """See that a variant is found; skips the test where its harness cannot run."""
    found = variant.run(home)
    if found.startswith("skipped: "):
        pytest.skip(found)
    assert found


LENGTHS = {
    "calls": (18, "--part", 8 * step()),
    "mixed": (8, "--rounds", examples(20)),
    "shares": (8, "--rounds", examples(40)),
    "mixed, sixteen writers": (10, "--rounds", examples(20), "--workers", 16, "--lives", 1000),
    "forget": (10, "--rounds", examples(60)),
    "power": (18, "--states", examples(200)),
}
"""How many seconds each takes in `.ci/run`, and the part of it that is run."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.release(seconds=how[0])) for name, how in LENGTHS.items()]
)
def test_a_run_finds_nothing(tmp_path: Path, name: str) -> None:
    done = harness(name.partition(", ")[0], *LENGTHS[name][1:], cwd=tmp_path)
    assert faults(done) == []
    assert "| case | figure | target |" in done.stdout


@broken(each for each in variants.VARIANTS if each.harness not in NATS)
def test_what_is_broken_on_purpose_is_found(tmp_path: Path, variant: variants.Variant) -> None:
    finds(variant, tmp_path)
