"""The file of a task as text: parse and render, and the merge of what two have changed. Format: docs/tasks.md.

Where files lie, and what a new task is called, is in `ralf.tasks.folders`; the names are here, too.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from ralf.document.tree import BadTree, Tree, from_tree, to_tree
from ralf.errors import DamagedTask, UsageError
from ralf.tasks import foreign_forms as forms, front_lines
from ralf.tasks.folders import (
    folder_status,
    name_of,
    place as place,
)
from ralf.tasks.model import MAX_BYTES, PRIORITY, STATUSES, Task
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.patterns import regex

FENCE = "---"

_FIELDS = tuple(field.name for field in fields(Task) if field.name != "extra")

_BREAK = regex(r"(\r\n|\r|\n)")

_CONFLICT = regex(r"(?:<{7}|>{7}) ")

_FAR = 80  # characters of a value in what a merge says

# ---- reading ----


class _File(NamedTuple):
    """A task file in its parts.

    ends   what ends each line
    fence  the number of the line that closes the front matter, -1 for a file without
    front  what the front matter holds
    """

    has_bom: bool
    lines: list[str]
    ends: list[str]
    fence: int
    front: Tree

    @property
    def is_foreign(self) -> bool:
        """Whether it is in a form of RALF's own loop."""
        return self.fence < 0 or ("task_id" in self.front and "id" not in self.front)


def parse(content: bytes, where: Path) -> Task:
    """The task that a file holds, in ralf's form or one of RALF's own. DamagedTask says what is wrong, in which line.

    What a person cannot see is left out of what they say. `where` also tells the id and the status that the file does
    not say.
    """
    return _task(_read(content, where), where)


def _read(content: bytes, where: Path) -> _File:
    if len(content) > MAX_BYTES:
        raise DamagedTask(where, f"more than {MAX_BYTES:,} bytes", _hint(where))
    try:
        text = content.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        place = error.object.count(b"\n", 0, error.start) + 1
        raise DamagedTask(where, "not UTF-8", _hint(where), line=place) from None
    parts = _BREAK.split(text)
    lines, ends = parts[::2], [*parts[1::2], ""]
    for number, line in enumerate(lines, start=1):
        if line[:1] in "<>" and _CONFLICT.match(line):
            raise DamagedTask(where, "conflict markers of a merge", _hint(where), line=number)
    if lines[0].rstrip() != FENCE:
        return _File(content.startswith(BOM_UTF8), lines, ends, -1, {})
    fence = next((number for number, line in enumerate(lines) if number and line.rstrip() == FENCE), 0)
    if not fence:
        raise DamagedTask(where, f"the front matter has no closing {FENCE}", _hint(where), line=1)
    from ralf.document import guarded_yaml  # here: a command that reads no task file parses no YAML

    try:
        tree = guarded_yaml.load(_text(lines[1:fence]))
    except guarded_yaml.BadYaml as error:
        raise DamagedTask(where, error.what, _hint(where), line=error.line + 1 if error.line else 0) from None
    return _File(content.startswith(BOM_UTF8), lines, ends, fence, tree)


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _hint(where: object) -> str:
    return f"mend the file in an editor: {where}"


class _Layout(NamedTuple):
    """Where a file says what.

    in_front   whether the front matter has a title
    is_titled  whether the heading is that of the task, and no part of the text
    text       the number of the first line of the text, and of the line behind the last one
    """

    head: forms.Head
    in_front: bool
    is_titled: bool
    text: tuple[int, int]


def _layout(file: _File, where: Path) -> _Layout:
    own = _name(file.front.get("id") or file.front.get("task_id"))
    head = forms.head_of(file.lines, file.fence + 1, is_foreign=file.is_foreign, where=where, own=own)
    title = file.front.get("title")
    is_titled = head.heading >= 0 and (
        title is None or file.is_foreign or _line(str(title)) in (head.title, _line(file.lines[head.heading][1:]))
    )
    own_heading = head.heading >= 0 and not is_titled
    return _Layout(head, title is not None, is_titled, (head.heading, head.text[1]) if own_heading else head.text)


def _task(file: _File, where: Path) -> Task:
    layout = _layout(file, where)
    head = layout.head
    said, more = forms.said(head.bold)
    text = clean("\n".join(file.lines[slice(*layout.text)]))
    tree: Tree = {key: value for key, value in more.items() if key not in _OURS}
    tree |= said | {key: value for key, value in file.front.items() if value is not None or key not in _FIELDS}
    tree["id"] = _name(file.front.get("id") or tree.pop("task_id", "") or said.get("id") or head.id) or name_of(where)
    tree.pop("task_id", None)
    tree["text"] = text
    tree["status"] = _status(file, head, where)
    if not layout.in_front:
        tree["title"] = head.title if layout.is_titled else trimmed(_line(text.partition("\n")[0]), _FAR)
    if "priority" in tree:
        tree["priority"] = _priority(file, tree["priority"], where)
    for key in ("tags", "after"):
        if isinstance(tree.get(key), str):  # as a person may well write a single one
            tree[key] = tree[key].split(",")
    try:
        return as_filed(from_tree(Task, tree))
    except BadTree as error:
        raise DamagedTask(where, str(error), _hint(where), line=_line_of(file, error.at[0])) from None


_OURS = frozenset((*_FIELDS, "task_id"))


def _line(text: str) -> str:
    return one_line(clean(text))


def _name(value: object) -> str:
    """An id as one that may be the name of a file and of a route."""
    name = _line(str(value)) if isinstance(value, (str, int)) else ""
    return cleaning.slug(name) if name else ""


def _status(file: _File, head: forms.Head, where: Path) -> str:
    said = [file.front.get("status"), head.bold["status"].value if "status" in head.bold else None]
    words = [forms.status_word(value) for value in said if isinstance(value, str)]
    if file.is_foreign:
        return forms.settled([word.meaning for word in words if word], where)
    if said[0] is None:
        return folder_status(where) or "pending"
    if not words or words[0] is None:
        raise _refused(file, "status", f"one of {', '.join(STATUSES)}", where)
    return str(words[0].meaning)


def _priority(file: _File, value: object, where: Path) -> int:
    word = forms.priority_word(str(value)) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
    if word is None and not file.is_foreign:
        raise _refused(file, "priority", "a number from 1 to 10, or critical, high, medium, low", where)
    return word.meaning if word else PRIORITY


def _refused(file: _File, key: str, expected: str, where: Path) -> DamagedTask:
    error = BadTree((key,), expected, file.front.get(key))
    return DamagedTask(where, str(error), _hint(where), line=_line_of(file, key))


def _line_of(file: _File, key: str) -> int:
    """The number, from 1, of the line in which a key of the front matter stands; 0 if it is not found."""
    front = enumerate(file.lines[1 : max(file.fence, 1)], start=2)
    return next((number for number, line in front if line.startswith(f"{key}:")), 0)


def as_filed(task: Task) -> Task:
    """The task as its file will say it: its texts cleaned, its title and names each on one line."""
    extra = {key: value for key, value in task.extra.items() if key not in _OURS}
    return replace(
        task,
        title=_line(task.title),
        text=_as_text(task.text),
        priority=min(max(task.priority, 1), 10),
        tags=_names(task.tags),
        role=_line(task.role),
        after=_names(task.after),
        verify=clean(task.verify).strip(),
        route=_name(task.route),
        created=_line(task.created),
        created_by=_line(task.created_by),
        extra=extra,
    )


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(filter(None, dict.fromkeys(map(_line, names))))


def _as_text(text: str) -> str:
    """A text without blank lines around it, in which nothing is a marker of a merge."""
    lines = clean(text).split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    last = next((number for number in range(len(lines), first, -1) if lines[number - 1].strip()), first)
    return "\n".join(f"  {line}" if _CONFLICT.match(line) else line for line in lines[first:last])


# ---- writing ----


def render(task: Task, before: bytes | None = None) -> bytes:
    """The file that says a task; `parse(render(task), where) == as_filed(task)`.

    before  the file as it is: the smallest change is made to it that says the same; unknown keys, comments, line ends
            and the form that it has stay. DamagedTask where it cannot be read: it is left as it is.

    UsageError for what would make a file that cannot be read again: it is too long, or an unknown key holds too much.
    """
    task = as_filed(task)
    where = Path(f"{task.id}.md")
    made = "\n".join([*_anew(task), ""]).encode() if before is None else _rewritten(task, before, where)
    if made != before and (len(made) > MAX_BYTES or task.extra or len(task.tags) + len(task.after) > _MANY):
        try:
            _read(made, where)
        except DamagedTask as error:
            raise UsageError(task.id, f"cannot be kept in a file: {error.what}", "shorten it") from None
    return made


_MANY = 1_000  # names, of which front matter may hold too many


def _rewritten(task: Task, before: bytes, where: Path) -> bytes:
    file = _read(before, where)
    was = _task(file, where)
    if was == task:
        return before
    for is_anew in (False, True):
        made = _edited(file, was, task, where, is_anew=is_anew)
        if made is not None and _says(made, task, where):
            return made
    return _joined(file, [*_anew(task, _text(file.lines[1 : max(file.fence, 1)])), ""])


def _says(content: bytes, task: Task, where: Path) -> bool:
    try:
        return parse(content, where) == task
    except DamagedTask:
        return False


def _anew(task: Task, front: str = "") -> list[str]:
    text = task.text.split("\n") if task.text else []
    heading = ["", f"# {task.title}"] if task.title else []
    return [FENCE, *front_lines.lines_of(_front(task), front), FENCE, *heading, *(["", *text] if text else [])]


def _front(task: Task) -> Tree:
    """What the front matter says of a task: all but its text, and a title that its heading says."""
    tree = to_tree(replace(task, text="", title=""))
    tree |= {"id": task.id, "status": task.status, "priority": task.priority}
    heading = forms.head_of([f"# {task.title}"], 0, is_foreign=False, where=Path(), own=task.id)
    return tree if task.title and heading.title == task.title else tree | {"title": task.title}


def _edited(file: _File, was: Task, task: Task, where: Path, *, is_anew: bool) -> bytes | None:
    """The file with what has changed from one task to the other, each in its own lines; None where it has none.

    is_anew  whether all of the front matter is written anew, as where it stands in braces
    """
    layout = _layout(file, where)
    head, (first, last) = layout.head, layout.text
    lines: list[str] = [_Line(line, end) for line, end in zip(file.lines, file.ends, strict=True)]
    if task.text != was.text:
        space = [""] if first and lines[first - 1].strip() and task.text else []
        lines[first:last] = [*space, *task.text.split("\n")] if task.text else []
    front, bold = _changes(file, head, was, task)
    forms.changed(lines, head, bold)
    if task.title != was.title:
        if layout.is_titled and not task.title and file.fence >= 0:
            del lines[head.heading]
        elif layout.is_titled:
            lines[head.heading] = lines[head.heading][: head.at] + task.title
        elif file.fence < 0:
            lines[0:0] = [f"# {task.title}", ""]
        if file.fence >= 0 and (layout.in_front or not layout.is_titled or "title" in _front(task)):
            front["title"] = task.title
    if file.fence < 0:
        return None if is_anew or front else _joined(file, lines)
    if is_anew:
        tree = {key: value for key, value in (file.front | front).items() if value is not None or key not in front}
        made: list[str] | None = front_lines.lines_of(tree, _text(lines[1 : file.fence]))
    else:
        made = front_lines.changed(lines[1 : file.fence], file.front, front)
    return None if made is None else _joined(file, [lines[0], *made, *lines[file.fence :]])


def _changes(file: _File, head: forms.Head, was: Task, task: Task) -> tuple[Tree, Tree]:
    """What becomes of keys of the front matter, and of bold lines; None for what is no longer said."""
    old, new = _front(was), _front(task)
    changes = {key: new.get(key) for key in {**old, **new} if key != "title" and old.get(key) != new.get(key)}
    front: Tree = {} if file.is_foreign or "id" in file.front else {"id": task.id}
    bold: Tree = {}
    in_bold = set(map(forms.field_of, head.bold.values()))
    for key, value in changes.items():
        if key in file.front or (file.fence >= 0 and key not in in_bold):
            front[key] = forms.worded_like(key, value, file.front.get(key))
        if key in in_bold or file.fence < 0:
            bold[key] = value
    return front, bold


class _Line(str):
    """A line of a file, which remembers how it ended there."""

    __slots__ = ("end",)

    end: str

    def __new__(cls, text: str, end: str) -> _Line:
        made = super().__new__(cls, text)
        made.end = end
        return made


def _joined(file: _File, lines: Sequence[str]) -> bytes:
    """Lines as the bytes of a file. One that is new ends as the first one of the file does."""
    usual = file.ends[0] or "\n"
    ends = [getattr(line, "end", usual) for line in lines]
    pieces = [piece for line, end in zip(lines[:-1], ends, strict=False) for piece in (line, end or usual)]
    text = "".join([*pieces, *lines[-1:], *ends[-1:]])
    return (BOM_UTF8 if file.has_bom else b"") + text.encode("utf-8", "replace")


# ---- merging ----

_MISSING = object()  # stands for a key that is not there, or a field as it always is at first


def merged(base: Task, ours: Task, theirs: Task) -> tuple[Task, list[str]]:
    """What two have made of a task, field by field, and a line for each field that both changed: there theirs stays.

    Of tags, of the tasks that come before it and of the lines of the text what each has added and taken out is done:
    that is never a conflict.
    """
    trees = [to_tree(as_filed(task)) for task in (base, ours, theirs)]
    tree: Tree = {}
    conflicts: list[str] = []
    for key in dict.fromkeys(key for one in trees for key in one):
        was, mine, other = (one.get(key, _MISSING) for one in trees)
        tree[key] = mine if other in (was, mine) else other
        if was in (mine, other) or mine == other:
            continue
        if key in ("tags", "after", "text"):
            from ralf.document import merge  # for two who change a list in the same moment

            texts = ["\n".join(value) if isinstance(value, list) else value for value in (was, mine, other)]
            both = merge.merged(*("" if text is _MISSING else text for text in texts))
            tree[key] = both if key == "text" else both.split("\n")
        else:
            what = f"the file's {_shown(other)} stays, not {_shown(mine)}"
            conflicts.append(f"{key}: changed here and in the file: {what}")
    return as_filed(from_tree(Task, {key: value for key, value in tree.items() if value is not _MISSING})), conflicts


def _shown(value: Any) -> str:
    return "default" if value is _MISSING else repr(trimmed(one_line(str(value)), _FAR))
