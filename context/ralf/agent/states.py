"""How long a step's contents stay: what it needs always, what is young while there is room, and then their size alone.

Rewriting a stream costs as much as it is long. So it is looked at only when it has grown threefold, and rewritten only
when at least half of it goes: a save costs the same however many came before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from ralf.agent import contents, records
from ralf.agent.contents import Tree
from ralf.agent.records import StepState
from ralf.agent.steplog import StepLog, number_of
from ralf.project import Project
from ralf.storage.journal import Digest, Entry
from ralf.text.patterns import regex

AGE = 7 * 86_400.0
"""Seconds for which what is not needed stays, as long as there is room."""

ROOM = 8 << 20
"""Bytes of what is not needed that stay."""

LEAST = 32 << 20
"""Bytes by which a step's contents grow at least between two looks."""

_WEIGHT = 4 << 10  # bytes of contents whose rewriting takes as long as that of a record without any

_GRACE = 60.0  # seconds after a blob was put in which it stays: a record that names it may be on its way

_FIELDS = ("state", "output", "answer", "input")


def is_due(state: StepState) -> bool:
    """Whether a step's contents have grown threefold since they were looked at last."""
    grown = state.held - state.left
    return grown >= LEAST and grown >= 2 * state.left


def tidy(project: Project, log: StepLog, keep: int) -> int:
    """Drop the contents of a step that may go, where it is worth it; how much stays: bytes of contents, and what its
    records weigh. The log's state is that of the stream afterwards.

    keep  how many of the newest states stay

    For the step's holder alone. A store that cannot replace records keeps all.
    """
    replacing = project.store.properties.replace
    gone: dict[int, set[str]] = {}
    blobs: set[Digest] = set()
    kept = freed = spare = 0
    weight = _WEIGHT * log.state.records
    limit = time.time() - AGE
    for one in reversed(list(_contents(log))):
        needed = _is_needed(log.state, one, keep)
        spare += 0 if needed else one.size
        if needed or (spare <= ROOM and one.at >= limit):
            kept += one.size
        else:
            freed += one.size
            gone.setdefault(one.record, set()).add(one.field)
            blobs.update(one.blobs)
    if replacing is None or freed < max(kept, LEAST // 4):
        return kept + freed + weight
    replacing.replace(log.stream, lambda entry: _without(entry, gone), wipe=False)
    log.refold()
    drop_blobs(project, blobs)
    return kept + weight


class _Content(NamedTuple):
    """A content that is there: its record's number, time and iteration, its field, and of a state its number."""

    record: int
    at: float
    iteration: int
    field: str
    state: int
    size: int
    blobs: tuple[Digest, ...]


_SAVED = regex(rb'\{"v":1,"n":(\d+),"at":"([^"]+)","kind":"saved","w":"[^"]*","number":(\d+),')

_STATE = b',"state":{"'  # in no text of JSON, whose quotes have a backslash before them

_SIZE = regex(rb'"size":(\d+)\}\}\Z')

_GONE = regex(rb',"state":\{"size":\d+\}\}\Z')

_TAIL = 40  # bytes that have the size


def _saved_text(record: bytes) -> tuple[int, float, int, int, int] | None:
    """Number, time and state number of a saved state that stands in its record, where it begins, and its size; None for
    any other record. Most records are such ones, and large: they are not parsed.
    """
    begin, end = _SAVED.match(record), _SIZE.search(record, len(record) - _TAIL)
    start = record.find(_STATE, begin.end()) if begin is not None and end is not None else -1
    if begin is None or end is None or not record.startswith((b"text", b"base64"), start + len(_STATE)) or start < 0:
        return None
    return int(begin[1]), records.seconds_of(begin[2].decode()), int(begin[3]), start, int(end[1])


def _contents(log: StepLog) -> Iterator[_Content]:
    """Every content of a step that is there, oldest first."""
    for entry in log.project.store.read(log.stream):
        if not entry.foreign and (found := _saved_text(entry.record)) is not None:
            number, at, state, _, size = found
            yield _Content(number, at, 0, "state", state, size, ())
            continue
        if _SAVED.match(entry.record) and _GONE.search(entry.record, max(0, len(entry.record) - 2 * _TAIL)):
            continue
        record = records.parsed(log.where, entry)
        for field in _FIELDS if record is not None else ():
            tree: Tree | None = getattr(record.body, field, None) if record is not None else None
            if record is not None and tree is not None and contents.is_kept(tree):
                at, state = records.seconds_of(record.at), number_of(record.body)
                size, blobs = contents.size_of(tree), tuple(contents.blobs_of(tree))
                yield _Content(record.number, at, record.was.iteration, field, state, size, blobs)


def _is_needed(state: StepState, one: _Content, keep: int) -> bool:
    """Whether a step goes on with a content: a new state, an answer of this iteration, its input, the result."""
    if one.field == "state":
        return one.state > state.states - keep
    if one.field == "input":
        return state.iteration == 1
    return one.iteration >= state.iteration - (one.field == "output")


def _without(entry: Entry, gone: dict[int, set[str]]) -> bytes:
    """A record with only the sizes of the contents that go."""
    if entry.foreign:
        return entry.record
    if (found := _saved_text(entry.record)) is not None:
        number, _, _, start, size = found
        return b'%s,"state":{"size":%d}}' % (entry.record[:start], size) if number in gone else entry.record
    tree = json.loads(entry.record)
    fields = gone.get(tree.get("n", 0))
    if not fields:
        return entry.record
    return _emptied(tree, fields)


def _emptied(tree: dict[str, Any], fields: set[str]) -> bytes:
    for field in fields:
        tree[field] = contents.emptied(tree[field])
    return records.line_of(tree)


def without_contents(entry: Entry) -> bytes:
    """A record with only the sizes of all its contents, those of stored results among them."""
    if entry.foreign:
        return entry.record
    tree = json.loads(entry.record)
    fields = {name for name in contents.FIELDS if contents.is_kept(tree.get(name))}
    return _emptied(tree, fields) if fields else entry.record


def drop_blobs(
    project: Project, digests: set[Digest], *, but: frozenset[str] = frozenset(), grace: float = _GRACE
) -> int:
    """Drop those of some blobs that no record of any stream names, and that were not put a moment ago; how many.

    but    streams that do not count: they are about to go
    grace  seconds after a blob was put in which it stays. What stays is dropped by `ralf context prune`
    """
    heap = project.store.properties.heap
    if not digests or heap is None:
        return 0
    from ralf.transcripts.events import named_digests  # reads all streams

    named = {digest for digest, streams in named_digests(project.store).items() if streams - but}
    found = [blob for blob in heap.blobs() if blob.digest in digests and blob.digest not in named]
    now = time.time()
    old = [blob.digest for blob in found if not 0 <= now - blob.put < grace]
    for digest in old:
        heap.drop_blob(digest)
    return len(old)
