"""What this user's ralf did not write in a route: a file that is new, and records of its journal that are foreign."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from ralf.brief import wording
from ralf.document.merge import Change
from ralf.errors import DamagedJournal, DamagedRouteFile
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route import cap, edits, filed, fold, state as states
from ralf.route.state import State
from ralf.storage import journal
from ralf.text.frozen import dataclass


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


def foreign_part(project: Project, route: str, state: State) -> Theirs:
    """Return what is foreign in a route that is in a state."""
    file, records, is_ours = None, None, state.token is not None
    if state.status == "foreign":
        with suppress(DamagedRouteFile):
            file = context_of(project, route, state.content)
    if state.recorded.context_checkpoint.foreign_records:
        records, is_ours = _of_records(project, route)
    return Theirs(file, records, whole=not is_ours)


def context_of(project: Project, route: str, content: bytes) -> RouteContext:
    """What a file says that anyone may have brought. DamagedRouteFile."""
    return states.with_route(filed.with_own_lines(states.parse_file(project, route, content)), route)


def foreign_shown(context: RouteContext, theirs: Theirs) -> RouteContext:
    """Return the context as it is served: ours with what is foreign as notes, or theirs apart."""
    found = next(theirs.contexts, None)
    if theirs.whole and found is not None:
        return replace(wording.apart(found), warnings=context.warnings)
    return replace(context, foreign=found is not None, foreign_notes=foreign_notes(context, theirs))


def foreign_notes(ours: RouteContext, theirs: Theirs) -> tuple[str, ...]:
    """A line for each foreign item that ours does not have, and for each of ours that the foreign part dropped."""
    known = set(wording.told(ours))
    lines = (line for context in theirs.contexts for line in wording.told(context))
    dropped = (line for context in theirs.contexts for line in dropped_lines(ours, context))
    return wording.bounded([*dropped, *(line for line in lines if line not in known)])


def dropped_lines(ours: RouteContext, theirs: RouteContext) -> Iterator[str]:
    """A line for each decision that stands in ours and that theirs has dropped and shows no more."""
    stones, shown = cap.of(theirs), {item.id for item in theirs.decisions}
    for item in (one for one in ours.decisions if one.status == "active" and one.id not in shown):
        if cap.cover([stone for stone in stones if stone.id == item.id], item):
            yield f"decision {wording.decision(replace(item, origin='', status='dropped')).removeprefix('- ')}"


def changes_of(project: Project, route: str, state: State, found: RouteContext) -> list[Change]:
    """All that a route file says other than ours, whoever wrote it: for who accepts it as this user's."""
    base = folded_to(project, route, found.revision) if found.context_checkpoint.mark else None
    if base is None or base.context_checkpoint.mark != found.context_checkpoint.mark:
        return edits.changes_of_foreign(state.recorded, found)
    return edits.changes_of_edit(base.as_filed(), found, state.recorded)


def folded_to(project: Project, route: str, revision: int) -> RouteContext | None:
    """What the records up to a revision come to; None where that one is foreign, so that no file of ours shows it."""
    context = fold.empty(route)
    for _, record in journal.read(project.store, route):
        context = fold.apply(context, record)
        if record.revision == revision:
            return None if record.foreign else context
    return None


def _of_records(project: Project, route: str) -> tuple[RouteContext | None, bool]:
    """What the foreign records of a journal come to by themselves, and whether any of its records is ours."""
    context, ours, any_foreign = fold.empty(route), False, False
    with suppress(DamagedJournal):
        for _, record in journal.read(project.store, route):
            if not record.foreign:
                ours = True
                continue
            any_foreign = True
            with suppress(DamagedJournal):  # one that is no record of its kind
                context = fold.apply(context, replace(record, foreign=False))
    return (context if any_foreign else None), ours
