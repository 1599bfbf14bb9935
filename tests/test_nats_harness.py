"""The harnesses for NATS servers, which look for lost records and for secrets, find none in ours, and some in a broken
store.
"""

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


@pytest.mark.slow(seconds=40)
def test_no_planted_secret_is_at_rest_on_a_server(tmp_path: Path) -> None:
    done = harness("engine_secrets", "--only", "at rest", "--secrets", 200, cwd=tmp_path)
    assert faults(done) == []
    assert "| a secret is at rest on a server | 0 of 200 | 0 |" in done.stdout


@pytest.mark.slow(seconds=20)
@pytest.mark.parametrize("broken", ["not encrypted", "readable names"])
def test_secrets_are_found_where_a_store_shows_them(tmp_path: Path, broken: str) -> None:
    done = harness("engine_secrets", "--only", "at rest", "--secrets", 88, "--broken", broken, cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(r"(?m)^a secret is at rest on a server: ", done.stderr)


@pytest.mark.slow(seconds=90)
def test_no_password_is_in_what_ralf_prints_writes_and_starts(tmp_path: Path) -> None:
    assert faults(harness("engine_secrets", "--only", "passwords", cwd=tmp_path)) == []


@pytest.mark.slow(seconds=20)
def test_a_password_that_a_program_lets_out_is_found_wherever_it_comes_out(tmp_path: Path) -> None:
    done = harness("engine_secrets", "--only", "passwords", "--broken", "leaking", cwd=tmp_path)
    for where in ("in the output", "in a file", "in a list of processes"):
        assert f"\na password is {where}: " in f"\n{done.stderr}"
