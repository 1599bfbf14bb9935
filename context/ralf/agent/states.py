"""Which of a step's contents stay: what it needs always, of others the newest ones that have room.

Rewriting a stream costs as much as it is long. So that is done only when as much has come as the last time has left: a
save costs the same however many came before.
"""

from __future__ import annotations

import json
import time
from typing import Any

from ralf.agent import contents, records
from ralf.agent.records import Body, StepState
from ralf.agent.steplog import StepLog
from ralf.project import Project
from ralf.storage.journal import Digest, Entry

ROOM = 8 << 20
"""Bytes of the newest contents that stay, needed or not."""

LEAST = 32 << 20
"""Bytes by which a step's contents grow at least between two looks."""

_WEIGHT = 2 << 10  # bytes of contents whose rewriting takes as long as that of a record without any

_GRACE = 60.0  # seconds after a blob was put in which it stays: a record that names it may be on its way


def is_due(state: StepState) -> bool:
    """Whether a step's contents have grown by as much as was left when they were looked at last."""
    return state.held - state.left >= max(LEAST, state.left + _WEIGHT * state.records)


def tidy(log: StepLog, keep: int) -> Body:
    """Drop the contents of a step that may go. Returns the record of what stays.

    keep  how many of the newest states stay

    For the step's holder alone.
    """
    state, stored = log.state, log.rows(records.stored_places)
    blobs = set[Digest]()
    left = seen = 0
    iteration = 1

    def change(entry: Entry) -> bytes:
        nonlocal left, seen, iteration
        tree = json.loads(entry.record)
        if tree["n"] == 1:  # an engine may begin again
            left, seen, iteration = 0, 0, 1
        going = []
        for name in contents.FIELDS:
            if not contents.is_kept(one := tree.get(name) or {}):
                continue
            seen += one["size"]
            is_young = "digests" in one and time.time() - records.seconds_of(tree["at"]) < _GRACE
            is_needed = entry.token in stored if name == "blob" else _is_needed(state, name, tree, iteration, keep)
            if is_needed or is_young or state.held - seen < ROOM:
                left += one["size"]
            else:
                going.append(name)
                blobs.update(contents.blobs_of(one))
        iteration += tree.get("decision") == "continue"
        return contents.encoded(contents.emptied(tree, going)) if going else entry.record

    log.project.store.replace(log.stream, change, wipe=False)
    drop_blobs(log.project, blobs)
    return records.body("pruned", left=left)


def _is_needed(state: StepState, name: str, tree: dict[str, Any], iteration: int, keep: int) -> bool:
    """Whether a step goes on with a content: a new state, an answer of this iteration, its input, the result."""
    if name == "state":
        return int(tree["number"]) > state.states - keep
    if name == "input":
        return state.iteration == 1
    return iteration >= state.iteration - (name == "output")


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
