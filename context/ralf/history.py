"""A route as it was: its context after an earlier checkpoint, folded from the journal."""

from __future__ import annotations

import os

from ralf import journal, names, project as projects, route as heart
from ralf.context import RouteContext
from ralf.errors import NotFound, RouteNotFound
from ralf.reader import closest


def context_at(route: str, checkpoint: str, *, root: str | os.PathLike[str] | None = None) -> RouteContext:
    """The context of a route right after a checkpoint, `cp-002` or `2`.

    Raises RouteNotFound, NotFound (no such checkpoint), UsageError (a refused name), DamagedJournal.
    """
    project = projects.find(root)
    found = projects.existing_route(project, names.check(route))
    if found is None:
        raise RouteNotFound(route, closest(project, route))
    wanted = f"cp-{int(checkpoint):03d}" if checkpoint.isdecimal() else checkpoint
    context = heart.empty(found)
    for _, record in journal.read(project.store, found):
        context = heart.apply(context, record)
        if record.kind == "checkpoint" and context.checkpoint_history[-1].checkpoint_id == wanted:
            return context
    raise NotFound(found, f"has no checkpoint {checkpoint}", f"ralf context show {found} --section history")
