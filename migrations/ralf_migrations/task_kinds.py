"""What each tool's tasks look like, and what becomes of their fields.

| origin      | tool                    | its priorities → ralf's (10 comes first)            |
| ----------- | ----------------------- | --------------------------------------------------- |
| aqua        | Aqua's database         | 1 to 10, the same                                   |
| beads       | beads, `bd`             | 0, 1, 2, 3, 4 → 10, 8, 5, 3, 1                      |
| claude      | Claude Code's tasks     | none → 5                                            |
| task-master | Task Master             | critical, high, medium, low → 10, 8, 5, 3           |
| prd         | prd.json of ralph loops | 1 to 10 → 10 to 1, any further one → 1: an order    |
| ralph       | ralph-orchestrator      | 1, 2, 3, 4, 5 → 10, 8, 5, 3, 1                      |

Work that somebody has begun there is pending here: a claim binds one store. Work that is put off there, or is blocked
by something that is no task of the list, is failed with that as its reason, so that no loop starts it.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass as mutable, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ralf.errors import Damaged, UsageError
from ralf.tasks.model import PRIORITY
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import dataclass

Record = dict[str, Any]

MAX_TASKS, MAX_TITLE, MAX_TEXT, MAX_TAGS, MAX_AFTER, MAX_ID = 20_000, 300, 100_000, 50, 1_000, 200

MAX_EDGES = 200_000

_DIVIDE = "divide the list, and import its parts one by one: ralf import PART"

_DEPTH = 8  # of subtasks

_FIVE = {0: 10, 1: 8, 2: 5, 3: 3, 4: 1}

_WORDS = {"critical": 10, "highest": 10, "high": 8, "medium": PRIORITY, "low": 3, "lowest": 1}


class NoTaskList(Damaged):
    """A file that is no task list of a tool that is known here; nothing need be wrong with it."""


@dataclass(frozen=True, slots=True)
class ImportedTask:
    """A task as another tool has it.

    origin      the tool; `origin_id`: unique among all lists of that tool, `master/3.2`
    status      one of ralf's four
    after       the origin ids of the tasks that it waits for; `parent`: of the one that it is a part of
    summary     what came of it; of a failed one `reason`
    progress    who is at it there, and what was said last
    is_deleted  the tool keeps it only to say that it was deleted
    """

    origin: str = ""
    origin_id: str = ""
    title: str = ""
    text: str = ""
    status: str = "pending"
    priority: int = PRIORITY
    tags: tuple[str, ...] = ()
    role: str = ""
    after: tuple[str, ...] = ()
    parent: str = ""
    checkpoint: bool = False
    verify: str = ""
    created: str = ""
    created_by: str = ""
    summary: str = ""
    reason: str = ""
    progress: str = ""
    is_deleted: bool = False

    @property
    def key(self) -> str:
        """What the task's `imported_from` says."""
        return f"{self.origin}:{self.origin_id}"


@mutable(slots=True)
class List:
    """The tasks of one list, by their ids; of two with one id the later one counts."""

    origin: str
    where: str
    found: dict[str, ImportedTask] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    edges: int = 0

    @property
    def tasks(self) -> tuple[ImportedTask, ...]:
        """In the order of the list."""
        return tuple(self.found.values())

    def note(self, what: str) -> None:
        """Say what became of something in another way than it stands there; 200 times at most."""
        if len(self.notes) < 200:
            self.notes.append(f"{self.origin}: {what}")

    def add(self, origin_id: str, title: str, parts: Iterable[tuple[str, str]], **fields: Any) -> None:
        """Take a task, within the bounds; what had to be cut is noted. It is cut between words: half a secret would not
        be known for one.
        """
        text = "\n\n".join(f"## {name}\n\n{part}" if name else part for name, part in parts if part)
        whole = one_line(title) or one_line(text)[:80] or f"(no title: {origin_id})"
        if len(whole) > MAX_TITLE:
            text = f"{whole}\n\n{text}".strip()
            whole = trimmed(whole, MAX_TITLE)
        if len(text) > MAX_TEXT:
            self.note(f"{origin_id}: its text has {len(text):,} characters; only the first {MAX_TEXT:,} were taken")
            text = trimmed(text, MAX_TEXT)
        for name, most in (("after", MAX_AFTER), ("tags", MAX_TAGS)):
            values = tuple(dict.fromkeys(fields.get(name, ())))
            if len(values) > most:
                self.note(f"{origin_id}: {len(values):,} {name}; only the first {most:,} were taken")
            fields[name] = values[:most]
        fields["after"] = tuple(one for one in fields["after"] if one != origin_id)
        self.edges += len(fields["after"])
        if self.edges > MAX_EDGES:
            raise UsageError(self.where, f"more than {MAX_EDGES:,} dependencies", _DIVIDE)
        for name in ("summary", "reason", "progress"):
            fields[name] = trimmed(fields.get(name, ""), 4_000)
        if origin_id in self.found:
            self.note(f"{origin_id}: is in the list twice; the later one counts")
        self.found[origin_id] = ImportedTask(self.origin, origin_id, whole, text, **fields)

    def status(self, origin_id: str, said: str, words: Mapping[str, str]) -> str:
        """ralf's status for that of the tool."""
        word = said.lower().replace("-", "_").replace(" ", "_")
        if word and word not in words:
            self.note(f"{origin_id}: its status {said[:40]!r} is not known; taken as pending")
        return words.get(word, "pending")


def check_count(where: object, count: int) -> None:
    """UsageError for more tasks than are taken at once."""
    if count > MAX_TASKS:
        raise UsageError(where, f"more than {MAX_TASKS:,} tasks", _DIVIDE)


# ---- values of any type ----


def text_of(value: object) -> str:
    """A text or number as clean text, "" for anything else."""
    if isinstance(value, str):
        return clean(value).strip()
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def word_of(value: object) -> str:
    """A text as one short line: an id, a tag, a name."""
    return one_line(text_of(value))[:MAX_ID].strip()


def listed_of(value: object) -> list[Any]:
    """A list, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def words_of(value: object) -> tuple[str, ...]:
    """The ids or tags of a list."""
    return tuple(filter(None, map(word_of, listed_of(value)))) if isinstance(value, list) else ()


def bullets_of(value: object) -> str:
    """A list of texts as Markdown, or a text itself."""
    return "\n".join(f"- {one_line(text_of(one))}" for one in value) if isinstance(value, list) else text_of(value)


def whole_of(value: object) -> int | None:
    """A whole number, also where a text or a float says it."""
    if isinstance(value, str) and len(value) < 10:
        try:
            return int(value)
        except ValueError:
            return None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def time_of(value: object) -> str:
    """A time as ISO 8601 text in UTC; one without a zone is UTC, as all of these tools mean it."""
    try:
        time = datetime.fromisoformat(text_of(value))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return ""


def mapping_of(value: object) -> Mapping[str, Any]:
    """An object of JSON, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def begun(is_begun: bool, who: str, said: str = "") -> str:
    """Who has begun a task there, and what they said last."""
    return f"begun there{f' by {who}' if who else ''}{f': {said}' if said else ''}" if is_begun else said


# ---- beads ----

_BEADS = {
    "open": "pending",
    "in_progress": "pending",
    "hooked": "pending",
    "blocked": "failed",
    "deferred": "failed",
    "closed": "completed",
    "tombstone": "cancelled",
}

_NO_WORK = ("message", "event", "agent", "role", "slot", "rig")  # beads of which none is a task

_WAITS = ("blocks", "waits-for")

_LOST = "conditional-blocks"


def is_beads(record: Record) -> bool:
    """Whether a record is an issue of beads."""
    return "id" in record and bool({"issue_type", "created_at", "updated_at", "close_reason"} & record.keys())


def beads(path: Path, records: Sequence[tuple[str, Record]]) -> List:
    """The issues of beads: what is kept there for other ends (messages, pinned notes, templates) is left out."""
    made = List("beads", os.fspath(path))
    skipped = 0
    for where, record in records:
        kind = word_of(record.get("issue_type")) or "task"
        if word_of(record.get("_type")) not in ("", "issue") or kind in _NO_WORK or _is_no_work(record):
            skipped += 1
            continue
        id_ = _id(path, where, record)
        said = word_of(record.get("status"))
        status = made.status(id_, said, _BEADS)
        edges = [mapping_of(one) for one in listed_of(record.get("dependencies"))]
        after = [word_of(one.get("depends_on_id")) for one in edges if one.get("type", "blocks") in _WAITS]
        parents = [word_of(one.get("depends_on_id")) for one in edges if one.get("type") == "parent-child"]
        for one in edges:
            if one.get("type") == _LOST:
                made.note(
                    f"{id_}: runs only if {word_of(one.get('depends_on_id'))} fails: left out, ralf cannot say that"
                )
        if kind == "gate" and status == "pending":
            status = "failed"
        made.add(
            id_,
            text_of(record.get("title")),
            [
                ("", text_of(record.get("description"))),
                ("Design", text_of(record.get("design"))),
                ("Acceptance criteria", text_of(record.get("acceptance_criteria"))),
                ("Notes", text_of(record.get("notes"))),
                ("Comments", _comments(record.get("comments"))),
            ],
            status=status,
            priority=_FIVE[min(max(whole_of(record.get("priority", 0)) or 0, 0), 4)],  # as beads: none is 0
            tags=(*words_of(record.get("labels")), *([kind] if kind != "task" else [])),
            after=tuple(filter(None, after)),
            parent=next(filter(None, parents), ""),
            created=time_of(record.get("created_at")),
            created_by=word_of(record.get("created_by")),
            summary=text_of(record.get("close_reason")) if status == "completed" else "",
            reason=_put_off(said, record, kind) if status == "failed" else "",
            progress=begun(said in ("in_progress", "hooked"), word_of(record.get("assignee"))),
            is_deleted=said == "tombstone",
        )
    if skipped:
        made.note(f"{skipped:,} entries are no tasks (messages, pinned notes, templates): left out")
    _unblock(made)
    return made


def _is_no_work(record: Record) -> bool:
    flags = (record.get("pinned"), record.get("is_template"), record.get("ephemeral"))
    return record.get("status") == "pinned" or any(flag is True for flag in flags)


def _put_off(said: str, record: Record, kind: str) -> str:
    if kind == "gate":
        return (
            f"a gate of beads: waits for {word_of(record.get('await_type'))} {word_of(record.get('await_id'))}".strip()
        )
    until = time_of(record.get("defer_until"))
    return f"{said} in beads{f' until {until}' if until else ''}"


def _comments(value: object) -> str:
    comments = [mapping_of(one) for one in listed_of(value)]
    return "\n".join(f"- {word_of(one.get('author'))}: {one_line(text_of(one.get('text')))}" for one in comments)


def _unblock(made: List) -> None:
    """A blocked task that waits for one of the list that is not done is pending: its dependency holds it."""
    open_ = {id_ for id_, task in made.found.items() if task.status not in ("completed", "cancelled")}
    for id_, task in made.found.items():
        if task.reason.startswith("blocked in ") and not open_.isdisjoint(task.after):
            made.found[id_] = replace(task, status="pending", reason="")


def _id(path: Path, where: str, record: Mapping[str, Any]) -> str:
    id_ = word_of(record.get("id"))
    if not id_:
        raise Damaged(path, f"{where}: no `id`", f"mend it, then: ralf import {shlex.quote(str(path))} --dry-run")
    return id_


# ---- Claude Code ----

_CLAUDE = {"pending": "pending", "in_progress": "pending", "completed": "completed", "deleted": "cancelled"}


def is_claude_task(tree: object) -> bool:
    """Whether a file is a task of Claude Code."""
    return isinstance(tree, dict) and isinstance(tree.get("subject"), str) and "status" in tree and "id" in tree


def claude(folder: Path, records: Sequence[tuple[str, Record]]) -> List:
    """A list of Claude Code, a file for each task; its ids are unique within the list only."""
    name = word_of(folder.absolute().name)
    made = List("claude", os.fspath(folder))
    blocks: dict[str, list[str]] = {}
    for where, record in records:
        id_ = _id(folder, where, record)
        if mapping_of(record.get("metadata")).get("_internal") is True:
            continue
        for other in words_of(record.get("blocks")):
            blocks.setdefault(other, []).append(id_)
    for where, record in records:
        id_ = _id(folder, where, record)
        if mapping_of(record.get("metadata")).get("_internal") is True:
            continue
        said = word_of(record.get("status"))
        made.add(
            f"{name}/{id_}",
            text_of(record.get("subject")),
            [("", text_of(record.get("description")))],
            status=made.status(id_, said, _CLAUDE),
            after=tuple(f"{name}/{one}" for one in (*words_of(record.get("blockedBy")), *blocks.get(id_, ()))),
            progress=begun(said == "in_progress", word_of(record.get("owner"))),
            is_deleted=said == "deleted",
        )
    return made


# ---- Task Master ----

_TASK_MASTER = {
    "pending": "pending",
    "in_progress": "pending",
    "review": "pending",
    "done": "completed",
    "completed": "completed",
    "deferred": "failed",
    "blocked": "failed",
    "cancelled": "cancelled",
}


def is_task_master(tree: object) -> bool:
    """Whether a file is Task Master's: its tasks, or its tags with the tasks of each."""
    if not isinstance(tree, dict):
        return False
    lists = [tasks for _, tasks in _tagged(tree)]
    return bool(lists) and all(
        isinstance(one, dict) and isinstance(one.get("title"), str) and "id" in one for tasks in lists for one in tasks
    )


def _tagged(tree: Record) -> list[tuple[str, list[Any]]]:
    tags = [("master", tree), *((tag, one) for tag, one in tree.items() if isinstance(one, dict))]
    return [(word_of(tag), one["tasks"]) for tag, one in tags if isinstance(one.get("tasks"), list)]


def task_master(path: Path, tree: Record) -> List:
    """The tasks of Task Master with their subtasks, of all tags: `master/3.2`."""
    made = List("task-master", os.fspath(path))
    for tag, tasks in _tagged(tree):
        _take_tasks(made, tag, tasks)
    _unblock(made)
    return made


def _take_tasks(made: List, tag: str, listed: Sequence[Any], parent: str = "", inherited: int = PRIORITY) -> None:
    """Take tasks, or the subtasks of `parent`; one without a priority has that of its parent."""
    siblings = {word_of(one.get("id")) for one in listed if isinstance(one, dict)}
    near = f"{tag}/{parent}." if parent else f"{tag}/"
    for number, one in enumerate(listed, 1):
        record = mapping_of(one)
        own = _id(Path(made.where), f"{tag}: item {number}{f' of {parent}' if parent else ''}", record)
        id_ = f"{parent}.{own}" if parent and not own.startswith(f"{parent}.") else own
        said = word_of(record.get("status"))
        status = made.status(id_, said, _TASK_MASTER)
        priority = _WORDS.get(word_of(record.get("priority")).lower(), inherited)
        made.add(
            f"{tag}/{id_}",
            text_of(record.get("title")),
            [
                ("", text_of(record.get("description"))),
                ("Details", text_of(record.get("details"))),
                ("Acceptance criteria", bullets_of(record.get("acceptanceCriteria"))),
                ("How it is tested", text_of(record.get("testStrategy"))),
            ],
            status=status,
            priority=priority,
            tags=(tag,) if tag != "master" else (),
            after=[f"{near}{to}" if to in siblings else f"{tag}/{to}" for to in words_of(record.get("dependencies"))],
            parent=f"{tag}/{parent}" if parent else "",
            reason=f"{said} in Task Master" if status == "failed" else "",
            progress=begun(said in ("in-progress", "in_progress", "review"), word_of(record.get("assignee"))),
        )
        check_count(made.where, len(made.found))
        if inner := listed_of(record.get("subtasks")):
            if id_.count(".") >= _DEPTH:
                made.note(f"{id_}: its subtasks lie too deep: left out")
            else:
                _take_tasks(made, tag, inner, id_, priority)


# ---- prd.json ----


def _stories(tree: object) -> list[Any] | None:
    if isinstance(tree, dict):
        return next((tree[key] for key in ("userStories", "stories") if isinstance(tree.get(key), list)), None)
    return tree if isinstance(tree, list) else None


def is_prd(tree: object) -> bool:
    """Whether a file has stories that say whether they pass."""
    stories = _stories(tree)
    if isinstance(tree, dict) and isinstance(tree.get("userStories"), list):
        return True
    return bool(stories) and all(isinstance(one, dict) and "passes" in one for one in stories or ())


def prd(path: Path, tree: Any) -> List:
    """The stories of a prd.json. Their ids begin anew with each one, so its branch is a part of them. They are done one
    by one in the order of their priorities: where no story names what it depends on, each waits for those before it.
    """
    made = List("prd", os.fspath(path))
    head = mapping_of(tree)
    stories = [mapping_of(one) for one in _stories(tree) or ()]
    check_count(path, len(stories))
    names = ("branchName", "specId", "project", "projectName", "title", "name")
    name = next(filter(None, (word_of(head.get(one)) for one in names)), "")
    commands = mapping_of(head.get("verificationCommands"))
    verify = " && ".join(one_line(text_of(one)) for one in commands.values() if text_of(one))
    ids = [
        f"{name}/{own}" if name else own
        for own in (word_of(one.get("id")) or str(n) for n, one in enumerate(stories, 1))
    ]
    ranks = [whole_of(one.get("priority")) for one in stories]
    before = {} if any(_depends(one) for one in stories) else _before(ids, ranks)
    for id_, rank, story in zip(ids, ranks, stories, strict=True):
        passes, notes = story.get("passes") is True, text_of(story.get("notes"))
        made.add(
            id_,
            text_of(story.get("title")) or text_of(story.get("description")),
            [
                ("", text_of(story.get("description")) if text_of(story.get("title")) else ""),
                ("Acceptance criteria", bullets_of(story.get("acceptanceCriteria"))),
                ("Steps", bullets_of(story.get("steps"))),
                ("Notes", "" if passes else notes),
            ],
            status="completed" if passes else "pending",
            priority=PRIORITY if rank is None else min(max(11 - rank, 1), 10),
            tags=tuple(filter(None, [word_of(story.get("category"))])),
            after=before.get(id_) or tuple(f"{name}/{one}" if name else one for one in _depends(story)),
            verify=verify,
            summary=notes if passes else "",
            progress=begun(story.get("inProgress") is True, ""),
        )
    return made


def _depends(story: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        one for key in ("dependencies", "dependsOn", "depends_on", "blockedBy") for one in words_of(story.get(key))
    )


def _before(ids: Sequence[str], ranks: Sequence[int | None]) -> dict[str, tuple[str, ...]]:
    """For each story those of the next lower number; for one without a number those before it in the file."""
    last = max((rank for rank in ranks if rank is not None), default=0)
    numbers = [last + place if rank is None else rank for place, rank in enumerate(ranks, 1)]
    groups: dict[int, list[str]] = {}
    for id_, number in zip(ids, numbers, strict=True):
        groups.setdefault(number, []).append(id_)
    order = sorted(groups)
    return {id_: tuple(groups[a][: MAX_AFTER + 1]) for a, b in pairwise(order) for id_ in groups[b]}


# ---- ralph-orchestrator ----

_RALPH = {"open": "pending", "in_progress": "pending", "closed": "completed", "failed": "failed"}


def is_ralph(record: Record) -> bool:
    """Whether a record is a task of ralph-orchestrator."""
    return {"id", "title", "status", "created"} <= record.keys() and "created_at" not in record


def ralph(path: Path, records: Sequence[tuple[str, Record]]) -> List:
    """The tasks of ralph-orchestrator."""
    made = List("ralph", os.fspath(path))
    for where, record in records:
        id_ = _id(path, where, record)
        said = word_of(record.get("status"))
        status = made.status(id_, said, _RALPH)
        made.add(
            id_,
            text_of(record.get("title")),
            [("", text_of(record.get("description")))],
            status=status,
            priority=_FIVE[min(max((whole_of(record.get("priority")) or 3) - 1, 0), 4)],
            after=words_of(record.get("blocked_by")),
            created=time_of(record.get("created")),
            reason="failed in ralph-orchestrator" if status == "failed" else "",
            progress=begun(said == "in_progress", ""),
        )
    return made
