"""What of a route this user's ralf did not write: in its file, in records of its journal. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ralf import journal, route as heart
from ralf.context import RouteContext
from ralf.errors import DamagedJournal, DamagedRouteFile
from ralf.ownership import foreignlines

if TYPE_CHECKING:
    from ralf.project import Project
    from ralf.state import State


@dataclass(frozen=True, slots=True)
class Theirs:
    """What is foreign in a route.

    file     what its file says, None where that is ours, gone or damaged
    records  what the foreign records of its journal come to by themselves, None where there are none
    whole    whether nothing of the route is this user's
    """

    file: RouteContext | None
    records: RouteContext | None
    whole: bool

    @property
    def contexts(self) -> Iterator[RouteContext]:
        """Both, as far as they are there; what the file says first."""
        return (found for found in (self.file, self.records) if found is not None)


def of(project: Project, route: str, state: State) -> Theirs:
    """What is foreign in a route that is in a state."""
    from ralf import state as states

    file = None
    if state.status == "foreign" and state.brought:
        with suppress(DamagedRouteFile):
            file = states.named(states.parsed(project, route, state.brought), route)
    records, ours = None, state.token is not None
    if state.recorded.context_checkpoint.foreign_records:
        records, ours = _of_records(project, route)
    return Theirs(file, records, whole=not ours and not state.changes)


def shown(project: Project, route: str, state: State) -> RouteContext:
    """The context of such a route as it is served: ours with what is foreign as notes, or theirs apart."""
    theirs = of(project, route, state)
    found = next(theirs.contexts, None)
    if theirs.whole and found is not None:
        return replace(foreignlines.apart(found), warnings=state.context.warnings)
    return replace(state.context, foreign=found is not None, foreign_notes=notes(state.context, theirs))


def notes(ours: RouteContext, theirs: Theirs) -> tuple[str, ...]:
    """A line for each foreign item that ours does not have, and for each of ours that the foreign part dropped."""
    known = set(foreignlines.told(ours))
    lines = (line for context in theirs.contexts for line in foreignlines.told(context))
    dropped = (line for context in theirs.contexts for line in foreignlines.dropped(ours, context))
    return foreignlines.bounded([*dropped, *(line for line in lines if line not in known)])


def _of_records(project: Project, route: str) -> tuple[RouteContext | None, bool]:
    """What the foreign records of a journal come to by themselves, and whether any of its records is ours."""
    context, ours, any_foreign = heart.empty(route), False, False
    with suppress(DamagedJournal):
        for _, record in journal.read(project.store, route):
            if not record.foreign:
                ours = True
                continue
            any_foreign = True
            with suppress(DamagedJournal):  # one that is no record of its kind
                context = heart.apply(context, replace(record, foreign=False))
    return (context if any_foreign else None), ours
