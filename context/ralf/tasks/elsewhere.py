"""What this store can know of work on its tasks in another clone: claims stay in their store, route files may not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ralf.project import Project
from ralf.route import shared
from ralf.tasks.model import TaskState


def noted(project: Project, states: Iterable[TaskState]) -> list[TaskState]:
    """Tasks that are not done, with a warning for each whose route another clone has shared something of: somebody has
    worked on it there (`ralf init --share`).
    """
    shown = list(states)
    if not any(one.task.status == "pending" and not one.is_foreign for one in shown):
        return shown
    names = {note.route.casefold(): note.by for note in shared.others(project)[1]} if _may_share(project) else {}
    return [
        replace(state, warnings=(*state.warnings, note)) if names and (note := _note(project, state, names)) else state
        for state in shown
    ]


def _may_share(project: Project) -> bool:
    return shared.folder_of(project).is_dir()


def _note(project: Project, state: TaskState, names: Mapping[str, str]) -> str:
    route = state.task.context_route
    if state.task.status != "pending" or state.is_foreign or route.casefold() not in names:
        return ""
    hint = f"read it before you start: {project.command} context show {route}"
    return f"{state.task.id}: {names[route.casefold()]} has worked on it in another clone; {hint}"
