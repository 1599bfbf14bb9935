"""Renames a route, or merges it into another: its records move to another stream, and the old name still finds it.

A move is first told in a sealed record of `moved/OLD` (`routing.Move`). Then the other stream gets, at once, all
records that it has not, and only after they were read back there the old stream is dropped. So a process that is killed
leaves each record in at least one of the two, and a move that was begun can be completed at any time, also when
somebody has written to either route meanwhile: the next rename or merge and `verify --repair` do it.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ralf import environment, project as projects, routing
from ralf.errors import Busy, DamagedJournal, RalfError, UsageError
from ralf.format import merge as merging
from ralf.format.codec import to_tree
from ralf.maintenance.forget import alone
from ralf.model import RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import fold, foreign, rebase
from ralf.route.load import read_state
from ralf.route.state import MAX_BYTES, digest_of
from ralf.route.write import open_route, utc_now
from ralf.routing import MERGE, MOVED, RENAME, Move
from ralf.storage import durable, files, journal
from ralf.storage.files import content_of
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Entry, Record, stream_of
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line


@dataclass(frozen=True, slots=True)
class Moved:
    """What a rename or merge came to.

    old, new   the route's name before, and the one under which it is found now
    revision   that the route has come to
    records    how many records moved
    warnings   what the caller should know of; `damage`: what is wrong with the route file, "" for nothing
    """

    kind: str
    old: str
    new: str
    revision: int
    records: int
    warnings: tuple[str, ...] = ()
    damage: str = ""

    def is_of(self, kind: str, old: str, new: str) -> bool:
        """Whether this is what a rename or merge by these names comes to."""
        return (self.kind, self.old.casefold(), self.new.casefold()) == (kind, old.casefold(), new.casefold())


def rename_route(route: str, name: str, *, because: str = "", root: str | os.PathLike[str] | None = None) -> Moved:
    """Give a route another name; its earlier one still finds it. Durable when this returns.

    Edits that wait in the route file are recorded first, and the rename is a record. Records keep their ids and labels.
    Sessions, tasks and clients that know the earlier name mean this route from now on. `default` begins anew, but for
    the sessions that were recorded there: they go on in the renamed route. A file of the new name that a clone has
    brought is taken for the route's own where it shows what this route was (`ralf init --share`).

    Raises RouteNotFound, UsageError (a refused name, one that is taken, foreign records, a store on servers), Busy,
    DamagedJournal, OSError.
    """
    project = projects.find(root)
    project.check_links()
    with alone(project):
        store = _store_of(project)
        for done in _complete_all(project, store):
            if done.is_of(RENAME, route, name):
                return done  # the one that is asked for had been broken off
        old = routing.existing(project, route)
        cleaning.check(name)
        _check_free(project, old, name)
        _settle(project, old)
        return _move(project, store, Move(RENAME, old, name, _new_id(RENAME), "", utc_now(), _whose()), because)


def merge_routes(route: str, into: str, *, because: str = "", root: str | os.PathLike[str] | None = None) -> Moved:
    """Merge a route into another: its records follow those of the other, and its name finds that from now on. Durable
    when this returns.

    Labels that both gave become the next free ones, and a decision that both made in the same words is one. The goal,
    the hand-over and the work at hand stay those of `into`, where it has any. Records keep their ids; the merge is a
    record. Errors as for `rename_route`.
    """
    project = projects.find(root)
    project.check_links()
    with alone(project):
        store = _store_of(project)
        for done in _complete_all(project, store):
            if done.is_of(MERGE, route, into):
                return done
        old, new = (routing.existing(project, name) for name in (route, into))
        if old == new:
            raise UsageError(route, f"is the route {new} itself", "ralf list")
        _settle(project, old)
        _settle(project, new)
        return _move(project, store, Move(MERGE, old, new, _new_id(MERGE), "", utc_now(), _whose()), because)


def complete_moves(project: Project) -> list[Moved]:
    """Complete the renames and merges whose process was killed; what they came to. Errors: `rename_route`."""
    if not pending_moves(project):
        return []
    with alone(project):
        return _complete_all(project, _store_of(project))


def renamed_elsewhere(project: Project, name: str) -> str | None:
    """The route of this clone that another one has renamed, and whose file came back under a name which is none of a
    route here; None for none.
    """
    return next(
        (old for old in routing.names_of(project) if old != name and _is_what_it_became(project, old, name)), None
    )


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


def _new_id(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex}"


def _whose() -> str:
    return "agent" if environment.is_agent() else "user"


def _settle(project: Project, route: str) -> None:
    """Record what waits in a route's file. UsageError for a route that holds what this user's ralf did not write: it
    would become theirs.
    """
    with open_route(project, route, leave=False) as writer:
        writer.absorb_edits()
        if writer.foreign or writer.context.context_checkpoint.foreign_records:
            raise UsageError(route, "holds what your ralf did not write", f"ralf context trust {route}")
        if writer.damage:
            raise UsageError(route, writer.damage, f"ralf context verify {route} --repair")
        writer.render_file()
        if writer.token is None:
            raise UsageError(route, "has no record", f"ralf context verify {route}")


def _check_free(project: Project, old: str, name: str) -> None:
    """UsageError for a name that is another route's, now or once."""
    taken = routing.known(project, name)
    if name.casefold() == old.casefold():
        raise UsageError(name, f"differs in nothing but case from {old}" if name != old else "is its name already")
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


def _held(project: Project, old: str, new: str) -> ExitStack:
    """Hold both routes, always in the same order, so that two that do it wait for each other in turn; a model's work on
    either first, for that takes minutes.
    """
    stack, names = ExitStack(), sorted((old, new))
    try:
        for name in names:
            stack.enter_context(files.locked(project.worker_lock(name), f"{name}: the model's work"))
        for name in names:
            stack.enter_context(files.locked(project.route_lock(name), name))
    except BaseException:
        stack.close()
        raise
    return stack


# ---- the move ----


def _move(project: Project, store: FileStore, move: Move, because: str) -> Moved:
    """Tell durably where a route goes, before anything of it goes, and do it."""
    _tell(project, move)
    found = routing.move_of(project, move.old)
    if found != move:
        where = f"{MOVED}{move.old}"
        raise Busy(move.old, f"{where} cannot be read back as yours: nothing was moved", "ralf doctor")
    done = _complete(project, store, move, because)
    if done is None:
        raise UsageError(move.new, "was begun by somebody else at this moment", "ralf list")
    return done


def _tell(project: Project, move: Move) -> None:
    """Append what is to be known of a move to the stream of the old name."""
    stream, id_ = f"{MOVED}{move.old}", f"{move.record}-{'arrived' if move.arrived else 'begun' if move.new else 'off'}"
    record = journal.line_of(journal.sealed(Record(1, "move", move._asdict())))
    project.store.append(stream, record, id=id_, after=project.store.head(stream))


def _complete_all(project: Project, store: FileStore) -> list[Moved]:
    """Complete what was begun, for who is alone in the store."""
    found = (_complete(project, store, move, "") for move in pending_moves(project))
    return [done for done in found if done is not None]


def _complete(project: Project, store: FileStore, move: Move, because: str) -> Moved | None:
    """Do all of a move that is not done yet; None where it was given up, since somebody has begun a route of the new
    name meanwhile.
    """
    with _held(project, move.old, move.new):
        entries, kept = (list(project.store.read(stream_of(name))) for name in (move.old, move.new))
        known = {entry.id: entry for entry in kept}
        if move.kind == RENAME and kept and move.record not in known:
            _tell(project, move._replace(new=""))
            return None
        if entries:
            entries = _told_apart(move, entries, known)
            _put(project, store, move, entries, kept, because)
            there = {entry.id for entry in store.read(stream_of(move.new))}
            if not {move.record, *(entry.id for entry in entries)} <= there:
                raise DamagedJournal(move.new, f"not all of {move.old} is read back from it: {move.old} is as it was")
        elif move.record not in known:
            raise DamagedJournal(move.new, f"{move.old} has gone there, and its records are in neither")
        warnings = _move_file(project, move)
        store.drop(stream_of(move.old))
        _drop_caches(project, move.old)
        if move.old == routing.DEFAULT:
            _keep_sessions(project, move)
            store.drop(f"{MOVED}{move.old}")  # it is the route of all that has no other, and begins anew
        else:
            _tell(project, move._replace(arrived=True))
    with open_route(project, move.new, leave=False) as writer:
        writer.absorb_edits()
        writer.render_file()
    told = (*writer.warnings, *warnings)
    return Moved(move.kind, move.old, move.new, writer.context.revision, len(entries), told, writer.damage)


def _told_apart(move: Move, entries: Sequence[Entry], known: dict[str, Entry]) -> list[Entry]:
    """A route's records, each under an id that the other route has for no other record."""
    made = []
    for entry in entries:
        other, apart = known.get(entry.id), f"{entry.id}-{digest_of(entry.record)[:12]}"
        is_other = other is not None and move.record not in known and not _are_alike(move, entry, other)
        made.append(entry._replace(id=apart) if is_other or apart in known else entry)
    return made


def _are_alike(move: Move, entry: Entry, other: Entry) -> bool:
    one, two = journal.parsed(move.old, entry), journal.parsed(move.new, other)
    return (one.kind, one.payload) == (two.kind, two.payload)


def _put(
    project: Project, store: FileStore, move: Move, entries: Sequence[Entry], kept: Sequence[Entry], because: str
) -> None:
    """Have the other stream hold what it has, then all records that it has not, and the record of the move."""
    stream, known = stream_of(move.new), {entry.id: entry for entry in kept}
    before = fold.fold((journal.parsed(move.new, entry) for entry in kept), fold.empty(move.new))
    made = list(entries)
    if kept:
        made = list(rebase.rebased(move.new, entries, before=fold.empty(move.new), onto=before, known=known))
    if move.record not in known:
        after = fold.fold((journal.parsed(move.new, entry) for entry in made), before)
        said = redactor_for(project).text(one_line(clean(because)))
        payload: dict[str, Any] = {"from": [move.old], "timestamp": move.timestamp, "origin": move.origin}
        if move.kind == MERGE:
            payload["changes"] = merging.diff(to_tree(after), to_tree(_as_about(after, before)))
        record = journal.sealed(Record(after.revision + 1, move.kind, payload | ({"because": said} if said else {})))
        made.append(Entry("", move.record, journal.line_of(record)))
    if made:
        lines = [(entry.id, entry.record) for entry in store.read(stream)]
        store.write_anew(stream, [*lines, *_sealed(project, stream, made)], head=store.head(stream))


def _sealed(project: Project, stream: str, entries: Iterable[Entry]) -> list[tuple[str, bytes]]:
    """Records as they are stored in a stream; one that is foreign stays so."""
    seal = project.store.sealed
    return [(one.id, one.record if one.foreign else seal(stream, one.record)) for one in entries]


def _as_about(after: RouteContext, before: RouteContext) -> RouteContext:
    """A context with the goal, the hand-over and the work of another, as far as that has any."""
    made = after
    if before.goal:
        made = replace(made, goal=before.goal, goal_origin=before.goal_origin, began_as=before.began_as)
    if before.handover is not None:
        made = replace(made, handover=before.handover)
    if before.active_work != RouteContext().active_work:
        made = replace(made, active_work=before.active_work)
    return made


# ---- what goes with the records ----


def _move_file(project: Project, move: Move) -> list[str]:
    """Move the route file, with what somebody saves at this moment, or remove it where the records have all that it
    shows; returns what is to be merged by hand.
    """
    old, new = project.route_file(move.old), project.route_file(move.new)
    if not os.path.lexists(old):
        return []
    if move.kind == RENAME and not os.path.lexists(new):
        old.replace(new)
        durable.sync_folder(old.parent)
        return []
    aside = old.with_name(f"{move.old}.displaced-{digest_of(_content(old))[:12]}")
    old.replace(aside)  # first, so that what is saved at this moment is looked at, too
    durable.sync_folder(old.parent)
    digest = digest_of(_content(aside))
    if any(record.render == digest for _, record in journal.read(project.store, move.new)):
        durable.removed([aside])
        return []
    return [f"{aside}: was saved meanwhile: merge it by hand"]


def _drop_caches(project: Project, route: str) -> None:
    for path in list(project.caches_named(route)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _keep_sessions(project: Project, move: Move) -> None:
    """Have the sessions that were recorded in `default` go on where that went: in the new one they would begin anew."""
    with suppress(RalfError):
        state = read_state(project, move.new, None)
        for session in {entry.session for entry in state.recorded.checkpoint_history} if state is not None else ():
            if session and routing.choose(project, session=session).rule != routing.CHOSEN:
                routing.use(project, move.new, session=session)
