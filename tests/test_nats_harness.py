"""The harnesses for NATS servers, which kill, load and search them and cut their power, find a broken store."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.faults import variants

from test_fault_harnesses import NATS, broken, faults, finds, harness

FOUND_NOTHING = r"faults \| 0 of [1-9]"


@broken(variants.of(*NATS))
def test_what_is_broken_on_purpose_is_found(tmp_path: Path, variant: variants.Variant) -> None:
    finds(variant, tmp_path)


@pytest.mark.release(seconds=45)
def test_leaders_that_are_killed_and_stopped_lose_and_double_nothing(tmp_path: Path) -> None:
    done = harness("nats", "--kills", 4, cwd=tmp_path)
    assert faults(done) == []
    assert re.search(FOUND_NOTHING, done.stdout)
