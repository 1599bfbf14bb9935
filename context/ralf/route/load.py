"""Loads the state of a route from its journal and its file. Reads only, takes no lock."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from ralf.document import access
from ralf.document.access import Look
from ralf.document.index import Index
from ralf.document.judging import EDITED, HALF, NEW
from ralf.document.rows import Rows
from ralf.document.state import State as Recorded
from ralf.errors import Busy, DamagedJournal, UnknownToken
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route.family import context_of, document_of, stamp_of
from ralf.route.state import FileStatus, State, digest_of, read_file, unreadable
from ralf.storage.journal import stream_of

# `foreign` is imported lazily: most routes have nothing that is.

_MOST_TRIES = 20


def load_state(project: Project, route: str, index: Index | None = None) -> State | None:
    """The route's state, None when there is neither journal nor file.

    index  one that is open, for who asks about many routes

    DamagedRouteFile when there is no journal to serve from, DamagedJournal when there is no file to serve from; Busy
    where the journal is rewritten faster than it is read; `index.Unusable` of an index that was given.
    """
    document = document_of(project, route, redacts=False)

    def state_of(look: Look) -> State | None:
        return _state_of(project, route, look)

    for _ in range(_MOST_TRIES):
        with suppress(UnknownToken):  # the journal was rewritten meanwhile: read it again
            try:
                return access.look(document, index, state_of) if index else access.read(document, state_of)
            except DamagedJournal as error:
                return _of_file(project, route, error)
    raise Busy(route, "its journal is rewritten again and again", "try again")


def _state_of(project: Project, route: str, look: Look) -> State | None:
    recorded, token = context_of(look.recorded.rows, route), look.recorded.token
    context, damage, path = recorded, "", project.route_file(route)
    status: FileStatus = "current" if digest_of(look.content) == look.recorded.render else "stale"
    error = unreadable(path, look.unread) if look.unread else look.file.error
    if error is not None:
        if token is None:
            raise error
        damage, status = str(error), "damaged"
        context = replace(recorded, warnings=(str(error) + "; this is what the journal holds", error.hint))
    elif look.file.status == EDITED:
        context, status = context_of(look.state.rows, route), "edited"
    elif look.file.status == NEW:
        status = "foreign"
    elif not look.content:
        if token is None and not project.store.is_foreign(stream_of(route)):
            return None
        status = "missing" if token is not None else "foreign"
    elif look.file.status == HALF:
        context, status = replace(recorded, warnings=(look.file.what,)), "edited"
    if later := recorded.context_checkpoint.later_records:
        which = "1 record was" if later == 1 else f"{later:,} records were"
        said = f"{route}: {which} written by a later version of ralf: kept, passed over here; update ralf to read on"
        context = replace(context, warnings=(*context.warnings, said))
    state = State(context, recorded, token, look.content, status, damage)
    if status == "foreign":
        from ralf.route import foreign

        return replace(state, context=foreign.foreign_shown(project, route, state))
    return state


def _of_file(project: Project, route: str, error: DamagedJournal) -> State:
    """The state of a route whose journal cannot be read, from its file."""
    content = read_file(project, route)
    if not content:
        raise error
    from ralf.brief import wording
    from ralf.route import foreign

    context = replace(foreign.context_of(project, route, content), warnings=(str(error), error.hint))
    if not _is_own(project, route, context):
        context = wording.apart(context)
    head = project.store.head(document_of(project, route).stream)
    return State(context, context, head, content, "damaged", damage=str(error))


def _is_own(project: Project, route: str, context: RouteContext) -> bool:
    """Whether a file is this user's whose journal cannot be read to its end, by what can be read of that."""
    document, stamp = document_of(project, route), stamp_of(context)
    state = Recorded(document.family, Rows(), None)
    with suppress(DamagedJournal):
        for entry in document.store.read(document.stream):
            state.take(document.stream, entry)
    return stamp is not None and state.mark == stamp.mark
