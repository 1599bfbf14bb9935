"""Ingest offsets: how far each session's transcript was taken into a route, derived from the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ralf import routing
from ralf.document.index import NAME, using
from ralf.document.state import State
from ralf.errors import RalfError, TranscriptChanged, UsageError
from ralf.project import Project
from ralf.route import rows
from ralf.route.family import of_one, recorded
from ralf.text import cleaning
from ralf.text.frozen import dataclass, field
from ralf.transcripts.events import START, Event, Position, session_of_log
from ralf.transcripts.reader import Transcript, is_own_log


@dataclass(frozen=True, slots=True)
class IngestOffset:
    """How far a route has ingested a session's transcript.

    position     the place after the last record that was ingested
    head, tail   hashes of the transcript's beginning and of what lies before `position` (`ralf.transcripts.lines`)
    pending      calls without a result at that place, as trees
    tails        by kind of event, the redacted end of what was said there: a secret may go on from it
    """

    session: str
    position: Position = field(default_factory=Position)
    head: str = ""
    tail: str = ""
    pending: tuple[Mapping[str, Any], ...] = ()
    tails: Mapping[str, str] = field(default_factory=dict)


def ingest_offset(project: Project, route: str, session: str) -> IngestOffset:
    """A session's offset, the start where the route has none of it. DamagedJournal where no offset can be told."""
    return recorded(project, route, lambda state: _offset_in(state, session))


def ingested_bytes(project: Project, route: str) -> dict[str, int]:
    """The number of bytes that a route has ingested of each session's transcript, by session. DamagedJournal."""
    begin = "offset/"

    def found(state: State) -> dict[str, int]:
        return {key.removeprefix(begin): int(row["byte"]) for key, row in state.rows.under(begin)}

    return recorded(project, route, found)


def note_digests(project: Project, route: str, session: str) -> set[str]:
    """The digests of a session's notes in a route, for a transcript that is rewritten in place."""
    return recorded(project, route, lambda state: set(rows.notes_of(state.rows, session)))


def known_runs(project: Project, route: str, trees: Sequence[Mapping[str, Any]]) -> list[tuple[bool, bool]]:
    """Of each run, as `progress.run_tree` has it, whether a route has a record of it, and whether the newest of its
    records says what the tree says.
    """
    return recorded(project, route, lambda state: [rows.is_run_known(state.rows, tree) for tree in trees])


def is_unchanged(offset: IngestOffset, transcript: Transcript) -> bool:
    """Whether a transcript still begins with what was ingested of it; one that is rewritten in place has no
    beginning.
    """
    if transcript.rewritten or not offset.position.byte:
        return True
    now = transcript.mark(offset.position)
    return now is not None and (now.head, now.tail) == (offset.head, offset.tail)


def check_unchanged(offset: IngestOffset, transcript: Transcript, route: str) -> None:
    """TranscriptChanged where the transcript shrank or was replaced since the last checkpoint of its session."""
    if is_unchanged(offset, transcript):
        return
    what = "was replaced" if transcript.mark(offset.position) is not None else "shrank"
    raise TranscriptChanged(
        transcript.path,
        f"{what} since the last checkpoint of its session, which ended at byte {offset.position.byte:,}",
        f"ralf checkpoint {route} --transcript {transcript.path} --restart",
    )


_OF_A_CALL = ("tool", "call_id", "input", "text", "timestamp", "cwd")


def pending_tree(event: Event) -> dict[str, Any]:
    """A call that has no result yet, for `IngestOffset.pending`."""
    places = {name: {"byte": at.byte, "line": at.line} for name, at in (("start", event.start), ("end", event.end))}
    return {key: getattr(event, key) for key in _OF_A_CALL} | {"input": dict(event.input)} | places


def pending_event(tree: Mapping[str, Any]) -> Event:
    """The call that such a tree holds."""
    rest = {key: tree[key] for key in _OF_A_CALL}
    return Event(kind="call", start=Position(**tree["start"]), end=Position(**tree["end"]), **rest)


def _offset_in(state: State, session: str) -> IngestOffset:
    row = state.rows.one(f"offset/{session}")
    if row is None:
        return IngestOffset(session)
    position = Position(row["byte"], row["line"])
    return IngestOffset(session, position, row["head"], row["tail"], tuple(row["pending"]), row["tails"])


# ---- the routes that have ingested a session, and the routes written last ----


HELD = "its last checkpoint"
"""The rule beside those of `routing`: the route that has most of the session."""

RECENT = 20
"""The number of routes to look at where the cost must not grow with their number."""


def recent(project: Project, most: int | None = RECENT) -> list[str]:
    """The routes that have a journal, the last written first; all of them if `most` is None."""
    found = project.store.written("routes")
    return sorted(filter(cleaning.is_valid, found), key=lambda name: (-found[name].written, name))[:most]


def of_session(project: Project, session: str, *, but: str = "", most: int | None = RECENT) -> tuple[str, Position]:
    """The route that has most of a session, and its offset there; ("", START) if none has any of it.

    but   a route that is not asked
    most  so many routes are asked, those that were written last; None: all. A damaged one is left out
    """
    names = [route for route in recent(project, most) if route != but]
    best, end = "", START
    with using(project.room_for(NAME)) as index:
        for route in names:
            with suppress(RalfError, OSError):  # a read of that route reports the problem
                position = of_one(project, route, index, lambda state: _offset_in(state, session)).position
                if position.byte > end.byte:
                    best, end = route, position
    return best, end


def route_of(project: Project, session: str, choice: routing.Choice) -> routing.Choice:
    """The route of a session as `routing.choose` tells it, unless nobody has chosen it, it has nothing of the session,
    and another one has: then that one.
    """
    if choice.is_chosen:
        return choice
    with suppress(RalfError, OSError):
        route = routing.known(project, choice.route) or choice.route
        if ingest_offset(project, route, session).position.byte:
            return choice
    held, _ = of_session(project, session)
    return routing.Choice(held, HELD) if held else choice


def begin_of(project: Project, route: str, source: Transcript, *, again: bool = False) -> Position | None:
    """Where a checkpoint of a session begins in a route that has nothing of it: None, its beginning, where no other
    route has anything; behind what another one has, where this is the route that was chosen for the session.

    again  take it from its beginning, whatever another route has

    UsageError where another route has it: what was decided there would stand in both. Of documents nothing is asked.
    """
    if again or source.rewritten or source.origin == "import":
        return None
    found = routing.known(project, route) or route
    if ingest_offset(project, found, source.session).position.byte:
        return None
    other, end = of_session(project, source.session, but=found, most=None)
    if not other:
        return None
    choice = routing.choose(project, session=source.session)
    if choice.is_chosen and (routing.known(project, choice.route) or choice.route) == found:
        return end
    what = f"the route {other} has this session already: {source.path}"
    hint = (
        f"ralf checkpoint {other}; for what comes from now on, within the session: ralf route {route}; "
        f"to have all of it in both: ralf checkpoint {route} --again"
    )
    raise UsageError(route, what, hint)


def keep(project: Project, route: str, source: Transcript) -> None:
    """Make a route that has taken a session its route, for the hooks and for every look, unless one was chosen, or the
    rules name it anyway. Only a log in a client's own folder counts.
    """
    if source.rewritten or source.origin == "import" or not is_own_log(source.path):
        return  # any other file may say that it is any session
    for session in {source.session, session_of_log(source.path)}:  # a log that was resumed has another name
        choice = routing.choose(project, session=session)
        if not choice.is_chosen and choice.route != route:
            with suppress(OSError):  # what counts is in the journal
                routing.use(project, route, session=session)
