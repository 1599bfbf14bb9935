"""The current state of a route: what its snapshot, its journal and its file say together. Reads only, takes no lock."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ralf import journal, names, snapshot
from ralf.context import BODY, RouteContext
from ralf.errors import (
    Busy,
    Damaged,
    DamagedJournal,
    DamagedRouteFile,
    NotFound,
    UnknownToken,
    UnreadableRouteFile,
)
from ralf.files.opening import not_through_a_link
from ralf.journal import Record
from ralf.project import Project
from ralf.store import Token
from ralf.tree import outline, shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ralf.merge import Change

MAX_BYTES = 64 << 20
"""More of a route file is never read."""

_MOST_TRIES = 20

TAKEN_IN = 0
"""In the place of a file's revision: a person's, which the journal has all of. It is no edit of what came after it."""

FileStatus = Literal["current", "stale", "missing", "edited", "damaged", "own", "foreign"]
"""What the route file is to its journal.

current  ours, showing the newest revision
stale    ours, of an older revision, untouched
missing  not there, or empty
edited   changed by a person
damaged  cannot be read; never overwritten
own      there is no journal: a file that this user has put there
foreign  this user's ralf did not write it, and it is no edit of theirs; never taken in, never overwritten
"""


@dataclass(frozen=True, slots=True)
class State:
    """A route at one moment.

    context   what the route comes to, a person's unrecorded edits included; what is foreign stands apart in it
    recorded  what the journal alone comes to, and of that what is this user's
    token     the journal's newest record, None for none
    content   the route file's bytes, None where there is none
    status    what the file is to the journal
    changes   what a person changed in the file, not yet in the journal
    behind    whether the journal has more than the file, edited or not, shows
    renders   revision and digest of the last files that we wrote; `TAKEN_IN` and its digest for one that a person saved
              and no file of ours has taken the place of yet
    whole     whether the file is one of ours with these changes and, but for its header, nothing else
    brought   of a foreign file, its bytes as they came; `changes` are then what a person has changed in these since
    lost      of a file that is newer than its journal, the revision that it shows: the records after the journal's head
              are lost, and `changes` are what the file still has of them; 0 else
    base      of an edit, the revision that the person's file shows
    undoes    the revisions of the edits that were taken in and that the file takes back: it is, byte for byte, what it
              was before them
    unplaced  as `renders`, out of a cache of another journal: this one was replaced, cut or rewritten since, and need
              not have what they show
    damage    what is wrong with the file, "" for nothing
    """

    context: RouteContext
    recorded: RouteContext
    token: Token | None
    content: bytes | None
    status: FileStatus
    changes: tuple[Change, ...] = ()
    behind: bool = False
    renders: tuple[tuple[int, str], ...] = ()
    whole: bool = False
    brought: bytes = b""
    lost: int = 0
    base: int = 0
    undoes: tuple[int, ...] = ()
    unplaced: tuple[tuple[int, str], ...] = ()
    damage: str = ""

    @property
    def own(self) -> RouteContext:
        """The context without what is foreign: what work goes on from."""
        return self.recorded if self.context.foreign else self.context


def load(project: Project, route: str) -> State | None:
    """The route's state, None when there is neither journal nor file.

    DamagedRouteFile when there is no journal to serve from, DamagedJournal when there is no file to serve from; Busy
    where the journal is rewritten faster than it is read.
    """
    for _ in range(_MOST_TRIES):
        with suppress(UnknownToken):  # the journal was rewritten meanwhile: what was read of it is of no journal
            try:
                state = of(project, route, read_file(project, route))
                if state is not None and state.undoes and read_file(project, route) != state.content:
                    continue  # it was read before the edit, and the cache after it
            except UnreadableRouteFile as error:
                state = without_file(project, route, error)
            return _as_served(project, route, state) if state is not None else None
    raise Busy(route, "its journal is rewritten again and again", "try again")


def of(project: Project, route: str, content: bytes | None) -> State | None:
    """As `load`, for a route file that has been read, and for a writer: unrecorded edits stand in `changes` alone.
    UnknownToken where the journal is rewritten meanwhile, as it is not for who holds the route's lock.
    """
    head = project.store.head(journal.stream_of(route))
    if head is None:
        return _without_journal(project, route, content) if content else None
    kept = snapshot.load(project.cache, route)
    try:
        if kept is None and content and (shown := _shown(project, route, head, content)) is not None:
            return State(shown, shown, head, content, "current", renders=((shown.revision, digest_of(content)),))
        recorded, of_here = _recorded(project, route, kept, head)
    except DamagedJournal as error:
        return _without_usable_journal(project, route, content, head, error)
    renders = kept.renders if kept is not None else ()
    state = State(recorded, recorded, head, content, "missing", behind=True)
    state = replace(state, renders=renders) if of_here else replace(state, unplaced=renders)
    return with_file(project, route, state, content) if content else state


def without_file(project: Project, route: str, error: UnreadableRouteFile) -> State:
    """The state of a route whose file may not be read: what the journal holds. The error where it holds nothing."""
    state = of(project, route, None)
    if state is None:
        raise error
    return _damaged(state, error)


def digest_of(content: bytes) -> str:
    """The sha256 of a route file's bytes."""
    return hashlib.sha256(content).hexdigest()


def read_file(project: Project, route: str) -> bytes | None:
    """The route file's bytes, None where there is none. DamagedRouteFile for what is no file, or too large, and
    UnreadableRouteFile for one that this user may not read.
    """
    path = project.route_file(route)
    try:
        with open(path, "rb", opener=not_through_a_link) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise DamagedRouteFile(path, "is no regular file", f"move it away: {path}")
            if found.st_size > MAX_BYTES:  # a part of it, taken for the whole, would be an edit that drops the rest
                raise DamagedRouteFile(path, f"has more than {MAX_BYTES >> 20} MiB", f"move it away: {path}")
            return file.read(found.st_size)  # no more: room for all that is asked for is made beforehand
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise DamagedRouteFile(path, "is a directory", f"move it away: {path}") from None
    except PermissionError:
        raise UnreadableRouteFile(path, "may not be read by you", f"sudo chown {os.geteuid()} {path}") from None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        what = "is a symbolic link, no regular file: not read" if error.errno == errno.ELOOP else "is no regular file"
        raise DamagedRouteFile(path, what, f"move it away: {path}") from None


def _shown(project: Project, route: str, head: Token, content: bytes) -> RouteContext | None:
    """The context in a route file that is, byte for byte, what the newest record says it should be; else None."""
    return _shown_by(project, route, journal.at(project.store, route, head), content)


def _shown_by(project: Project, route: str, record: Record, content: bytes) -> RouteContext | None:
    """The same for any record: what the journal had come to with it."""
    if record.foreign or record.render != digest_of(content) or record.outdated:
        return None
    from ralf.document import render

    try:
        found = parsed(project, route, content)
    except DamagedRouteFile:
        return None
    if found.folded.tombstone_count:
        return None  # it does not tell all that the next write has to know
    return found if render(found).encode() == content else None  # by another version: the journal says what it meant


def _recorded(project: Project, route: str, kept: snapshot.Snapshot | None, head: Token) -> tuple[RouteContext, bool]:
    """What the journal comes to: the snapshot, and the records after it; whether the snapshot is of this journal."""
    if kept is not None and kept.token == head:
        return kept.context, True
    from ralf import route as heart  # here and below: what finds the snapshot and the file untouched never pays for it

    if kept is not None:
        try:
            records = [record for _, record in journal.read(project.store, route, after=kept.token)]
        except UnknownToken:
            pass  # the journal was rewritten, or is another
        else:
            return replace(heart.fold(records, kept.context), counts=kept.context.counts), True
    return heart.fold(*_records_from_base(project, route)), kept is None


def _records_from_base(project: Project, route: str) -> tuple[Iterable[Record], RouteContext]:
    """A whole journal: its records from the newest one on whose file is kept as a blob, and what that file shows. A
    record names its file by a hash, and none but ours is believed, so nothing is taken on trust.
    """
    from ralf import route as heart

    records = [record for _, record in journal.read(project.store, route)]
    before, bases = 0, []
    for place, record in enumerate(records):
        if record.render:
            if heart.has_base(before, record.revision):
                bases.append(place)
            before = record.revision
    for place in reversed(bases):
        with suppress(NotFound, Damaged, OSError), project.store.open_blob(records[place].render) as file:
            found = _shown_by(project, route, records[place], file.read(MAX_BYTES))
            if found is not None:
                return records[place + 1 :], found
    return records, heart.empty(route)


def _without_journal(project: Project, route: str, content: bytes) -> State:
    from ralf import route as heart
    from ralf.ownership import routefiles

    context = named(parsed(project, route, content), route)
    own = routefiles.is_own(project, route, content)
    if own:
        is_lost = context.revision > 0 and snapshot.load(project.cache, route) is not None
        lost = context.revision if is_lost else 0
        return State(context, heart.empty(route), None, content, "own", lost=lost)
    return State(context, heart.empty(route), None, content, "foreign", brought=content)


def named(context: RouteContext, route: str) -> RouteContext:
    """A context out of a file that anybody may have brought: the route is that of the file, whatever stands in it."""
    return replace(context, context_checkpoint=replace(context.context_checkpoint, route=route))


def _without_usable_journal(
    project: Project, route: str, content: bytes | None, head: Token, error: DamagedJournal
) -> State:
    """The route file as it stands, when its journal cannot be read."""
    if not content:
        raise error
    from ralf.ownership import foreignlines, routefiles

    context = replace(named(parsed(project, route, content), route), warnings=(str(error), error.hint))
    if not routefiles.is_own(project, route, content):
        context = foreignlines.apart(context)
    return State(context, context, head, content, "damaged", damage=str(error))


def with_file(project: Project, route: str, state: State, content: bytes) -> State:
    """`state`, with what these bytes of a route file are to it; its context is left as it is."""
    digest = digest_of(content)
    recorded = state.recorded
    if (recorded.revision, digest) in state.renders:
        return replace(state, status="current", behind=False)
    if any(digest == known for _, known in state.renders):
        return _with_older(project, route, replace(state, status="stale", behind=True), digest)
    from ralf import route as heart

    try:
        found = parsed(project, route, content)
    except DamagedRouteFile as error:
        return _damaged(state, error)
    found = _with_header(project, route, state, found)
    state = replace(state, behind=found.revision != recorded.revision)
    base, place = _base(project, route, state, found)
    if base is None:
        return _of_another_history(project, route, state, found)
    if outline(base) == outline(found) or any(revision and digest == known for revision, known in state.unplaced):
        return _as_render(state, found.revision, digest)
    known = _TakenInSince(project, route, found.revision, place)
    changes = tuple(heart.changes_of_edit(base, found, recorded, known))
    if not changes and state.behind:
        return replace(state, status="stale", renders=(*state.renders, (TAKEN_IN, digest)))
    if not changes:
        return replace(state, status="edited")
    if _is_ours(project, route, state, found.revision, digest):
        return _as_render(state, found.revision, digest)
    from ralf.ownership import routefiles

    brought = routefiles.brought(project, route, content)
    if brought is not None:
        return _with_theirs(project, route, replace(state, brought=brought), found, known)
    return replace(state, status="edited", changes=changes, whole=not known.any, base=found.revision)


def is_put_back(project: Project, route: str, state: State) -> bool:
    """Whether a file is an older render of ours than the last one, and not one that git knows: somebody undid what
    their editor showed, or laid a copy in its place.
    """
    if state.status not in ("stale", "edited"):
        return False
    renders, digest = [known for revision, known in state.renders if revision], digest_of(state.content or b"")
    if digest not in renders[:-1] or digest == renders[-1]:
        return False
    from ralf.ownership import routefiles

    return not routefiles.is_gits(project, route, state.content or b"")


def _with_older(project: Project, route: str, state: State, digest: str) -> State:
    """The state with a file that is an older render, byte for byte. Where edits of just this render were taken in
    since, the person has taken them back; else the file is only behind.
    """
    if not is_put_back(project, route, state):
        return state
    revision = next(one for one, known in reversed(state.renders) if known == digest)
    shown = snapshot.shown_at(project.cache, route, revision)
    if shown is None:
        return state
    from ralf import route as heart

    edits = [record for record in _records_since(project, route, shown.token) if _base_of(record) == revision]
    theirs = heart.fold(edits, shown.context)
    undone = heart.changes_of_edit(theirs, shown.context, state.recorded) if edits else []
    if not undone:
        return state
    undoes = tuple(record.revision for record in edits)
    return replace(state, status="edited", changes=tuple(undone), base=revision, undoes=undoes)


def _base_of(record: Record) -> int:
    """The revision that a person's file showed whose edit a record took in; 0 for another record."""
    if record.kind != "edit" or record.foreign or record.payload.get("origin") or record.payload.get("lost"):
        return 0
    base = record.payload.get("base", record.revision - 1)
    return base if isinstance(base, int) else 0


def _with_header(project: Project, route: str, state: State, found: RouteContext) -> RouteContext:
    """What a file says, under the revision that its lineage names. Where a person has removed that line, or the whole
    header, it is that of the render which they had: of the revision that the file still tells, else the likest one.
    """
    header = found.context_checkpoint
    if named := re.match(r"r([0-9]{1,9})-", header.lineage):
        return replace(found, context_checkpoint=replace(header, revision=int(named[1])))
    if header.lineage or header.route not in ("", route) or not state.recorded.lineage:
        return found
    bases = [state.recorded]
    if 0 < header.revision < state.recorded.revision:
        bases = [one for one in [_folded_to(project, route, header.revision)] if one is not None]
    elif not header.revision:
        shown = (snapshot.shown_at(project.cache, route, revision) for revision in dict(reversed(state.renders)))
        bases += [one.context for one in shown if one is not None]
    from ralf import joining
    from ralf.ownership import routefiles

    base = joining.edited(bases, found)
    if base is None or not routefiles.is_own(project, route, state.content or b""):
        return found
    ours = base.context_checkpoint
    if header.version or header.route:
        ours = replace(header, revision=ours.revision, lineage=ours.lineage)
    return replace(found, context_checkpoint=ours)


def _damaged(state: State, error: DamagedRouteFile) -> State:
    """The state with a file that is never overwritten and of which nothing is taken."""
    warned = replace(state.recorded, warnings=(f"{error}; this is what the journal holds", error.hint))
    return replace(state, context=warned, status="damaged", damage=str(error))


def _as_render(state: State, revision: int, digest: str) -> State:
    """The state with a file that is, as it stands, a render of a revision of this journal."""
    renders = (*state.renders, (revision, digest))
    return replace(state, status="stale" if state.behind else "current", renders=renders)


def _of_another_history(project: Project, route: str, state: State, found: RouteContext) -> State:
    """The state with a file whose revision the journal does not have: records were lost, or the file is foreign.

    An older or cut journal beside a newer file of ours is lost history: what the file still shows of it is an edit.
    """
    from ralf import joining, route as heart
    from ralf.ownership import routefiles

    content, recorded = state.content or b"", state.recorded
    if found.route not in ("", route):
        whose = f"the route {found.route}" if names.is_valid(found.route) else "another route"
        hint = f"ralf context verify {route} --repair"
        return _damaged(state, DamagedRouteFile(project.route_file(route), f"is the file of {whose}", hint))
    lost, changes = 0, []
    if routefiles.is_taken_in(project, route, content):
        pass
    elif found.revision > recorded.revision and routefiles.is_of_lost_record(project, route, content, found, recorded):
        lost, changes = found.revision, joining.changes_of_newer(recorded, found)
    elif routefiles.is_known(project, route, content):
        changes = heart.changes_of_foreign(recorded, found)
    else:
        return replace(state, status="foreign", brought=content)
    if changes:
        return replace(state, status="edited", changes=tuple(changes), lost=lost)
    return replace(state, status="stale", lost=lost, renders=(*state.renders, (TAKEN_IN, digest_of(content))))


def lost_warning(path: Path, lost: int, recorded: int) -> str:
    """What a person is told of a route file that is newer than its journal, which ends at a revision; 0: has none."""
    ends = f"its journal ends at {recorded}" if recorded else "it has no journal"
    return f"{path}: shows revision {lost}, and {ends}: records are lost; what the file shows of them is kept"


def _with_theirs(
    project: Project, route: str, state: State, found: RouteContext, is_known: Callable[[Change], bool]
) -> State:
    """The state with a file that git brought: what a person has changed in it since is an edit, as far as it is new or
    about what is the same in both; all else is foreign.
    """
    from ralf import labels, merge, route as heart

    state = replace(state, status="foreign")
    if state.brought == state.content:
        return state
    try:
        theirs = parsed(project, route, state.brought)
    except DamagedRouteFile:
        return replace(state, brought=state.content or b"")
    theirs, found = labels.labelled_alike(theirs, found)
    changes = heart.changes_of_edit(theirs, found, state.recorded, is_known)
    mixed = {one.at for one in merge.conflicts(shared(theirs), shared(state.recorded), changes)}
    own = (one for one in changes if "order" not in one and one.get("removed") != "empty")
    return replace(state, changes=tuple(one for one in own if tuple(one["at"]) not in mixed and _is_content(one)))


def _is_content(change: Change) -> bool:
    at = change["at"]
    return at[0] not in ("context_checkpoint", "unresolved", "folded") and at not in ([BODY, "crlf"], [BODY, "bom"])


def changes_of(project: Project, route: str, state: State, found: RouteContext) -> list[Change]:
    """All that a route file says other than ours, whoever wrote it: for who accepts it as this user's."""
    from ralf import route as heart

    base, place = _base(project, route, state, found)
    if base is None:
        from ralf import joining

        base = _taken_in_by(project, route, found)
        if base is not None:
            return joining.changes_since(base, found, state.recorded)
        return [*heart.changes_of_foreign(state.recorded, found), *joining.retired(state.recorded, found)]
    known = _TakenInSince(project, route, found.revision, place)
    return heart.changes_of_edit(base, found, state.recorded, known)


def redacted(project: Project, change: Change) -> Change:
    """A person's change without its secrets; what its last key calls one is none the less one for standing apart."""
    redactor = project.redactor
    clean: Change = redactor.tree(change)
    if "value" in change and change["at"] and change["at"][-1] != change["value"]:  # not an item, which names itself
        (clean["value"],) = redactor.tree({change["at"][-1]: change["value"]}).values()
    return clean


def _as_served(project: Project, route: str, state: State) -> State:
    """The state whose context shows a person's edit, and what is foreign apart from all that is theirs."""
    if state.changes:
        from ralf.ownership import routefiles

        if state.status == "edited":
            routefiles.remember_read(project, route, state.content or b"")
        state = _with_edit(state)
    if state.lost:
        told = lost_warning(project.route_file(route), state.lost, state.recorded.revision)
        state = replace(state, context=replace(state.context, warnings=(told, "ralf context verify --repair")))
    if later := state.recorded.context_checkpoint.later_records:
        state = replace(state, context=replace(state.context, warnings=(*state.context.warnings, _later(route, later))))
    if state.status == "foreign" or state.recorded.context_checkpoint.foreign_records:
        from ralf.ownership import foreignpart

        return replace(state, context=foreignpart.shown(project, route, state))
    return state


def _later(route: str, count: int) -> str:
    which = "1 record was" if count == 1 else f"{count:,} records were"
    return f"{route}: {which} written by a later version of ralf: kept, and passed over here; update ralf to read on"


def _with_edit(state: State) -> State:
    """The state whose context shows a person's edit, too, at the revision that the journal has."""
    from ralf import route as heart

    recorded = state.recorded
    edit = Record(recorded.revision, "edit", {"changes": list(state.changes)})
    context = replace(heart.apply(recorded, edit), counts=recorded.counts)
    context = replace(context, context_checkpoint=replace(context.context_checkpoint, lineage=recorded.lineage))
    return replace(state, context=context)


def _base(project: Project, route: str, state: State, found: RouteContext) -> tuple[RouteContext | None, Token | None]:
    """What a person's file showed before they edited it, None for a file of another history, or one whose record this
    user's ralf did not write; and the place of that record, where it is remembered.
    """
    from ralf import cap

    recorded = state.recorded
    newest = found.lineage == recorded.lineage
    if newest and state.token is not None and not journal.at(project.store, route, state.token).foreign:
        return cap.shown(recorded), state.token
    if not 0 < found.revision < recorded.revision + newest:
        return None, None
    shown = snapshot.shown_at(project.cache, route, found.revision)
    base = shown.context if shown is not None else _folded_to(project, route, found.revision)
    if base is None or base.lineage != found.lineage:
        return None, None
    return cap.shown(base), shown.token if shown is not None else None


def _taken_in_by(project: Project, route: str, found: RouteContext) -> RouteContext | None:
    """The newest of our revisions that a file of another history says it has taken in, None for none."""
    from ralf import route as heart

    joined, newest, context = set(found.context_checkpoint.joined), None, heart.empty(route)
    for _, record in journal.read(project.store, route) if joined else ():
        context = heart.apply(context, record)
        newest = context if context.lineage in joined else newest
    return newest


class _TakenInSince:
    """Whether people have made a change since a revision, as far as the journal can be read. Whoever goes on in a file
    that they saved before has it in theirs still: it is no new edit, and where it was undone it stays so.
    """

    def __init__(self, project: Project, route: str, revision: int, place: Token | None) -> None:
        self._project = project
        self._route = route
        self._revision = revision
        self._place = place
        self.any = False  # of those that were asked for

    def __call__(self, change: Change) -> bool:
        # No key is needed where nothing was redacted: who reads makes none.
        known = change in self._changes or (self._secret and redacted(self._project, change) in self._changes)
        self.any = self.any or known
        return known

    @cached_property
    def _changes(self) -> list[Change]:
        changes: list[Change] = []
        with suppress(DamagedJournal), journal.understood(self._route):
            edits = [
                record
                for record in _records_since(self._project, self._route, self._place)
                if record.kind == "edit" and record.revision > self._revision
            ]
            undone = {revision for record in edits for revision in record.payload.get("undoes", ())}
            for record in edits:
                if record.revision not in undone:
                    changes += record.payload.get("changes", ())
        return changes

    @cached_property
    def _secret(self) -> bool:
        return any("[REDACTED:" in str(change) for change in self._changes)


def _records_since(project: Project, route: str, place: Token | None) -> list[Record]:
    """The records after a place, or all where there is no such place."""
    with suppress(UnknownToken):
        return [record for _, record in journal.read(project.store, route, after=place or None)]
    return [record for _, record in journal.read(project.store, route)]


def _is_ours(project: Project, route: str, state: State, revision: int, digest: str) -> bool:
    """Whether a file is what the record of its revision says, byte for byte, though we would write it otherwise."""
    if revision == state.recorded.revision and state.token is not None:
        newest = journal.at(project.store, route, state.token)
        return newest.render == digest and not newest.foreign
    if snapshot.shown_at(project.cache, route, revision) is not None:
        return False  # what we wrote is known, and is something else
    records = (record for _, record in journal.read(project.store, route))
    return any((one.revision, one.render, one.foreign) == (revision, digest, False) for one in records)


def _folded_to(project: Project, route: str, revision: int) -> RouteContext | None:
    """What the records up to a revision come to; None where that one is foreign, so that no file of ours shows it."""
    from ralf import route as heart

    context = heart.empty(route)
    for _, record in journal.read(project.store, route):
        context = heart.apply(context, record)
        if record.revision == revision:
            return None if record.foreign else context
    return context


_parsed: tuple[Path, bytes, RouteContext] | None = None
"""The file that was parsed last: a person's edit is read again and again until a writer takes it in."""


def parsed(project: Project, route: str, content: bytes) -> RouteContext:
    """What a route file's bytes say. DamagedRouteFile."""
    from ralf.document import parse  # a read that finds the file untouched never pays for YAML

    global _parsed
    path = project.route_file(route)
    known = _parsed  # another thread may put another route's there
    if known is None or known[:2] != (path, content):
        known = _parsed = (path, content, parse(content, path))
    return known[2]
