"""Loads the state of a route from its snapshot, journal and file. Reads only, takes no lock."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from ralf.errors import Busy, DamagedJournal, UnknownToken, UnreadableRouteFile
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route.state import Snapshot, State, damaged, digest_of, load_snapshot, lost_warning, read_file, shown_by
from ralf.storage import journal
from ralf.storage.journal import Token

# `fold` and `foreign` are imported lazily: a read of an untouched file with a snapshot of the newest record needs none.

_MOST_TRIES = 20


def load_state(project: Project, route: str) -> State | None:
    """The route's state, None when there is neither journal nor file.

    DamagedRouteFile when there is no journal to serve from, DamagedJournal when there is no file to serve from; Busy
    where the journal is rewritten faster than it is read.
    """
    for _ in range(_MOST_TRIES):
        with suppress(UnknownToken):  # the journal was rewritten meanwhile: read it again
            try:
                state = read_state(project, route, read_file(project, route))
                if state is not None and state.undoes and read_file(project, route) != state.content:
                    continue  # it was read before the edit, and the cache after it
            except UnreadableRouteFile as error:
                state = without_file(project, route, error)
            return _as_served(project, route, state) if state is not None else None
    raise Busy(route, "its journal is rewritten again and again", "try again")


def read_state(project: Project, route: str, content: bytes | None) -> State | None:
    """As `load_state`, for a writer, and a route file that has been read: unrecorded edits stand in `changes` alone.
    UnknownToken where the journal is rewritten meanwhile, as it is not for who holds the route's lock.
    """
    head = project.store.head(journal.stream_of(route))
    if head is None:
        if not content:
            return None
        from ralf.route import foreign

        return foreign.without_journal(project, route, content)
    kept = load_snapshot(project.cache, route)
    try:
        if kept is None and content:
            shown = shown_by(project, route, journal.at(project.store, route, head), content)
            if shown is not None:
                return State(shown, shown, head, content, "current", renders=((shown.revision, digest_of(content)),))
        recorded, of_here = _recorded(project, route, kept, head)
    except DamagedJournal as error:
        from ralf.route import foreign

        return foreign.without_usable_journal(project, route, content, head, error)
    renders = kept.renders if kept is not None else ()
    state = State(recorded, recorded, head, content, "missing", behind=True)
    state = replace(state, renders=renders) if of_here else replace(state, unplaced=renders)
    return with_file(project, route, state, content) if content else state


def without_file(project: Project, route: str, error: UnreadableRouteFile) -> State:
    """The state of a route whose file may not be read, from its journal; raises the error if there is none."""
    state = read_state(project, route, None)
    if state is None:
        raise error
    return damaged(state, error)


def _recorded(project: Project, route: str, kept: Snapshot | None, head: Token) -> tuple[RouteContext, bool]:
    """The folded journal, from the snapshot if possible; and whether the snapshot belongs to this journal."""
    if kept is not None and kept.token == head:
        return kept.context, True
    from ralf.route import fold, foreign

    if kept is not None:
        try:
            records = [record for _, record in journal.read(project.store, route, after=kept.token or None)]
        except UnknownToken:
            pass  # the journal was rewritten, or is another
        else:
            return fold.fold(records, kept.context), True
    return fold.fold(*foreign.records_from_base(project, route)), kept is None


def with_file(project: Project, route: str, state: State, content: bytes) -> State:
    """`state`, with the status and changes of these bytes of the route file; its context stays as it is."""
    digest = digest_of(content)
    if (state.recorded.revision, digest) in state.renders:
        return replace(state, status="current", behind=False)
    from ralf.route import foreign

    return foreign.with_other_file(project, route, state, content, digest)


def _as_served(project: Project, route: str, state: State) -> State:
    """The state whose context shows a person's edit, and what is foreign apart from all that is theirs."""
    if state.changes:
        from ralf.route import foreign

        if state.status == "edited":
            foreign.remember_read(project, route, state.content or b"")
        state = foreign.with_edit(state)
    if state.lost:
        told = lost_warning(project.route_file(route), state.lost, state.recorded.revision)
        state = replace(state, context=replace(state.context, warnings=(told, "ralf context verify --repair")))
    if later := state.recorded.context_checkpoint.later_records:
        state = replace(state, context=replace(state.context, warnings=(*state.context.warnings, _later(route, later))))
    if state.status == "foreign" or state.recorded.context_checkpoint.foreign_records:
        from ralf.route import foreign

        return replace(state, context=foreign.foreign_shown(state.context, foreign.foreign_part(project, route, state)))
    return state


def _later(route: str, count: int) -> str:
    which = "1 record was" if count == 1 else f"{count:,} records were"
    return f"{route}: {which} written by a later version of ralf: kept, and passed over here; update ralf to read on"
