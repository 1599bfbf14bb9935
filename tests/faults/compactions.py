"""Compactions that are killed at every call that touches the disk: the state is the one before or the one after.

    python -m tests.faults.compactions             every call
    python -m tests.faults.compactions --step 5

Killed before the record: count and time are as they were, and the messages are the caller's own. Killed after it: the
same compaction, done again, finds the record, counts nothing, and gives the same bytes. Either way an undo gives the
messages back, and the store is whole.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import compactkit
from tests.faults import rig

from ralf import project
from ralf.compaction import records
from ralf.compaction.flow import compact, undo
from ralf.errors import RalfError
from ralf.maintenance.verify import verify

ROUTE = "TASK-7"


def conversation() -> compactkit.Messages:
    """A completed task and a current one."""
    return compactkit.conversation([60], 20)


def judge(root: Path, messages: compactkit.Messages) -> list[str]:
    """What does not hold of a store in which a compaction of `messages` was killed, or was not."""
    found = []
    here = project.find(root)
    try:
        before = records.status(here, ROUTE)
        if bool(before.count) != bool(before.last_compacted) or bool(before.count) != bool(before.parts):
            found.append(f"count, time and parts are of two states: {before}")
        again = compact(messages, 30_000, ROUTE, root=root, force=True)
        if again.status.count != 1 or len(again.parts) != 1 or again.warnings:
            found.append(f"done again: {again.status.count} compactions of {len(again.parts)} parts, {again.warnings}")
        if before.count and before.last_compacted != again.status.last_compacted:
            found.append("done again, it has another time")
        if before.parts and json.dumps(before.parts[0].made) != json.dumps(again.parts[0].made):
            found.append("done again, it gives other bytes")
        if undo(again.messages, ROUTE, root=root) != messages:
            found.append("an undo gives other messages")
        if damage := [one for one in verify(root=root).findings if one.damage]:  # a cache's temporary file is none
            found.append(f"the store is not whole: {damage[0]}")
    except (RalfError, OSError) as error:
        found.append(repr(error))
    return found


@dataclass(frozen=True)
class Size:
    """Calls between two kills: 1 for every call."""

    step: int = 1


def run(size: Size, _: int = 1, __: Sequence[str] = ()) -> rig.Found:
    """Kill a compaction at each call, so many apart, and judge what is left."""
    found = rig.Found()
    messages = conversation()
    with rig.store() as root:
        compact(messages, 30_000, ROUTE, root=root, force=True)  # so that nobody imports anything when he is killed
    number, lived, after = 0, False, 0
    while not lived:
        with rig.store() as root:
            lived = not rig.killed_at(number, lambda here=root: compact(messages, 30_000, ROUTE, root=here, force=True))  # type: ignore[misc]
            after += bool(records.status(project.find(root), ROUTE).count)
            found.rounds += 1
            for fault in judge(root, messages):
                found.note(fault[:40], f"killed at call {number}: {fault}")
        number += size.step
    found.figures["kills after which the record was there"] = f"{after} of {found.rounds}"
    return found


if __name__ == "__main__":
    sys.exit(rig.command("compactions", Size(), run))
