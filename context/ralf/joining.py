"""A route file that goes on from another point than the journal's head: what it has more, as changes. Pure.

Such a file is newer than a journal that lost its last records, or it is of another history into which this one was
taken in before. That it lacks an item says nothing: the cap may have folded it. A tombstone says that it is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf import merge, route as heart, tombstones
from ralf.context import RouteContext
from ralf.labels import LINKS, said
from ralf.model import Decision, Section

_COUNTED = ("checkpoint_count", "total_tokens_consumed", "decision_count")
"""Counters of the header, which never go back."""


def retired(ours: RouteContext, theirs: RouteContext) -> list[merge.Change]:
    """The decisions of ours that a file of another history, which is not known to go on from it, says are dropped,
    superseded or reversed: it cannot have that from nowhere.
    """
    known = {item.id: item for item in theirs.decisions}
    changes: list[merge.Change] = []
    for item in ours.decisions:
        other = known.get(item.id)
        stones = [stone for stone in tombstones.of(theirs) if stone.id == item.id]
        status = other.status if other is not None and said(other) == said(item) else "active"
        if status == "active" and tombstones.cover(stones, item):
            status = "dropped"
        if item.status == "active" != status:
            changes.append({"at": ["decisions", item.id, "status"], "value": status})
    return changes


def edited(renders: Sequence[RouteContext], found: RouteContext) -> RouteContext | None:
    """Which of our renders, newest first, a file without a lineage is an edit of: the one whose items it has, but for
    the fewest; None where it has less than half of them. Nobody else knows their times.
    """
    theirs = set(_timed(found))
    items = {one.revision: set(_timed(one)) for one in renders}
    near = [
        one
        for one in renders
        if items[one.revision] and 2 * len(items[one.revision] & theirs) >= len(items[one.revision])
    ]
    return min(near, key=lambda one: len(items[one.revision] ^ theirs), default=None)


def _timed(context: RouteContext) -> Iterator[tuple[str, str]]:
    yield from ((item.id, item.timestamp) for item in context.decisions if item.timestamp)
    yield from ((entry.checkpoint_id, entry.timestamp) for entry in context.checkpoint_history if entry.timestamp)


def changes_of_newer(recorded: RouteContext, found: RouteContext) -> list[merge.Change]:
    """What a file shows more, or otherwise, than a journal whose last records are lost.

    The file is the newer of the two and its values stand. Where the journal went on by itself, its own items stay, and
    those of the file that go by the same label or number get another one.
    """
    apart = _apart(recorded, found)
    return list(_kept(heart.changes_of_edit(recorded, apart, recorded), recorded, found))


def changes_since(base: RouteContext, found: RouteContext, recorded: RouteContext) -> list[merge.Change]:
    """What a file of another history says otherwise than `base`, our revision that it had taken in; `recorded` is what
    ours came to since. Where both changed a field, theirs stands and ours is told under `unresolved`.
    """
    return list(_kept(heart.changes_of_edit(base, _apart(base, found), recorded), recorded, found))


def _kept(changes: list[merge.Change], recorded: RouteContext, found: RouteContext) -> Iterator[merge.Change]:
    """The changes but for those that only say what the file lacks, and counters that would go back."""
    buried = {stone.id for stone in tombstones.of(found)}
    for change in changes:
        at = change["at"]
        is_gone = at[0] == "active_work" or (at[0] == "decisions" and len(at) == 2 and at[1] in buried)
        if at[0] == "folded" or (change.get("removed") and not is_gone):
            continue
        if at[0] != "context_checkpoint" or at[1] not in _COUNTED:
            yield change
    for name in _COUNTED:
        ours, theirs = (getattr(one.context_checkpoint, name) for one in (recorded, found))
        if theirs > ours:
            yield {"at": ["context_checkpoint", name], "value": theirs}


def _apart(ours: RouteContext, theirs: RouteContext) -> RouteContext:
    """`theirs`, in which no other decision goes by a label of ours, and no other checkpoint by a number of ours."""
    known = {item.id: item for item in ours.decisions}
    count = max(one.context_checkpoint.decision_count for one in (ours, theirs))
    labels: dict[str, str] = {}
    for item in theirs.decisions:
        if item.id in known and not _is_same(known[item.id], item):
            alike = next((one.id for one in ours.decisions if said(one) == said(item)), "")
            count += not alike
            labels[item.id] = alike or f"DEC-{count:03d}"
    entries = {entry.checkpoint_id: entry for entry in ours.checkpoint_history}
    clashing = {
        entry.checkpoint_id
        for entry in theirs.checkpoint_history
        if (known_entry := entries.get(entry.checkpoint_id)) is not None and known_entry.timestamp != entry.timestamp
    }
    header = replace(theirs.context_checkpoint, decision_count=count)
    return replace(
        theirs,
        context_checkpoint=header,
        decisions=tuple(_relabelled(item, labels) for item in theirs.decisions),
        checkpoint_history=tuple(one for one in theirs.checkpoint_history if one.checkpoint_id not in clashing),
        body=replace(theirs.body, sections=tuple(_unnumbered(one, clashing) for one in theirs.body.sections)),
    )


def _is_same(ours: Decision, theirs: Decision) -> bool:
    """Whether two decisions of one label are one, whose words somebody may have changed."""
    return ours.timestamp == theirs.timestamp or said(ours) == said(theirs)


def _relabelled(item: Decision, labels: Mapping[str, str]) -> Decision:
    links: dict[str, Any] = {key: labels[link] for key in LINKS if (link := getattr(item, key)) in labels}
    return replace(item, id=labels.get(item.id, item.id), **links)


def _unnumbered(section: Section, clashing: set[str]) -> Section:
    if section.number is None or f"cp-{section.number:03d}" not in clashing:
        return section
    title = f"Checkpoint {section.number} of another history: {section.title}".rstrip(": ")
    return replace(section, number=None, title=title)
