"""How other tools keep their tasks, a row a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ralf.tasks.model import PRIORITY
from ralf.text.cleaning import clean, one_line

Record = Mapping[str, Any]
MAX_ID = 200

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
