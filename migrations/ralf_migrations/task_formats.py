"""How other tools keep their tasks, a row a tool, and a list of theirs, whose records a row translates."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ralf.errors import Damaged, UsageError
from ralf.tasks.model import PRIORITIES, PRIORITY, Task
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import dataclass, replace

Record = Mapping[str, Any]
MAX_TASKS, MAX_EDGES = 20_000, 200_000
MAX_TITLE, MAX_TEXT, MAX_SAID, MAX_TAGS, MAX_ID = 300, 100_000, 4_000, 50, 200


class NoTaskList(Damaged):
    """A file that is no task list of a tool that is known here; nothing need be wrong with it."""


@dataclass(frozen=True, slots=True)
class ImportedTask:
    """A task as another tool has it.

    task        its id is unique among all lists of that tool (`master/3.2`), and so are those that it waits for
    parent      the id of the task that it is a part of
    summary     what came of it; of a failed one `reason`
    progress    who is at it there, and what was said last
    is_deleted  the tool keeps it only to say that it was deleted
    """

    origin: str
    task: Task
    parent: str = ""
    summary: str = ""
    reason: str = ""
    progress: str = ""
    is_deleted: bool = False

    @property
    def key(self) -> str:
        """What the task's `imported_from` says."""
        return f"{self.origin}:{self.task.id}"


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


def words_of(value: object) -> tuple[str, ...]:
    """The ids or tags of a list."""
    return tuple(filter(None, map(word_of, value if isinstance(value, list) else [])))


def records_of(value: object) -> list[Record]:
    """The objects of a list, an empty one for anything else in it."""
    return [one if isinstance(one, dict) else {} for one in (value if isinstance(value, list) else [])]


def time_of(value: object) -> str:
    """A time as ISO 8601 text in UTC; one without a zone is UTC, as all of these tools mean it."""
    with suppress(ValueError, OverflowError):
        time = datetime.fromisoformat(text_of(value))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return ""


# ---- formats: a row a tool ----


class Format(NamedTuple):
    """How a tool keeps its tasks: by what is to be read, the key, or keys, of a record.

    name        of the tool; `statuses`: ralf's for each of its own, or `deleted`
    priorities  ralf's (10 comes first) for each of its own
    parts       sections of the text: heading and key
    summary     what came of a completed task, `reason` of a failed one; else what its status is
    begun       statuses that say that somebody is at it, `who`
    said        what was said last of one that is not new
    """

    name: str
    statuses: Mapping[str, str]
    priorities: Mapping[str, int] = {}
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


_CRITERIA = ("Acceptance criteria", "acceptanceCriteria")
FORMATS = {
    "aqua": Format(
        "Aqua",
        {"pending": "pending", "claimed": "pending", "done": "completed", "failed": "failed", "abandoned": "cancelled"},
        {str(number): number for number in range(1, 11)},
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
        | {"blocked": "failed", "deferred": "failed", "closed": "completed", "tombstone": "deleted"},
        {"": 10, "0": 10, "1": 8, "2": 5, "3": 3, "4": 1},  # as beads: none is 0
        parts=(
            *(("", "description"), ("Design", "design"), ("Acceptance criteria", "acceptance_criteria")),
            ("Notes", "notes"),
        ),
        created="created_at",
        summary="close_reason",
        begun=("in_progress", "hooked"),
        who="assignee",
    ),
    "claude": Format(
        "Claude Code",
        {"pending": "pending", "in_progress": "pending", "completed": "completed", "deleted": "deleted"},
        title="subject",
        after=("blockedBy",),
        who="owner",
    ),
    "task-master": Format(
        "Task Master",
        dict.fromkeys(("pending", "in_progress", "review"), "pending")
        | {"done": "completed", "completed": "completed", "deferred": "failed", "blocked": "failed"}
        | {"cancelled": "cancelled"},
        PRIORITIES,
        parts=(("", "description"), ("Details", "details"), _CRITERIA, ("How it is tested", "testStrategy")),
        begun=("in_progress", "review"),
        who="assignee",
    ),
    "prd": Format(
        "prd.json",
        {"true": "completed", "false": "pending"},
        parts=(("", "description"), _CRITERIA, ("Steps", "steps"), ("Notes", "notes")),
        after=("dependencies", "dependsOn", "depends_on", "blockedBy"),
    ),
    "ralph": Format(
        "ralph-orchestrator",
        {"open": "pending", "in_progress": "pending", "closed": "completed", "failed": "failed"},
        {"1": 10, "2": 8, "3": 5, "4": 3, "5": 1},
        after=("blocked_by",),
        created="created",
    ),
}


# ---- lists ----


class List:
    """The tasks of one list, by their ids; of two with one id the later one counts."""

    def __init__(self, origin: str, where: object) -> None:
        self.origin = origin
        self.where = str(where)
        self.found: dict[str, ImportedTask] = {}
        self.notes: list[str] = []
        self._edges = 0

    def note(self, what: str) -> None:
        """Say what became of something in another way than it stands there."""
        self.notes.append(f"{self.origin}: {what}")

    def take(self, id_: str, record: Record, *, near: str = "", said: str = "", **given: Any) -> None:
        """Take a record by the row of its tool, within the bounds. A text is cut between words: half a secret would not
        be known for one.

        near   what stands before the ids that it names: `master/`
        said   its status, where that is not under its name
        given  fields that the row does not tell, and more `parts`; a `priority` for one that has none
        """
        row = FORMATS[self.origin]
        said = said or word_of(record.get("status"))
        word = said.lower().replace("-", "_").replace(" ", "_")
        if word and word not in row.statuses:
            self.note(f"{id_}: its status {said[:40]!r} is not known; taken as pending")
        status = given.get("status") or row.statuses.get(word, "pending")
        is_deleted = status == "deleted"
        status = "cancelled" if is_deleted else status
        who, last = word_of(record.get(row.who)), text_of(record.get(row.said))
        is_new = status == "pending" and word not in row.begun
        summary = reason = progress = ""
        if status == "completed":
            summary = given.get("summary") or text_of(record.get(row.summary))
        if status == "failed":
            reason = given.get("reason") or text_of(record.get(row.reason)) or f"{said} in {row.name}"
        if word in row.begun:
            progress = f"begun there{f' by {who}' if who else ''}{f': {last}' if last else ''}"
        elif not is_new:
            progress = last
        parts = [*((name, text_of(record.get(key))) for name, key in row.parts), *given.get("parts", ())]
        parts += [("Context", last)] if is_new else []
        text = "\n\n".join(f"## {name}\n\n{part}" if name else part for name, part in parts if part)
        title = one_line(given.get("title") or text_of(record.get(row.title)))
        title = title or one_line(text)[:80] or f"(no title: {id_})"
        text = f"{title}\n\n{text}".strip() if len(title) > MAX_TITLE else text
        tags = dict.fromkeys(given.get("tags", words_of(record.get(row.tags))))
        after = given.get("after", [f"{near}{one}" for key in row.after for one in words_of(record.get(key))])
        if len(text) > MAX_TEXT or len(tags) > MAX_TAGS:
            self.note(f"{id_}: only the first {MAX_TEXT:,} characters and {MAX_TAGS} tags were taken")
        if id_ in self.found:
            self.note(f"{id_}: is in the list twice; the later one counts")
        priority = row.priorities.get(word_of(record.get("priority")).lower(), given.get("priority", PRIORITY))
        task = Task(
            id_,
            trimmed(title, MAX_TITLE),
            trimmed(text, MAX_TEXT),
            status,
            priority,
            tuple(tags)[:MAX_TAGS],
            after=tuple(one for one in dict.fromkeys(after) if one != id_),
            verify=given.get("verify", ""),
            created=time_of(record.get(row.created)),
            created_by=word_of(record.get("created_by")),
        )
        self.found[id_] = ImportedTask(
            self.origin,
            task,
            given.get("parent", ""),
            trimmed(summary, MAX_SAID),
            trimmed(reason, MAX_SAID),
            trimmed(given.get("progress") or progress, MAX_SAID),
            is_deleted,
        )
        self._edges += len(task.after)
        if self._edges > MAX_EDGES or len(self.found) > MAX_TASKS:
            what = f"more than {MAX_TASKS:,} tasks, or {MAX_EDGES:,} dependencies"
            raise UsageError(self.where, what, "divide the list, and import its parts one by one: ralf import PART")

    def unblock(self) -> None:
        """A blocked task that waits for one of the list that is not done is pending: its dependency holds it."""
        open_ = {id_ for id_, one in self.found.items() if one.task.status not in ("completed", "cancelled")}
        for id_, one in self.found.items():
            if one.reason.startswith("blocked in ") and not open_.isdisjoint(one.task.after):
                self.found[id_] = replace(one, task=replace(one.task, status="pending"), reason="")
