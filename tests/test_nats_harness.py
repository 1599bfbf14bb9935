"""The harness that kills and stops the leaders of NATS servers finds nothing in ours, and what a broken store does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from test_fault_harnesses import faults, harness

pytestmark = pytest.mark.agents


@pytest.mark.slow(seconds=60)
def test_leaders_that_are_killed_and_stopped_lose_and_double_nothing(tmp_path: Path) -> None:
    done = harness("nats", "--kills", 6, "--every", 4, cwd=tmp_path)
    assert faults(done) == []
    assert "| nats: lost | 0 of " in done.stdout


@pytest.mark.slow(seconds=20)
def test_a_store_without_compare_and_swap_is_found(tmp_path: Path) -> None:
    done = harness("nats", "--kills", 2, "--every", 3, "--broken", "no compare and swap", cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(r"(?m)^(lost|doubled|moved|damaged): ", done.stderr)
