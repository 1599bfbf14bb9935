"""How long a step's contents stay: what it needs always, what is young while there is room, and then their size alone.

Rewriting a stream costs as much as it is long. So it is looked at only when it has grown threefold, or by `MOST`, and
rewritten only when at least half of it goes: a save costs the same however many came before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

from ralf.agent import contents, records
from ralf.agent.records import Body, Content, StepState
from ralf.agent.steplog import StepLog
from ralf.project import Project
from ralf.storage.journal import Digest, Entry, Token

AGE = 7 * 86_400.0
"""Seconds for which what is not needed stays, as long as there is room."""

ROOM = 8 << 20
"""Bytes of what is not needed that stay."""

LEAST = 32 << 20
"""Bytes by which a step's contents grow at least between two looks."""

MOST = 128 << 20
"""Bytes by which they grow at most between two looks."""

_WEIGHT = 2 << 10  # bytes of contents whose rewriting takes as long as that of a record without any

_GRACE = 60.0  # seconds after a blob was put in which it stays: a record that names it may be on its way


def is_due(state: StepState) -> bool:
    """Whether a step's contents have grown threefold since they were looked at last, or by much."""
    grown = state.held - state.left
    return grown >= LEAST and grown >= min(2 * state.left, MOST)


def tidy(project: Project, log: StepLog, keep: int) -> Body:
    """Drop the contents of a step that may go, where it is worth it. Returns the record of what stays, with what the
    records weigh.

    keep  how many of the newest states stay

    For the step's holder alone.
    """
    found = log.rows(records.contents_of)
    state, now = log.state, time.time()
    going = list[Content]()
    kept = freed = spare = 0
    keys = set[object]()
    for one in reversed(found):
        if not one.is_kept:
            continue
        is_needed = one.name not in keys if one.field == "blob" else _is_needed(state, one, keep)
        if one.field == "blob":
            keys.add(one.name)
        spare += 0 if is_needed else one.size
        age = now - records.seconds_of(one.at)
        if is_needed or (spare <= ROOM and age <= AGE) or (one.blobs and age < _GRACE):
            kept += one.size
        else:
            freed += one.size
            going.append(one)
    if freed >= max(kept, LEAST // 4):
        gone: dict[Token, set[str]] = {}
        for one in going:
            gone.setdefault(one.place, set()).add(one.field)
        project.store.replace(log.stream, lambda entry: _without(entry, gone.get(entry.token, ())), wipe=False)
        log.look()
        drop_blobs(project, {blob for one in going for blob in one.blobs})
        freed = 0
    return records.body("pruned", left=kept + freed + _WEIGHT * state.records)


def _is_needed(state: StepState, one: Content, keep: int) -> bool:
    """Whether a step goes on with a content: a new state, an answer of this iteration, its input, the result."""
    if one.field == "state":
        return int(one.name) > state.states - keep
    if one.field == "input":
        return state.iteration == 1
    return one.iteration >= state.iteration - (one.field == "output")


def _without(entry: Entry, fields: Iterable[str]) -> bytes:
    """A record with only the sizes of some of its contents."""
    if not fields:
        return entry.record
    tree: dict[str, Any] = json.loads(entry.record)
    return records.line_of(tree | {name: contents.emptied(tree[name]) for name in fields})


def without_contents(entry: Entry) -> bytes:
    """A record with only the sizes of all its contents, those of stored results among them."""
    tree = json.loads(entry.record)
    return _without(entry, [name for name in contents.FIELDS if contents.is_kept(tree.get(name))])


def drop_blobs(
    project: Project, digests: set[Digest], *, but: frozenset[str] = frozenset(), grace: float | None = None
) -> int:
    """Drop those of some blobs that no record of any stream names, and that were not put a moment ago; how many.

    but    streams that do not count: they are about to go
    grace  seconds after a blob was put in which it stays, None: as always
    """
    if not digests:
        return 0
    from ralf.transcripts.events import named_digests  # reads all streams

    named = {digest for digest, streams in named_digests(project.store).items() if streams - but}
    now, count = time.time(), 0
    for blob in [one for one in project.store.blobs() if one.digest in digests - named]:
        if not 0 <= now - blob.put < (_GRACE if grace is None else grace):
            project.store.drop_blob(blob.digest)
            count += 1
    return count
