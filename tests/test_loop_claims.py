"""A run of RALF's own loop holds its task as any agent does, and its promise says what became of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralf.maintenance import ownership
from ralf.project import Project
from ralf.tasks import claims, origin, store
from ralf.tasks.model import TaskState
from ralf_integrations.blackbox5 import loop

TASK = "TASK-ARCH-028"
WRITTEN = """\
# TASK-ARCH-028: Carry the tide table over

**Status:** in_progress
**Priority:** HIGH

---

## Objective

Every harbour has its levels.
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / ".autonomous" / "runs").mkdir(parents=True)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    made = Project(tmp_path)
    ownership.init(made, share=False)
    made.owner.update(pinned={str(tmp_path / "context-checkpoint.sh"): "0" * 64})  # as `init --client ralf` does
    folder = tmp_path / ".autonomous" / "tasks" / "active" / f"{TASK}-tide-table"
    folder.mkdir(parents=True)
    (folder / "task.md").write_text(WRITTEN)
    return made


def a_run(project: Project, number: int) -> Path:
    folder = project.root / ".autonomous" / "runs" / f"run-20260201_1200{number:02d}-{TASK}"
    folder.mkdir()
    return folder


def begun(project: Project, run: Path, capfd: pytest.CaptureFixture[str]) -> str:
    capfd.readouterr()
    assert loop.main(["start", "--run-dir", str(run), "--route", TASK, "--root", str(project.root)]) == 0
    return capfd.readouterr().out


def ended(project: Project, run: Path, promise: str = "") -> TaskState:
    output = run / "claude_output.log"
    output.write_text(f"worked\n<promise>{promise}</promise>\n" if promise else "worked\n")
    assert loop.main(["end", str(output), "--run-dir", str(run), "--route", TASK, "--root", str(project.root)]) == 0
    return store.get(TASK, root=project.root)


def test_a_run_holds_its_task_as_long_as_its_loop_runs(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    run = a_run(project, 1)
    begun(project, run, capfd)
    claim = store.get(TASK, root=project.root).claim
    assert claim is not None
    assert (claim.by, claim.process) == (f".autonomous/runs/{run.name}", os.getpgrp())
    begun(project, run, capfd)  # said twice, it is the same claim
    assert store.get(TASK, root=project.root).claim == claim


def test_a_run_is_told_its_tasks_title_and_objective(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    text = begun(project, a_run(project, 1), capfd)
    assert "Carry the tide table over" in text and "Every harbour has its levels." in text
    assert text.startswith("<!-- ralf:context ")  # as data


def test_a_run_that_never_ended_is_no_other_agent_to_the_next_one_of_its_loop(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    begun(project, a_run(project, 1), capfd)
    second = a_run(project, 2)
    assert "another agent" not in begun(project, second, capfd)
    state = ended(project, second, "COMPLETE")
    assert (state.task.status, [one.outcome for one in state.attempts]) == ("completed", ["unfinished", "done"])


@pytest.mark.ci
def test_a_run_whose_task_another_agent_has_is_told_so_and_takes_nothing(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    claims.claim(TASK, by="loop-1.1", process=os.getpid(), born=origin.born(os.getpid()), root=project.root)
    run = a_run(project, 1)
    text = begun(project, run, capfd)
    assert "loop-1.1" in text
    state = ended(project, run, "COMPLETE")
    assert (state.task.status, state.claim and state.claim.by) == ("pending", "loop-1.1")


@pytest.mark.ci
@pytest.mark.parametrize(
    ("promise", "status", "outcome"),
    [("FAILED", "failed", "failed"), ("PARTIAL", "pending", "unfinished"), ("", "pending", "unfinished")],
)
def test_what_else_a_run_promises_leaves_the_task_to_another_or_fails_it(
    project: Project, capfd: pytest.CaptureFixture[str], promise: str, status: str, outcome: str
) -> None:
    run = a_run(project, 1)
    begun(project, run, capfd)
    state = ended(project, run, promise)
    assert (state.task.status, state.claim, state.attempts[-1].outcome) == (status, None, outcome)
    assert promise in state.attempts[-1].note or promise == "FAILED"


def test_a_run_without_a_task_file_goes_on_as_before(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    run = project.root / ".autonomous" / "runs" / "run-20260201_120009-TASK-9"
    run.mkdir()
    assert loop.main(["start", "--run-dir", str(run), "--route", "TASK-9", "--root", str(project.root)]) == 0
    assert loop.main(["end", "--run-dir", str(run), "--route", "TASK-9", "--root", str(project.root)]) == 0
    assert "TASK-9" not in [state.task.id for state in store.list_tasks(root=project.root).tasks]
