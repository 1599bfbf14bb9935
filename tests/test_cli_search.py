"""`ralf context search` on a terminal, in a pipe and for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ralf
import storekit

BOLD = "\x1b["


@pytest.fixture
def project(tmp_path: Path) -> Path:
    reason = "The gauge drifts. " * 60 + "Its gearbox needs oil before every storm. " + "The pier is long. " * 60
    ralf.record_decision("r", "Check the crane twice a week", rationale=reason, root=tmp_path)
    return tmp_path


def search(root: Path, *arguments: str) -> list[str]:
    """The command line of a search."""
    return [sys.executable, "-m", "ralf_cli", "--root", str(root), "context", "search", *arguments]


def test_on_a_terminal_the_words_that_were_asked_for_stand_out(project: Path) -> None:
    arguments = ("context", "search", "oil gearbox")
    _, printed = storekit.on_a_terminal(project, *arguments, TERM="xterm")
    assert f"{BOLD}31m{BOLD}1mgearbox" in printed
    assert f"{BOLD}31m{BOLD}1moil" in printed


def test_in_a_pipe_nothing_stands_out(project: Path) -> None:
    done = subprocess.run(
        search(project, "oil gearbox"), capture_output=True, text=True, env=storekit.environment(project)
    )
    assert BOLD not in done.stdout
    assert "gearbox" in done.stdout


def test_a_long_hit_is_shown_where_it_matches_and_whole_for_programs(project: Path) -> None:
    done = subprocess.run(
        search(project, "oil gearbox"), capture_output=True, text=True, env=storekit.environment(project)
    )
    assert "Its gearbox needs oil" in done.stdout
    assert len(done.stdout) < 800
    listed = subprocess.run(
        search(project, "oil gearbox", "--json"), capture_output=True, text=True, env=storekit.environment(project)
    )
    (hit,) = json.loads(listed.stdout)
    assert list(hit) == ["route", "kind", "id", "text", "score", "source", "status", "sure"]
    assert len(hit["text"]) == 2_000


def test_what_may_be_no_answer_stands_below_a_line_that_says_so(tmp_path: Path) -> None:
    ralf.record_decision("r", "Oil the gearbox of the crane before a storm", root=tmp_path)
    ralf.record_decision("r", "Tell the pilots of each storm", root=tmp_path)
    for number in range(9):
        ralf.record_decision("r", f"Sweep pier {number} by hand", root=tmp_path)
    done = subprocess.run(
        search(tmp_path, "who oils the gearbox of the crane by storm"),
        capture_output=True,
        text=True,
        env=storekit.environment(tmp_path),
    )
    sure, line, unsure = done.stdout.partition("may not answer it:\n")
    assert line
    assert "Oil the gearbox" in sure
    assert "Tell the pilots" in unsure
