"""What a record of another tool's task list says, in the fields of ralf's tasks: one table for all tools."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from ralf.errors import UsageError
from ralf.tasks.model import PRIORITIES, PRIORITY, Task
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import dataclass, replace

Record = Mapping[str, Any]
MAX_TASKS, MAX_EDGES = 20_000, 200_000
MAX_TITLE, MAX_TEXT, MAX_SAID, MAX_TAGS, MAX_ID = 300, 100_000, 4_000, 50, 200

TOOLS: dict[str, tuple[str, Mapping[str, int]]] = {
    "aqua": ("Aqua", {str(number): number for number in range(1, 11)}),
    "beads": ("beads", {"": 10, "0": 10, "1": 8, "2": 5, "3": 3, "4": 1}),  # as beads: none is 0
    "claude": ("Claude Code", {}),
    "task-master": ("Task Master", PRIORITIES),
    "prd": ("prd.json", {}),
    "ralph": ("ralph-orchestrator", {"1": 10, "2": 8, "3": 5, "4": 3, "5": 1}),
}
"""By origin, the tool's name, and ralf's priority (10 comes first) for each of its own."""

_STATUSES = {
    word: status
    for status, words in {
        "pending": " open pending",
        "begun": "in_progress claimed hooked review",
        "completed": "done completed closed",
        "failed": "failed blocked deferred",
        "cancelled": "cancelled abandoned",
        "deleted": "deleted tombstone",
    }.items()
    for word in words.split(" ")
}
"""What the tools' words for a status mean. Who has begun a task there does not hold it here: it is pending."""

_PARTS = (
    ("", "description"),
    ("Details", "details"),
    ("Design", "design"),
    ("Acceptance criteria", "acceptance_criteria"),
    ("Acceptance criteria", "acceptanceCriteria"),
    ("Steps", "steps"),
    ("How it is tested", "testStrategy"),
    ("Notes", "notes"),
)
"""The sections of a task's text: heading and key."""

AFTER = ("dependencies", "dependsOn", "depends_on", "blockedBy", "blocked_by")
"""Keys of the ids that a task waits for."""


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


def _first(record: Record, *keys: str) -> str:
    return next(filter(None, (text_of(record.get(key)) for key in keys)), "")


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

    def take(self, id_: str, record: Record, *, near: str = "", parent: str = "", **given: Any) -> None:
        """Take a record, within the bounds. A text is cut between words: half a secret would not be known for one.

        near    what stands before the ids that it names: `master/`
        given   fields of the task that the record tells in another way, a `reason`, further `parts` of its text; and a
                `priority` for one that has none
        """
        tool, priorities = TOOLS[self.origin]
        said = word_of(record.get("status"))
        kind: str = given.get("status") or _STATUSES.get(said.lower().replace("-", "_").replace(" ", "_"), "")
        if not kind:
            self.note(f"{id_}: its status {said[:40]!r} is not known; taken as pending")
        is_new, is_begun = kind in ("", "pending"), kind == "begun"
        status = "pending" if is_new or is_begun else "cancelled" if kind == "deleted" else kind
        who, last = word_of(_first(record, "claimed_by", "assignee", "owner")), text_of(record.get("context"))
        progress = f"begun there{f' by {who}' if who else ''}{f': {last}' if last else ''}" if is_begun else last
        words = {"progress": "" if is_new else progress}
        if status == "completed":
            words["summary"] = given.get("summary") or _first(record, "result", "close_reason")
        if status == "failed":
            words["reason"] = given.get("reason") or text_of(record.get("error")) or f"{said} in {tool}"
        parts = [*((name, text_of(record.get(key))) for name, key in _PARTS), *given.get("parts", ())]
        parts += [("Context", last)] if is_new else []
        text = "\n\n".join(f"## {name}\n\n{part}" if name else part for name, part in parts if part)
        title = one_line(_first(record, "title", "subject")) or trimmed(one_line(text), 80) or f"(no title: {id_})"
        text = f"{title}\n\n{text}".strip() if len(title) > MAX_TITLE else text
        tags = tuple(dict.fromkeys(given.get("tags", words_of(record.get("tags")))))
        after = given.get("after", [f"{near}{one}" for key in AFTER for one in words_of(record.get(key))])
        if len(text) > MAX_TEXT or len(tags) > MAX_TAGS:
            self.note(f"{id_}: only the first {MAX_TEXT:,} characters and {MAX_TAGS} tags were taken")
        if id_ in self.found:
            self.note(f"{id_}: is in the list twice; the later one counts")
        task = Task(
            id_,
            trimmed(title, MAX_TITLE),
            trimmed(text, MAX_TEXT),
            status,
            priorities.get(word_of(record.get("priority")).lower(), given.get("priority", PRIORITY)),
            tags[:MAX_TAGS],
            after=tuple(one for one in dict.fromkeys(after) if one != id_),
            checkpoint=given.get("checkpoint", False),
            verify=given.get("verify", ""),
            created=time_of(_first(record, "created_at", "created")),
            created_by=word_of(record.get("created_by")),
        )
        words = {name: trimmed(text, MAX_SAID) for name, text in words.items()}
        self.found[id_] = ImportedTask(self.origin, task, parent, is_deleted=kind == "deleted", **words)
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
