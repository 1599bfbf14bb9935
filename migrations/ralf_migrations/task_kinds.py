"""What each tool's tasks look like, a row a tool, and what becomes of their fields.

Work that somebody has begun there is pending here: a claim binds one store. Work that is put off there, or is blocked
by something that is no task of the list, is failed with that as its reason, so that no loop starts it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass as mutable, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ralf.errors import Damaged, UsageError
from ralf.tasks.model import PRIORITY
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import dataclass

Record = Mapping[str, Any]

MAX_TASKS, MAX_TITLE, MAX_TEXT, MAX_TAGS, MAX_AFTER, MAX_ID = 20_000, 300, 100_000, 50, 1_000, 200
MAX_EDGES = 200_000
_MAX_NOTES = 200
_MAX_DEPTH = 8  # of subtasks
_DIVIDE = "divide the list, and import its parts one by one: ralf import PART"


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


# ---- values of any type ----


def text_of(value: object) -> str:
    """A text or number as clean text, a list as bullets, "" for anything else."""
    if isinstance(value, list):
        return "\n".join(f"- {one_line(text_of(one))}" for one in value)
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
    return tuple(filter(None, map(word_of, listed_of(value))))


def mapping_of(value: object) -> Record:
    """An object of JSON, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def whole_of(value: object) -> int | None:
    """A whole number, also where a text or a float says it."""
    try:
        if isinstance(value, str):
            return int(value) if len(value) < 10 else None
        return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None


def time_of(value: object) -> str:
    """A time as ISO 8601 text in UTC; one without a zone is UTC, as all of these tools mean it."""
    try:
        time = datetime.fromisoformat(text_of(value))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return ""


# ---- formats: a row a tool ----

_FIVE = (10, 8, 5, 3, 1)
_WORDS = {"critical": 10, "highest": 10, "high": 8, "medium": PRIORITY, "low": 3, "lowest": 1}


def _within(value: int | None, least: int, most: int, default: int) -> int:
    return min(max(default if value is None else value, least), most)


class Format(NamedTuple):
    """How a tool keeps its tasks: by what is to be read, the key, or keys, of a record.

    name      of the tool; `statuses`: ralf's for each of its own
    priority  ralf's (10 comes first) for its value; None where it has none
    parts     sections of the text: heading and key
    summary   what came of a completed task, `reason` of a failed one; else what its status is
    begun     statuses that say that somebody is at it, `who`
    said      what was said last of one that is not new
    """

    name: str
    statuses: Mapping[str, str]
    priority: Callable[[object], int | None] = lambda _: PRIORITY
    title: str = "title"
    parts: tuple[tuple[str, str], ...] = (("", "description"),)
    tags: str = "tags"
    after: tuple[str, ...] = ()
    created: str = ""
    summary: str = ""
    reason: str = ""
    begun: tuple[str, ...] = ("in_progress",)
    who: str = ""
    said: str = ""
    deleted: str = ""


_CRITERIA = ("Acceptance criteria", "acceptanceCriteria")
FORMATS = {
    "aqua": Format(
        "Aqua",
        {"pending": "pending", "claimed": "pending", "done": "completed", "failed": "failed", "abandoned": "cancelled"},
        lambda value: _within(whole_of(value) or PRIORITY, 1, 10, PRIORITY),
        after=("depends_on",),
        created="created_at",
        summary="result",
        reason="error",
        begun=("claimed",),
        who="claimed_by",
        said="context",
    ),
    "beads": Format(
        "beads",
        dict.fromkeys(("open", "in_progress", "hooked"), "pending")
        | {"blocked": "failed", "deferred": "failed", "closed": "completed", "tombstone": "cancelled"},
        lambda value: _FIVE[_within(whole_of(value), 0, 4, 0)],  # as beads: none is 0
        parts=(
            *(("", "description"), ("Design", "design"), ("Acceptance criteria", "acceptance_criteria")),
            ("Notes", "notes"),
        ),
        tags="labels",
        created="created_at",
        summary="close_reason",
        begun=("in_progress", "hooked"),
        who="assignee",
        deleted="tombstone",
    ),
    "claude": Format(
        "Claude Code",
        {"pending": "pending", "in_progress": "pending", "completed": "completed", "deleted": "cancelled"},
        title="subject",
        after=("blockedBy",),
        who="owner",
        deleted="deleted",
    ),
    "task-master": Format(
        "Task Master",
        dict.fromkeys(("pending", "in_progress", "review"), "pending")
        | {"done": "completed", "completed": "completed", "deferred": "failed", "blocked": "failed"}
        | {"cancelled": "cancelled"},
        lambda value: _WORDS.get(word_of(value).lower()),
        parts=(("", "description"), ("Details", "details"), _CRITERIA, ("How it is tested", "testStrategy")),
        begun=("in_progress", "review"),
        who="assignee",
    ),
    "prd": Format(
        "prd.json",
        {"true": "completed", "false": "pending"},
        lambda value: PRIORITY if (rank := whole_of(value)) is None else _within(11 - rank, 1, 10, PRIORITY),
        parts=(("", "description"), _CRITERIA, ("Steps", "steps"), ("Notes", "notes")),
        after=("dependencies", "dependsOn", "depends_on", "blockedBy"),
    ),
    "ralph": Format(
        "ralph-orchestrator",
        {"open": "pending", "in_progress": "pending", "closed": "completed", "failed": "failed"},
        lambda value: _FIVE[_within((whole_of(value) or 3) - 1, 0, 4, 2)],
        after=("blocked_by",),
        created="created",
    ),
}


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
        if len(self.notes) < _MAX_NOTES:
            self.notes.append(f"{self.origin}: {what}")

    def take(self, id_: str, record: Record, *, near: str = "", **given: Any) -> None:
        """Take a record by the row of its tool.

        near   what stands before the ids that it names: `master/`
        given  fields that the row does not tell
        """
        row = FORMATS[self.origin]
        said = word_of(given.pop("said", None) or record.get("status"))
        word = said.lower().replace("-", "_").replace(" ", "_")
        if word and word not in row.statuses:
            self.note(f"{id_}: its status {said[:40]!r} is not known; taken as pending")
        status = given.get("status") or row.statuses.get(word, "pending")
        is_begun, who, last = word in row.begun, word_of(record.get(row.who)), text_of(record.get(row.said))
        is_new = status == "pending" and not is_begun
        begun = f"begun there{f' by {who}' if who else ''}{f': {last}' if last else ''}" if is_begun else last
        priority = row.priority(record.get("priority"))
        fields: dict[str, Any] = {
            "status": status,
            "priority": given.pop("inherited", PRIORITY) if priority is None else priority,
            "tags": words_of(record.get(row.tags)),
            "after": [f"{near}{one}" for key in row.after for one in words_of(record.get(key))],
            "created": time_of(record.get(row.created)),
            "created_by": word_of(record.get("created_by")) if row.created == "created_at" else "",
            "summary": text_of(record.get(row.summary)) if status == "completed" else "",
            "reason": (text_of(record.get(row.reason)) if row.reason else f"{said} in {row.name}")
            * (status == "failed"),
            "progress": "" if is_new else begun,
            "is_deleted": bool(row.deleted) and said == row.deleted,
        }
        parts = [*((name, text_of(record.get(key))) for name, key in row.parts), *given.pop("parts", ())]
        parts += [("Context", last)] if is_new else []
        given.pop("inherited", None)
        self.add(id_, given.pop("title", None) or text_of(record.get(row.title)), parts, **fields | given)

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
        check_count(self.where, len(self.found))

    def unblock(self) -> None:
        """A blocked task that waits for one of the list that is not done is pending: its dependency holds it."""
        open_ = {id_ for id_, task in self.found.items() if task.status not in ("completed", "cancelled")}
        for id_, task in self.found.items():
            if task.reason.startswith("blocked in ") and not open_.isdisjoint(task.after):
                self.found[id_] = replace(task, status="pending", reason="")


def check_count(where: object, count: int) -> None:
    """UsageError for more tasks than are taken at once."""
    if count > MAX_TASKS:
        raise UsageError(where, f"more than {MAX_TASKS:,} tasks", _DIVIDE)


def _id(path: object, where: str, record: Record) -> str:
    id_ = word_of(record.get("id"))
    if not id_:
        again = f"ralf import {shlex.quote(str(path))} --dry-run"
        raise Damaged(path, f"{where}: no `id`", f"mend it, then: {again}")
    return id_


# ---- lists of records ----

Records = Sequence[tuple[str, Record]]
"""Each with where it stands."""


def is_beads(record: Record) -> bool:
    """Whether a record is an issue of beads."""
    return "id" in record and bool({"issue_type", "created_at", "updated_at", "close_reason"} & record.keys())


def is_ralph(record: Record) -> bool:
    """Whether a record is a task of ralph-orchestrator."""
    return {"id", "title", "status", "created"} <= record.keys() and "created_at" not in record


def is_claude_task(tree: object) -> bool:
    """Whether a file is a task of Claude Code."""
    return isinstance(tree, dict) and isinstance(tree.get("subject"), str) and "status" in tree and "id" in tree


def ralph(path: Path, records: Records) -> List:
    """The tasks of ralph-orchestrator."""
    made = List("ralph", os.fspath(path))
    for where, record in records:
        made.take(_id(path, where, record), record)
    return made


_NO_WORK = ("message", "event", "agent", "role", "slot", "rig")  # beads of which none is a task


def beads(path: Path, records: Records) -> List:
    """The issues of beads: what is kept there for other ends (messages, pinned notes, templates) is left out."""
    made = List("beads", os.fspath(path))
    skipped = 0
    for where, record in records:
        kind, said = word_of(record.get("issue_type")) or "task", word_of(record.get("status"))
        flags = (record.get(key) is True for key in ("pinned", "is_template", "ephemeral"))
        if word_of(record.get("_type")) not in ("", "issue") or kind in _NO_WORK or said == "pinned" or any(flags):
            skipped += 1
            continue
        id_ = _id(path, where, record)
        by_type: dict[str, list[str]] = {}
        for edge in map(mapping_of, listed_of(record.get("dependencies"))):
            by_type.setdefault(str(edge.get("type", "blocks")), []).append(word_of(edge.get("depends_on_id")))
        for other in by_type.get("conditional-blocks", ()):
            made.note(f"{id_}: runs only if {other} fails: left out, ralf cannot say that")
        given: dict[str, Any] = {}
        until = time_of(record.get("defer_until"))
        if kind == "gate" and FORMATS["beads"].statuses.get(said, "pending") in ("pending", "failed"):
            what = f"{word_of(record.get('await_type'))} {word_of(record.get('await_id'))}"
            given = {"status": "failed", "reason": f"a gate of beads: waits for {what}".strip()}
        elif until and said in ("blocked", "deferred"):
            given = {"reason": f"{said} in beads until {until}"}
        comments = map(mapping_of, listed_of(record.get("comments")))
        told = "\n".join(f"- {word_of(one.get('author'))}: {one_line(text_of(one.get('text')))}" for one in comments)
        made.take(
            id_,
            record,
            parts=[("Comments", told)],
            tags=(*words_of(record.get("labels")), *([kind] if kind != "task" else [])),
            after=tuple(filter(None, (*by_type.get("blocks", ()), *by_type.get("waits-for", ())))),
            parent=next(filter(None, by_type.get("parent-child", ())), ""),
            **given,
        )
    if skipped:
        made.note(f"{skipped:,} entries are no tasks (messages, pinned notes, templates): left out")
    made.unblock()
    return made


def claude(folder: Path, records: Records) -> List:
    """A list of Claude Code, a file for each task; its ids are unique within the list only."""
    near = f"{word_of(folder.absolute().name)}/"
    made = List("claude", os.fspath(folder))
    tasks = [(_id(folder, where, record), record) for where, record in records]
    tasks = [one for one in tasks if mapping_of(one[1].get("metadata")).get("_internal") is not True]
    blocks: dict[str, list[str]] = {}
    for id_, record in tasks:
        for other in words_of(record.get("blocks")):
            blocks.setdefault(other, []).append(id_)
    for id_, record in tasks:
        after = (*words_of(record.get("blockedBy")), *blocks.get(id_, ()))
        made.take(f"{near}{id_}", record, after=[f"{near}{one}" for one in after])
    return made


# ---- one tree ----


def _tagged(tree: Record) -> list[tuple[str, list[Any]]]:
    tags = [("master", tree), *((tag, one) for tag, one in tree.items() if isinstance(one, dict))]
    return [(word_of(tag), one["tasks"]) for tag, one in tags if isinstance(one.get("tasks"), list)]


def is_task_master(tree: object) -> bool:
    """Whether a file is Task Master's: its tasks, or its tags with the tasks of each."""
    lists = [tasks for _, tasks in _tagged(tree)] if isinstance(tree, dict) else []
    records = [one for tasks in lists for one in tasks]
    return bool(lists) and all(
        isinstance(one, dict) and isinstance(one.get("title"), str) and "id" in one for one in records
    )


def task_master(path: Path, tree: Record) -> List:
    """The tasks of Task Master with their subtasks, of all tags: `master/3.2`."""
    made = List("task-master", os.fspath(path))
    for tag, tasks in _tagged(tree):
        _take_tasks(made, tag, tasks)
    made.unblock()
    return made


def _take_tasks(made: List, tag: str, listed: Sequence[Any], parent: str = "", inherited: int = PRIORITY) -> None:
    """Take tasks, or the subtasks of `parent`; one without a priority has that of its parent."""
    siblings = {word_of(one.get("id")) for one in listed if isinstance(one, dict)}
    near = f"{tag}/{parent}." if parent else f"{tag}/"
    for number, record in enumerate(map(mapping_of, listed), 1):
        own = _id(made.where, f"{tag}: item {number}{f' of {parent}' if parent else ''}", record)
        id_ = f"{parent}.{own}" if parent and not own.startswith(f"{parent}.") else own
        after = words_of(record.get("dependencies"))
        made.take(
            f"{tag}/{id_}",
            record,
            tags=(tag,) if tag != "master" else (),
            after=[f"{near}{to}" if to in siblings else f"{tag}/{to}" for to in after],
            parent=f"{tag}/{parent}" if parent else "",
            inherited=inherited,
        )
        if inner := listed_of(record.get("subtasks")):
            if id_.count(".") >= _MAX_DEPTH:
                made.note(f"{id_}: its subtasks lie too deep: left out")
            else:
                _take_tasks(made, tag, inner, id_, made.found[f"{tag}/{id_}"].priority)


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
    near = f"{name}/" if name else ""
    commands = mapping_of(head.get("verificationCommands"))
    verify = " && ".join(one_line(text_of(one)) for one in commands.values() if text_of(one))
    ids = [f"{near}{word_of(one.get('id')) or number}" for number, one in enumerate(stories, 1)]
    is_told = any(words_of(one.get(key)) for one in stories for key in FORMATS["prd"].after)
    before = {} if is_told else _before(ids, [whole_of(one.get("priority")) for one in stories])
    for id_, story in zip(ids, stories, strict=True):
        passes, notes, title = story.get("passes") is True, text_of(story.get("notes")), text_of(story.get("title"))
        left = ("notes" if passes else "", "" if title else "description")  # told otherwise
        made.take(
            id_,
            {key: value for key, value in story.items() if key not in left},
            near=near,
            said="true" if passes else "false",
            title=title or text_of(story.get("description")),
            tags=tuple(filter(None, [word_of(story.get("category"))])),
            verify=verify,
            summary=notes if passes else "",
            progress="begun there" if story.get("inProgress") is True else "",
            **({"after": before[id_]} if id_ in before else {}),
        )
    return made


def _before(ids: Sequence[str], ranks: Sequence[int | None]) -> dict[str, tuple[str, ...]]:
    """For each story those of the next lower number; for one without a number those before it in the file."""
    last = max((rank for rank in ranks if rank is not None), default=0)
    groups: dict[int, list[str]] = {}
    for place, (id_, rank) in enumerate(zip(ids, ranks, strict=True), 1):
        groups.setdefault(last + place if rank is None else rank, []).append(id_)
    return {id_: tuple(groups[a][: MAX_AFTER + 1]) for a, b in pairwise(sorted(groups)) for id_ in groups[b]}
