"""How long a step's contents stay: what it needs always, what is young while there is room, and then their size alone.

Rewriting a stream costs as much as it is long. So it is looked at only when it has grown threefold, or by `MOST`, and
rewritten only when at least half of it goes: a save costs the same however many came before.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any, NamedTuple

from ralf.agent import contents, records
from ralf.agent.records import Pruned, StepState
from ralf.agent.steplog import Content, StepLog, contents_in
from ralf.project import Project
from ralf.storage.journal import Digest, Entry
from ralf.text.patterns import regex

AGE = 7 * 86_400.0
"""Seconds for which what is not needed stays, as long as there is room."""

ROOM = 8 << 20
"""Bytes of what is not needed that stay."""

LEAST = 32 << 20
"""Bytes by which a step's contents grow at least between two looks."""

MOST = 128 << 20
"""Bytes by which they grow at most between two looks."""

_WEIGHT = 256  # bytes of contents whose rewriting takes as long as that of a record without any

_MOST_YOUNG = 2_000  # blobs

_GRACE = 60.0  # seconds after a blob was put in which it stays: a record that names it may be on its way


def is_due(state: StepState) -> bool:
    """Whether a step's contents have grown threefold since they were looked at last, or by much."""
    grown = state.held - state.left
    return grown >= LEAST and grown >= min(2 * state.left, MOST)


def tidy(project: Project, log: StepLog, keep: int) -> Pruned:
    """Drop the contents of a step that may go, where it is worth it. Returns the record of what stays, with what the
    records weigh. The log's state is that of the stream afterwards.

    keep  how many of the newest states stay

    For the step's holder alone.
    """
    gone: dict[int, set[str]] = {}
    kept = freed = spare = 0
    weight = _WEIGHT * log.state.records
    limit = time.time() - AGE
    found, blobs = (log.kept, set(log.young)) if log.kept is not None else _contents(log)
    going = set[Digest]()
    keys = set[str]()
    for one in reversed(found):
        needed = _is_needed(log.state, one, keep) if one.field != "blob" else one.key not in keys
        keys.add(one.key)
        spare += 0 if needed else one.size
        if needed or (spare <= ROOM and one.at >= limit):
            kept += one.size
        else:
            freed += one.size
            gone.setdefault(one.record, set()).add(one.field)
            going.update(one.blobs)
    if freed >= max(kept, LEAST // 4):
        left = [one for one in found if one.field not in gone.get(one.record, ())]
        log.kept = None  # until it is done
        log.kept = left if log.replace(lambda entry: _without(entry, gone)) else None
        freed = 0
        blobs |= going
    young = drop_blobs(project, blobs).young
    return Pruned(kept + freed + weight, "".join(f" {digest}" for digest in young[:_MOST_YOUNG]))


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


def _contents(log: StepLog) -> tuple[list[Content], set[Digest]]:
    """Every content of a step that is there, oldest first; and the blobs that were too young to be dropped when they
    were looked at last.
    """
    made = list[Content]()
    young = set[Digest]()
    for entry in log.project.store.read(log.stream):
        if (found := _saved_text(entry.record)) is not None:
            number, at, state, _, size = found
            made.append(Content(number, at, 0, "state", state, size, ()))
            continue
        if _SAVED.match(entry.record) and _GONE.search(entry.record, max(0, len(entry.record) - 2 * _TAIL)):
            continue
        record = records.parsed(log.where, entry)
        if isinstance(record.body, Pruned):
            young = set(record.body.young.split())
        made += contents_in(record)
    return made, young


def young_in(record: bytes) -> set[Digest]:
    """The blobs that were too young to be dropped when the contents of a step were looked through: not named by it."""
    if b'"kind":"pruned"' in record:
        with suppress(ValueError):
            return set(str(json.loads(record).get("young", "")).split())
    return set()


def _is_needed(state: StepState, one: Content, keep: int) -> bool:
    """Whether a step goes on with a content: a new state, an answer of this iteration, its input, the result."""
    if one.field == "state":
        return one.state > state.states - keep
    if one.field == "input":
        return state.iteration == 1
    return one.iteration >= state.iteration - (one.field == "output")


def _without(entry: Entry, gone: dict[int, set[str]]) -> bytes:
    """A record with only the sizes of the contents that go."""
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
    tree = json.loads(entry.record)
    fields = {name for name in contents.FIELDS if contents.is_kept(tree.get(name))}
    return _emptied(tree, fields) if fields else entry.record


class Dropped(NamedTuple):
    """How many blobs were dropped, and those that no record names and that stay, since they were put a moment ago."""

    dropped: int = 0
    young: tuple[Digest, ...] = ()


def drop_blobs(
    project: Project, digests: set[Digest], *, but: frozenset[str] = frozenset(), grace: float = _GRACE
) -> Dropped:
    """Drop those of some blobs that no record of any stream names, and that were not put a moment ago.

    but    streams that do not count: they are about to go
    grace  seconds after a blob was put in which it stays: a record that names it may be on its way
    """
    if not digests:
        return Dropped()
    from ralf.transcripts.events import named_digests  # reads all streams

    named = {digest for digest, streams in named_digests(project.store).items() if streams - but}
    found = [blob for blob in project.store.blobs() if blob.digest in digests and blob.digest not in named]
    now = time.time()
    old = {blob.digest for blob in found if not 0 <= now - blob.put < grace}
    for digest in old:
        project.store.drop_blob(digest)
    return Dropped(len(old), tuple(blob.digest for blob in found if blob.digest not in old))
