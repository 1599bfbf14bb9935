"""`ralf context search` on a terminal, in a pipe and for programs."""

from __future__ import annotations

import json
import os
import pty
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


def on_a_terminal(root: Path, *arguments: str) -> str:
    """What a search prints on a terminal."""
    ours, theirs = pty.openpty()
    environment = storekit.environment(root, TERM="xterm")
    with subprocess.Popen(
        search(root, *arguments), stdout=theirs, stderr=theirs, stdin=theirs, env=environment
    ) as running:
        os.close(theirs)
        printed = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            printed += part
        running.wait()
    os.close(ours)
    return printed.decode()


def test_on_a_terminal_the_words_that_were_asked_for_stand_out(project: Path) -> None:
    printed = on_a_terminal(project, "oil gearbox")
    assert f"{BOLD}33m{BOLD}1mgearbox" in printed
    assert f"{BOLD}33m{BOLD}1moil" in printed


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
    assert list(hit) == ["route", "kind", "id", "text", "score", "source", "status"]
    assert len(hit["text"]) == 2_000
