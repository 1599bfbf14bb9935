"""`ralf search` on a terminal, in a pipe and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

import ralf
import storekit

pytestmark = pytest.mark.ci

BOLD = "\x1b["


@pytest.fixture
def project(tmp_path: Path) -> Path:
    reason = "The gauge drifts. " * 60 + "Its gearbox needs oil before every storm. " + "The pier is long. " * 60
    ralf.record_decision("r", "Check the crane twice a week", rationale=reason, root=tmp_path)
    return tmp_path


def test_on_a_terminal_the_words_that_were_asked_for_stand_out(project: Path) -> None:
    arguments = ("search", "oil gearbox")
    _, printed = storekit.on_a_terminal(project, *arguments, TERM="xterm")
    assert f"{BOLD}31m{BOLD}1mgearbox" in printed
    assert f"{BOLD}31m{BOLD}1moil" in printed


def test_a_long_hit_is_shown_where_it_matches_and_whole_for_programs(project: Path) -> None:
    done = storekit.process("search", "oil gearbox", cwd=project)
    assert "Its gearbox needs oil" in done.out and BOLD not in done.out
    assert len(done.out) < 800
    (hit,) = storekit.process("search", "oil gearbox", "--json", cwd=project).json()
    assert list(hit) == ["route", "kind", "id", "text", "score", "source", "status", "at"]
    assert len(hit["text"]) == 2_000
