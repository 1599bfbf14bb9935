"""A person's corrections of a route: what they changed in its file is taken in, and a decision is dropped for good."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ralf import history, project as projects
from ralf.context import RouteContext
from ralf.errors import NotFound
from ralf.model import Decision
from ralf.project import Project
from ralf.text import clean
from ralf.tombstones import tombstone
from ralf.tree import to_tree
from ralf.writer import writing


@dataclass(frozen=True, slots=True)
class Dropped:
    """A decision as it stands after it was dropped; `changed`: whether this call did it, or it was dropped before."""

    route: str
    decision: Decision
    changed: bool


def drop(route: str, id: str, *, because: str = "", root: str | os.PathLike[str] | None = None) -> Dropped:  # noqa: A002
    """Drop a decision of a route, of any status, for good: no transcript and no model brings it back.

    id       its label, as `why` takes it: `DEC-003`, `dec-3`; also of one that the file has folded away
    because  why; kept in the record

    Durable, and in the route file, when this returns. `record_decision` of the same text brings it back. Raises
    RouteNotFound, NotFound (no such decision), UsageError (a refused name), Busy, OSError, DamagedJournal.
    """
    project = projects.find(root)
    found = history.existing(project, route)
    label = history.label(id, "DEC")
    with writing(project, found) as writer:
        decision = decision_of(project, writer.context, label)
        stones = (*writer.context.dropped, *writer.context.forgotten)
        if decision is None or any(stone.id == decision.id for stone in writer.context.forgotten):
            raise NotFound(found, f"has no decision {label}", f"ralf context show {found} --section decisions")
        if any(stone.id == decision.id for stone in stones):
            return Dropped(found, decision, changed=False)
        payload = {
            "tombstone": to_tree(tombstone(decision)),
            "because": clean(because).strip(),
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        writer.append("drop", payload, id=f"drop-{decision.id}-{writer.context.revision}")
        writer.show()
    return Dropped(found, replace(decision, status="dropped"), changed=True)


def decision_of(project: Project, context: RouteContext, label: str) -> Decision | None:
    """The decision of this label, in a route's context or, where that has folded it away, in its journal."""
    for item in context.decisions:
        if item.id.casefold() == label.casefold():
            return item
    return history.decision_of(project, context.route, label)
