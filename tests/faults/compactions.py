"""Compactions that are killed at every call that touches the disk: the state is the one before or the one after.

    python -m tests.faults.compactions             every call
    python -m tests.faults.compactions --step 5

Killed before the record: count and time are as they were, and the messages are the caller's own. Killed after it: the
same compaction, done again, finds the record, counts nothing, and gives the same bytes. Either way an undo gives the
messages back, and the store is whole.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from tests import compactkit
from tests.faults import rig
from tests.faults.figures import told
from tests.faults.run_work import killed_at

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


def run(step: int = 1) -> rig.Found:
    """Kill a compaction at each call, `step` apart, and judge what is left."""
    found = rig.Found()
    messages = conversation()
    with rig.store() as root:
        compact(messages, 30_000, ROUTE, root=root, force=True)  # so that nobody imports anything when he is killed
    number, lived, after = 0, False, 0
    while not lived:
        with rig.store() as root:
            lived = not killed_at(number, lambda here=root: compact(messages, 30_000, ROUTE, root=here, force=True))  # type: ignore[misc]
            after += bool(records.status(project.find(root), ROUTE).count)
            found.rounds += 1
            for fault in judge(root, messages):
                found.note(fault[:40], f"killed at call {number}: {fault}")
        number += step
    found.figures["kills after which the record was there"] = f"{after} of {found.rounds}"
    return found


def main() -> int:
    """Run it, and print a line a figure."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.compactions")
    parser.add_argument("--step", type=int, default=1, help="calls between two kills; default: every call")
    arguments = parser.parse_args()
    started = time.monotonic()
    found = run(arguments.step)
    figures = [
        (f"compactions: killed at {found.rounds:,} calls, neither before nor after", sum(found.faults.values()), "0"),
        *((f"compactions: {name}", value, "") for name, value in found.figures.items()),
        ("compactions: time", f"{time.monotonic() - started:.0f} s", ""),
    ]
    return told(figures, [f"{kind}: {example}" for kind, example in found.examples.items()])


if __name__ == "__main__":
    sys.exit(main())
