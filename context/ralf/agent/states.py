"""Which of a step's contents stay: what it needs always, of others the newest ones that have room.

Rewriting a stream costs as much as it is long. So it is looked at only when as much has come as the last look has left,
and rewritten only when at least half of it goes: a save costs the same however many came before.
"""

from __future__ import annotations

import json
import time
from typing import Any

from ralf.agent import contents, records
from ralf.agent.records import Body, StepState
from ralf.agent.steplog import StepLog
from ralf.project import Project
from ralf.storage.journal import Digest, Entry, Token

ROOM = 8 << 20
"""Bytes of what is not needed that stay."""

LEAST = 32 << 20
"""Bytes by which a step's contents grow at least between two looks."""

_WEIGHT = 2 << 10  # bytes of contents whose rewriting takes as long as that of a record without any

_GRACE = 60.0  # seconds after a blob was put in which it stays: a record that names it may be on its way


def is_due(state: StepState) -> bool:
    """Whether a step's contents have grown by as much as was left when they were looked at last."""
    return state.held - state.left >= max(LEAST, state.left)


def tidy(log: StepLog, keep: int) -> Body:
    """Drop the contents of a step that may go, where it is worth it. Returns the record of what stays, with what the
    records weigh.

    keep  how many of the newest states stay

    For the step's holder alone.
    """
    state, going, blobs = log.state, dict[Token, tuple[str, ...]](), set[Digest]()
    kept = freed = spare = 0
    keys = set[str]()
    for place, iteration, tree in reversed(_records_of(log)):
        for name in contents.FIELDS:
            if (one := tree.get(name)) is None:
                continue
            is_needed = tree["key"] not in keys if name == "blob" else _is_needed(state, name, tree, iteration, keep)
            spare += 0 if is_needed else one["size"]
            is_young = bool(one["digests"]) and time.time() - records.seconds_of(tree["at"]) < _GRACE
            if is_needed or is_young or spare <= ROOM:
                kept += one["size"]
            else:
                freed += one["size"]
                going[place] = (*going.get(place, ()), name)
                blobs.update(contents.blobs_of(one))
            if name == "blob":
                keys.add(tree["key"])
    if freed >= max(kept, LEAST // 4):
        log.project.store.replace(log.stream, lambda entry: emptied(entry, going.get(entry.token, ())), wipe=False)
        drop_blobs(log.project, blobs)
        freed = 0
    return records.body("pruned", left=kept + freed + _WEIGHT * state.records)


def _records_of(log: StepLog) -> list[tuple[Token, int, dict[str, Any]]]:
    """The records of a step that have contents, without these: each one's place, its iteration and what it says."""
    iteration, found = 1, []
    for entry in log.project.store.read(log.stream):
        tree = json.loads(entry.record)
        for name in contents.FIELDS:
            if (one := tree.pop(name, None)) and contents.is_kept(one):
                tree[name] = {"size": one["size"], "digests": one.get("digests", [])}
        found.append((entry.token, iteration, tree))
        iteration += tree.get("decision") == "continue"
    return found


def _is_needed(state: StepState, name: str, tree: Body, iteration: int, keep: int) -> bool:
    """Whether a step goes on with a content: a new state, an answer of this iteration, its input, the result."""
    if name == "state":
        return int(tree["number"]) > state.states - keep
    if name == "input":
        return state.iteration == 1
    return iteration >= state.iteration - (name == "output")


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
