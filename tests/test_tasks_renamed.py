"""Tasks whose route was renamed: what was recorded for them is still found."""

from __future__ import annotations

from pathlib import Path

import moveskit
import ralf
from ralf import project as projects
from ralf.tasks import claims, editing
from ralf.tasks.refresh import refresh
from ralf_integrations.loop.work import Work


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
    assert Work(project).context("TASK-001") is not None and Work(project).context("TASK-002") is None


def test_a_task_that_comes_after_one_of_a_renamed_route_is_told_what_was_decided_there(tmp_path: Path) -> None:
    editing.add("Do the login", id="TASK-001", root=tmp_path)
    editing.add("Do the logout", id="TASK-002", after=["TASK-001"], root=tmp_path)
    ralf.record_decision("login", "Use JWT tokens", root=tmp_path)
    ralf.hand_over("login", now="The server runs on port 8460", root=tmp_path)
    moveskit.told(tmp_path, "TASK-001", "login")
    found = refresh(by="fixer", task="TASK-002", root=tmp_path)
    assert [(item.id, item.decision) for item in found.decisions] == [("login DEC-001", "Use JWT tokens")]
    assert "port 8460" in found.render()
