"""The runs before this one that nobody has told a route of: a run that was killed has told nobody itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from ralf import sessions, state as states
from ralf.project import Project
from ralf.runs import brought, current, metadata
from ralf.runs.folder import RunFolder, is_run, siblings
from ralf.transcripts.notes import session_of

_MOST = 20  # newest folders that are looked at


def left(project: Project, route: str) -> list[RunFolder]:
    """Run folders of a route that may hold what it does not have, the oldest first: of the twenty newest beside ours
    those of its task of which it has no record, and those of its last runs that it knows no end of. Not ours itself,
    and none that began elsewhere and came with git.
    """
    ours = current.folder(project.root)
    if ours is None:
        return []
    found = {folder.path.resolve(): folder for folder in (*_unknown(project, route, ours), *_unended(project, route))}
    found.pop(ours.path.resolve(), None)
    return list(found.values())


def _unknown(project: Project, route: str, ours: RunFolder) -> list[RunFolder]:
    found = []
    for number, folder in enumerate(siblings(ours)):
        if number == _MOST:
            break
        [(known, _)] = sessions.known_runs(project, route, [{"run": session_of(folder.path, project.root)}])
        if not known and task_of(folder).casefold() == route.casefold() and not brought.is_brought(folder):
            found.append(folder)
    return found[::-1]


def _unended(project: Project, route: str) -> Iterator[RunFolder]:
    state = states.load(project, route)
    for run in state.context.active_work.last_runs if state is not None else ():
        path = project.root / run.run
        if not run.outcome and ".." not in path.parts and is_run(path):
            yield RunFolder(path)


def task_of(folder: RunFolder) -> str:
    """The task that a run worked on, by its folder's name or its metadata; "" where neither tells."""
    if folder.task:
        return folder.task
    with suppress(OSError):
        return metadata.read(folder).task
    return ""
