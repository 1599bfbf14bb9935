"""Tasks whose route was renamed, or merged into another: what was recorded for them is still found."""

from __future__ import annotations

from pathlib import Path

import pytest

import moveskit
import ralf
from ralf import project as projects
from ralf.tasks import claims, completing, editing, store
from ralf.tasks.refresh import refresh
from ralf.tasks.routes import route_of
from ralf_integrations.loop.work import Work
from test_sharing import pair


def test_a_task_whose_route_was_renamed_goes_on_with_what_was_recorded_for_it(tmp_path: Path) -> None:
    editing.add("Do the login", id="TASK-001", root=tmp_path)
    ralf.record_decision("login", "Use JWT tokens", root=tmp_path)
    moveskit.told(tmp_path, "TASK-001", "login")
    claims.claim("TASK-001", by="fixer", root=tmp_path)
    found = refresh(by="fixer", task="TASK-001", root=tmp_path)
    assert found.context is not None and found.context.route == "login"
    assert "Use JWT tokens" in found.render()
    assert found.warnings == ()
    project = projects.find(tmp_path)
    context = completing.context_of(project, store.Tasks(project).get("TASK-001").task)
    assert context is not None and context.route == "login"
    assert Work(project).has_context("TASK-001") and not Work(project).has_context("TASK-002")


def test_a_task_that_comes_after_one_of_a_renamed_route_is_told_what_was_decided_there(tmp_path: Path) -> None:
    editing.add("Do the login", id="TASK-001", root=tmp_path)
    editing.add("Do the logout", id="TASK-002", after=["TASK-001"], root=tmp_path)
    ralf.record_decision("login", "Use JWT tokens", root=tmp_path)
    ralf.hand_over("login", now="The server runs on port 8460", root=tmp_path)
    moveskit.told(tmp_path, "TASK-001", "login")
    found = refresh(by="fixer", task="TASK-002", root=tmp_path)
    assert [(one.route, [item.decision for item in one.decisions]) for one in found.before] == [
        ("login", ["Use JWT tokens"])
    ]
    assert "port 8460" in found.render()


def test_tasks_whose_routes_were_merged_into_one_are_told_what_it_says_once(tmp_path: Path) -> None:
    editing.add("Do the login", id="TASK-001", root=tmp_path)
    editing.add("Do the logout", id="TASK-002", after=["TASK-001"], root=tmp_path)
    for decision in ("Forget the token", "Use JWT tokens"):
        ralf.record_decision("TASK-002", decision, root=tmp_path)
    moveskit.told(tmp_path, "TASK-001", "TASK-002", labels={"DEC-001": "DEC-002"})
    for task in ("TASK-001", "TASK-002"):
        text = refresh(by="fixer", task=task, root=tmp_path).render()
        assert text.count("Use JWT tokens") == text.count("Forget the token") == 1, task


def test_a_task_without_records_has_no_route_whatever_others_there_are(tmp_path: Path) -> None:
    ralf.record_decision("task-002", "Another", root=tmp_path)
    project = projects.find(tmp_path)
    assert route_of(project, "TASK-001") is None
    assert route_of(project, "task-002") == "task-002"


@pytest.mark.ci
def test_a_pull_that_brings_work_on_the_renamed_route_of_a_task_is_said_of_the_task(tmp_path: Path) -> None:
    one, other = pair(tmp_path, driver=False)
    with other.works() as root:
        editing.add("Write the API", id="TASK-001", root=root)
        moveskit.told(root, "TASK-001", "api")
    other.commit()
    one.decide("Decided over there")
    other.fetch(one)
    other.git("merge", "--no-edit", "FETCH_HEAD")
    with other.works() as root:
        (warning,) = store.get("TASK-001", root=root).warnings
    assert warning.endswith("context show api")
