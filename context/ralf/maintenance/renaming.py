"""Renames a route, or merges it into another: its records move to another stream, and the old name still finds it.

Killed at any moment, a project's routes are as before or as after: what is under way stands in `moves/`
(`routing.Move`), and the next rename, merge or `verify --repair` ends it. Nothing is dropped whose records are not in
the other stream.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ralf import environment, project as projects, routing
from ralf.errors import Busy, UsageError
from ralf.format import merge as merging
from ralf.format.codec import to_tree
from ralf.maintenance.forget import alone
from ralf.model import RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import fold, rebase
from ralf.route.state import digest_of
from ralf.route.write import open_route, utc_now
from ralf.routing import MERGE, RENAME, Move, alias_file, move_file
from ralf.storage import durable, files, journal
from ralf.storage.files import content_of
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Entry, Record, Token, stream_of
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line

_MOST = 64 << 20  # bytes of a route file


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


def rename_route(route: str, name: str, *, because: str = "", root: str | os.PathLike[str] | None = None) -> Moved:
    """Give a route another name; its earlier one still finds it. Durable when this returns.

    Edits that wait in the route file are recorded first, and the rename is a record. Records keep their ids and labels.
    Sessions, tasks and clients that know the earlier name mean this route from now on; `default` alone begins anew.
    Raises RouteNotFound, UsageError (a refused name, one that is taken, foreign records, a store on servers), Busy,
    DamagedJournal, OSError.
    """
    project = projects.find(root)
    project.check_links()
    with alone(project):
        store = _store_of(project)
        _finish(project, store)
        old = routing.existing(project, route)
        _check_free(project, old, name)
        head = _settled(project, old)
        with _held(project, old, name):
            entries = _entries(project, store, old, head)
            move = Move(RENAME, old, name, f"rename-{cleaning.slug(old)}-{len(entries)}")
            _begin(project, move)
            lines = _sealed(project, name, entries)
            store.write_anew(stream_of(name), lines, head=store.head(stream_of(name)))
            aside = _end(project, store, move)
        return _told(project, move, len(entries), aside, because)


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
        _finish(project, store)
        old, new = (routing.existing(project, name) for name in (route, into))
        if old == new:
            raise UsageError(route, f"is the route {new} itself", "ralf list")
        head, onto = _settled(project, old), _settled(project, new)
        with _held(project, old, new):
            entries = _entries(project, store, old, head)
            kept = _entries(project, store, new, onto)
            move = Move(MERGE, old, new, f"merge-{cleaning.slug(old)}-{len(entries)}-{len(kept)}")
            moved, revision, changes = _rebased(new, entries, kept)
            payload = {"from": [old], "changes": changes, **_told_by(project, because)}
            made = [*moved, Entry("", move.record, journal.line_of(Record(revision + 1, fold.MERGE, payload)))]
            _begin(project, move)
            lines = [(entry.id, entry.record) for entry in store.read(stream_of(new))]
            store.write_anew(stream_of(new), [*lines, *_sealed(project, new, made)], head=onto)
            aside = _end(project, store, move)
        return _told(project, move, len(entries), aside, because)


def finish(project: Project) -> list[Move]:
    """End the renames and merges of a project whose process was killed; which they were. Errors: `rename_route`."""
    if not routing.moves_of(project):
        return []
    with alone(project):
        return _finish(project, _store_of(project))


# ---- before anything moves ----


def _store_of(project: Project) -> FileStore:
    """The store of a project; UsageError for one on servers: other machines know a route by its name there."""
    store = project.store.inner
    if type(store) is not FileStore:
        raise UsageError(project.root, "its routes are kept on servers, too, where none can be renamed or merged yet")
    return store


def _check_free(project: Project, old: str, name: str) -> None:
    """UsageError for a name that is refused, or is another route's, now or once."""
    cleaning.check(name)
    taken = routing.known(project, name)
    if name.casefold() == old.casefold():
        raise UsageError(name, f"differs in nothing but case from {old}" if name != old else "is its name already")
    if taken is not None and taken != old:
        what = "is a route already" if taken.casefold() == name.casefold() else f"is an earlier name of {taken}"
        raise UsageError(name, what, f"ralf route merge {old} {taken}")


def _settled(project: Project, route: str) -> Token:
    """Record what waits in a route's file; returns the head of its journal then. UsageError for a route that holds what
    this user's ralf did not write: it would become theirs.
    """
    with open_route(project, route, leave=False) as writer:
        writer.absorb_edits()
        if writer.foreign or writer.context.context_checkpoint.foreign_records:
            raise UsageError(route, "holds what your ralf did not write", f"ralf context trust {route}")
        if writer.damage:
            raise UsageError(route, writer.damage, f"ralf context verify {route} --repair")
        writer.render_file()
        head = writer.token
    if head is None:
        raise UsageError(route, "has no record", f"ralf context verify {route}")
    return head


def _content(path: Path) -> bytes:
    try:
        return content_of(path, most=_MOST)
    except OSError:
        return b""


def _held(project: Project, old: str, new: str) -> ExitStack:
    """Hold both routes; always in the same order, so that two that do it wait for each other in turn."""
    stack = ExitStack()
    try:
        for name in sorted((old, new)):
            stack.enter_context(files.locked(project.worker_lock(name), f"{name}: the model's work"))
            stack.enter_context(files.locked(project.route_lock(name), name))
    except BaseException:
        stack.close()
        raise
    return stack


def _entries(project: Project, store: FileStore, route: str, head: Token) -> list[Entry]:
    """The records of a route, without their seals; Busy where another writer came first."""
    if store.head(stream_of(route)) != head:
        raise Busy(route, "was written to meanwhile", "try again")
    return list(project.store.read(stream_of(route)))


def _begin(project: Project, move: Move) -> None:
    """Say durably what is under way, before anything of it is done."""
    _put(move_file(project, move.old), f"{move.kind} {move.new} {move.record}\n")
    if move.old != routing.DEFAULT:  # that begins anew: it is the route of all that has no other
        _put(alias_file(project, move.old), f"{move.new}\n")  # it counts once no route has the name itself


def _put(path: Path, text: str) -> None:
    files.make(path.parent)
    durable.write(path, text.encode())


def _sealed(project: Project, route: str, entries: Iterable[Entry]) -> list[tuple[str, bytes]]:
    """Records as they are stored under a route's name; one that is foreign stays so."""
    seal = project.store.sealed
    return [(one.id, one.record if one.foreign else seal(stream_of(route), one.record)) for one in entries]


def _rebased(
    new: str, entries: Sequence[Entry], kept: Sequence[Entry]
) -> tuple[list[Entry], int, list[merging.Change]]:
    """The records as they follow those of the other route, the revision that they come to, and the changes that keep
    what that is about.
    """
    before = fold.fold((journal.parsed(new, entry) for entry in kept), fold.empty(new))
    known = {entry.id: entry for entry in kept}
    moved = list(rebase.rebased(new, entries, before=fold.empty(new), onto=before, known=known))
    after = fold.fold((journal.parsed(new, entry) for entry in moved), before)
    return moved, after.revision, merging.diff(to_tree(after), to_tree(_as_about(after, before)))


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


def _told_by(project: Project, because: str) -> dict[str, str]:
    whose = "agent" if environment.session() else "user"
    said = redactor_for(project).text(one_line(clean(because)))
    return {"timestamp": utc_now(), "origin": whose, **({"because": said} if said else {})}


# ---- once the records are in the other stream ----


def _end(project: Project, store: FileStore, move: Move) -> dict[str, Path]:
    """Give up the old stream, whose records are all in the new one, and move its file; returns what was set aside."""
    store.drop(stream_of(move.old))
    old, new = project.route_file(move.old), project.route_file(move.new)
    aside: dict[str, Path] = {}
    if move.kind == RENAME and not os.path.lexists(new):
        with suppress(FileNotFoundError):
            old.replace(new)  # with what somebody saves at this moment: the next write merges it
            durable.sync_folder(old.parent)
    elif found := _content(old):
        digest = digest_of(found)
        if any(record.render == digest for _, record in journal.read(project.store, move.new)):
            durable.removed([old])
        else:  # somebody has saved it meanwhile
            aside[move.old] = old.with_name(f"{move.old}.displaced-{digest[:12]}")
            old.replace(aside[move.old])
            durable.sync_folder(old.parent)
    durable.removed([alias_file(project, move.new)])  # where it was renamed back
    for path in list(project.caches_named(move.old)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return aside


def _told(project: Project, move: Move, records: int, aside: dict[str, Path], because: str) -> Moved:
    """Record a rename, show the route in its file, and be done with the move."""
    with open_route(project, move.new, leave=False) as writer:
        writer.absorb_edits()
        if move.kind == RENAME:
            payload = {"from": [move.old], "to": move.new, **_told_by(project, because)}
            writer.append(RENAME, payload, id=move.record)
        writer.render_file()
        revision, damage = writer.context.revision, writer.damage
        warnings = [*writer.warnings, *(f"{path}: was saved meanwhile: merge it by hand" for path in aside.values())]
    durable.removed([move_file(project, move.old)])
    return Moved(move.kind, move.old, move.new, revision, records, tuple(warnings), damage)


# ---- what a killed process left ----


def _finish(project: Project, store: FileStore) -> list[Move]:
    """End or take back what is under way, for who is alone in the store."""
    found = routing.moves_of(project)
    for move in found:
        with _held(project, move.old, move.new):
            if not move.is_done(project):
                _take_back(project, store, move)
                continue
            aside = _end(project, store, move)
        _told(project, move, 0, aside, "")
    return found


def _take_back(project: Project, store: FileStore, move: Move) -> None:
    """Leave a route as it was before a move that did not come to its end: of the new stream, copies alone are lost."""
    if move.kind == RENAME:
        old = {entry.id for entry in store.read(stream_of(move.old))}
        if all(entry.id in old for entry in store.read(stream_of(move.new))):
            store.drop(stream_of(move.new))
    durable.removed([alias_file(project, move.old), move_file(project, move.old)])
