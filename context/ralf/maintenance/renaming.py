"""Renames a route: its records move to another stream, and the old name still finds it.

A rename is first told in a sealed record of `moved/OLD` (`routing.Move`). Then the other stream gets, at once, all
records that it has not, and only after they were read back there the old stream is dropped. So a process that is killed
leaves each record in at least one of the two, and a move that was begun can be completed at any time, also when
somebody has written to either route meanwhile: the next rename of one of them and `verify --repair` do it.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ralf import environment, project as projects, routing
from ralf.document.index import NAME, with_index
from ralf.document.place import all_displaced
from ralf.errors import MEND_JOURNAL, Busy, Damaged, DamagedJournal, RalfError, UsageError
from ralf.maintenance.forget import alone, held
from ralf.model import RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import fold
from ralf.route.family import context_of, document_of, recorded
from ralf.route.state import MAX_BYTES, digest_of
from ralf.route.write import open_route, utc_now
from ralf.routing import RENAME, Move
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
    the sessions that were recorded there: they go on in the renamed route. One that was broken off is completed, and
    one that is done already changes nothing.

    Raises RouteNotFound, UsageError (a refused name, one that is taken, foreign records, a store on servers), Busy,
    DamagedJournal, OSError: then the route is as before, or in both streams until it is completed.
    """
    project = projects.find(root)
    with alone(project):
        store = _store_of(project)
        for done in _complete_of(project, store, (route, name), because):
            if done.is_of(RENAME, route, name):
                return done
        old = routing.existing(project, route)
        cleaning.check(name)
        if old == name != route:
            record = journal.newest(project.store, old)
            return Moved(RENAME, route, old, record.revision if record is not None else 0, 0, changed=False)
        _check_free(project, old, name)
        return _begin(project, store, old, name, because)


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


def _settle(project: Project, route: str) -> str:
    """Record what waits in a route's file, and return the sha256 of the file as it was written then. UsageError for a
    route that holds what this user's ralf did not write: it would become theirs.
    """
    with open_route(project, route) as writer:
        writer.absorb_edits()
        header = writer.context.context_checkpoint
        if writer.foreign or header.foreign_records:
            raise UsageError(route, "holds what your ralf did not write", f"ralf context trust {route}")
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
    if taken is None or taken == old:
        return
    what = "is a route already" if taken.casefold() == name.casefold() else f"is an earlier name of {taken}"
    raise UsageError(name, what, f"ralf route rename {old} NAME")


def _content(path: Path) -> bytes:
    try:
        return content_of(path, most=MAX_BYTES)
    except OSError:
        return b""


# ---- the move ----


def _begin(project: Project, store: FileStore, old: str, new: str, because: str) -> Moved:
    whose = "agent" if environment.is_agent() else "user"
    move = Move(RENAME, old, new, f"{RENAME}-{uuid.uuid4().hex}", _first(project, old), utc_now(), whose)
    done = _complete(project, store, move, because, begin=True)
    if done is None:
        raise Busy(new, "was begun by somebody else at this moment", "ralf list")
    return done


def _first(project: Project, route: str) -> str:
    """What tells a route's first record from others, "" where it has none."""
    for entry in project.store.read(stream_of(route)):
        found = journal.parsed(route, entry)
        return found.mark or found.digest
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
        shown = _settle(project, move.old) if begin or _first(project, move.old) else ""
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
            warnings = _drop_old(project, store, move, shown)
        with open_route(project, move.new) as writer:
            writer.absorb_edits()
            writer.render_file()
        told = (*writer.warnings, *warnings)
        return Moved(move.kind, move.old, move.new, writer.context.revision, moved, told, writer.damage)
    raise Busy(move.old, "its file is saved again and again", "close it in the editor, then try again")


def _put(project: Project, store: FileStore, move: Move, because: str) -> int | None:
    """Have the new stream hold all records and the record of the move; how many there were, None where the move was
    given up.
    """
    entries, kept = (list(project.store.read(stream_of(name))) for name in (move.old, move.new))
    known = {entry.id for entry in kept}
    has_arrived = move.record in known or _is_in_later_name(project, move)
    if not entries and not has_arrived:
        raise DamagedJournal(move.old, f"was moved to {move.new}, and its records are in neither", MEND_JOURNAL)
    if entries and _first(project, move.old) != move.first:  # begun anew under the old name
        if has_arrived:
            _tell(project, move._replace(arrived=True))
        else:
            _give_up(project, move)
        return None
    if not has_arrived and kept:
        _give_up(project, move)
        return None
    if not entries:
        return 0
    stream = stream_of(move.new)
    made = [entry for entry in entries if entry.id not in known]
    if made and kept:  # written to the old name after a kill
        made = _behind(move, entries, kept)
    if move.record not in known:
        revision = journal.parsed(move.old, entries[-1]).revision
        made.append(_record_of(project, move, because, revision + 1))
    if made:
        lines = [(entry.id, entry.record) for entry in store.read(stream)]
        _drop_index(project, move.new)  # it names places of this journal
        store.write_anew(stream, [*lines, *_sealed(project, stream, made)], head=store.head(stream))
    there = {entry.id for entry in store.read(stream)}
    if not {move.record, *(entry.id for entry in entries)} <= there:
        raise DamagedJournal(move.new, f"not all of {move.old} is read back from it", MEND_JOURNAL)
    return len(entries)


def _behind(move: Move, entries: Sequence[Entry], kept: Sequence[Entry]) -> list[Entry]:
    """The records of the old name that the new one lacks, behind its own: a label that both have given since the kill
    gets a tag there.
    """
    known, tag = {entry.id for entry in kept}, hashlib.sha256(move.record.encode()).hexdigest()[:6]
    both = {item.id for item in _folded(move.old, [entry for entry in entries if entry.id in known]).decisions}
    after = _folded(move.new, kept)
    made: list[Entry] = []
    for entry in entries:
        if entry.id not in known:
            record = journal.parsed(move.old, entry)
            text = json.dumps(record.payload, ensure_ascii=False)
            for label in {item.id for item in after.decisions} - both:
                text = text.replace(f'"{label}"', f'"{label}-{tag}"')
            revision = after.revision + len(made) + 1
            plain = Record(revision, record.kind, json.loads(text))
            made.append(entry._replace(record=journal.line_of(journal.sealed(plain))))
    return made


def _folded(route: str, entries: Iterable[Entry]) -> RouteContext:
    return fold.fold((journal.parsed(route, entry) for entry in entries), fold.empty(route))


def _is_in_later_name(project: Project, move: Move) -> bool:
    """Whether the other route has taken the record of a move along, when it was renamed itself."""
    now = routing.renamed(project, move.new)
    return now is not None and any(entry.id == move.record for entry in project.store.read(stream_of(now)))


def _record_of(project: Project, move: Move, because: str, revision: int) -> Entry:
    """The record that tells of a move, after those that moved."""
    said = redactor_for(project).text(one_line(clean(because)))
    payload: dict[str, Any] = {"from": [move.old], "timestamp": move.timestamp, "origin": move.origin}
    record = journal.sealed(Record(revision, move.kind, payload | ({"because": said} if said else {})))
    return Entry("", move.record, journal.line_of(record))


def _tell(project: Project, move: Move) -> None:
    """Append what is to be known of a move to the stream of the old name. Busy where it is not read back as ours."""
    payload = move._asdict()
    record, stream = journal.line_of(journal.sealed(Record(1, "move", payload))), routing.stream_of_move(move.old)
    id_ = f"{move.record}-{digest_of(record)[:12]}"
    project.store.append(stream, record, id=id_, after=project.store.head(stream))
    if move.new and routing.move_of(project, move.old) != move:
        raise Busy(move.old, f"{stream} cannot be read back as yours", "ralf doctor")


def _give_up(project: Project, move: Move) -> None:
    with suppress(RalfError, OSError):
        _tell(project, move._replace(new=""))


def _sealed(project: Project, stream: str, entries: Iterable[Entry]) -> list[tuple[str, bytes]]:
    """Records as they are stored in a stream."""
    return [(one.id, project.store.with_id(one.record)) for one in entries]


def _drop_index(project: Project, route: str) -> None:
    with_index(project.room_for(NAME), lambda index: index.drop(stream_of(route)) if index is not None else None)


# ---- what goes with the records ----


def _drop_old(project: Project, store: FileStore, move: Move, shown: str) -> list[str]:
    """Drop the old stream, all of which the other one has, its file and caches; returns what is to be merged by hand.

    shown  the sha256 of the file as it was written last: the records have all that it shows
    """
    warnings = _move_file(project, move, shown)
    store.drop(stream_of(move.old))
    _drop_index(project, move.old)
    durable.removed(all_displaced(document_of(project, move.old).place))  # absorbed before the records moved
    with suppress(OSError):  # they can be made anew
        durable.removed(path for path in project.caches_named(move.old) if path.is_file())
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
    saved = None
    if os.path.lexists(old):  # out of the way first, so that what is saved at this moment is looked at, too
        saved = old.with_name(f"{move.old}.displaced-{digest_of(_content(old))[:12]}")
        old.replace(saved)
        durable.sync_folder(old.parent)
    asides = old.parent.glob(f"{move.old}.displaced-*")  # also what a process that was killed here has left
    durable.removed([aside for aside in asides if digest_of(_content(aside)) == shown])
    if saved is None or not saved.exists():
        return []
    if not os.path.lexists(new):
        saved.replace(new)
        durable.sync_folder(old.parent)
        return []
    return [f"{saved}: was saved meanwhile: merge it by hand"]


def _keep_sessions(project: Project, move: Move) -> None:
    """Have the sessions that were recorded in `default` go on where that went: in the new one they would begin anew."""
    with suppress(RalfError):
        entries = recorded(project, move.new, lambda state: context_of(state.rows, move.new).checkpoint_history)
        for session in {entry.session for entry in entries}:
            if session and routing.choose(project, session=session).rule != routing.CHOSEN:
                routing.use(project, move.new, session=session)
