"""How other tools keep their tasks, a row a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ralf.errors import Damaged, UsageError
from ralf.tasks.model import PRIORITY
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import dataclass

Record = Mapping[str, Any]
MAX_TASKS, MAX_EDGES = 20_000, 200_000
MAX_TITLE, MAX_TEXT, MAX_SAID, MAX_TAGS, MAX_ID = 300, 100_000, 4_000, 50, 200
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


def words_of(value: object) -> tuple[str, ...]:
    """The ids or tags of a list."""
    return tuple(filter(None, map(word_of, value if isinstance(value, list) else [])))


def records_of(value: object) -> list[Record]:
    """The objects of a list, an empty one for anything else in it."""
    return [one if isinstance(one, dict) else {} for one in (value if isinstance(value, list) else [])]


def whole_of(value: object) -> int | None:
    """A whole number, also where a text or a float says it."""
    with suppress(ValueError, OverflowError):
        if isinstance(value, str):
            return int(value) if len(value) < 10 else None
        return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    return None


def time_of(value: object) -> str:
    """A time as ISO 8601 text in UTC; one without a zone is UTC, as all of these tools mean it."""
    with suppress(ValueError, OverflowError):
        time = datetime.fromisoformat(text_of(value))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return ""


# ---- formats: a row a tool ----

_FIVE = (10, 8, 5, 3, 1)
WORDS = {"critical": 10, "highest": 10, "high": 8, "medium": PRIORITY, "low": 3, "lowest": 1}


def _within(value: int, least: int, most: int) -> int:
    return min(max(value, least), most)


def _of_a_story(value: object) -> int:
    return PRIORITY if (rank := whole_of(value)) is None else _within(11 - rank, 1, 10)


class Format(NamedTuple):
    """How a tool keeps its tasks: by what is to be read, the key, or keys, of a record.

    name      of the tool; `statuses`: ralf's for each of its own
    priority  ralf's (10 comes first) for its value
    parts     sections of the text: heading and key
    summary   what came of a completed task, `reason` of a failed one; else what its status is
    begun     statuses that say that somebody is at it, `who`
    said      what was said last of one that is not new
    """

    name: str
    statuses: Mapping[str, str]
    priority: Callable[[object], int] = lambda _: PRIORITY
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
        lambda value: _within(whole_of(value) or PRIORITY, 1, 10),
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
        lambda value: _FIVE[_within(whole_of(value) or 0, 0, 4)],  # as beads: none is 0
        parts=(
            *(("", "description"), ("Design", "design"), ("Acceptance criteria", "acceptance_criteria")),
            ("Notes", "notes"),
        ),
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
        parts=(("", "description"), ("Details", "details"), _CRITERIA, ("How it is tested", "testStrategy")),
        begun=("in_progress", "review"),
        who="assignee",
    ),
    "prd": Format(
        "prd.json",
        {"true": "completed", "false": "pending"},
        _of_a_story,
        parts=(("", "description"), _CRITERIA, ("Steps", "steps"), ("Notes", "notes")),
        after=("dependencies", "dependsOn", "depends_on", "blockedBy"),
    ),
    "ralph": Format(
        "ralph-orchestrator",
        {"open": "pending", "in_progress": "pending", "closed": "completed", "failed": "failed"},
        lambda value: _FIVE[_within((whole_of(value) or 3) - 1, 0, 4)],
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
        given  fields that the row does not tell, and more `parts`
        """
        row = FORMATS[self.origin]
        said = said or word_of(record.get("status"))
        word = said.lower().replace("-", "_").replace(" ", "_")
        if word and word not in row.statuses:
            self.note(f"{id_}: its status {said[:40]!r} is not known; taken as pending")
        status = given.get("status") or row.statuses.get(word, "pending")
        who, last = word_of(record.get(row.who)), text_of(record.get(row.said))
        is_begun = word in row.begun
        is_new = status == "pending" and not is_begun
        begun = f"begun there{f' by {who}' if who else ''}{f': {last}' if last else ''}" if is_begun else last
        reason = text_of(record.get(row.reason)) if row.reason else f"{said} in {row.name}"
        parts = [*((name, text_of(record.get(key))) for name, key in row.parts), *given.pop("parts", ())]
        parts += [("Context", last)] if is_new else []
        text = "\n\n".join(f"## {name}\n\n{part}" if name else part for name, part in parts if part)
        title = one_line(given.get("title") or text_of(record.get(row.title)))
        title = title or one_line(text)[:80] or f"(no title: {id_})"
        text = f"{title}\n\n{text}".strip() if len(title) > MAX_TITLE else text
        fields: dict[str, Any] = {
            "status": status,
            "priority": row.priority(record.get("priority")),
            "tags": words_of(record.get(row.tags)),
            "after": [f"{near}{one}" for key in row.after for one in words_of(record.get(key))],
            "created": time_of(record.get(row.created)),
            "created_by": word_of(record.get("created_by")),
            "summary": text_of(record.get(row.summary)) if status == "completed" else "",
            "reason": reason if status == "failed" else "",
            "progress": "" if is_new else begun,
            "is_deleted": bool(row.deleted) and said == row.deleted,
            **given,
            "title": trimmed(title, MAX_TITLE),
            "text": trimmed(text, MAX_TEXT),
        }
        fields |= {name: tuple(dict.fromkeys(fields[name])) for name in ("tags", "after")}
        if len(text) > MAX_TEXT or len(fields["tags"]) > MAX_TAGS:
            self.note(f"{id_}: only the first {MAX_TEXT:,} characters and {MAX_TAGS} tags were taken")
        fields["tags"] = fields["tags"][:MAX_TAGS]
        fields["after"] = tuple(one for one in fields["after"] if one != id_)
        fields |= {name: trimmed(fields[name], MAX_SAID) for name in ("summary", "reason", "progress")}
        if id_ in self.found:
            self.note(f"{id_}: is in the list twice; the later one counts")
        self.found[id_] = ImportedTask(self.origin, id_, **fields)
        self._edges += len(fields["after"])
        if self._edges > MAX_EDGES or len(self.found) > MAX_TASKS:
            what = f"more than {MAX_TASKS:,} tasks, or {MAX_EDGES:,} dependencies"
            raise UsageError(self.where, what, _DIVIDE)

    def unblock(self) -> None:
        """A blocked task that waits for one of the list that is not done is pending: its dependency holds it."""
        open_ = {id_ for id_, task in self.found.items() if task.status not in ("completed", "cancelled")}
        for id_, task in self.found.items():
            if task.reason.startswith("blocked in ") and not open_.isdisjoint(task.after):
                self.found[id_] = replace(task, status="pending", reason="")
