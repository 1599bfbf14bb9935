"""The detached worker: a configured model improves checkpoints in the background, and nobody waits for it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ralf
import storekit
from ralf import environment
from ralf.checkpointing.progress import status
from ralf.model import Checkpoint
from ralf.project import Project
from ralf.refining import refine
from storekit import grow, lines_of, records_of, write_session

MODEL = Path(__file__).parent / "clients" / "model.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    write_session(root / "session.jsonl", 3_000)
    return root


def configure(project: Path, mode: str, *arguments: str, more: str = "") -> None:
    path = project / ".autonomous" / "context" / "config.local.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    argv = json.dumps([sys.executable, str(MODEL), mode, *arguments])
    path.write_text(f"summarizer: command\ncommand: {argv}\n{more}")
    storekit.allow(path)


def checkpoint(project: Path, **options: Any) -> ralf.CheckpointReport:
    return ralf.checkpoint("tide", project / "session.jsonl", root=project, **options)


def entry(project: Path) -> Checkpoint:
    return ralf.get_context("tide", root=project).checkpoints[-1]


def wait(condition: Callable[[], object], seconds: float = storekit.HANGS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def workers() -> list[int]:
    """The workers of this process that still run, itself reaping those that do not."""
    running = []
    for child in environment.started:
        try:
            done, _ = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            continue
        if not done:
            running.append(child)
    return running


def running(process: int) -> bool:
    """Whether a process still runs (one that is only waiting to be reaped does not)."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture(autouse=True)
def _no_worker_is_left() -> Any:
    yield
    for child in workers():
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    environment.started.clear()


@pytest.mark.ci
def test_a_configured_model_hands_over_in_the_background(project: Path) -> None:
    configure(project, "good")
    report = checkpoint(project)
    assert (report.checkpoints[0].summarizer, report.refinements, report.warnings) == ("extractive", (), ())
    wait(lambda: entry(project).refines)
    assert entry(project).summarizer == "command"
    assert [record["kind"] for record in records_of(project, "tide")] == ["checkpoint", "handover"]


@pytest.mark.ci
def test_nobody_waits_for_a_slow_model_and_it_is_detached(project: Path, tmp_path: Path) -> None:
    configure(project, "slow", str(tmp_path / "child"))
    checkpoint(project, summarizer="extractive")  # loads what is loaded once
    grow(project / "session.jsonl", 1_000, lines_of(3_000)[1])
    started = time.monotonic()
    checkpoint(project)
    assert time.monotonic() - started < storekit.AT_ONCE
    wait((tmp_path / "child").exists)
    (child,) = workers()
    assert os.getsid(child) == child != os.getsid(0)
    streams = {os.readlink(f"/proc/{child}/fd/{number}") for number in range(3)}
    assert streams == {os.devnull}


@pytest.mark.ci
def test_what_a_killed_worker_left_is_picked_up_by_the_next_command(project: Path, tmp_path: Path) -> None:
    configure(project, "slow", str(tmp_path / "child"))
    checkpoint(project)
    wait((tmp_path / "child").exists)
    (child,) = workers()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert entry(project).unrefined == ""
    configure(project, "good")
    assert checkpoint(project).checkpoints == ()
    wait(lambda: entry(project).refines)


@pytest.mark.ci
def test_a_worker_asks_once_about_all_of_the_newest_three_that_none_was_asked_about(project: Path) -> None:
    grow(project / "session.jsonl", 3_000, lines_of(3_000)[1])
    checkpoint(project, segment_tokens=2_000, summarizer="extractive")
    configure(project, "good")
    (made,) = refine.work(Project(project), "tide")
    entries = ralf.get_context("tide", root=project).checkpoints
    assert len(entries) > 3
    assert (made.failure, made.checkpoint_id) == ("", entries[-1].checkpoint_id)
    assert [bool(one.refines) for one in entries] == [number >= len(entries) - 3 for number in range(len(entries))]


@pytest.mark.ci
def test_three_failures_disable_the_model_for_the_route_until_a_call_by_hand_works(project: Path) -> None:
    here, said, number = Project(project), list[str](), lines_of(3_000)[1]
    configure(project, "dead")
    for _ in range(5):
        number = grow(project / "session.jsonl", 3_000, number)
        said += checkpoint(project, summarizer="extractive").warnings
        refine.work(here, "tide")
    assert ralf.get_context("tide", root=project).context_checkpoint.spend.calls == 3
    for _ in range(2):
        number = grow(project / "session.jsonl", 3_000, number)
        said += checkpoint(project).warnings
    assert workers() == []
    assert status(here, "tide").model_problem
    # Another route is asked about all the same.
    configure(project, "good")
    ralf.checkpoint("other", project / "session.jsonl", root=project, summarizer="extractive")
    assert [made.failure for made in refine.work(here, "other")] == [""]
    assert status(here, "tide").model_problem
    # A call that works switches it on.
    assert checkpoint(project, summarizer="command").refinements[0].failure == ""
    assert status(here, "tide").model_problem == ""


@pytest.mark.ci
def test_the_cap_of_a_day_is_kept_over_all_routes(project: Path) -> None:
    configure(project, "good", more="daily_cap: 1000 tokens\n")
    here = Project(project)
    checkpoint(project, summarizer="extractive")
    ralf.checkpoint("other", project / "session.jsonl", root=project, summarizer="extractive")
    assert [made.failure for made in refine.work(here, "tide")] == [""]
    (made,) = refine.work(here, "other")
    assert "1,000" in made.failure
    assert status(here, "other").model_problem == made.failure
