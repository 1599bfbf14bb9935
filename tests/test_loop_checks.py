"""The last look of a loop at completed tasks: which `verify:` commands run once more, and what the end then says."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import storekit
from ralf.maintenance import ownership
from ralf.model import ActiveWork, Facts, PathFact, RouteContext
from ralf.project import Project
from ralf.tasks import claims, editing, evidence, store
from ralf.tasks.model import Task
from ralf_integrations.loop import launch
from ralf_integrations.loop.options import Event, Options, Result
from ralf_integrations.loop.run import Loop

RUNS = "echo ran >>ran && grep -q good a.py"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "tide"
    root.mkdir()
    ownership.init(Project(root), share=False)
    (root / "a.py").write_text("good = 1\n")
    return Project(root)


def allow(project: Project) -> None:
    path = project.local_config_file
    path.write_text("verify_commands: true\n")
    storekit.allow(path)


def verified(project: Project, title: str, verify: str = RUNS) -> str:
    """A completed task that was verified with `a.py` as it is now; its id."""
    task = editing.add(title, verify=verify, root=project.root).task.id
    edited = RouteContext(facts=Facts(paths=(PathFact("a.py", ("edited",)),)), active_work=ActiveWork())
    found = evidence.verify(project, Task(task), edited)
    assert found is not None
    told = replace(found, state="verified", command=verify, exit_status=0)
    claims.done("Done", task=task, evidence=told, root=project.root)
    return task


def looped(project: Project, **more: object) -> tuple[Result, list[Event]]:
    told: list[Event] = []
    view = SimpleNamespace(event=told.append, draw=lambda _: None)
    options = Options(agents=(launch.parse("true"),), **more)  # type: ignore[arg-type]
    return Loop(project, options, view).run(), told


def ran(project: Project) -> int:
    path = project.root / "ran"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.ci
def test_a_command_that_several_stale_tasks_share_runs_once_and_counts_for_each(project: Project) -> None:
    allow(project)
    tasks = [verified(project, title) for title in ("One", "Two", "Three")]
    (project.root / "a.py").write_text("good = 2\n")
    result, told = looped(project)
    assert (result.status, ran(project)) == (0, 1), told
    assert [store.get(task, root=project.root).evidence.state for task in tasks] == ["verified"] * 3
    assert looped(project)[0].status == 0
    assert ran(project) == 1  # what is verified is not run again


@pytest.mark.ci
def test_a_command_that_fails_at_the_end_is_run_once_and_its_task_is_listed(project: Project) -> None:
    allow(project)
    task = verified(project, "One")
    (project.root / "a.py").write_text("bad = 2\n")
    result, told = looped(project)
    assert (result.status, ran(project)) == (1, 1), told
    assert [one.task for one in result.unproven] == [task]
    assert store.get(task, root=project.root).task.status == "completed"


@pytest.mark.ci
def test_a_task_that_was_completed_without_its_command_is_verified_at_the_end(project: Project) -> None:
    allow(project)
    task = editing.add("One", verify=RUNS, root=project.root).task
    path = store.get(task.id, root=project.root).path
    assert path is not None
    path.write_text(path.read_text().replace('status: "pending"', 'status: "completed"'))
    assert looped(project)[0].status == 0
    assert store.get(task.id, root=project.root).evidence.state == "verified"


@pytest.mark.ci
def test_no_command_runs_at_the_end_where_none_may_run(project: Project) -> None:
    task = verified(project, "One")
    (project.root / "a.py").write_text("good = 2\n")
    result, told = looped(project)
    assert (result.status, ran(project), told[0].kind) == (1, 0, "over")
    assert [one.task for one in result.unproven] == [task]


def test_the_command_of_a_foreign_task_is_never_run(project: Project) -> None:
    allow(project)
    folder = project.folder.parent / "tasks" / "completed"
    folder.mkdir(parents=True)
    path = folder / "TASK-brought.md"
    path.write_text(f'---\nid: "TASK-brought"\nstatus: "completed"\n\nverify: "{RUNS}"\n---\n\n# Brought\n')
    os.utime(path, (0, 0))  # as an archive brings it
    assert store.get("TASK-brought", root=project.root).is_foreign
    result, _ = looped(project)
    assert (result.status, ran(project)) == (1, 0)
    assert [one.task for one in result.unproven] == ["TASK-brought"]


@pytest.mark.ci
def test_with_worktrees_a_task_of_an_earlier_loop_is_stale_in_none_if_one_of_them_has_its_files(
    project: Project, tmp_path: Path
) -> None:
    allow(project)
    verified(project, "One")
    trees = tmp_path / "trees"
    (trees / "w1").mkdir(parents=True)
    (trees / "w1" / "a.py").write_text("good = 1\n")
    (project.root / "a.py").write_text("bad = 2\n")
    assert looped(project, worktrees=trees)[0].status == 0
    (trees / "w1" / "a.py").write_text("bad = 3\n")
    result, _ = looped(project, worktrees=trees)
    assert (result.status, ran(project)) == (1, 0)  # where it was done is not known: nothing runs
