"""The route that a task names, which may have been renamed or merged into another since."""

from __future__ import annotations

from ralf import routing
from ralf.project import Project
from ralf.storage.journal import stream_of


def route_of(project: Project, named: str) -> str | None:
    """The name that a task's route has now; None where nothing was recorded for it. UsageError for a refused name.

    Costs the same however many routes there are, unless it was renamed or merged.
    """
    path = project.route_file(named)  # it checks the name
    if routing.move_of(project, named) is not None:
        return routing.known(project, named)
    return named if path.exists() or project.store.head(stream_of(named)) is not None else None
