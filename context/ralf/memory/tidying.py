"""Tidying: weekly, or where the file has outgrown 50 KB, near-duplicates merge and what proved of no use goes.

Preferences and relationships stay as they are, byte for byte; so does what a person said. The memory before it is a
snapshot away, and every item that went is in the journal.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ralf.memory import outcome, records, writing
from ralf.memory.model import Item, Memory
from ralf.memory.ranking import near_duplicates
from ralf.memory.records import Delta
from ralf.project import Project
from ralf.storage.files import open_single_link
from ralf.text.patterns import regex

EVERY = timedelta(days=7)

LARGEST = 50 * 1024
"""Bytes of the file above which it is tidied before a week is over."""

_GROWN = 1.1  # a file that a tidying left larger is tidied again once it has grown by a tenth

_LAST = regex(r"(?m)^_Last compacted: ([0-9][^ |]*)")

_BEGINNING = 4_096  # bytes of the file in which that line is looked for

_LEFT_ALONE = ("preference", "relationship")


def is_due(memory: Memory, size: int, now: datetime | None = None) -> bool:
    """Whether a memory is to be tidied: a week after the last time, or since its first item, or above 50 KB.

    size  bytes of the file
    """
    if not memory.items:
        return False
    if size > LARGEST and size > _GROWN * memory.compacted_size:
        return True
    since = memory.last_compacted or min(filter(None, (item.added for item in memory.items)), default="")
    return _is_week_old(since, now)


def _is_week_old(time: str, now: datetime | None) -> bool:
    try:
        began = datetime.fromisoformat(time)
    except ValueError:
        return False
    if began.tzinfo is None:  # a person wrote it
        began = began.replace(tzinfo=UTC)
    return (now or datetime.now(UTC)) - began >= EVERY


def may_be_due(project: Project, agent: str, now: datetime | None = None) -> bool:
    """Whether `is_due` may say so, told by the size of the file and its first lines alone."""
    try:
        with open(writing.path_of(project, agent), "rb", opener=open_single_link) as file:
            beginning = file.read(_BEGINNING).decode("utf-8", "replace")
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return False
    last = _LAST.search(beginning)
    return size > LARGEST or last is None or _is_week_old(last[1], now)


def deltas_of(memory: Memory, size: int) -> list[Delta]:
    """What a tidying does: merges and drops, and the note that it was done.

    Near-duplicates merge first, so what counts for keeping is the sum of their uses. A pattern is kept whose confidence
    is above 0.3 or that was used more than three times; so is any other item, but for those of a person, which stay.
    """
    found: list[Delta] = []
    merged: dict[str, Item] = {}
    gone: set[str] = set()
    asked = [item for item in memory.items if item.kind not in _LEFT_ALONE]
    for group in near_duplicates(asked):
        first, *others = sorted(group, key=lambda item: item.origin != "person")  # a person's words stand
        found.append(records.Merged(first.id, tuple(item.id for item in others)))
        gone |= {item.id for item in others}
        merged[first.id] = first
        for item in others:
            merged[first.id] = _sum(merged[first.id], item)
    for item in asked:
        if item.id in gone or item.origin == "person":
            continue
        now = merged.get(item.id, item)
        if not outcome.is_kept(now.confidence, now.uses):
            why = f"confidence {now.confidence:.2f} with {now.uses} uses"
            found.append(records.Dropped(item.id, why, origin="mechanical"))
    return [*found, records.Compacted(size)]


def _sum(item: Item, other: Item) -> Item:
    counts = {name: getattr(item, name) + getattr(other, name) for name in ("uses", "helpful", "harmful")}
    return replace(item, **counts)


def tidy(project: Project, agent: str, *, force: bool = False, now: datetime | None = None) -> Memory | None:
    """Tidy a memory where that is due; None where it is not. Errors: `writing.record`.

    force  whether to do it in any case
    """
    memory = writing.load(project, agent)
    if not (force or is_due(memory, _size(project, agent), now)):
        return None

    def made(found: Memory) -> Sequence[Delta]:
        size = _size(project, agent)
        return deltas_of(found, size) if force or is_due(found, size, now) else ()

    return writing.write(project, agent, made)


def _size(project: Project, agent: str) -> int:
    return writing.size_of(project, agent)
