"""What this store can know of work on its tasks in another clone: claims stay in their store, route files may not."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from ralf.errors import RalfError
from ralf.project import Project
from ralf.tasks.model import TaskState
from ralf.tasks.routes import route_of
from ralf.text.cleaning import clean, one_line


def noted(project: Project, states: Iterable[TaskState]) -> list[TaskState]:
    """Tasks that are not done, with a warning for each whose route file a pull has brought: another clone has worked
    on it. Only where this user shares route files (`ralf init --share`).
    """
    shown = list(states)
    is_asked = any(one.task.status == "pending" and not one.is_foreign for one in shown)
    if not is_asked or not project.git.shares():
        return shown
    return [
        replace(state, warnings=(*state.warnings, note)) if (note := _note(project, state)) else state
        for state in shown
    ]


def _note(project: Project, state: TaskState) -> str:
    from ralf.route.load import load_state

    if state.task.status != "pending" or state.is_foreign:
        return ""
    with suppress(RalfError, OSError):
        route = route_of(project, state.task.context_route)
        if route is None or not project.route_file(route).exists():
            return ""
        found = load_state(project, route)
        if found is not None and found.status == "foreign":
            served = found.context
            when = one_line(clean(served.context_checkpoint.last_checkpoint)) if served.wholly_foreign else ""
            told = f", last checkpoint {when[:40]}" if when else ""
            hint = f"read it before you start: {project.command} context show {route}"
            return f"{state.task.id}: another clone has worked on it (a pull brought its route{told}); {hint}"
    return ""
