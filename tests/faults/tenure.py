"""Who had which task, and when: the judges of the harnesses for tasks, each a function of what was written down.

They know nothing of ralf but the kinds of its records: `tests/test_task_judges.py` feeds each of them a broken history.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Fault = tuple[str, str]
"""A kind of fault, and an example in words."""

ENDS = ("done", "fail", "release", "lost")
"""Kinds of records that end a claim."""

FOLDERS = {"completed": "completed", "cancelled": "cancelled"}
_FIELD = re.compile(r"(?m)^(id|status):[ \t]*(.*?)[ \t]*$")
_AHEAD = 4096


class Span(NamedTuple):
    """A time, by one clock of the machine, during which somebody worked on a task."""

    task: str
    holder: str
    begin: float
    end: float


def overlapping(spans: Iterable[Span]) -> Iterator[Fault]:
    """Two that worked on one task at once."""
    of_task: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        of_task[span.task].append(span)
    for task, found in of_task.items():
        found.sort(key=lambda span: (span.begin, span.end))
        last = found[0]
        for span in found[1:]:
            if span.begin < last.end:
                both = (
                    f"{last.holder} had it from {last.begin:.3f} to {last.end:.3f}, {span.holder} from {span.begin:.3f}"
                )
                yield "doubled", f"{task}: {both}"
            if span.end > last.end:
                last = span


def lost(added: Iterable[str], found: Iterable[str]) -> Iterator[Fault]:
    """Tasks that were added, and are nowhere."""
    missing = sorted(set(added) - set(found))
    if missing:
        yield "lost", f"{len(missing)} tasks: {', '.join(missing[:3])}"


# ---- by this harness's own eyes ----


def records(root: Path) -> list[dict[str, Any]]:
    """The records of the stream `tasks`, as they stand in its file."""
    path = root / ".autonomous" / "context" / "journal" / "tasks.jsonl"
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["record"] for line in lines if line.startswith("{") and '"record"' in line]


def of_records(found: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """What is wrong with a stream: a claim while one lasts, a task that was completed twice, a number that is taken."""
    held: dict[str, int] = {}
    finished: set[str] = set()
    last = 0
    for record in found:
        kind, task, number = record["kind"], str(record.get("task", "")), int(record["n"])
        if number <= last:
            yield "unfenced", f"record {number} comes after record {last}"
        last = number
        if kind == "claim":
            if task in held:
                yield "doubled", f"{task}: record {number} claims it, and the claim of record {held[task]} lasts"
            if task in finished:
                yield "doubled", f"{task}: record {number} claims it, and it is completed"
            held[task] = number
        elif kind in ENDS:
            if record.get("lease") in (None, 0, held.get(task)):
                held.pop(task, None)
            elif kind != "lost":
                yield "stale", f"{task}: record {number} is a `{kind}` of the stale claim {record['lease']}"
            if kind == "done" and task in finished:
                yield "doubled", f"{task}: record {number} completes it a second time"
            if kind == "done":
                finished.add(task)
        elif kind == "retry":
            finished.discard(task)


def statuses(root: Path) -> dict[str, str]:
    """What the file of each task says, by the task's id: its folder where that tells, else its line `status:`."""
    found = {}
    for path in sorted((root / ".autonomous" / "tasks").rglob("*.md")):
        head = path.read_bytes()[:_AHEAD].decode("utf-8", "replace")
        fields = dict(reversed(_FIELD.findall(head)))
        name = fields.get("id", path.stem).strip("\"'")
        folder = next((FOLDERS[part] for part in path.parts[-3:-1] if part in FOLDERS), "")
        if name in found:
            found[name] += " and " + (folder or fields.get("status", "pending"))
        else:
            found[name] = folder or fields.get("status", "pending").strip("\"'")
    return found


def completed(root: Path) -> set[str]:
    """Tasks that the files or the stream say to be completed: the record comes first, and its writer may have died."""
    done: set[str] = set()
    for record in records(root):
        if record["kind"] == "done":
            done.add(str(record["task"]))
        elif record["kind"] in ("retry", "fail"):
            done.discard(str(record["task"]))
    return done | {task for task, status in statuses(root).items() if status == "completed"}
