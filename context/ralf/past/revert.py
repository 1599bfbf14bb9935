"""Reverting a route to what it was after an earlier checkpoint: a new record and a new checkpoint, never a removal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime

from ralf import names, project as projects, route as heart, routing
from ralf.journal import Record
from ralf.model import Checkpoint
from ralf.past import difference, history, reversion
from ralf.past.difference import Difference
from ralf.writer import writing


@dataclass(frozen=True, slots=True)
class Reverted:
    """What a revert came to.

    checkpoint  the new checkpoint that says so; None where nothing was done: a dry run, or the route is so already
    to          what it went back to: `cp-002` or `r12`
    difference  what changed by it, or would change
    warnings    what the caller should know of; `damage`: what is wrong with the route file, which then stays as it is
    """

    route: str
    to: str
    checkpoint: Checkpoint | None
    difference: Difference
    warnings: tuple[str, ...] = ()
    damage: str = ""


def revert(
    route: str,
    to: str,
    *,
    because: str = "",
    dry_run: bool = False,
    root: str | os.PathLike[str] | None = None,
) -> Reverted:
    """Give a route the content that it had right after a checkpoint or revision; durable when this returns.

    to       `cp-002`, `2`, or `r12`; `because`: why
    dry_run  only say what would change

    Edits that wait in the route file are taken in first, so that the journal has them. What was taken of transcripts is
    not taken again, no label is given twice, and all that is undone stays in the journal: a revert to the revision
    before this one brings it back. Raises RouteNotFound, NotFound (no such checkpoint or revision), UsageError (a
    refused name), Busy, DamagedJournal, OSError.
    """
    project = projects.find(root)
    found = routing.existing(project, names.check(route))
    moment = history.label(to)
    if dry_run:
        then = history.contexts_at(project, found, [moment])[moment]
        now = difference.at_present(project, found)
        would = heart.apply(
            now,
            Record(
                now.revision + 1,
                reversion.KIND,
                reversion.payload(now, then, moment, because=because, timestamp=_now()),
            ),
        )
        told = difference.between(
            project, found, (difference.NOW, now), (moment, now if reversion.is_as(now, then) else would)
        )
        return Reverted(found, moment, None, told)
    with writing(project, found) as writer:
        then = history.contexts_at(project, found, [moment])[moment]
        now = writer.context
        if reversion.is_as(now, then):
            told = difference.between(project, found, (difference.NOW, now), (moment, now))
            return Reverted(found, moment, None, told, tuple(writer.warnings), writer.damage)
        payload = reversion.payload(now, then, moment, because=because, timestamp=_now())
        after = writer.append(reversion.KIND, payload, id=f"revert-{now.revision}-{then.revision}")
        writer.show()
        warnings, damage = tuple(writer.warnings), writer.damage
    told = difference.between(project, found, (f"r{now.revision}", now), (f"r{after.revision}", after))
    return Reverted(found, moment, after.checkpoint_history[-1], told, warnings, damage)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
