"""What this user's ralf did not write in a route: a file that is new, and a journal that is not theirs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from ralf.brief import wording
from ralf.document.merge import Change
from ralf.errors import DamagedJournal, DamagedRouteFile
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route import edits, filed, fold, state as states
from ralf.route.state import State
from ralf.storage import journal


def theirs_of(project: Project, route: str, state: State) -> RouteContext | None:
    """What somebody else says of a route: its file where that is new, else a journal that is not this user's. None
    where neither can be read.
    """
    if state.status == "foreign" and state.content:
        with suppress(DamagedRouteFile):
            return context_of(project, route, state.content)
    return _of_journal(project, route) if state.token is None else None


def context_of(project: Project, route: str, content: bytes) -> RouteContext:
    """What a file says that anyone may have brought. DamagedRouteFile."""
    return states.with_route(filed.with_own_lines(states.parse_file(project, route, content)), route)


def foreign_shown(project: Project, route: str, state: State) -> RouteContext:
    """The context of a state as it is served: ours with what is foreign as notes, or theirs apart."""
    theirs = theirs_of(project, route, state)
    if theirs is not None and state.token is None:
        return replace(wording.apart(theirs), warnings=state.context.warnings)
    notes = foreign_notes(state.context, theirs) if theirs is not None else ()
    return replace(state.context, foreign=theirs is not None, foreign_notes=notes)


def foreign_notes(ours: RouteContext, theirs: RouteContext) -> tuple[str, ...]:
    """A line for each foreign item that ours does not have."""
    known = set(wording.told(ours))
    return wording.bounded([line for line in wording.told(theirs) if line not in known])


def changes_of(project: Project, route: str, state: State, found: RouteContext) -> list[Change]:
    """All that a route file says other than ours, whoever wrote it: for who accepts it as this user's."""
    base = folded_to(project, route, found.revision) if found.context_checkpoint.mark else None
    if base is None or base.context_checkpoint.mark != found.context_checkpoint.mark:
        return edits.changes_of_foreign(state.recorded, found)
    return edits.changes_of_edit(base, found, state.recorded)


def folded_to(project: Project, route: str, revision: int) -> RouteContext | None:
    """What the records up to a revision come to; None where there is none such."""
    context = fold.empty(route)
    for _, record in journal.read(project.store, route):
        context = fold.apply(context, record)
        if record.revision == revision:
            return context
    return None


def _of_journal(project: Project, route: str) -> RouteContext | None:
    """What the records of a journal come to, whoever's they are; None for none."""
    context, found = fold.empty(route), False
    with suppress(DamagedJournal):
        for _, record in journal.read(project.store.inner, route):
            found = True
            with suppress(DamagedJournal):  # one that is no record of its kind
                context = fold.apply(context, record)
    return context if found else None
