"""Reads the task lists of other tools. One table of keys says what a record of any of them means; each tool has a
function that finds its records.

The kind of a file is recognised by its content, and a file that is damaged anywhere is refused as a whole: half a list
would start work too early. Work that is put off there, or is blocked by something that is no task of the list, is
failed with that as its reason, so that no loop starts it.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ralf.errors import Damaged, NotFound, UsageError
from ralf.tasks.model import PRIORITIES, PRIORITY, Task
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import dataclass, replace
from ralf.text.patterns import regex
from ralf_migrations.reading import Unreadable, beginning, text_at

PLACES = (
    *(".aqua/aqua.db", ".beads/issues.jsonl", ".taskmaster/tasks/tasks.json"),
    *("prd.json", ".ralph/agent/tasks.jsonl"),
)
"""Where the tools keep their lists in a project."""

MAX_BYTES = 64 << 20
_MAX_DEPTH = 8  # of subtasks
_AFTER = ("dependencies", "dependsOn", "depends_on", "blockedBy")  # of a story

Record = Mapping[str, Any]
MAX_TASKS, MAX_EDGES = 20_000, 200_000
MAX_TITLE, MAX_TEXT, MAX_SAID, MAX_TAGS, MAX_ID = 300, 100_000, 4_000, 50, 200

TOOLS: dict[str, tuple[str, Mapping[str, int]]] = {
    "aqua": ("Aqua", {str(number): number for number in range(1, 11)}),
    "beads": ("beads", {"": 10, "0": 10, "1": 8, "2": 5, "3": 3, "4": 1}),  # as beads: none is 0
    "claude": ("Claude Code", {}),
    "task-master": ("Task Master", PRIORITIES),
    "prd": ("prd.json", {str(number): number for number in range(1, 11)}),
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
    ("Comments", "comments"),
)
"""The sections of a task's text: heading and key."""


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


# ---- a list ----


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

    def take(self, id_: str, record: Record, after: Iterable[str], parent: str = "", **fields: Any) -> None:
        """Take a record, within the bounds; `after`: the ids that it waits for, `fields`: others of the task."""
        tool, priorities = TOOLS[self.origin]
        said = word_of(record.get("status"))
        kind = _STATUSES.get(said.lower().replace("-", "_").replace(" ", "_"), "")
        if not kind:
            self.note(f"{id_}: its status {said[:40]!r} is not known; taken as pending")
        is_new, is_begun = kind in ("", "pending"), kind == "begun"
        status = "pending" if is_new or is_begun else "cancelled" if kind == "deleted" else kind
        who, last = word_of(_first(record, "claimed_by", "assignee", "owner")), text_of(record.get("context"))
        progress = f"begun there{f' by {who}' if who else ''}{f': {last}' if last else ''}" if is_begun else last
        words = {"progress": "" if is_new else progress}
        if status == "completed":
            words["summary"] = _first(record, "result", "close_reason")
        if status == "failed":
            words["reason"] = text_of(record.get("error")) or f"{said} in {tool}"
        parts = [(name, text_of(record.get(key))) for name, key in _PARTS] + [("Context", last)] * is_new
        text = "\n\n".join(f"## {name}\n\n{part}" if name else part for name, part in parts if part)
        title = one_line(_first(record, "title", "subject")) or trimmed(one_line(text), 80) or f"(no title: {id_})"
        text = f"{title}\n\n{text}".strip() if len(title) > MAX_TITLE else text
        tags = tuple(dict.fromkeys(words_of(record.get("tags"))))
        if len(text) > MAX_TEXT or len(tags) > MAX_TAGS:
            self.note(f"{id_}: only the first {MAX_TEXT:,} characters and {MAX_TAGS} tags were taken")
        if id_ in self.found:
            self.note(f"{id_}: is in the list twice; the later one counts")
        task = Task(
            id_,
            trimmed(title, MAX_TITLE),
            trimmed(text, MAX_TEXT),
            status,
            priorities.get(word_of(record.get("priority")).lower(), PRIORITY),
            tags[:MAX_TAGS],
            after=tuple(one for one in dict.fromkeys(after) if one != id_),
            created=time_of(_first(record, "created_at", "created")),
            created_by=word_of(record.get("created_by")),
            **fields,
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


# ---- the tools ----

Records = Sequence[tuple[str, Record]]
"""Each with where it stands."""


def _id(path: object, where: str, record: Record) -> str:
    if id_ := word_of(record.get("id")):
        return id_
    raise _damaged(path, f"{where}: no `id`")


def _ralph(made: List, records: Records) -> None:
    for where, record in records:
        made.take(_id(made.where, where, record), record, words_of(record.get("blocked_by")))


_NO_WORK = ("message", "event", "agent", "role", "slot", "rig")  # beads of which none is a task


def _beads(made: List, records: Records) -> None:
    """The issues of beads: what is kept there for other ends (messages, pinned notes, templates) is left out."""
    skipped = 0
    for where, record in records:
        kind, said = word_of(record.get("issue_type")) or "task", word_of(record.get("status"))
        flags = (record.get(key) is True for key in ("pinned", "is_template", "ephemeral"))
        if word_of(record.get("_type")) not in ("", "issue") or kind in _NO_WORK or said == "pinned" or any(flags):
            skipped += 1
            continue
        on: dict[str, list[str]] = {}
        for edge in records_of(record.get("dependencies")):
            on.setdefault(str(edge.get("type", "blocks")), []).append(word_of(edge.get("depends_on_id")))
        comments = records_of(record.get("comments"))
        told = "\n".join(f"- {word_of(one.get('author'))}: {one_line(text_of(one.get('text')))}" for one in comments)
        labels = [*words_of(record.get("labels")), *([kind] if kind != "task" else [])]
        given: dict[str, Any] = {"tags": labels, "comments": told}
        if kind == "gate" and said not in ("closed", "tombstone"):
            given |= {"status": "blocked", "error": "a gate of beads: it waits for something outside the list"}
        elif said in ("blocked", "deferred") and (until := time_of(record.get("defer_until"))):
            given |= {"error": f"{said} in beads until {until}"}
        after = filter(None, (*on.get("blocks", ()), *on.get("waits-for", ())))
        parent = next(filter(None, on.get("parent-child", ())), "")
        made.take(_id(made.where, where, record), {**record, **given}, after, parent)
    if skipped:
        made.note(f"{skipped:,} entries are no tasks (messages, pinned notes, templates): left out")
    made.unblock()


def _is_claude_task(tree: object) -> bool:
    return isinstance(tree, dict) and isinstance(tree.get("subject"), str) and {"status", "id"} <= tree.keys()


def _claude_files(folder: Path) -> list[Path]:
    """The files of a folder that may be tasks of Claude Code, by their numbers."""
    paths = (path for path in folder.glob("*.json") if path.stem.isdecimal())
    return sorted(paths, key=lambda path: (len(path.name), path.name))


def _claude(made: List, records: Records) -> None:
    """A list of Claude Code, a folder with a file for each task; its ids are unique within the list only."""
    near = f"{word_of(Path(made.where).absolute().name)}/"
    after = {_id(made.where, where, one): [*words_of(one.get("blockedBy"))] for where, one in records}
    for _, one in records:
        for other in words_of(one.get("blocks")):
            after.get(other, []).append(word_of(one["id"]))
    for _, one in records:
        if records_of([one.get("metadata")])[0].get("_internal") is not True:
            id_ = word_of(one["id"])
            made.take(f"{near}{id_}", one, [f"{near}{other}" for other in after[id_]])


def _tagged(tree: object) -> dict[str, list[Any]]:
    """The tasks of Task Master by their tag."""
    if not isinstance(tree, dict):
        return {}
    tags = {"master": tree, **{tag: one for tag, one in tree.items() if isinstance(one, dict)}}
    return {word_of(tag): one["tasks"] for tag, one in tags.items() if isinstance(one.get("tasks"), list)}


def _is_task_master(tree: object) -> bool:
    """Whether a file is Task Master's: its tasks, or its tags with the tasks of each."""
    lists = _tagged(tree)
    records = [one for tasks in lists.values() for one in tasks]
    return bool(lists) and all(
        isinstance(one, dict) and isinstance(one.get("title"), str) and "id" in one for one in records
    )


def _task_master(made: List, tree: Any) -> None:
    """The tasks of Task Master with their subtasks, of all tags: `master/3.2`."""
    for tag, tasks in _tagged(tree).items():
        _take_tasks(made, tag, tasks)
    made.unblock()


def _take_tasks(made: List, tag: str, listed: Sequence[Any], parent: str = "", priority: object = "") -> None:
    """Take tasks, or the subtasks of `parent`; one without a priority has that of its parent."""
    siblings = {word_of(one.get("id")) for one in listed if isinstance(one, dict)}
    near = f"{tag}/{parent}." if parent else f"{tag}/"
    for number, one in enumerate(records_of(list(listed)), 1):
        record = {**one, "tags": [tag] if tag != "master" else [], "priority": one.get("priority") or priority}
        own = _id(made.where, f"{tag}: item {number}{f' of {parent}' if parent else ''}", record)
        id_ = f"{parent}.{own}" if parent and not own.startswith(f"{parent}.") else own
        after = [f"{near if to in siblings else f'{tag}/'}{to}" for to in words_of(record.get("dependencies"))]
        made.take(f"{tag}/{id_}", record, after, f"{tag}/{parent}" if parent else "")
        if isinstance(inner := record.get("subtasks"), list) and inner:
            if id_.count(".") >= _MAX_DEPTH:
                made.note(f"{id_}: its subtasks lie too deep: left out")
            else:
                _take_tasks(made, tag, inner, id_, record["priority"])


def _prd(made: List, tree: Record) -> None:
    """The stories of a prd.json. Their ids begin anew with each one, so its branch is a part of them. They are done one
    by one in the order of their priorities: where no story names what it depends on, each waits for those before it.
    """
    stories = records_of(tree["userStories"])
    name = word_of(tree.get("branchName")) or word_of(tree.get("project"))
    near = f"{name}/" if name else ""
    commands = records_of([tree.get("verificationCommands")])[0]
    verify = " && ".join(one_line(text_of(one)) for one in commands.values() if text_of(one))
    ids = [f"{near}{word_of(one.get('id')) or number}" for number, one in enumerate(stories, 1)]
    words = (word_of(one.get("priority")) for one in stories)
    ranks = [int(word) if word.isdecimal() and len(word) < 10 else None for word in words]
    named = [[f"{near}{one}" for key in _AFTER for one in words_of(story.get(key))] for story in stories]
    before = {} if any(named) else _before(ids, ranks)
    for id_, story, rank, after in zip(ids, stories, ranks, named, strict=True):
        state = "done" if story.get("passes") is True else "in_progress" if story.get("inProgress") is True else ""
        told = {"result": story.get("notes"), "notes": ""} if state == "done" else {}
        tags, priority = [story.get("category")], "" if rank is None else min(max(11 - rank, 1), 10)
        record = {**story, **told, "status": state, "tags": tags, "priority": priority}
        made.take(id_, record, before.get(id_, after), verify=verify)


def _before(ids: Sequence[str], ranks: Sequence[int | None]) -> dict[str, tuple[str, ...]]:
    """For each story those of the next lower number; for one without a number those before it in the file."""
    last = max((rank for rank in ranks if rank is not None), default=0)
    groups: dict[int, list[str]] = {}
    for place, (id_, rank) in enumerate(zip(ids, ranks, strict=True), 1):
        groups.setdefault(last + place if rank is None else rank, []).append(id_)
    return {id_: tuple(groups[a]) for a, b in pairwise(sorted(groups)) for id_ in groups[b]}


_CHECKPOINT = "__checkpoint__"
_MOST, _MOST_VALUE = 128 << 20, 16 << 20  # bytes of all tasks, and of one value
_COLUMNS = (
    "id title description status priority created_by claimed_by created_at result error tags context depends_on"
).split()


def _aqua(made: List, rows: Sequence[Record]) -> None:
    """The tasks of Aqua's database, the oldest first. Its checkpoints are tasks; here they are marks of the tasks that
    they follow. Its `serialize` writes its order into the dependencies: what was serialized comes as that chain.
    """
    checkpoints = {
        word_of(row["id"]): words_of(row["depends_on"]) for row in rows if _CHECKPOINT in words_of(row["tags"])
    }
    if checkpoints:
        made.note(f"{len(checkpoints):,} checkpoint tasks became checkpoints of the tasks that they follow")
    marked = {before for after in checkpoints.values() for before in after}
    for row in rows:
        if (id_ := word_of(row["id"])) not in checkpoints:
            after = _behind(words_of(row["depends_on"]), checkpoints)
            made.take(id_, row, after, checkpoint=id_ in marked)


def _behind(after: Sequence[str], checkpoints: Mapping[str, Sequence[str]]) -> list[str]:
    """What is waited for, with what each checkpoint waits for in its place."""
    found: dict[str, None] = {}
    left = [*after]
    while left:
        if (one := left.pop(0)) not in found:
            found[one] = None
            left = [*checkpoints.get(one, ()), *left]
    return [one for one in found if one not in checkpoints]


def _selected(path: Path) -> list[dict[str, Any]]:
    try:
        log = Path(f"{path}-wal")
        has_log = log.is_file() and log.stat().st_size > 0
        # Without a write-ahead log SQLite is told that nobody changes the file, else it would leave files there.
        address = f"{path.absolute().as_uri()}?mode=ro{'' if has_log else '&immutable=1'}"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as db:
            return _rows(path, db)
    except (sqlite3.Error, OSError) as error:
        again = f"copy the database, and import the copy: ralf import {path.name} --dry-run"
        raise Damaged(path, f"cannot be read as a database: {error}", again) from None


def _rows(path: Path, db: sqlite3.Connection) -> list[dict[str, Any]]:
    """The rows of the table of tasks; a column that an older version of Aqua does not have is None."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE)
    db.text_factory = lambda content: content.decode("utf-8", "replace")
    db.execute("PRAGMA trusted_schema=OFF")
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%' LIMIT 9999")}
    there = {str(row[1]) for row in db.execute("PRAGMA table_info(tasks)")}
    if "tasks" not in tables or not {"id", "title", "status"} <= there:
        raise NoTaskList(path, "an SQLite database, but not Aqua's", "see docs/importing.md")
    columns = ", ".join(name if name in there else f"NULL AS {name}" for name in _COLUMNS)
    found, size = list[dict[str, Any]](), 0
    for row in db.execute(f"SELECT {columns} FROM tasks LIMIT {MAX_TASKS + 1}"):  # noqa: S608 - names of ours
        size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
        if size > _MOST:  # rows of a forged file may share their bytes
            raise UsageError(path, f"tasks of more than {_MOST:,} bytes", "see docs/importing.md")
        found.append(dict(zip(_COLUMNS, row, strict=True)))
    query = "SELECT substr(id, 1, 200), substr(name, 1, 200) FROM agents LIMIT ?"
    names = dict(db.execute(query, (MAX_TASKS,))) if "agents" in tables else {}
    for one in found:
        one |= {key: names.get(one[key], one[key]) for key in ("created_by", "claimed_by")}
        for key in ("tags", "depends_on"):
            with suppress(ValueError, TypeError, RecursionError):
                one[key] = json.loads(one[key])
    return sorted(found, key=lambda row: (text_of(row["created_at"]), text_of(row["id"])))


# ---- files ----


class NoTaskList(Damaged):
    """A file that is no task list of a tool that is known here; nothing need be wrong with it."""


Redact = Callable[[Any], Any]
"""Returns plain data without its secrets."""


def read_lists(path: str | Path, redact: Redact = lambda tree: tree) -> tuple[list[List], list[str]]:
    """Read a list, or all lists of a folder; and the files there that only have the name of one.

    NotFound where there is none, NoTaskList for a file of another kind, Damaged for one that is damaged, UsageError for
    one that is too large, and where one of several lists is to be named.
    """
    base = Path(path).expanduser()
    if not base.is_dir():
        return [_read_file(base, redact)], []
    found, others = [], []
    for one in lists_of(base):
        try:
            found.append(_read_file(one, redact))
        except NoTaskList as error:
            others.append(str(error))
    if not found:
        where = ", ".join((*PLACES, "~/.claude/tasks/LIST/"))
        raise NotFound(base, f"no task list here; looked for {where}", "name the file: ralf import FILE --dry-run")
    return found, others


def lists_of(folder: Path) -> list[Path]:
    """The lists of a folder that may be a project, or the folder of a tool within one, or a list of Claude Code."""
    whole = folder.absolute()
    bases = (whole, *whole.parents[:3])  # `.taskmaster/tasks` itself may have been named
    found = [path for place in PLACES for base in bases if whole in (path := base / place).parents]
    found = [path for path in found if path.is_file() and not path.is_symlink()]
    return found or ([folder] if _claude_files(folder) else [])


def _damaged(path: object, what: str) -> Damaged:
    return Damaged(path, what, f"mend it, then: ralf import {shlex.quote(str(path))} --dry-run")


def _unknown(path: Path, what: str = "") -> NoTaskList:
    kinds = ", ".join(name for name, _ in TOOLS.values())
    hint = "see docs/importing.md, or add tasks one by one: ralf task add TITLE"
    return NoTaskList(path, what or f"not a task list that ralf knows: {kinds}", hint)


def _read_file(path: Path, redact: Redact) -> List:
    """Read the list that a file is, or a folder of Claude Code."""

    def taken(origin: str, read: Callable[[List, Any], None], content: object) -> List:
        made = List(origin, path)
        read(made, content)
        return made

    if path.is_dir():
        trees = [(one.name, _content(one, redact)[0]) for one in _claude_files(path)]
        return taken("claude", _claude, [(name, tree) for name, tree in trees if _is_claude_task(tree)])
    if beginning(path, 16) == "SQLite format 3\0":
        return taken("aqua", _aqua, redact(_selected(path)))
    tree, records = _content(path, redact)
    if _is_claude_task(tree):
        again = f"name its folder: ralf import {shlex.quote(str(path.parent))} --dry-run"
        raise UsageError(path, "is one task of a list of Claude Code", again)
    if isinstance(tree, dict) and isinstance(tree.get("userStories"), list):
        return taken("prd", _prd, tree)
    if _is_task_master(tree):
        return taken("task-master", _task_master, tree)
    for _, one in records[:20]:  # what the first of them look like
        if {"id", "title", "status", "created"} <= one.keys() and "created_at" not in one:
            return taken("ralph", _ralph, records)
        if "id" in one and not one.keys().isdisjoint(("issue_type", "created_at", "updated_at")):
            return taken("beads", _beads, records)
    raise _unknown(path)


_TABLE = regex(r"\[+\s*(?!true|false|null)[A-Za-z_]")  # as TOML and INI begin one


def _content(path: Path, redact: Redact) -> tuple[Any, Records]:
    """The value of a JSON file, and the objects in it: those of its list, or its lines; none where any is another."""
    try:
        text = text_at(path, MAX_BYTES)[0]
    except Unreadable as error:
        other = "name another file: ralf import PATH --dry-run"
        raise (Damaged if path.exists() else NotFound)(path, str(error), other) from None
    if not text.lstrip().startswith(("{", "[", "<<<<<<<")) or _TABLE.match(text.lstrip()):
        raise _unknown(path, "" if text.strip() else "is empty: not a task list")
    lines = [(f"line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    with suppress(ValueError, RecursionError):
        if len(lines) > 1 and isinstance(json.loads(lines[0][1]), dict):  # each line is an object of its own
            records = [(where, _parsed(path, line, redact, where)) for where, line in lines]
            for where, one in records:
                if not isinstance(one, dict):
                    raise _damaged(path, f"{where}: not a JSON object")
            return None, records
    tree = _parsed(path, text, redact)
    listed = [(f"item {n}", one) for n, one in enumerate(tree if isinstance(tree, list) else [tree], 1)]
    return tree, listed if all(isinstance(one, dict) for _, one in listed) else []


def _parsed(path: Path, text: str, redact: Redact, where: str = "") -> Any:
    """The JSON value of a text; Damaged says in which line it is damaged."""
    try:
        return redact(json.loads(text))
    except RecursionError:
        what = "nested too deeply"
    except json.JSONDecodeError as error:
        where, what = where or f"line {error.lineno}", f"not valid JSON: {error.msg}"
    except ValueError as error:  # a number of too many digits
        what = str(error).split("\n", 1)[0]
    raise _damaged(path, f"{where}: {what}" if where else what)
