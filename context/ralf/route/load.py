"""The state of a route at one moment, by its journal and its file. Reads only, takes no lock."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ralf.document import access, place as places
from ralf.document.access import Look
from ralf.document.index import Index
from ralf.document.judging import EDITED, HALF, NEW
from ralf.document.rows import Rows
from ralf.document.state import State as Recorded, digest_of, state_at
from ralf.errors import Busy, DamagedJournal, DamagedRouteFile, UnknownToken
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route.family import MAX_BYTES, context_of, document_of, stamp_of
from ralf.storage.journal import Store, Token, stream_of
from ralf.text.frozen import dataclass, replace

if TYPE_CHECKING:
    from ralf.document.merge import Change

# What reads YAML or words a context is imported by whoever needs it: most routes have nothing that is foreign.

_MOST_TRIES = 20

FileStatus = Literal["current", "stale", "missing", "edited", "damaged", "foreign"]
"""What the route file is to its journal.

current  ours, showing the newest revision
stale    ours, of an older revision, or no file that a write has left
missing  not there, or empty
edited   changed by a person
damaged  not readable, or git tracks it; never overwritten
foreign  this user's ralf did not write it, and it is no edit of theirs; never taken in, never overwritten
"""


_STATUS: dict[str, FileStatus] = {NEW: "foreign", EDITED: "edited", HALF: "edited"}


@dataclass(frozen=True, slots=True)
class State:
    """A route at one moment.

    context   what the route comes to, a person's unrecorded edits included; what is foreign stands apart in it
    recorded  what the journal alone comes to, and of that what is this user's
    token     the journal's newest record, None for none
    content   the route file's bytes, b"" where there is none
    status    what the file is to the journal
    damage    what is wrong with the file, "" for nothing
    """

    context: RouteContext
    recorded: RouteContext
    token: Token | None
    content: bytes
    status: FileStatus
    damage: str = ""

    @property
    def own(self) -> RouteContext:
        """The context without what is foreign: what work goes on from."""
        return self.recorded if self.context.foreign else self.context

    @property
    def behind(self) -> bool:
        """Whether the journal has more than the file shows."""
        return self.status in ("stale", "missing", "edited")


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
    recorded, token, path = context_of(look.recorded.rows, route), look.recorded.token, project.route_file(route)
    error = unreadable(path, look.unread) if look.unread else look.file.error
    context, is_current = recorded, digest_of(look.content) == look.recorded.render
    status: FileStatus = _STATUS.get(look.file.status, "current" if is_current else "stale")
    if error is not None:
        if token is None:
            raise error
        status, context = (
            "damaged",
            replace(recorded, warnings=(f"{error}; this is what the journal holds", error.hint)),
        )
    elif look.file.status == HALF:
        context = replace(recorded, warnings=(look.file.what,))
    elif status == "edited":
        context = context_of(look.state.rows, route)
    elif not look.content and status != "foreign":
        status = "missing" if token is not None else "foreign"
        if token is None and not project.store.is_foreign(stream_of(route)):
            return None
    if said := access.warnings_of(document_of(project, route), look.recorded):
        context = replace(context, warnings=(*context.warnings, *said))
    state = State(context, recorded, token, look.content, status, str(error or ""))
    return state if status != "foreign" else replace(state, context=_with_foreign(project, route, state))


def _of_file(project: Project, route: str, damage: DamagedJournal) -> State:
    """The state of a route whose journal cannot be read, from its file."""
    from ralf.brief import wording

    try:
        content = places.content(project.route_file(route), MAX_BYTES)
    except OSError:
        content = b""
    if not content:
        raise damage
    context = replace(_of_bytes(project, route, content), warnings=(str(damage), damage.hint))
    stamp, readable = stamp_of(context), _readable(project, route, project.store)
    if stamp is None or stamp.mark != readable.mark:
        context = wording.apart(context)
    head = project.store.head(stream_of(route))
    return State(context, context, head, content, "damaged", damage=str(damage))


def _readable(project: Project, route: str, store: Store) -> Recorded:
    """What the records of a journal come to, whoever's they are, as far as it can be read."""
    document = document_of(project, route)
    state = Recorded(document.family, Rows(), None)
    with suppress(DamagedJournal):
        for entry in store.read(document.stream):
            with suppress(DamagedJournal):  # one that is no record of its kind
                state.take(document.stream, entry)
    return state


def unreadable(path: Path, why: str) -> DamagedRouteFile:
    """The error for a route file that cannot be read."""
    is_refused = why == os.strerror(errno.EACCES)
    return DamagedRouteFile(path, why, f"sudo chown {os.geteuid()} {path}" if is_refused else f"move it away: {path}")


def context_at(project: Project, route: str, revision: int) -> RouteContext | None:
    """What the records up to a revision come to; None where there is none such."""
    document = document_of(project, route)
    state = state_at(document.family, project.store, document.stream, revision)
    return context_of(state.rows, route) if state is not None else None


# ---- what this user's ralf did not write: a file that is new, and a journal that is not theirs ----


def theirs_of(project: Project, route: str, state: State) -> RouteContext | None:
    """What somebody else says of a route: its file where that is new, else a journal that is not this user's. None
    where neither can be read.
    """
    if state.status == "foreign" and state.content:
        with suppress(DamagedRouteFile):
            return _of_bytes(project, route, state.content)
    found = _readable(project, route, project.store.inner) if state.token is None else None
    return context_of(found.rows, route) if found is not None and found.token is not None else None


def _of_bytes(project: Project, route: str, content: bytes) -> RouteContext:
    """What a file says that anyone may have brought: the route is that of the file, whatever stands in it.
    DamagedRouteFile.
    """
    from ralf.route import edits, own_lines
    from ralf.route.routefile import parse

    return edits.with_header(own_lines.with_own_lines(parse(content, project.route_file(route))), route=route)


def _with_foreign(project: Project, route: str, state: State) -> RouteContext:
    """The context of a state as it is served: ours with what is foreign as notes, or theirs apart."""
    from ralf.brief import wording

    theirs = theirs_of(project, route, state)
    if theirs is not None and state.token is None:
        return replace(wording.apart(theirs), warnings=state.context.warnings)
    ours = set(wording.told(state.context))
    new = [line for line in wording.told(theirs) if line not in ours] if theirs is not None else []
    return replace(state.context, foreign=theirs is not None, foreign_notes=wording.bounded(new))


def changes_of(project: Project, route: str, state: State, found: RouteContext) -> list[Change]:
    """All that a route file says other than ours, whoever wrote it: for who accepts it as this user's."""
    from ralf.route import edits

    mark = found.context_checkpoint.mark
    base = context_at(project, route, found.revision) if mark else None
    if base is None or base.context_checkpoint.mark != mark:
        return edits.changes_of_foreign(state.recorded, found)
    return edits.changes_of_edit(base, found, state.recorded)
