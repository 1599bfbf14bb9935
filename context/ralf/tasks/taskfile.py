"""The file of a task as text: parse and render, and the merge of what two have changed. Format: docs/tasks.md.

Every line that is about nothing that changes stays as it is.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ralf.document import comments, yaml_text
from ralf.document.tree import BadTree, Tree, from_tree, to_tree
from ralf.errors import DamagedTask, UsageError
from ralf.tasks import taskform
from ralf.tasks.folders import folder_status, name_of, place as place
from ralf.tasks.model import MAX_BYTES, PRIORITIES, PRIORITY, STATUSES, Task
from ralf.tasks.taskform import FENCE, Form, damaged, line as on_one_line, meaning
from ralf.text.cleaning import clean, is_valid, one_line, trimmed
from ralf.text.patterns import regex

_FIELDS = tuple(field.name for field in fields(Task) if field.name != "extra")

_OURS = frozenset((*_FIELDS, "task_id"))

_FAR = 80  # characters of a value in what a merge says

# ---- reading ----


def parse(content: bytes, where: Path) -> Task:
    """The task that a file holds, in ralf's form or one of RALF's own. DamagedTask says what is wrong, in which line.

    What a person cannot see is left out of what they say. `where` also tells the id and the status that the file does
    not say.
    """
    return _task(taskform.read(content, where), where)


def _task(form: Form, where: Path) -> Task:
    tree: Tree = {}
    for bold in reversed(form.bold):  # of two that say the same the first one counts
        said = clean(bold.value)
        value = _value(bold.field, said)
        if value is not None:
            tree[bold.field] = value
        elif bold.key not in _OURS:
            tree[bold.key] = said
    tree |= {key: value for key, value in form.front.items() if value is not None or key not in _FIELDS}
    id_ = form.front.get("id") or form.front.get("task_id") or tree.get("id") or form.id
    tree |= {"id": taskform.name(id_) or name_of(where), "text": clean("\n".join(form.lines[slice(*form.text)]))}
    if form.front.get("title") is None:
        heading = form.lines[form.heading][form.at :] if form.heading >= 0 else None
        tree["title"] = on_one_line(trimmed(tree["text"].partition("\n")[0], _FAR) if heading is None else heading)
    for key in ("tags", "after"):
        if isinstance(tree.get(key), str):  # as a person may well write a single one
            tree[key] = tree[key].split(",")
    try:
        tree |= {"status": _status(form, where), "priority": _priority(form, tree.get("priority", PRIORITY))}
        return as_filed(from_tree(Task, tree))
    except BadTree as error:
        starts = (number for number, one in enumerate(form.lines, start=1) if one.startswith(f"{error.at[0]}:"))
        raise damaged(where, str(error), next(starts, 0)) from None


def _status(form: Form, where: Path) -> str:
    """What a file says, else its folder.

    RALF's loop moves a folder or changes a line, and not always both: each of them closes the task.
    """
    front = form.front.get("status")
    said = [front, *(one.value for one in form.bold if one.field == "status")]
    meant = [meaning("status", one) for one in said if isinstance(one, str)]
    if front is not None and not any(meant) and not form.is_foreign:
        raise BadTree(("status",), f"one of {', '.join(STATUSES)}", front)
    status = next((one for one in ("completed", "cancelled", "failed", "pending") if one in meant), "")
    if not status or (form.is_foreign and status == "pending"):
        status = folder_status(where) or status
    return status or "pending"


def _priority(form: Form, value: object) -> int:
    found = meaning("priority", str(value)) if not isinstance(value, bool) else None
    if found is None and not form.is_foreign:
        raise BadTree(("priority",), f"a number from 1 to 10, or {', '.join(PRIORITIES)}", value)
    return found or PRIORITY


_COMMAND = regex(r"`([^`\n]+)`\Z")

_NOTHING = frozenset(("", "none", "n/a", "-"))


def _value(field: str, said: str) -> Any:
    """What a bold line says of a field; None where that is nothing, as prose is no command."""
    if field in ("tags", "after"):
        names = [one_line(name).strip("`") for name in said.split(",") if name.strip().lower() not in _NOTHING]
        if field == "after" and any(" " in name for name in names):  # `TASK-1 (the schema), TASK-2`, or prose
            names = taskform.IDS.findall(said)
        return [name for name in names if name and (field == "tags" or not name.isalpha())]
    if field == "checkpoint":
        return said.strip().lower() in ("true", "yes")
    if field == "verify":
        return found[1] if (found := _COMMAND.match(said)) else None
    return said if field in taskform.WRITTEN and (field != "route" or is_valid(said)) else None


def as_filed(task: Task) -> Task:
    """The task as its file will say it: its texts cleaned, its title and names each on one line."""
    return replace(
        task,
        title=on_one_line(task.title),
        text=_as_text(task.text),
        priority=min(max(task.priority, 1), 10),
        tags=_names(task.tags),
        role=on_one_line(task.role),
        after=_names(task.after),
        verify=clean(task.verify).strip(),
        route=taskform.name(task.route),
        created=on_one_line(task.created),
        created_by=on_one_line(task.created_by),
        extra={key: value for key, value in task.extra.items() if key not in _OURS},
    )


def _names(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(filter(None, dict.fromkeys(map(on_one_line, names))))


def _as_text(text: str) -> str:
    """A text without blank lines around it, in which nothing is a marker of a merge."""
    lines = clean(text).split("\n")
    said = [number for number, line in enumerate(lines) if line.strip()] or [len(lines)]
    return "\n".join(f"  {line}" if taskform.is_marker(line) else line for line in lines[said[0] : said[-1] + 1])


# ---- writing ----

_MANY = 1_000  # names, of which front matter may hold too many


def render(task: Task, before: bytes | None = None) -> bytes:
    """The file that says a task; `parse(render(task), where) == as_filed(task)`.

    before  the file as it is: the smallest change is made to it that says the same; unknown keys, comments, line ends
            and the form that it has stay. DamagedTask where it cannot be read: it is left as it is.

    UsageError for what would make a file that cannot be read again: it is too long, or an unknown key holds too much.
    """
    task = as_filed(task)
    made = "\n".join([*_anew(task), ""]).encode() if before is None else _rewritten(task, before)
    if made != before and (len(made) > MAX_BYTES or task.extra or len(task.tags) + len(task.after) > _MANY):
        try:
            taskform.read(made, Path(task.id))
        except DamagedTask as error:
            raise UsageError(task.id, f"cannot be kept in a file: {error.what}", "shorten it") from None
    return made


def _rewritten(task: Task, before: bytes) -> bytes:
    where = Path(f"{task.id}.md")
    form = taskform.read(before, where)
    was = _task(form, where)
    if was == task:
        return before
    made = _joined(form, _edited(form, was, task))
    with suppress(DamagedTask):
        if parse(made, where) == task:
            return made
    return _joined(form, [*_anew(task, form.lines[1 : max(form.fence, 1)]), ""])


def _joined(form: Form, lines: Sequence[str]) -> bytes:
    return (BOM_UTF8 if form.has_bom else b"") + form.end.join(lines).encode("utf-8", "replace")


def _anew(task: Task, front: Sequence[str] = ()) -> list[str]:
    text = ["", task.text] if task.text else []
    heading = ["", f"# {task.title}"] if task.title else []
    return [FENCE, *_front_lines(_front(task), front), FENCE, *heading, *text]


def _front(task: Task) -> Tree:
    """What the front matter says of a task: all but its text, and a title that its heading says."""
    tree = to_tree(replace(task, text="", title="")) | {"status": task.status, "priority": task.priority}
    in_heading = task.title and not taskform.before(task.title, task.id)
    return tree if in_heading else tree | {"title": task.title}


def _edited(form: Form, was: Task, task: Task) -> list[str]:
    """The lines of a file with what has changed from one task to the other, each in its place. Where they do not say it
    then, as where front matter stands in braces, the file is to be written anew.
    """
    lines, (first, last), has_front = [*form.lines], form.text, form.fence >= 0
    old, new = _front(was), _front(task)
    changes = {key: new.get(key) for key in {**old, **new} if key != "title" and old.get(key) != new.get(key)}
    in_bold = {bold.field for bold in form.bold}
    front: Tree = {} if form.is_foreign or "id" in form.front else {"id": task.id}
    front |= {key: value for key, value in changes.items() if key in form.front or (has_front and key not in in_bold)}
    # from the last line to the first one, so that numbers of lines stay
    if task.text != was.text:
        space = [""] if first and lines[first - 1].strip() and task.text else []
        lines[first:last] = [*space, *task.text.split("\n")] if task.text else []
    _say_in_bold(lines, form, {key: value for key, value in changes.items() if key in in_bold or not has_front})
    if task.title != was.title:
        if form.heading >= 0:
            titled = [lines[form.heading][: form.at] + task.title] if task.title or not has_front else []
            lines[form.heading : form.heading + 1] = titled
        elif not has_front:
            lines[0:0] = [f"# {task.title}", ""]
        if has_front and (form.front.get("title") is not None or form.heading < 0 or "title" in new):
            front["title"] = task.title
    if has_front:
        inner = lines[1 : form.fence]
        for key, value in front.items():
            _say_in_front(inner, key, taskform.worded(key, value, form.front.get(key)))
        lines[1 : form.fence] = inner
    return lines


# ---- bold lines ----


def _say_in_bold(lines: list[str], form: Form, changes: Mapping[str, Any]) -> None:
    """Change what bold lines say of some fields; None takes a line out."""
    there = {bold.field for bold in form.bold}
    new = [
        f"**{taskform.WRITTEN.get(field, field)}:** {_in_bold(field, value, 'medium')}"
        for field, value in changes.items()
        if value is not None and field not in there
    ]
    at = form.bold[-1].number + 1 if form.bold else form.heading + 1
    if new and not form.bold:
        new = ["", *new] if at else [*new, ""]
    lines[at:at] = new
    for bold in reversed(form.bold):
        if bold.field in changes:
            said, value = lines[bold.number], changes[bold.field]
            head, tail = said[: bold.at].rstrip(), said[bold.at + len(bold.value) :]
            changed = [] if value is None else [f"{head} {_in_bold(bold.field, value, bold.value)}{tail}"]
            lines[bold.number : bold.number + 1] = changed


def _in_bold(field: str, value: Any, old: str) -> str:
    if field in ("tags", "after"):
        return ", ".join(value)
    if field == "checkpoint":
        return "yes"
    return f"`{value}`" if field == "verify" else str(taskform.worded(field, value, old))


# ---- front matter ----

_GROUPS = (
    ("id", "task_id", "title", "status"),
    ("priority", "tags", "role"),
    ("after", "checkpoint", "verify", "route"),
    ("created", "created_by"),
)
"""The keys in their order; a blank line stands between groups, so that git merges changes of different groups.

Unknown keys follow as a group of their own.
"""

_PLACES = {key: (number, place) for number, group in enumerate(_GROUPS) for place, key in enumerate(group)}


def _place(key: str) -> tuple[int, int]:
    return _PLACES.get(key, (len(_GROUPS), 0))


def _front_lines(tree: Tree, before: Sequence[str]) -> list[str]:
    """Front matter that holds a tree, without its fences; `before`: front matter whose comments are kept."""
    noted = comments.found("".join(f"{line}\n" for line in before))
    made: list[str] = []
    group = -1
    for key in sorted(tree, key=_place):
        made += [""] if made and _place(key)[0] != group else []
        made += [*comments.lines_of(noted, key), *_key_lines(key, tree[key])]
        group = _place(key)[0]
    return made + [line for key in noted if key not in tree for line in comments.lines_of(noted, key)]


def _key_lines(key: str, value: Any) -> list[str]:
    """The lines of a key. Of a list of names each stands on its own line, so that git merges what two have added."""
    if isinstance(value, list) and len(value) > 1 and all(isinstance(item, str) for item in value):
        head = yaml_text.lines({key: []})[0].removesuffix(" []")
        return [head, *(f"  - {yaml_text.flow(item)}" for item in value)]
    return yaml_text.lines({key: value})


_START = regex(r"""["']?([^\s#"'\[\]{}?:-](?:[ \t]*+[^\n:"' \t])*+)[ \t]*+["']?[ \t]*+:(?:[ \t]|\Z)""")

_VALUE = regex(
    r"""[^\n:]*+:[ \t]++("[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^']*+(?:''[^']*+)*+'"""
    r"""|[^\s#"'\[\]{}|>&*!%@`?,-](?:[ \t]*+(?:(?<=\S)#|[^# \t]))*+)[ \t]*+(?:(?<=[ \t])#[^\n]*+)?\Z"""
)

_PLAIN = regex(r"(?!(?:[yn]|yes|no|on|off|true|false|null)\Z)[A-Za-z][A-Za-z0-9_.-]*\Z")


def _say_in_front(lines: list[str], key: str, value: Any) -> None:
    """Change what front matter says of a key; None takes it out. That it can be changed line by line is for the caller
    to see: by what the lines say afterwards.
    """
    starts = [(found[1], number) for number, line in enumerate(lines) if (found := _START.match(line))]
    keys: dict[str, tuple[int, int]] = {}
    for (name, first), (_, last) in pairwise([*starts, ("", len(lines))]):
        while last > first + 1 and (not lines[last - 1].strip() or lines[last - 1].startswith("#")):
            last -= 1
        keys[name] = first, last
    if key in keys:
        first, last = keys[key]
        new = _comments(lines[first:last]) if value is None else _replaced(key, lines[first:last], value)
        is_alone = not "".join(lines[max(first - 1, 0) : first] + lines[last : last + 1]).strip()
        if not new and is_alone:  # two blank lines would be one too many
            first, last = (first, last + 1) if last < len(lines) else (max(first - 1, 0), last)
        lines[first:last] = new
    elif value is not None:
        place, new = _place(key), _key_lines(key, value)
        group = {name: at for name, at in keys.items() if _place(name)[0] == place[0]}
        space = [] if group or not keys else [""]
        if earlier := [last for name, (_, last) in (group or keys).items() if _place(name) <= place]:
            lines[earlier[-1] : earlier[-1]] = [*space, *new]
        else:
            at = next((first for first, _ in (group or keys).values()), 0)
            lines[at:at] = [*new, *space]


def _replaced(key: str, lines: Sequence[str], value: Any) -> list[str]:
    """The lines of a key with another value. A scalar is replaced where it stands, in quotes if it has some."""
    found = _VALUE.match(lines[0]) if len(lines) == 1 else None
    if found is None or isinstance(value, (list, dict)) or "\n" in str(value):
        return [*_comments(lines), *_key_lines(key, value)]
    is_plain = isinstance(value, int) or (found[1][0] not in "\"'" and _PLAIN.match(value))
    written = str(value) if is_plain else yaml_text.flow(value)
    return [lines[0][: found.start(1)] + written + lines[0][found.end(1) :]]


def _comments(lines: Sequence[str]) -> list[str]:
    noted = comments.found("".join(f"{line}\n" for line in lines))
    return [line for key in noted for line in comments.lines_of(noted, key)]


# ---- merging ----


def merged(base: Task, ours: Task, theirs: Task) -> tuple[Task, list[str]]:
    """What two have made of a task, field by field, and a line for each field that both changed: there theirs stays.

    Of tags, of the tasks that come before it and of the lines of the text what each has added and taken out is done:
    that is never a conflict.
    """
    from ralf.document import merge  # for two who change a task in the same moment

    trees = [to_tree(as_filed(task)) for task in (base, ours, theirs)]
    changes = merge.diff(trees[0], trees[2])
    tree = merge.apply(trees[1], changes)
    for key in ("tags", "after", "text"):
        if key in tree or any(key in one for one in trees):
            sides = [one.get(key) or "" for one in trees]
            both = merge.merged(*(side if isinstance(side, str) else "\n".join(side) for side in sides))
            tree[key] = both if key == "text" else both.split("\n")
    told = [
        f"{'.'.join(at)}: changed here and in the file: the file's {_shown(merge.find(trees[2], at))} stays, "
        f"not {_shown(other)}"
        for at, other in merge.conflicts(trees[0], trees[1], changes)
        if at[0] not in ("tags", "after", "text")
    ]
    return as_filed(from_tree(Task, tree)), told


def _shown(value: Any) -> str:
    return "default" if value is None else repr(trimmed(one_line(str(value)), _FAR))
