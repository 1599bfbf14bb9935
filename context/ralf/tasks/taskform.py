"""Where a task's file says what: in front matter and a heading, or in a form of RALF's own loop.

RALF's files have the id in their heading, and bold `**Status:** completed` lines below it. docs/tasks.md tells of both.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ralf.document.tree import Tree
from ralf.errors import DamagedTask
from ralf.tasks import folders
from ralf.tasks.model import MAX_BYTES, PRIORITIES
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line
from ralf.text.patterns import regex

FENCE = "---"

# ---- words ----

_STATUSES = {
    "pending": "pending active in_progress partial claimed open new todo to_do ready planned queued draft proposed",
    "completed": "completed complete done closed finished implemented merged resolved success",
    "failed": "failed blocked on_hold paused deferred error",
    "cancelled": "cancelled canceled abandoned superseded rejected obsolete duplicate archived",
}

_WORDS: Mapping[str, Mapping[str, Any]] = {
    "status": {word: status for status, words in _STATUSES.items() for word in words.split()},
    "priority": {
        **PRIORITIES, "urgent": 10, "p0": 10, "p1": 8, "normal": 5, "p2": 5, "p3": 3,
        **{str(number): number for number in range(1, 11)},
    },
}  # fmt: skip
"""What a person or RALF's loop calls a status, and a priority."""

_CALLED = {number: word for word, number in PRIORITIES.items()}

_WORD = {
    field: regex(
        rf"(?i)\A[^a-z]*?(?<![0-9a-z.])({'|'.join(sorted(words, key=len, reverse=True)).replace('_', '[ _-]')})"
        r"(?![0-9a-z]|\.\d)"
    )
    for field, words in _WORDS.items()
}
"""The first word of a value, `✅ COMPLETED (2026-02-04)`, if it is one of these."""


def meaning(field: str, said: str) -> Any:
    """What a value says of a status or a priority; None where that is no word for one."""
    found = _WORD[field].match(said)
    return _WORDS[field][found[1].lower().replace("-", "_").replace(" ", "_")] if found else None


def worded(field: str, value: Any, old: object) -> Any:
    """A field of a task as it is said where another value stood: a status or a priority by a word, in its case, if that
    was one, and all else around it as it is.
    """
    if value is None or field not in _WORDS or not isinstance(old, str):
        return value
    found = _WORD[field].match(old)
    like = found[1] if found else ""
    name = str(value) if field == "status" or like.isdecimal() else _CALLED.get(value, str(value))
    name = name.upper() if like.isupper() else name.capitalize() if like[:1].isupper() else name
    made = f"{old[: found.start(1)]}{name}{old[found.end(1) :]}" if found else name
    return int(made) if made.isdecimal() else made


# ---- the parts of a file ----

_BREAK = regex(r"\r\n|\r|\n")

_CONFLICT = regex(r"(?:<{7}|>{7}) ")

_HEADING = regex(r"#[ \t]+(?=\S)")

_ID = r"(?:TASK|SUBTASK|IMP)(?:-[A-Za-z0-9_.]+)+"

IDS = regex(rf"\b{_ID}")
"""Ids of tasks of RALF's loop, within a text."""

_SEPARATOR = regex(r"(?:[ \t]*:|[ \t]+[-–—])[ \t]+(?=\S)")  # noqa: RUF001

_NAME = regex(r"(?:TASK|SUBTASK|IMP|[A-Z][A-Za-z0-9]*)(?:-[A-Za-z0-9_.]+)+")

_LABEL = regex(r"(?i)(?:[a-z]+[ \t])?task[ \t]*:[ \t]+(?=\S)")

_BOLD = regex(r"\*\*(?P<key>[^*:\n]{1,40})(?::\*\*|\*\*:)[ \t]*(?P<value>[^\n]*)")

_RULE = regex(r"(?:-{3,}|\*{3,}|_{3,})[ \t]*\Z")

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
"""What RALF's loop calls the fields of a task."""

WRITTEN = {field: key.capitalize() for key, field in _KEYS.items()} | {"id": "ID", "after": "Depends On"}
"""The key of a new bold line, by its field."""


class Bold(NamedTuple):
    """A line `**Key:** value`: its number, the key as it is written, where the value begins, and the value."""

    number: int
    key: str
    at: int
    value: str

    @property
    def field(self) -> str:
        """The field of a task that it says; its own key, if it says none."""
        return _KEYS.get(self.key.lower(), self.key)


class Form(NamedTuple):
    """A task file in its parts.

    is_foreign  whether it is in a form of RALF's own loop
    end         what ends its lines
    fence       the number of the line that closes the front matter, -1 for a file without
    front       what the front matter holds
    heading     the number of the line with the title, -1 for none; `at`: where the title begins in it
    id          what the heading says of the id, "" for nothing
    bold        the bold lines below it
    text        the number of the first line of the text, and of the line behind the last one
    """

    has_bom: bool
    end: str
    lines: Sequence[str]
    fence: int
    front: Tree
    is_foreign: bool
    heading: int
    at: int
    id: str
    bold: Sequence[Bold]
    text: tuple[int, int]


def read(content: bytes, where: Path) -> Form:
    """The parts of a file. DamagedTask says what is wrong with it, in which line."""
    if len(content) > MAX_BYTES:
        raise damaged(where, f"more than {MAX_BYTES:,} bytes")
    try:
        text = content.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise damaged(where, "not UTF-8", error.object.count(b"\n", 0, error.start) + 1) from None
    lines, end = _BREAK.split(text), _BREAK.search(text)
    if conflict := next((n for n, line in enumerate(lines, start=1) if is_marker(line)), 0):
        raise damaged(where, "conflict markers of a merge", conflict)
    fence, front = -1, Tree()
    if lines[0].rstrip() == FENCE:
        fence = next((number for number, line in enumerate(lines) if number and line.rstrip() == FENCE), 0)
        if not fence:
            raise damaged(where, f"the front matter has no closing {FENCE}", 1)
        from ralf.document import guarded_yaml  # here: a command that reads no task file parses no YAML

        try:
            front = guarded_yaml.load("".join(f"{line}\n" for line in lines[1:fence]))
        except guarded_yaml.BadYaml as error:
            raise damaged(where, error.what, error.line + 1 if error.line else 0) from None
    is_foreign = fence < 0 or ("task_id" in front and "id" not in front)
    body = _body(lines, fence, front, is_foreign, where)
    return Form(content.startswith(BOM_UTF8), end[0] if end else "\n", lines, fence, front, is_foreign, *body)


def _body(
    lines: Sequence[str], fence: int, front: Tree, is_foreign: bool, where: Path
) -> tuple[int, int, str, Sequence[Bold], tuple[int, int]]:
    """What is below the front matter: the last five parts of a `Form`."""
    title = front.get("title")
    last = next((number for number in range(len(lines), fence + 1, -1) if lines[number - 1].strip()), fence + 1)
    first, heading, at, id_ = _next(lines, fence + 1), -1, 0, ""
    if first < last and (found := _HEADING.match(lines[first])):
        said = lines[first][found.end() :]
        own = name(front.get("id") or front.get("task_id"))
        prefix, id_ = (before(said, own), "") if own or not is_foreign else _prefix(said, where)
        # one that is not the title is the beginning of the text
        if title is None or is_foreign or line(str(title)) in (line(said[prefix:]), line(said)):
            heading, at, first = first, found.end() + prefix, first + 1
    bold, number = list[Bold](), _next(lines, first)
    while is_foreign and number < last and (match := _BOLD.match(lines[number])):
        bold.append(Bold(number, match["key"].strip(), match.start("value"), match["value"].rstrip()))
        first = number = number + 1
    rule = _next(lines, first)
    if bold and rule < last and _RULE.match(lines[rule]):
        first = rule + 1
    text = _next(lines, first)
    return heading, at, id_, bold, (text, last) if text < last else (first, first)


def before(title: str, own: str) -> int:
    """How many characters an id before a title has, with what stands between them; 0 for none."""
    found = _SEPARATOR.match(title, len(own)) if own and title.startswith(own) else None
    return found.end() if found else 0


def _prefix(said: str, where: Path) -> tuple[int, str]:
    """How much of a heading of RALF's loop stands before the title, and the id in it."""
    found = _NAME.match(said)
    if found and (IDS.match(found[0]) or folders.name_of(where).startswith(found[0])):
        if found[0] == said.rstrip():
            return found.end(), found[0]
        if prefix := before(said, found[0]):
            return prefix, found[0]
    label = _LABEL.match(said)
    return label.end() if label else 0, ""


def _next(lines: Sequence[str], number: int) -> int:
    """The next line that is not blank."""
    while number < len(lines) and not lines[number].strip():
        number += 1
    return number


def is_marker(line: str) -> bool:
    """Whether a line is a conflict marker of a merge."""
    return line[:1] in ("<", ">") and _CONFLICT.match(line) is not None


def line(text: str) -> str:
    """A text on one line."""
    return one_line(clean(text))


def name(value: object) -> str:
    """An id as one that may be the name of a file and of a route."""
    made = line(str(value)) if isinstance(value, (str, int)) else ""
    return cleaning.slug(made) if made else ""


def damaged(where: Path, what: str, line: int = 0) -> DamagedTask:
    """The error of a file that cannot be read as a task."""
    return DamagedTask(where, what, f"mend the file in an editor: {where}", line=line)
