"""What this store can know of work on its tasks in another clone: claims stay in their store, route files may not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ralf.project import Project
from ralf.storage import shared_files
from ralf.tasks.model import TaskState


def noted(project: Project, states: Iterable[TaskState]) -> list[TaskState]:
    """Tasks that are not done, with a warning for each whose route another clone has shared something of: somebody has
    worked on it there (`ralf init --share`).
    """
    shown = list(states)  # nothing of what was shared is quoted: it may be anybody's words, outside of any fence
    open_ = {one.task.context_route.casefold() for one in shown if one.task.status == "pending" and not one.is_foreign}
    if not open_ or not (project.folder / shared_files.FOLDER).is_dir():
        return shown
    from ralf.route import shared  # which loads all that a route may hold

    names = {note.route.casefold() for note in shared.others(project).new}
    for number, state in enumerate(shown):
        route = state.task.context_route
        if route.casefold() in names and state.task.status == "pending" and not state.is_foreign:
            hint = f"read it before you start: {project.command} show {route}"
            note = f"{state.task.id}: somebody has worked on it in another clone; {hint}"
            shown[number] = replace(state, warnings=(*state.warnings, note))
    return shown
