"""Takes back one write of a route: a new record that undoes what an earlier one changed, never a removal."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from ralf import routing
from ralf.document import merge
from ralf.document.tree import to_tree
from ralf.errors import Busy, NotFound
from ralf.model import RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import fold, history, state
from ralf.route.corrections import changes_back
from ralf.route.history import Difference, Event
from ralf.route.write import open_route, utc_now
from ralf.storage import journal
from ralf.storage.journal import Record
from ralf.text.cleaning import clean, one_line

KINDS = ("decision", "drop", "edit", "handover", "pin", fold.UNDO)
"""The kinds of records that can be taken back. What `forget` purged is gone; `revert` takes back a checkpoint, or a
revert.
"""


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo came to.

    event       the write that was taken back, or would be
    revision    of the record that does it, 0 for none: a dry run
    difference  what changed by it, or would change
    warnings    what the caller should know of; `damage`: what is wrong with the route file, which then stays as it is
    """

    route: str
    event: Event
    revision: int
    difference: Difference
    warnings: tuple[str, ...] = ()
    damage: str = ""


def undoable(route: str, *, who: str | None = None, root: str | os.PathLike[str] | None = None) -> list[Event]:
    """The writes of a route that can be taken back, newest first: those of this user's ralf that are in force.

    who  only those of this author, such as `agent`; None: all

    Reads the whole journal. Raises RouteNotFound, UsageError (a refused name), DamagedJournal.
    """
    project, found = routing.find(route, root)
    return _undoable(project, found, who)


def _undoable(project: Project, route: str, who: str | None) -> list[Event]:
    events = history.log(route, root=project.root)
    taken_back: set[int] = set()
    candidates: dict[int, bool] = {}
    for _, record in _newest_first(project, route):
        if record.kind == fold.UNDO and record.revision not in taken_back and not record.foreign:
            taken_back.update(map(int, record.payload.get("undoes", ())))
        candidates[record.revision] = _can_go(record) and record.revision not in taken_back
    return [event for event in events if candidates[event.revision] and who in (None, event.who)]


def _newest_first(project: Project, route: str) -> Iterator[tuple[str, Record]]:
    with journal.understood(route):
        yield from reversed(list(history.records(project, route)))


def _can_go(record: Record) -> bool:
    """Whether a record is a write that can be taken back: not one that changed nothing, or accepted what is foreign."""
    if record.foreign or record.kind not in KINDS:
        return False
    payload = record.payload
    if "checkpoints" in payload:  # what a model was asked has been paid for
        return False
    if record.kind == "decision":
        return bool(payload.get("decision"))
    return not (record.kind == "edit" and (payload.get("accepts") or payload.get("lost")))


def undo(
    route: str,
    revision: int | None = None,
    *,
    who: str | None = None,
    because: str = "",
    dry_run: bool = False,
    root: str | os.PathLike[str] | None = None,
) -> Undone:
    """Take back one write of a route by a new record; durable when this returns.

    revision  which; None: the newest that can be taken back and is no undo itself, so that undoing again goes further
              back. An undo is taken back by its own revision
    who       only a write of this author, such as `agent`; None: any
    because   why; kept in the record
    dry_run   only say what would change

    What has changed since stays. Edits that wait in the route file are recorded first. Raises RouteNotFound, NotFound
    (nothing to take back, no such write), Busy (a later write changed the same), UsageError (a refused name),
    DamagedJournal, OSError.
    """
    project, found = routing.find(route, root)
    if dry_run:
        event, changes = _chosen(project, found, history.at_present(project, found), revision, who)
        now = history.at_present(project, found)
        would = fold.apply(now, Record(now.revision + 1, fold.UNDO, {"changes": changes}))
        return Undone(found, event, 0, history.between(project, found, (history.NOW, now), (history.NOW, would)))
    with open_route(project, found) as writer:
        writer.absorb_edits()
        now = writer.context
        event, changes = _chosen(project, found, now, revision, who)
        payload = {
            "undoes": [event.revision],
            "timestamp": utc_now(),
            "origin": who or "user",
            "because": redactor_for(project).text(one_line(clean(because))),
            "changes": [state.redacted(project, change) for change in changes],
        }
        after = writer.append(fold.UNDO, payload, id=f"undo-{event.revision}-{uuid.uuid4().hex}")
        writer.render_file()
        warnings, damage = tuple(writer.warnings), writer.damage
    told = history.between(project, found, (f"r{now.revision}", now), (f"r{after.revision}", after))
    return Undone(found, event, after.revision, told, warnings, damage)


def _chosen(
    project: Project, route: str, now: RouteContext, revision: int | None, who: str | None
) -> tuple[Event, list[merge.Change]]:
    """The write that is taken back, and the changes that do it."""
    events = _undoable(project, route, who)
    if revision is not None:
        event = next((one for one in events if one.revision == revision), None)
        if event is None:
            raise NotFound(route, f"r{revision} is no write that can be taken back", f"ralf undo {route} --list")
        if not (changes := _changes(project, now, event.revision)):
            raise NotFound(route, f"nothing of r{revision} is left to take back", f"ralf undo {route} --list")
        return event, changes
    for event in events:
        if event.kind != fold.UNDO and (changes := _changes(project, now, event.revision)):
            return event, changes
    whose = f"of the {who}'s " if who else ""
    what = f"has no write {whose}that can be taken back"
    raise NotFound(route, what, f"ralf log {route}; a checkpoint is taken back by: ralf context revert {route} CP")


def _changes(project: Project, now: RouteContext, revision: int) -> list[merge.Change]:
    """The changes to `now` that take back what a revision brought; Busy where a later one changed the same."""
    moments = f"r{revision - 1}", f"r{revision}"
    contexts = history.contexts_at(project, now.route, moments)
    before, after = (contexts[moment] for moment in moments)
    changes = changes_back(after, before)
    since = next(merge.conflicts(to_tree(after), to_tree(now), changes), None)
    if since is not None:
        what = f"{'.'.join(since.at)} was changed after r{revision}: undo that first"
        raise Busy(now.route, what, f"ralf undo {now.route} --list")
    return merge.open_changes(changes, to_tree(now))
