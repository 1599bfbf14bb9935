"""What a person or an agent takes back: a new record that is the difference of two states; nothing is removed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ralf import routing
from ralf.document import merge
from ralf.document.merge import Change
from ralf.document.tree import to_tree
from ralf.errors import Busy, NotFound
from ralf.model import RouteContext
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import fold, history
from ralf.route.corrections import put
from ralf.route.history import NOW, Difference, Event
from ralf.route.write import open_route
from ralf.storage.journal import Record
from ralf.text.cleaning import clean, one_line
from ralf.text.frozen import dataclass

_UNDOABLE = ("decision", "drop", "edit", "handover", "pin", fold.UNDO, fold.REVERT)
"""The kinds of records that `undo` takes back. What `forget` purged is gone; `revert` takes back all else."""

_STAYS = ("context_checkpoint", "forgotten")
"""What is no content: the books, and what was purged, which nothing brings back."""

_Plan = Callable[[RouteContext], tuple[str, str, dict[str, Any]]]
"""What is taken back, in words, and the kind and the payload of the record that does it to a route as it is now."""


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What an undo or a revert came to.

    what        in words: `r12 (decision DEC-003)`, the write that was taken back, or `cp-002`, the moment restored
    revision    of the record that does it, 0 for none: a dry run, or nothing to do
    difference  what changed by it, or would change
    warnings    what the caller should know of; `damage`: what is wrong with the route file, which then stays as it is
    """

    route: str
    what: str
    revision: int
    difference: Difference
    warnings: tuple[str, ...] = ()
    damage: str = ""


def undo(
    route: str,
    revision: int | None = None,
    *,
    who: str | None = None,
    because: str = "",
    dry_run: bool = False,
    root: str | os.PathLike[str] | None = None,
) -> TakenBack:
    """Take back one write of a route; durable when this returns.

    revision  which; None: the newest that can be taken back and is no undo itself, so that undoing again goes further
              back. An undo is taken back by its own revision, a revert as long as nothing has come since
    who       only a write of this author, such as `agent`; None: any
    because   why; kept in the record
    dry_run   only say what would change

    What has changed since stays. Edits that wait in the route file are recorded first. Raises RouteNotFound, NotFound
    (nothing to take back, no such write), Busy (a later write changed the same), UsageError (a refused name),
    DamagedJournal, OSError.
    """
    project, found = routing.find(route, root)

    def plan(now: RouteContext) -> tuple[str, str, dict[str, Any]]:
        event, changes = _chosen(project, now, revision, who)
        what = f"r{event.revision} ({' '.join(filter(None, (event.kind, event.id)))})"
        said = {"undoes": [event.revision], "origin": who or "user", "changes": changes}
        if event.kind == fold.REVERT:  # checkpoints come back, too
            return what, fold.REVERT, {"to": f"r{event.revision - 1}", "to_revision": event.revision - 1, **said}
        return what, fold.UNDO, said

    return _take_back(project, found, plan, because, dry_run=dry_run)


def revert(
    route: str,
    to: str,
    *,
    because: str = "",
    dry_run: bool = False,
    root: str | os.PathLike[str] | None = None,
) -> TakenBack:
    """Give a route the content that it had right after a checkpoint or revision; durable when this returns.

    to       `cp-002`, `2`, or `r12`; `because`: why
    dry_run  only say what would change

    Edits that wait in the route file are recorded first. What was taken of transcripts is not taken again, no label is
    given twice, and all that is undone stays in the journal: a revert to the revision before this one brings it back.
    Raises RouteNotFound, NotFound (no such checkpoint or revision), UsageError (a refused name), Busy, DamagedJournal,
    OSError.
    """
    project, found = routing.find(route, root)
    moment = history.label(to)

    def plan(now: RouteContext) -> tuple[str, str, dict[str, Any]]:
        then = history.contexts_at(project, found, [moment])[moment]
        return moment, fold.REVERT, {"to": moment, "to_revision": then.revision, "changes": changes_back(now, then)}

    return _take_back(project, found, plan, because, dry_run=dry_run)


def changes_back(now: RouteContext, then: RouteContext) -> list[Change]:
    """The changes that give `now` the content of `then`."""
    return [one for one in merge.diff(to_tree(now), to_tree(then)) if one["at"][0] not in _STAYS]


def _take_back(project: Project, route: str, plan: _Plan, because: str, *, dry_run: bool) -> TakenBack:
    """Append the record that `plan` makes of a route, if it changes anything."""
    if dry_run:
        now = history.at_present(project, route)
        what, kind, payload = plan(now)
        after = fold.apply(now, Record(now.revision + 1, kind, payload)) if payload["changes"] else now
        return TakenBack(route, what, 0, history.between((NOW, now), (NOW, after)))
    with open_route(project, route) as writer:
        now = writer.context
        what, kind, payload = plan(now)
        reason = redactor_for(project).text(one_line(clean(because)))
        after = put(project, writer, kind, **payload, because=reason)
    difference = history.between((f"r{now.revision}", now), (f"r{after.revision}", after))
    revision = after.revision if after is not now else 0
    return TakenBack(route, what, revision, difference, tuple(writer.warnings), writer.damage)


def _chosen(project: Project, now: RouteContext, revision: int | None, who: str | None) -> tuple[Event, list[Change]]:
    """The write that is taken back, and the changes that do it."""
    route, gone = now.route, set[int]()
    if revision is not None and not 0 < revision <= now.revision:
        raise NotFound(route, f"has no revision r{revision}", f"ralf log {route}")
    for event, record in reversed(list(history.events(project, route))):
        if _can_go(record) and record.revision not in gone and who in (None, event.who):
            gone.update(map(int, record.payload.get("undoes", ())))
            if revision == event.revision or (revision is None and not record.payload.get("undoes")):
                if record.kind == fold.REVERT:
                    return event, _changes_of_revert(project, now, record)
                if changes := _changes(project, now, event.revision):
                    return event, changes
                if revision is not None:
                    raise NotFound(route, f"nothing of r{revision} is left to take back", f"ralf log {route}")
    what = f"r{revision} is no write" if revision is not None else "has no write"
    what += f" of the {who}'s" if who else ""
    mine = f"a person takes back any write, at a terminal: ralf undo {route}" if who else f"ralf log {route}"
    hint = f"{mine}; a checkpoint is taken back by: ralf undo {route} --to CP"
    raise NotFound(route, f"{what} that can be taken back", hint)


def _changes_of_revert(project: Project, now: RouteContext, record: Record) -> list[Change]:
    """The changes that take back a revert, which is the newest record. Busy where it is not."""
    before = f"r{record.revision - 1}"
    if record.revision != now.revision:
        what = f"r{record.revision} went back to {record.payload.get('to', '')}, and more was recorded since"
        raise Busy(now.route, what, f"all since then, too: ralf undo {now.route} --to {before}")
    return changes_back(now, history.contexts_at(project, now.route, [before])[before])


def _can_go(record: Record) -> bool:
    """Whether a record is a write that can be taken back: not one that changed nothing, accepted what is foreign, or
    says what a model was asked, which has been paid for.
    """
    payload = record.payload
    is_write = record.kind in _UNDOABLE and "checkpoints" not in payload
    return is_write and payload.get("decision") != {} and not payload.get("accepts")


def _changed_last(project: Project, now: RouteContext, revision: int, at: Sequence[str]) -> Event:
    """The newest write after a revision that changed what is at a place."""
    later = [event for event, _ in history.events(project, now.route) if event.revision > revision]
    contexts = history.contexts_at(project, now.route, [f"r{n}" for n in range(revision, now.revision + 1)])
    for event in reversed(later):
        before, after = (to_tree(contexts[f"r{n}"]) for n in (event.revision - 1, event.revision))
        if any(_is_around(change["at"], at) for change in merge.diff(before, after)):
            return event
    return later[-1]


def _is_around(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether one place is the other, or within it."""
    return all(str(a) == str(b) for a, b in zip(one, other, strict=False))


def _changes(project: Project, now: RouteContext, revision: int) -> list[Change]:
    """The changes to `now` that take back what a revision brought; Busy where a later one changed the same."""
    moments = f"r{revision - 1}", f"r{revision}"
    contexts = history.contexts_at(project, now.route, moments)
    before, after = (contexts[moment] for moment in moments)
    changes = changes_back(after, before)
    since = next(iter(merge.conflicts(to_tree(after), to_tree(now), changes)), None)
    if since is not None:
        changer = _changed_last(project, now, revision, since.at)
        undo = f"ralf undo {now.route} r{changer.revision}"
        hint = undo if changer.who == "agent" else f"{undo}; it is a person's: at a terminal only"
        said = f"r{changer.revision} ({changer.kind}, {changer.who})"
        raise Busy(now.route, f"{'.'.join(since.at)} was changed after r{revision} by {said}: undo that first", hint)
    return merge.open_changes(changes, to_tree(now))
