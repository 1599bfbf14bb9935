"""A route file that is not our last render: a person's edit, an older render, or what somebody else wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from ralf.brief import wording
from ralf.errors import Damaged, DamagedJournal, DamagedRouteFile, NotFound, UnknownToken
from ralf.format import merge
from ralf.format.codec import outline, shared
from ralf.format.merge import Change
from ralf.format.routefile import render
from ralf.model import BODY, Facts, RouteContext
from ralf.project import Project
from ralf.route import cap, edits, filed, fold, state as states
from ralf.route.state import State
from ralf.storage import git_files, journal, registry
from ralf.storage.files import content_of, replace_undurably
from ralf.storage.journal import Record, Token
from ralf.text import cleaning


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
    if state.status == "foreign" and state.brought:
        with suppress(DamagedRouteFile):
            file = _context_of(project, route, state.brought)
    if state.recorded.context_checkpoint.foreign_records:
        records, is_ours = _of_records(project, route)
    return Theirs(file, records, whole=not is_ours and not state.changes)


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


_MOST_READ = 32  # edits of a route that are remembered to have been read


_DIGEST = 64


_WRITTEN_HERE = 2.0  # seconds between the times of writing and of change of a file that was written where it lies


_COARSE = 0.01  # seconds by which a file system's clock may be behind the other one


def brought(project: Project, route: str, content: bytes) -> bytes | None:
    """What git has brought of a route file that differs from ours, None where nothing of it is foreign.

    That is all of it, or the file that this user has changed since. What this store has written itself, or has taken
    for an edit before, is not foreign, though git may have checked it out anew.
    """
    if _is_remembered(project, route, states.digest_of(content)):
        return None
    found = _of_git(project, route, content)
    return None if found is None or is_known(project, route, found) else found


def is_own(project: Project, route: str, content: bytes) -> bool:
    """Whether a route file that has no journal, or one that cannot be read, is this user's: ralf wrote it for them, or
    it has come here since they opted in, by themselves, and nothing of it by git.
    """
    if is_known(project, route, content):
        return True
    owner = project.owner
    found = owner.registration
    if not owner.vouches:
        if found is None or not found.since or states.digest_of(content) in found.unaccepted.values():
            return False
        try:
            told = project.route_file(route).lstat()
        except OSError:
            return False
        # An archive and a copy bring an older time of writing, or a made-up one; no one can foresee the moment.
        is_older, is_copy = told.st_mtime + _COARSE < found.since, abs(told.st_ctime - told.st_mtime) > _WRITTEN_HERE
        if is_older or is_copy or told.st_uid not in registry.own_ids():
            return False
    return brought(project, route, content) is None


def is_known(project: Project, route: str, content: bytes) -> bool:
    """Whether this store has written just this route file, or an edit that left it so was read or taken in."""
    digest = states.digest_of(content)
    return _is_remembered(project, route, digest) or _is_in_journal(project, route, digest)


def _is_in_journal(project: Project, route: str, digest: str, *, rendered: bool = True) -> bool:
    """Whether a record of this user's took in just this route file, or, with `rendered`, is shown by it."""
    with suppress(DamagedJournal):
        return any(
            entry.id.endswith(f"-{digest}") or (rendered and journal.parsed(route, entry).render == digest)
            for entry in project.store.read(journal.stream_of(route))
            if not entry.foreign
        )
    return False


def is_gits(project: Project, route: str, content: bytes) -> bool:
    """Whether git has, or once had, just these bytes of a route file."""
    return _of_git(project, route, content) == content


def _of_git(project: Project, route: str, content: bytes) -> bytes | None:
    """The bytes of a route file that git has or had: these, else those that it has checked out; None for none."""
    root, path = project.folder.parents[1], project.route_file(route)
    found = git_files.checked_out(root, path.relative_to(root), content)
    return content if found == content or git_files.is_stored(path, content) else found


def is_of_lost_record(
    project: Project, route: str, content: bytes, found: RouteContext, recorded: RouteContext
) -> bool:
    """Whether a file that shows a later revision than its journal has is this user's: a render of a record that was
    lost, or their edit of one. Where nothing remembers it, it is as one without a journal, of a route that began when
    the journal says.
    """
    if not found.lineage:
        return False
    if is_known(project, route, content) or is_edit(project, route, content, found):
        return True
    return found.created == recorded.created != "" and is_own(project, route, content)


def is_edit(project: Project, route: str, content: bytes, found: RouteContext) -> bool:
    """Whether a file is a person's edit of one that the cache knows as ours, and git did not bring it.

    found  what the file says
    """
    kept, shown = states.load_snapshot(project.cache, route), states.shown_at(project.cache, route, found.revision)
    lineages = {known.context.lineage for known in (kept, shown) if known is not None}
    return found.lineage in lineages - {""} and brought(project, route, content) is None


def shows_record(project: Project, route: str, content: bytes) -> bool:
    """Whether a file names a record of a route's journal as the one that it shows, whatever route it is of."""
    try:
        found = states.parse_file(project, route, content)
    except DamagedRouteFile:
        return False
    shown = folded_to(project, route, found.revision) if found.lineage else None
    return shown is not None and shown.lineage == found.lineage


def remember_read(project: Project, route: str, content: bytes) -> None:
    """Note that an edit of a route file was read as this user's: should they commit it, it stays theirs.

    Only where git could be taken for who brought it. A cache that cannot be written costs that knowledge, no data.
    """
    if git_files.is_in_repository(project.route_file(route)):
        remember(project, route, [states.digest_of(content)])


def remember(project: Project, route: str, digests: Sequence[str]) -> None:
    """Note that route files of these digests are this user's."""
    owner = project.owner
    if owner.registration is None and not owner.vouches:
        return  # the cache has no place
    known, path = _read(project, route), project.cache / "read" / route
    new = [digest for digest in digests if digest not in known]
    if not new:
        return
    temporary = path.with_name(f".{route}.{new[-1][:8]}.json.tmp")
    with suppress(OSError):
        replace_undurably(path, "".join(f"{one}\n" for one in [*known, *new][-_MOST_READ:]).encode(), temporary)


def _read(project: Project, route: str) -> list[str]:
    try:
        found = content_of(project.cache / "read" / route).decode("ascii").split("\n")
    except (OSError, UnicodeDecodeError):
        return []
    return [one for one in found if len(one) == _DIGEST]


def _is_remembered(project: Project, route: str, digest: str) -> bool:
    kept = states.load_snapshot(project.cache, route)
    if kept is not None and any(digest == known for _, known in kept.renders):
        return True
    return digest in _read(project, route)


def dropped_lines(ours: RouteContext, theirs: RouteContext) -> Iterator[str]:
    """A line for each decision that stands in ours and that theirs has dropped and shows no more."""
    stones, shown = cap.of(theirs), {item.id for item in theirs.decisions}
    for item in (one for one in ours.decisions if one.status == "active" and one.id not in shown):
        if cap.cover([stone for stone in stones if stone.id == item.id], item):
            yield f"decision {wording.decision(replace(item, origin='', status='dropped')).removeprefix('- ')}"


# ---- the state of a route with such a file, or with none ----


def _context_of(project: Project, route: str, content: bytes) -> RouteContext:
    """What a file says that anyone may have brought. DamagedRouteFile."""
    return states.with_route(filed.with_own_lines(states.parse_file(project, route, content)), route)


def records_from_base(project: Project, route: str) -> tuple[Iterable[Record], RouteContext]:
    """A whole journal: its records from the newest one on whose file is kept as a blob, and what that file shows. A
    record names its file by a hash, and none but ours is believed, so nothing is taken on trust.
    """
    records = [record for _, record in journal.read(project.store, route)]
    before, bases = 0, []
    for place, record in enumerate(records):
        if record.render:
            if fold.has_base(before, record.revision):
                bases.append(place)
            before = record.revision
    for place in reversed(bases):
        with suppress(NotFound, Damaged, OSError), project.store.open_blob(records[place].render) as file:
            found = states.shown_by(project, route, records[place], file.read(states.MAX_BYTES))
            if found is not None:
                return records[place + 1 :], found
    return records, fold.empty(route)


def without_journal(project: Project, route: str, content: bytes) -> State:
    """The state of a route that has a file and no journal."""
    context = _context_of(project, route, content)
    if not is_own(project, route, content):
        return State(context, fold.empty(route), None, content, "foreign", brought=content)
    is_lost = context.revision > 0 and states.load_snapshot(project.cache, route) is not None
    return State(context, fold.empty(route), None, content, "own", lost=context.revision if is_lost else 0)


def without_usable_journal(
    project: Project, route: str, content: bytes | None, head: Token, error: DamagedJournal
) -> State:
    """The state of a route whose journal cannot be read, from its file."""
    if not content:
        raise error
    context = replace(_context_of(project, route, content), warnings=(str(error), error.hint))
    if not is_own(project, route, content):
        context = wording.apart(context)
    return State(context, context, head, content, "damaged", damage=str(error))


def with_other_file(project: Project, route: str, state: State, content: bytes, digest: str) -> State:
    """`state`, with the status and changes of a file that is not its newest render."""
    recorded = state.recorded
    if any(digest == known for _, known in state.renders):
        return with_older(project, route, replace(state, status="stale", behind=True), digest)
    render(recorded)  # decisions that stand in the file as they are written need not be read
    try:
        found = states.parse_file(project, route, content)
    except DamagedRouteFile as error:
        return states.damaged(state, error)
    found = _with_header(project, route, state, found)
    state = replace(state, behind=found.revision != recorded.revision)
    base, place = _base(project, route, state, found)
    found = filed.with_own_lines(found, base)
    if base is not None and place and not _is_place(project, route, place):
        (base, found), place = edits.moved([base, found], recorded), None
    state = replace(state, moved=found.body.has_moved)
    if base is None:
        return _of_another_history(project, route, state, found)
    if found.body.is_cut and base.facts != found.facts == Facts():
        path, what = project.route_file(route), "ends before its facts and its last line: it was cut off"
        hint = f"take the change back, or move the file away to have it made anew from the journal: {path}"
        return states.damaged(state, DamagedRouteFile(path, what, hint))
    if outline(base) == outline(found) or any(revision and digest == known for revision, known in state.unplaced):
        return _as_render(state, found.revision, digest)
    known = _TakenInSince(project, route, found.revision, place)
    changes = tuple(edits.changes_of_edit(base, found, recorded, known))
    if not changes and state.behind:
        return replace(state, status="stale", renders=(*state.renders, (states.TAKEN_IN, digest)))
    if not changes:
        return replace(state, status="edited")
    if _is_ours(project, route, state, found.revision, digest):
        return _as_render(state, found.revision, digest)
    theirs = brought(project, route, content)
    if theirs is not None:
        return _with_theirs(project, route, replace(state, brought=theirs), found, known)
    return replace(state, status="edited", changes=changes, whole=not known.any, base=found.revision)


def is_put_back(project: Project, route: str, state: State) -> bool:
    """Whether a file is an older render of ours than the last one, and not one that git knows: somebody undid what
    their editor showed, or laid a copy in its place.
    """
    if state.status not in ("stale", "edited"):
        return False
    renders, digest = [known for revision, known in state.renders if revision], states.digest_of(state.content or b"")
    is_older = digest in renders[:-1] and digest != renders[-1]
    return is_older and not is_gits(project, route, state.content or b"")


def with_older(project: Project, route: str, state: State, digest: str) -> State:
    """The state with a file that is an older render, byte for byte. Where edits of just this render were taken in
    since, the person has taken them back; else the file is only behind.
    """
    if not is_put_back(project, route, state):
        return state
    revision = next(one for one, known in reversed(state.renders) if known == digest)
    shown = states.shown_at(project.cache, route, revision)
    if shown is None:
        return state
    taken_in = [record for record in _records_since(project, route, shown.token) if _base_of(record) == revision]
    theirs = fold.fold(taken_in, shown.context)
    undone = edits.changes_of_edit(theirs, shown.context, state.recorded) if taken_in else []
    if not undone:
        return state
    undoes = tuple(record.revision for record in taken_in)
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
        return edits.with_header(found, revision=int(named[1]))
    if header.lineage or header.route not in ("", route) or not state.recorded.lineage:
        return found
    bases = [state.recorded]
    if 0 < header.revision < state.recorded.revision:
        bases = [one for one in [folded_to(project, route, header.revision)] if one is not None]
    elif not header.revision:
        shown = (states.shown_at(project.cache, route, revision) for revision in dict(reversed(state.renders)))
        bases += [one.context for one in shown if one is not None]
    base = edits.likeliest_render(bases, found)
    if base is None or not is_own(project, route, state.content or b""):
        return found
    ours = base.context_checkpoint
    if header.version or header.route:
        ours = replace(header, revision=ours.revision, lineage=ours.lineage)
    return replace(found, context_checkpoint=ours)


def _as_render(state: State, revision: int, digest: str) -> State:
    """The state with a file that is, as it stands, a render of a revision of this journal."""
    renders = (*state.renders, (revision, digest))
    return replace(state, status="stale" if state.behind else "current", renders=renders)


def _of_another_history(project: Project, route: str, state: State, found: RouteContext) -> State:
    """The state with a file whose revision the journal does not have: records were lost, or the file is foreign.

    An older or cut journal beside a newer file of ours is lost history: what the file still shows of it is an edit.
    """
    content, recorded = state.content or b"", state.recorded
    if found.route not in ("", route):
        whose = f"the route {found.route}" if cleaning.is_valid(found.route) else "another route"
        hint = f"ralf context verify {route} --repair"
        return states.damaged(state, DamagedRouteFile(project.route_file(route), f"is the file of {whose}", hint))
    lost, changes = 0, []
    if _is_in_journal(project, route, states.digest_of(content), rendered=False):
        pass
    elif found.revision > recorded.revision and is_of_lost_record(project, route, content, found, recorded):
        lost, changes = found.revision, edits.changes_since(recorded, found, recorded)
    elif is_known(project, route, content):
        changes = edits.changes_of_foreign(recorded, found)
    else:
        return replace(state, status="foreign", brought=content)
    if changes:
        return replace(state, status="edited", changes=tuple(changes), lost=lost)
    return replace(
        state, status="stale", lost=lost, renders=(*state.renders, (states.TAKEN_IN, states.digest_of(content)))
    )


def _with_theirs(
    project: Project, route: str, state: State, found: RouteContext, is_known: Callable[[Change], bool]
) -> State:
    """The state with a file that git brought: what a person has changed in it since is an edit, as far as it is new or
    about what is the same in both; all else is foreign.
    """

    state = replace(state, status="foreign")
    if state.brought == state.content:
        return state
    try:
        theirs = filed.with_own_lines(states.parse_file(project, route, state.brought))
    except DamagedRouteFile:
        return replace(state, brought=state.content or b"")
    theirs, found = edits.labelled_alike(theirs, found)
    changes = edits.changes_of_edit(theirs, found, state.recorded, is_known)
    mixed = {one.at for one in merge.conflicts(shared(theirs), shared(state.recorded), changes)}
    own = (one for one in changes if "order" not in one and one.get("removed") != "empty")
    return replace(state, changes=tuple(one for one in own if tuple(one["at"]) not in mixed and _is_content(one)))


def _is_content(change: Change) -> bool:
    at = change["at"]
    return at[0] not in ("context_checkpoint", "unresolved", "folded") and at not in ([BODY, "crlf"], [BODY, "bom"])


def changes_of(project: Project, route: str, state: State, found: RouteContext) -> list[Change]:
    """All that a route file says other than ours, whoever wrote it: for who accepts it as this user's."""
    base, place = _base(project, route, state, found)
    if base is None:
        return [*edits.changes_of_foreign(state.recorded, found), *edits.retired(state.recorded, found)]
    known = _TakenInSince(project, route, found.revision, place)
    return edits.changes_of_edit(base, found, state.recorded, known)


def with_edit(state: State) -> State:
    """The state whose context shows a person's edit, too, at the revision that the journal has."""
    recorded = state.recorded
    edit = Record(recorded.revision, "edit", {"changes": list(state.changes)})
    context = fold.apply(recorded, edit)
    return replace(state, context=edits.with_header(context, lineage=recorded.lineage))


def _base(project: Project, route: str, state: State, found: RouteContext) -> tuple[RouteContext | None, Token | None]:
    """What a person's file showed before they edited it, None for a file of another history, or one whose record this
    user's ralf did not write; and the place of that record, where it is remembered.
    """

    recorded = state.recorded
    newest = found.lineage == recorded.lineage
    if newest and state.token is not None and not journal.at(project.store, route, state.token).foreign:
        return recorded.as_filed(), state.token
    if not 0 < found.revision < recorded.revision + newest:
        return None, None
    shown = states.shown_at(project.cache, route, found.revision)
    base = shown.context if shown is not None else folded_to(project, route, found.revision)
    if base is None or base.lineage != found.lineage:
        return None, None
    return base.as_filed(), shown.token if shown is not None else None


def _is_place(project: Project, route: str, place: Token) -> bool:
    """Whether a record stands where it did: the journal may have been replaced."""
    try:
        journal.at(project.store, route, place)
    except UnknownToken:
        return False
    return True


@dataclass
class _TakenInSince:
    """Whether people have made a change since a revision, as far as the journal can be read. A person who goes on in a
    file that they saved before still has it in theirs: it is no new edit, and where it was undone it stays so.
    """

    project: Project
    route: str
    revision: int
    place: Token | None
    any: bool = False  # of those that were asked for

    def __call__(self, change: Change) -> bool:
        # No key is needed where nothing was redacted: who reads makes none.
        known = change in self._changes or (self._secret and states.redacted(self.project, change) in self._changes)
        self.any = self.any or known
        return known

    @cached_property
    def _changes(self) -> list[Change]:
        changes: list[Change] = []
        with suppress(DamagedJournal), journal.understood(self.route):
            edits = [
                record
                for record in _records_since(self.project, self.route, self.place)
                if record.kind == "edit" and record.revision > self.revision
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
    if states.shown_at(project.cache, route, revision) is not None:
        return False  # what we wrote is known, and is something else
    records = (record for _, record in journal.read(project.store, route))
    return any((one.revision, one.render, one.foreign) == (revision, digest, False) for one in records)


def folded_to(project: Project, route: str, revision: int) -> RouteContext | None:
    """What the records up to a revision come to; None where that one is foreign, so that no file of ours shows it."""
    context = fold.empty(route)
    for _, record in journal.read(project.store, route):
        context = fold.apply(context, record)
        if record.revision == revision:
            return None if record.foreign else context
    return context
