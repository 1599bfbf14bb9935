"""Runs of a loop: each is one attempt at its route, whoever tells of it, and the next one hears what they came to."""

from __future__ import annotations

from pathlib import Path

import pytest

import handingkit
import ralf
from kit.git import git, repository
from ralf import routing
from ralf_integrations.blackbox5 import client
from storekit import kept_bytes

ROUTE = "TASK-7"
RUNS = Path(".autonomous", "runs")


def run(root: Path, number: int, outcome: str = "", *, said: str = "", changed: str = "", task: str = ROUTE) -> Path:
    """The folder of the nth run on a task, with what it says of its end; one that says nothing was killed."""
    folder = root / RUNS / f"run-20260209_12{number:02d}00-{task}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "THOUGHTS.md").write_text(f"# THOUGHTS - {task}\n\n**Started:** 2026-02-09T12:{number:02d}:00Z\n")
    if outcome:
        files = f"\n## Files Modified\n\n- `{changed}`\n" if changed else ""
        (folder / "RESULTS.md").write_text(
            f"# RESULTS\n\n## Summary\n\n{said or f'This is run {number} of many.'}\n{files}"
        )
        (folder / "output.log").write_text(f"That is all.\n<promise>{outcome}</promise>\n")
    return folder


def take(root: Path, *folders: Path, route: str = ROUTE) -> ralf.RouteContext:
    for folder in folders:
        ralf.checkpoint(route, folder, root=root)
    return ralf.get_context(route, root=root)


# ---- counting ----


@pytest.mark.ci
def test_each_run_counts_once_however_often_it_is_read_and_whatever_it_has_left(tmp_path: Path) -> None:
    folders = [run(tmp_path, 1, "PARTIAL"), run(tmp_path, 2), run(tmp_path, 3, "FAILED")]
    assert take(tmp_path, *folders, *folders, folders[1]).active_work.attempts == 3
    before = kept_bytes(tmp_path)
    take(tmp_path, *folders)
    assert kept_bytes(tmp_path) == before


def test_a_run_whose_end_is_told_later_is_the_same_attempt(tmp_path: Path) -> None:
    take(tmp_path, run(tmp_path, 1), run(tmp_path, 2))
    work = take(tmp_path, run(tmp_path, 1, "BLOCKED", said="The gauge at the lock does not answer.")).active_work
    assert work.attempts == 2
    assert [(one.number, one.outcome) for one in work.last_runs] == [(1, "BLOCKED"), (2, "")]
    assert work.outcome == ""  # the last one has said nothing


# ---- what the next one hears ----


def test_the_brief_tells_what_the_last_runs_came_to_the_newest_first(tmp_path: Path) -> None:
    folders = [run(tmp_path, 1, "PARTIAL", said="The loader still holds the lock."), run(tmp_path, 2)]
    context = take(tmp_path, *folders)
    told = [
        "- attempt 2; nothing has changed in any",
        f"- attempt 2 ({RUNS}/{folders[1].name}): ended without a word",
        f"- attempt 1 ({RUNS}/{folders[0].name}): PARTIAL: The loader still holds the lock.",
    ]
    for text in (context.render(), context.render(2_500), context.render(2_500, section="resume")):
        lines = text.split("\n")
        assert [line for line in lines if line.startswith("- attempt")] == told
    assert told[1] in context.render(300)  # the newest is the last to go


@pytest.mark.ci
def test_after_the_configured_number_of_attempts_without_a_change_the_brief_warns(tmp_path: Path) -> None:
    handingkit.project(tmp_path)
    warned = []
    for number in range(1, 6):
        context = take(tmp_path, run(tmp_path, number, "RETRY"))
        warned.append("**Stuck:**" in context.render(400))
    assert warned == [False, False, True, True, True]
    (tmp_path / ".autonomous/context/config.yaml").write_text("health_repeats: 6\n")
    assert "**Stuck:**" not in ralf.get_context(ROUTE, root=tmp_path).render()
    assert "**Stuck:**" not in take(tmp_path, run(tmp_path, 6, "PARTIAL", changed="src/tide.py")).render()


# ---- which route ----


def test_a_runs_route_is_its_folders_task_then_its_metadatas_then_what_it_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = handingkit.project(tmp_path)
    folder = tmp_path / "runs" / "executor" / "run-0018"
    folder.mkdir(parents=True)
    monkeypatch.setenv("RALF_RUN_DIR", str(folder))
    assert routing.choose(project).rule == routing.DEFAULT
    queue = tmp_path / ".autonomous/agents/communications/queue.yaml"
    queue.parent.mkdir(parents=True)
    queue.write_text("tasks:\n- {id: TASK-1, claimed_by: run-0017}\n- {id: TASK-2, claimed_by: run-0018}\n- 5\n")
    assert routing.choose(project) == ("TASK-2", client.CLAIM)
    (folder / "metadata.yaml").write_text('state:\n  task_claimed: "TASK-3: Move it"\n')
    assert routing.choose(project) == ("TASK-3", client.RUN_METADATA)
    named = folder.rename(folder.parent / "run-20260209_120000-TASK-4")
    monkeypatch.setenv("RALF_RUN_DIR", str(named))
    assert routing.choose(project) == ("TASK-4", client.RUN_FOLDER)
    routing.use(project, "chosen", session="")
    assert routing.choose(project, session="") == ("TASK-4", client.RUN_FOLDER)
    monkeypatch.setenv("BB5_TASK_ID", "TASK-5")
    assert routing.choose(project) == ("TASK-5", "$BB5_TASK_ID")


# ---- hooks in a loop ----


def begin(root: Path, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the session of a run is handed that begins: with its prompt, which may hold the brief."""
    monkeypatch.setenv("RALF_RUN_DIR", str(folder))
    assert handingkit.start(name, root) == ""
    return handingkit.prompt(name, root, "# RALF\n\nOne task per run.")


@pytest.mark.ci(seconds=2)
def test_a_new_run_hears_of_earlier_ones_even_killed_ones_and_counts_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    handingkit.project(root)
    assert begin(root, run(root, 1), "s-1", monkeypatch) == ""
    run(root, 1, "PARTIAL", said="The loader still holds the lock.")  # and nobody takes it
    text = begin(root, run(root, 2), "s-2", monkeypatch)
    assert "PARTIAL: The loader still holds the lock." in text
    assert "attempt 2 " not in text
    text = begin(root, run(root, 3), "s-3", monkeypatch)  # the second one was killed
    assert f"- attempt 2 ({RUNS}/{run(root, 2).name}): ended without a word" in text
    assert ralf.get_context(ROUTE, root=root).active_work.attempts == 3
    assert begin(root, run(root, 3), "s-3b", monkeypatch).count("- attempt 3") == 2
    assert ralf.get_context(ROUTE, root=root).active_work.attempts == 3


# ---- the command ----


@pytest.mark.ci
def test_a_hook_takes_no_run_that_git_has_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "project"
    handingkit.project(root)
    stranger = run(root, 1, "PARTIAL", said="The words of a stranger who committed a run.")
    git(repository(root), "add", "--force", stranger)
    assert "stranger" not in begin(root, run(root, 2), "s-1", monkeypatch)
    assert "stranger" not in begin(root, run(root, 3), "s-2", monkeypatch)
