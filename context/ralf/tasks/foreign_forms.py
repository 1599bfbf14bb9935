"""Task files in the forms of RALF's own loop: a heading with the id, and bold `**Status:** completed` lines below it.

What they say is read as it stands. A change rewrites the word that says it, and no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ralf.tasks import folders
from ralf.tasks.model import PRIORITY
from ralf.text.cleaning import clean, is_valid, one_line
from ralf.text.patterns import regex

# ---- words ----

_STATUSES = {
    "pending": "pending active in_progress partial claimed open new todo to_do ready planned queued draft proposed",
    "completed": "completed complete done closed finished implemented merged resolved success",
    "failed": "failed blocked on_hold paused deferred error",
    "cancelled": "cancelled canceled abandoned superseded rejected obsolete duplicate archived",
}

STATUS_WORDS = {word: status for status, words in _STATUSES.items() for word in words.split()}
"""What a person or RALF's loop calls a status."""

PRIORITY_WORDS = {
    "critical": 10, "urgent": 10, "p0": 10, "high": 8, "p1": 8, "medium": 5, "normal": 5, "p2": 5, "low": 3, "p3": 3
}  # fmt: skip
"""What a priority is called, where it is no number."""

_CALLED = {10: "critical", 8: "high", 5: "medium", 3: "low"}

_WORDS = regex(r"[A-Za-z][A-Za-z0-9]*(?:[ _-][A-Za-z]+)?")

_NUMBER = regex(r"\d{1,9}(?![\w.])")

_CLOSING = ("completed", "cancelled", "failed", "pending")  # of two words that differ, the one that somebody wrote last


class Word(NamedTuple):
    """A word that was found, where it stands in its text, and what it means."""

    first: int
    last: int
    meaning: Any


def status_word(value: str) -> Word | None:
    """The first word of a value, `✅ COMPLETED (2026-02-04)`, if it is one of a status."""
    return _word(value, STATUS_WORDS)


def priority_word(value: str) -> Word | None:
    """The number or the first word of a value, `CRITICAL (P0)`, if it is one of a priority."""
    if found := _NUMBER.match(value):
        return Word(0, found.end(), int(found[0])) if 1 <= int(found[0]) <= 10 else None
    return _word(value, PRIORITY_WORDS)


def _word(value: str, words: Mapping[str, Any]) -> Word | None:
    found = _WORDS.search(value)
    if found is None:
        return None
    whole = found[0]
    for length in (len(whole), len(whole.split(" ")[0].split("-")[0])):
        name = whole[:length].lower().replace("-", "_").replace(" ", "_")
        if name in words:
            return Word(found.start(), found.start() + length, words[name])
    return None


def called(priority: int, like: str = "") -> str:
    """The word for a priority where there is one, in the case of another word; a number where that is a number."""
    word = _CALLED.get(priority, str(priority))
    return str(priority) if like.isdecimal() else in_case(word, like)


def in_case(word: str, like: str) -> str:
    """A word written as another one: in capitals, with a capital, or small."""
    if like.isupper():
        return word.upper()
    return word.capitalize() if like[:1].isupper() else word


def settled(statuses: Sequence[str], where: Path) -> str:
    """The status of a task that is said in several places: RALF's loop moves a folder or changes a line, and not
    always both. Each of them closes the task.
    """
    said = next((status for status in _CLOSING if status in statuses), "pending")
    return folders.folder_status(where) or said if said == "pending" else said


# ---- the head of the body ----

_HEADING = regex(r"#[ \t]+(?P<text>\S[^\n]*)")

_ID = r"(?:TASK|SUBTASK|IMP)(?:-[A-Za-z0-9_.]+)+"

_WITH_ID = regex(rf"(?P<id>{_ID}|[A-Z][A-Za-z0-9]*(?:-[A-Za-z0-9_.]+)+)(?:[ \t]*:|[ \t]+[-–—])[ \t]+(?=\S)")  # noqa: RUF001

_ID_ALONE = regex(rf"{_ID}\Z")

_SURE = regex(_ID)

_IDS = regex(rf"\b{_ID}")

_LABEL = regex(r"(?i)(?:[a-z]+[ \t])?task[ \t]*:[ \t]+(?=\S)")

_BOLD = regex(r"\*\*(?P<key>[^*:\n]{1,40})(?::\*\*|\*\*:)[ \t]*(?P<value>[^\n]*)")

_RULE = regex(r"(?:-{3,}|\*{3,}|_{3,})[ \t]*\Z")


class Bold(NamedTuple):
    """A line `**Key:** value`: its number, the key as it is written, where the value begins, and the value."""

    number: int
    key: str
    at: int
    value: str


class Head(NamedTuple):
    """What the body of a task file begins with.

    heading  the number of the line with the heading, -1 for none; `at`: where the title begins in it
    id       what the heading says of the id, "" for nothing
    bold     the bold lines below, by their keys in small letters
    text     the number of the line with which the text begins, and of the line behind the last one
    """

    heading: int
    at: int
    id: str
    title: str
    bold: Mapping[str, Bold]
    text: tuple[int, int]


def head_of(lines: Sequence[str], first: int, *, is_foreign: bool, where: Path, own: str = "") -> Head:
    """What a body begins with, from a line on.

    own  the id that the front matter says: as a prefix it is no part of the title
    """
    number, last = _next(lines, first), _end(lines, first)
    heading, at, id_, title = -1, 0, "", ""
    if number < last and (found := _HEADING.match(lines[number])):
        heading, at = number, found.start("text")
        prefix, id_ = _prefix(found["text"], is_foreign=is_foreign, where=where, own=own)
        at += prefix
        title = one_line(clean(lines[number][at:]))
        number = first = heading + 1
    bold: dict[str, Bold] = {}
    if is_foreign:
        number = _next(lines, number)
        while number < last and (line := _BOLD.match(lines[number])):
            key = line["key"].strip()
            value = line["value"].rstrip()
            bold.setdefault(key.lower(), Bold(number, key, line.start("value"), value))
            number += 1
        if bold:
            first = number
            rule = _next(lines, number)
            if rule < last and _RULE.match(lines[rule]):
                first = rule + 1
    text = _next(lines, first)
    return Head(heading, at, id_, title, bold, (text, last) if text < last else (first, first))


def _prefix(text: str, *, is_foreign: bool, where: Path, own: str) -> tuple[int, str]:
    """How much of a heading stands before the title, and the id in it."""
    if not is_foreign or own:
        return len(own + behind) if own and (behind := _behind(text, own)) else 0, ""
    if _ID_ALONE.match(text.rstrip()):
        return len(text.rstrip()), text.rstrip()
    if found := _WITH_ID.match(text):
        sure = _SURE.match(found["id"]) or folders.name_of(where).startswith(found["id"])
        return (found.end(), found["id"]) if sure else (0, "")
    label = _LABEL.match(text)
    return (label.end(), "") if label else (0, "")


_SEPARATOR = regex(r"(?:[ \t]*:|[ \t]+[-–—])[ \t]+(?=\S)")  # noqa: RUF001


def _behind(text: str, own: str) -> str:
    """What stands between the id with which a heading begins and the title."""
    found = _SEPARATOR.match(text, len(own)) if text.startswith(own) else None
    return found[0] if found else ""


def _next(lines: Sequence[str], number: int) -> int:
    """The next line that is not blank."""
    while number < len(lines) and not lines[number].strip():
        number += 1
    return number


def _end(lines: Sequence[str], first: int) -> int:
    """The line behind the last one that is not blank."""
    last = len(lines)
    while last > first and not lines[last - 1].strip():
        last -= 1
    return last


# ---- what the bold lines say ----

_KEYS = {
    "status": "status",
    "priority": "priority",
    "id": "id",
    "task id": "id",
    "tags": "tags",
    "role": "role",
    "dependencies": "after",
    "depends on": "after",
    "checkpoint": "checkpoint",
    "verify": "verify",
    "route": "route",
    "created": "created",
    "created by": "created_by",
}

_WRITTEN = {field: key.capitalize() for key, field in _KEYS.items()} | {"id": "ID", "after": "Depends On"}

_COMMAND = regex(r"`([^`\n]+)`\Z")

_NOTHING = frozenset(("", "none", "n/a", "-"))


def said(bold: Mapping[str, Bold]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a task that bold lines say, but for its status; and what else they say, by their keys."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, line in bold.items():
        value = clean(line.value)
        field = _KEYS.get(key, "")
        made = _value(field, value)
        if field == "status":
            continue
        if made is None:
            extra[line.key] = value
        else:
            fields.setdefault(field, made)
    return fields, extra


def _value(field: str, value: str) -> Any:
    """What the value of a bold line is as a field; None where it is none."""
    if field == "priority":
        return word.meaning if (word := priority_word(value)) else PRIORITY
    if field in ("tags", "after"):
        names = [one_line(name).strip("`") for name in value.split(",") if name.strip().lower() not in _NOTHING]
        if field == "after" and any(" " in name for name in names):  # `TASK-1 (the schema), TASK-2`, or prose
            names = [found[0] for found in _IDS.finditer(value)]
        return [name for name in names if name and (field == "tags" or not name.isalpha())]
    if field == "checkpoint":
        return value.strip().lower() in ("true", "yes")
    if field == "verify":  # prose is no command
        return found[1] if (found := _COMMAND.match(value)) else None
    if field == "route" and not is_valid(value):
        return None
    return value if field else None


def field_of(line: Bold) -> str:
    """The field that a bold line is about; its own key, if it is about none."""
    return _KEYS.get(line.key.lower(), line.key)


def worded_like(field: str, value: Any, old: object) -> Any:
    """A status or priority as front matter says it that had another: by a word, if that was one."""
    if isinstance(old, str) and value is not None and field in ("status", "priority"):
        word = in_case(value, old) if field == "status" else called(value, old)
        return int(word) if word.isdecimal() else word
    return value


def written(field: str, value: Any) -> str:
    """A field as the value of a bold line."""
    if field in ("tags", "after"):
        return ", ".join(value)
    if field == "checkpoint":
        return "yes"
    return f"`{value}`" if field == "verify" else str(value)


def changed(lines: list[str], head: Head, changes: Mapping[str, Any]) -> None:
    """Change what bold lines say of some fields, in place; None takes a line out."""
    there = list(head.bold.values())
    new = [
        f"**{_WRITTEN.get(field, field)}:** {_worded(field, value, '')}"
        for field, value in changes.items()
        if value is not None and field not in map(field_of, there)
    ]
    if new and there:
        lines[there[-1].number + 1 : there[-1].number + 1] = new
    elif new:
        at = head.heading + 1
        lines[at:at] = ["", *new] if at else [*new, ""]
    for line in reversed(there):
        field, text = field_of(line), lines[line.number]
        if field in changes and changes[field] is None:
            del lines[line.number]
        elif field in changes:
            space = "" if text[: line.at].endswith((" ", "\t")) else " "
            word = _worded(field, changes[field], line.value)
            lines[line.number] = f"{text[: line.at]}{space}{word}{text[line.at + len(line.value) :]}"


def _worded(field: str, value: Any, old: str) -> str:
    """The value of a bold line with another word in it; what else stands there stays."""
    if field not in ("status", "priority"):
        return written(field, value)
    word = status_word(old) if field == "status" else priority_word(old)
    like = old[word.first : word.last] if word else ""
    name = in_case(str(value), like) if field == "status" else called(value, like)
    return f"{old[: word.first]}{name}{old[word.last :]}" if word else name
