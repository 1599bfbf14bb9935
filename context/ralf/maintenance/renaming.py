"""Renames a route, or merges it into another: its records move to another stream, and the old name still finds it.

A move is first told in a sealed record of `moved/OLD` (`routing.Move`). Then the other stream gets, at once, all
records that it has not, and only after they were read back there the old stream is dropped. So a process that is killed
leaves each record in at least one of the two, and a move that was begun can be completed at any time, also when
somebody has written to either route meanwhile: the next rename or merge of one of them and `verify --repair` do it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ralf import environment, project as projects, routing
from ralf.errors import MEND_JOURNAL, Busy, Damaged, DamagedJournal, RalfError, UsageError
from ralf.format import merge as merging
from ralf.format.codec import to_tree
from ralf.maintenance import remnants
from ralf.maintenance.forget import alone, held
from ralf.model import RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import fold, foreign, rebase, sharing
from ralf.route.load import read_state
from ralf.route.state import MAX_BYTES, digest_of, load_snapshot
from ralf.route.write import open_route, utc_now
from ralf.routing import MERGE, RENAME, Move
from ralf.storage import durable, journal
from ralf.storage.files import content_of
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Entry, Record, stream_of
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line

_MOST_TRIES = 5


@dataclass(frozen=True, slots=True)
class Moved:
    """What a rename or merge came to.

    old, new   the route's name before, and the one under which it is found now
    revision   that the route has come to
    records    how many records moved
    warnings   what the caller should know of; `damage`: what is wrong with the route file, "" for nothing
    changed    whether this call did it, or it was done before
    """

    kind: str
    old: str
    new: str
    revision: int
    records: int
    warnings: tuple[str, ...] = ()
    damage: str = ""
    changed: bool = True

    def is_of(self, kind: str, old: str, new: str) -> bool:
        """Whether this is what a rename or merge by these names comes to."""
        return (self.kind, self.old.casefold(), self.new.casefold()) == (kind, old.casefold(), new.casefold())


def rename_route(route: str, name: str, *, because: str = "", root: str | os.PathLike[str] | None = None) -> Moved:
    """Give a route another name; its earlier one still finds it. Durable when this returns.

    Edits that wait in the route file are recorded first, and the rename is a record. Records keep their ids and labels.
    Sessions, tasks and clients that know the earlier name mean this route from now on. `default` begins anew, but for
    the sessions that were recorded there: they go on in the renamed route. A file of the new name that a clone has
    brought is taken for the route's own where it shows what this route was (`ralf init --share`). One that was broken
    off is completed, and one that is done already changes nothing.

    Raises RouteNotFound, UsageError (a refused name, one that is taken, foreign records, a store on servers), Busy,
    DamagedJournal, OSError: then the route is as before, or in both streams until it is completed.
    """
    project = projects.find(root)
    project.check_links()
    with alone(project):
        store = _store_of(project)
        for done in _complete_of(project, store, (route, name), because):
            if done.is_of(RENAME, route, name):
                return done
        old = routing.existing(project, route)
        cleaning.check(name)
        if old == name != route and not routing.is_merged_away(project, route):
            record = journal.newest(project.store, old)
            return Moved(RENAME, route, old, record.revision if record is not None else 0, 0, changed=False)
        _check_free(project, old, name)
        return _begin(project, store, RENAME, old, name, because)


def merge_routes(route: str, into: str, *, because: str = "", root: str | os.PathLike[str] | None = None) -> Moved:
    """Merge a route into another: its records follow those of the other, and its name finds that from now on. Durable
    when this returns.

    Labels that both gave become the next free ones; under the name of before they still mean what they meant. A
    decision that both made in the same words is one, where it says no more there. The goal, the hand-over and the work
    at hand stay those of `into`, where it has any. Records keep their ids; the merge is a record. One that was broken
    off is completed. A file that was saved, or pulled, under a name that `into` had before is merged into its file.
    Errors as for `rename_route`.
    """
    project = projects.find(root)
    project.check_links()
    with alone(project):
        store = _store_of(project)
        for done in _complete_of(project, store, (route, into), because):
            if done.is_of(MERGE, route, into):
                return done
        old, new = (routing.existing(project, name) for name in (route, into))
        if old == new and route.lower() != new.lower() and os.path.lexists(project.route_file(route)):
            return _take_file(project, route, new)
        if old == new:
            raise UsageError(route, f"is the route {new} itself", "ralf list")
        _settle(project, new, merges=True)
        return _begin(project, store, MERGE, old, new, because)


def complete_moves(project: Project) -> list[tuple[Move, str]]:
    """Complete the renames and merges whose process was killed; of each what came of it. Errors: Busy, OSError."""
    told = []
    for move in pending_moves(project):
        with alone(project):
            try:
                done = _complete(project, _store_of(project), move, "")
            except (Damaged, UsageError) as error:
                told.append((move, f"the {move.kind} of {move.old} to {move.new} cannot be completed: {error}"))
                continue
        what = "is complete" if done is not None else "was given up: one of them is another route now"
        told.append((move, f"the {move.kind} of {move.old} to {move.new} {what}"))
        told += [(move, warning) for warning in done.warnings] if done is not None else []
    return told


def renamed_elsewhere(project: Project, name: str) -> str | None:
    """The route of this clone that another one has renamed, and whose file came back under a name which is none of a
    route here; None for none.
    """
    names = (old for old in routing.names_of(project) if old != name)
    return next((old for old in names if _is_what_it_became(project, old, name)), None)


def stray_files(project: Project) -> list[tuple[Path, str, str]]:
    """The route files that were saved, or pulled, under a name of before; with that name and the one of now."""
    moves = (
        (project.route_file(move.old), move.old, routing.renamed(project, move.old))
        for move in routing.moves_of(project)
    )
    return [(path, old, now) for path, old, now in moves if now and os.path.lexists(path)]


def pending_moves(project: Project) -> list[Move]:
    """The renames and merges that were begun and have not ended."""
    return [move for move in routing.moves_of(project) if not move.arrived]


# ---- before anything moves ----


def _store_of(project: Project) -> FileStore:
    """The store of a project; UsageError for one on servers: other machines know a route by its name there."""
    store = project.store.inner
    if type(store) is not FileStore:
        raise UsageError(project.root, "its routes are kept on servers, too, where none can be renamed or merged yet")
    return store


def _settle(project: Project, route: str, *, merges: bool = False) -> str:
    """Record what waits in a route's file, and return the sha256 of the file as it was written then. UsageError for a
    route that holds what this user's ralf did not write: it would become theirs.

    merges  whether records are to be put on others: those of a later version cannot be
    """
    with open_route(project, route, leave=False) as writer:
        writer.absorb_edits()
        header = writer.context.context_checkpoint
        if writer.foreign or header.foreign_records:
            raise UsageError(route, "holds what your ralf did not write", f"ralf context trust {route}")
        if merges and header.later_records:
            raise UsageError(route, "holds records of a later version of ralf", "update ralf, then try again")
        if writer.damage:
            raise UsageError(route, writer.damage, f"ralf context verify {route} --repair")
        writer.render_file()
        if writer.token is None:
            raise UsageError(route, "has no record", f"ralf context verify {route}")
        return writer.file_digest


def _check_free(project: Project, old: str, name: str) -> None:
    """UsageError for a name that is another route's, now or once."""
    taken = routing.known(project, name)
    if name.casefold() == old.casefold():
        what = f"differs in nothing but case from {old}" if name != old else "is its name already"
        raise UsageError(name, what, f"ralf route rename {old} NAME")
    if taken is None or taken == old or (taken == name and _is_what_it_became(project, old, name)):
        return
    what = "is a route already" if taken.casefold() == name.casefold() else f"is an earlier name of {taken}"
    raise UsageError(name, what, f"ralf route merge {old} {taken}")


def _is_what_it_became(project: Project, old: str, name: str) -> bool:
    """Whether a name has nothing but a file, which shows what the old route was, and what became of it: another clone
    has renamed the route that both share.
    """
    content = _content(project.route_file(name))
    return bool(content) and project.store.head(stream_of(name)) is None and foreign.shows_record(project, old, content)


def _content(path: Path) -> bytes:
    try:
        return content_of(path, most=MAX_BYTES)
    except OSError:
        return b""


# ---- the move ----


def _begin(project: Project, store: FileStore, kind: str, old: str, new: str, because: str) -> Moved:
    whose = "agent" if environment.is_agent() else "user"
    move = Move(kind, old, new, f"{kind}-{uuid.uuid4().hex}", _first(project, old), utc_now(), whose)
    done = _complete(project, store, move, because, begin=True)
    if done is None:
        raise Busy(new, "was begun by somebody else at this moment", "ralf list")
    return done


def _first(project: Project, route: str) -> str:
    """The lineage of a route's first record, "" where it has none."""
    for entry in project.store.read(stream_of(route)):
        return fold.lineage("", journal.parsed(route, entry))
    return ""


def _complete_of(project: Project, store: FileStore, names: Sequence[str], because: str) -> list[Moved]:
    """Complete what was begun with one of these names, for who is alone in the store."""
    wanted = {name.lower() for name in names}
    found = [move for move in pending_moves(project) if wanted & {move.old.lower(), move.new.lower()}]
    done = (_complete(project, store, move, because) for move in found)
    return [one for one in done if one is not None]


def _complete(project: Project, store: FileStore, move: Move, because: str, *, begin: bool = False) -> Moved | None:
    """Do all of a move that is not done yet; None where it was given up, since a route of either name is another one by
    now.

    begin  whether nothing of it is told yet
    """
    for _ in range(_MOST_TRIES):
        shown = _settle(project, move.old, merges=move.kind == MERGE) if begin or _first(project, move.old) else ""
        with held(project, (move.old, move.new)):
            if (content := _content(project.route_file(move.old))) and shown and digest_of(content) != shown:
                continue  # it was saved in between: that is recorded first
            if begin:
                _tell(project, move)
            try:
                moved = _put(project, store, move, because)
            except (Busy, Damaged, OSError):
                if begin:  # else somebody would find it done later, who was told that it failed
                    _give_up(project, move)
                raise
            if moved is None:
                return None
            warnings = _drop_old(project, store, move._replace(labels=moved.labels), shown)
        with open_route(project, move.new, leave=False) as writer:
            writer.absorb_edits()
            writer.render_file()
        told = (*writer.warnings, *warnings)
        return Moved(move.kind, move.old, move.new, writer.context.revision, moved.records, told, writer.damage)
    raise Busy(move.old, "its file is saved again and again", "close it in the editor, then try again")


class _Put(NamedTuple):
    """How many records the old stream had, and their labels: as they were, and as they are now."""

    records: int
    labels: dict[str, str]


def _put(project: Project, store: FileStore, move: Move, because: str) -> _Put | None:
    """Have the other stream hold what it has, then all records that it has not, and the record of the move; None where
    the move was given up.
    """
    entries, kept = (list(project.store.read(stream_of(name))) for name in (move.old, move.new))
    known = {entry.id: entry for entry in kept}
    has_arrived = move.record in known or _is_in_later_name(project, move)
    if not entries and not has_arrived:
        raise DamagedJournal(move.old, f"was moved to {move.new}, and its records are in neither", MEND_JOURNAL)
    if entries and _first(project, move.old) != move.first:  # begun anew under the old name
        if has_arrived:
            _tell(project, move._replace(arrived=True))
        else:
            _give_up(project, move)
        return None
    if not has_arrived and move.kind == RENAME and kept:
        _give_up(project, move)
        return None
    if not entries:
        return _Put(0, dict(move.labels))
    entries = _told_apart(move, entries, known)
    made, labels, changes = entries, dict[str, str](), list[merging.Change]()
    revision = journal.parsed(move.old, entries[-1]).revision
    if kept:
        before = fold.fold((journal.parsed(move.new, entry) for entry in kept), fold.empty(move.new))
        made, labels, after = rebase.joined(move.new, entries, onto=before, known=known)
        revision, changes = after.revision, merging.diff(to_tree(after), to_tree(_as_about(after, before)))
    if move.record not in known:
        made = [*made, _record_of(project, move, because, revision + 1, changes)]
    stream = stream_of(move.new)
    if made:
        lines = [(entry.id, entry.record) for entry in store.read(stream)]
        durable.removed([project.cache / "sessions" / f"{move.new}.jsonl"])  # it names places of this journal
        store.write_anew(stream, [*lines, *_sealed(project, stream, made)], head=store.head(stream))
    there = {entry.id for entry in store.read(stream)}
    if not {move.record, *(entry.id for entry in entries)} <= there:
        raise DamagedJournal(move.new, f"not all of {move.old} is read back from it", MEND_JOURNAL)
    return _Put(len(entries), labels if move.kind == MERGE else {})


def _is_in_later_name(project: Project, move: Move) -> bool:
    """Whether the other route has taken the record of a move along, when it was renamed itself."""
    now = routing.renamed(project, move.new)
    return now is not None and any(entry.id == move.record for entry in project.store.read(stream_of(now)))


def _record_of(project: Project, move: Move, because: str, revision: int, changes: Sequence[merging.Change]) -> Entry:
    """The record that tells of a move, after those that moved."""
    said = redactor_for(project).text(one_line(clean(because)))
    payload: dict[str, Any] = {"from": [move.old], "timestamp": move.timestamp, "origin": move.origin}
    payload |= {"changes": list(changes)} if move.kind == MERGE else {}
    record = journal.sealed(Record(revision, move.kind, payload | ({"because": said} if said else {})))
    return Entry("", move.record, journal.line_of(record))


def _tell(project: Project, move: Move) -> None:
    """Append what is to be known of a move to the stream of the old name. Busy where it is not read back as ours."""
    payload = {**move._asdict(), "labels": dict(move.labels)}
    record, stream = journal.line_of(journal.sealed(Record(1, "move", payload))), routing.stream_of_move(move.old)
    id_ = f"{move.record}-{digest_of(record)[:12]}"
    project.store.append(stream, record, id=id_, after=project.store.head(stream))
    if move.new and routing.move_of(project, move.old) != move:
        raise Busy(move.old, f"{stream} cannot be read back as yours", "ralf doctor")


def _give_up(project: Project, move: Move) -> None:
    with suppress(RalfError, OSError):
        _tell(project, move._replace(new=""))


def _told_apart(move: Move, entries: Sequence[Entry], known: Mapping[str, Entry]) -> list[Entry]:
    """A route's records, each under an id that the other route has for no other record, and under the other's id where
    that has a checkpoint of the same segment of a session.
    """
    segments = {found: entry for entry in known.values() if (found := _segment_of(move.new, entry))}
    made = []
    for entry in entries:
        other, apart = known.get(entry.id), f"{entry.id}-{digest_of(entry.record)[:12]}"
        if apart in known or (other is not None and move.record not in known and not _are_alike(move, entry, other)):
            entry = entry._replace(id=apart)
        elif other is None and (segment := _segment_of(move.old, entry)) in segments:
            entry = entry._replace(id=segments[segment].id)
        made.append(entry)
    return made


def _segment_of(route: str, entry: Entry) -> tuple[str, ...]:
    """What tells the segment of a session that a checkpoint is of from any other; () for another record."""
    record = journal.parsed(route, entry)
    source, evidence = record.payload.get("source"), record.payload.get("evidence")
    if record.kind != "checkpoint" or not isinstance(source, Mapping) or not evidence:
        return ()
    return (*(str(source.get(name)) for name in ("session", "from_byte", "to_byte")), str(evidence))


def _are_alike(move: Move, entry: Entry, other: Entry) -> bool:
    one, two = journal.parsed(move.old, entry), journal.parsed(move.new, other)
    return (one.kind, one.payload) == (two.kind, two.payload)


def _sealed(project: Project, stream: str, entries: Iterable[Entry]) -> list[tuple[str, bytes]]:
    """Records as they are stored in a stream; one that is foreign stays so."""
    seal = project.store.sealed
    return [(one.id, one.record if one.foreign else seal(stream, one.record)) for one in entries]


def _as_about(after: RouteContext, before: RouteContext) -> RouteContext:
    """A context with the goal, the hand-over and the work of another, as far as that has any."""
    made = after
    if before.goal:
        made = replace(made, goal=before.goal, goal_origin=before.goal_origin, began_as=before.began_as)
    if before.handover != RouteContext().handover:
        made = replace(made, handover=before.handover)
    if before.active_work != RouteContext().active_work:
        made = replace(made, active_work=before.active_work)
    return made


# ---- what goes with the records ----


def _drop_old(project: Project, store: FileStore, move: Move, shown: str) -> list[str]:
    """Drop the old stream, all of which the other one has, its file and caches; returns what is to be merged by hand.

    shown  the sha256 of the file as it was written last: the records have all that it shows
    """
    if move.labels:
        _tell(project, move)  # while they can be told
    warnings = _move_file(project, move, shown)
    store.drop(stream_of(move.old))
    with suppress(OSError):  # they can be made anew
        remnants.remove(project.caches_named(move.old))
    if move.old == routing.DEFAULT:
        _keep_sessions(project, move)
        store.drop(routing.stream_of_move(move.old))  # it is the route of all that has no other, and begins anew
    else:
        _tell(project, move._replace(arrived=True))
    return warnings


def _move_file(project: Project, move: Move, shown: str) -> list[str]:
    """Remove the old file; what somebody has saved into it at this very moment becomes the file of a route that was
    renamed, where it has none, and is set aside else.
    """
    old, new = project.route_file(move.old), project.route_file(move.new)
    kept = load_snapshot(project.cache, move.old)
    known = {shown, *(digest for _, digest in (kept.renders if kept is not None else ()))}
    saved = None
    if os.path.lexists(old):  # out of the way first, so that what is saved at this moment is looked at, too
        saved = old.with_name(f"{move.old}.displaced-{digest_of(_content(old))[:12]}")
        old.replace(saved)
        durable.sync_folder(old.parent)
    asides = old.parent.glob(f"{move.old}.displaced-*")  # also what a process that was killed here has left
    durable.removed([aside for aside in asides if digest_of(_content(aside)) in known])
    if saved is None or not saved.exists():
        return []
    if move.kind == RENAME and not os.path.lexists(new):
        saved.replace(new)
        durable.sync_folder(old.parent)
        return []
    return [f"{saved}: was saved meanwhile: merge it by hand"]


def _take_file(project: Project, name: str, route: str) -> Moved:
    """Merge a file that was saved, or pulled, under a name that a route had before, into that route's file."""
    with open_route(project, route, leave=False) as writer:
        writer.absorb_edits()
        writer.render_file()
    path, into = project.route_file(name), project.route_file(route)
    theirs, ours = _content(path), _content(into)
    merged = sharing.merge_files(b"", ours, theirs, into, route=route)
    durable.exchange(into, merged.content, digest_of(ours))  # a save that this displaces is taken in by the next write
    durable.removed([path])
    with open_route(project, route, leave=False) as writer:
        writer.absorb_edits()
        writer.render_file()
    return Moved(MERGE, name, route, writer.context.revision, 0, tuple(writer.warnings), writer.damage)


def _keep_sessions(project: Project, move: Move) -> None:
    """Have the sessions that were recorded in `default` go on where that went: in the new one they would begin anew."""
    with suppress(RalfError):
        state = read_state(project, move.new, None)
        for session in {entry.session for entry in state.recorded.checkpoint_history} if state is not None else ():
            if session and routing.choose(project, session=session).rule != routing.CHOSEN:
                routing.use(project, move.new, session=session)
