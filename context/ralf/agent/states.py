"""How long a step's contents stay: what it needs always, what is young while there is room, and then their size alone.

Rewriting a stream costs as much as it is long. So it is looked at only when it has grown threefold, or by `MOST`, and
rewritten only when at least half of it goes: a save costs the same however many came before.
"""

from __future__ import annotations

import json
import time
from typing import NamedTuple

from ralf.agent import contents, records
from ralf.agent.records import Body, StepState
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


class _Content(NamedTuple):
    """A content that is still there: its record's place and time, the iteration, the content's field, its size and
    blobs; of a state its number, of a stored result its key.
    """

    place: Token
    at: str
    iteration: int
    field: str
    size: int
    blobs: tuple[Digest, ...]
    name: object


def tidy(log: StepLog, keep: int) -> Body:
    """Drop the contents of a step that may go, where it is worth it. Returns the record of what stays, with what the
    records weigh.

    keep  how many of the newest states stay

    For the step's holder alone.
    """
    state, now = log.state, time.time()
    going, keys = list[_Content](), set[object]()
    kept = spare = 0
    for one in reversed(_contents_of(log)):
        is_needed = one.name not in keys if one.field == "blob" else _is_needed(state, one, keep)
        if one.field == "blob":
            keys.add(one.name)
        spare += 0 if is_needed else one.size
        age = now - records.seconds_of(one.at)
        if is_needed or (spare <= ROOM and age <= AGE) or (one.blobs and age < _GRACE):
            kept += one.size
        else:
            going.append(one)
    freed = sum(one.size for one in going)
    if freed >= max(kept, LEAST // 4):
        gone = dict[Token, tuple[str, ...]]()
        for one in going:
            gone[one.place] = (*gone.get(one.place, ()), one.field)
        log.project.store.replace(log.stream, lambda entry: emptied(entry, gone.get(entry.token, ())), wipe=False)
        drop_blobs(log.project, {blob for one in going for blob in one.blobs})
        freed = 0
    return records.body("pruned", left=kept + freed + _WEIGHT * state.records)


def _contents_of(log: StepLog) -> list[_Content]:
    """The contents of a step that are still there, oldest first."""
    iteration, found = 1, []
    for entry in log.project.store.read(log.stream):
        tree = json.loads(entry.record)
        for field in contents.FIELDS:
            if (one := tree.get(field)) and contents.is_kept(one):
                about = entry.token, tree["at"], iteration, field, one["size"]
                name = tree["number"] if field == "state" else tree.get("key", "")
                found.append(_Content(*about, tuple(contents.blobs_of(one)), name))
        iteration += tree.get("decision") == "continue"
    return found


def _is_needed(state: StepState, one: _Content, keep: int) -> bool:
    """Whether a step goes on with a content: a new state, an answer of this iteration, its input, the result."""
    if one.field == "state":
        return int(str(one.name)) > state.states - keep
    if one.field == "input":
        return state.iteration == 1
    return one.iteration >= state.iteration - (one.field == "output")


def emptied(entry: Entry, fields: tuple[str, ...] = contents.FIELDS) -> bytes:
    """A record with only the sizes of some of its contents, or of all."""
    if not fields:
        return entry.record
    return contents.encoded(contents.emptied(json.loads(entry.record), fields))


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
