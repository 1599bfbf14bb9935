"""Reads the task lists of other tools: Aqua, beads, Claude Code, Task Master, prd.json and ralph-orchestrator.

The kind of a file is recognised by its content. `ralf_migrations.task_import` makes tasks of what was read. Nothing is
written here, and a file that is damaged anywhere is refused as a whole: half a list would start work too early.
"""

from __future__ import annotations

import codecs
import json
import os
import shlex
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from ralf.errors import Damaged, NotFound, UsageError
from ralf.storage.files import content_of, open_regular
from ralf.text.frozen import dataclass
from ralf_migrations import aqua_tasks, task_kinds
from ralf_migrations.task_kinds import ImportedTask as ImportedTask, List, NoTaskList, Record

MAX_BYTES = 64 << 20
"""Bytes of a list with one record on each line."""

MAX_TREE = 16 << 20
"""Characters of a list that is one JSON value, which is read as a whole."""

MAX_LINE = 4 << 20
MAX_FILES = 5_000
"""Files of a folder that are looked at."""

PLACES = (
    ".aqua/aqua.db",
    ".beads/issues.jsonl",
    ".beads/beads.jsonl",
    ".taskmaster/tasks/tasks.json",
    "tasks/tasks.json",
    "prd.json",
    ".ralph/agent/tasks.jsonl",
)
"""Where the tools keep their lists in a project."""

_KINDS = "Aqua, beads, Claude Code, Task Master, prd.json, ralph-orchestrator"
_TREES = ((task_kinds.is_prd, task_kinds.prd), (task_kinds.is_task_master, task_kinds.task_master))
_RECORDS = ((task_kinds.is_ralph, task_kinds.ralph), (task_kinds.is_beads, task_kinds.beads))
_SQLITE = b"SQLite format 3\0"
_CONFLICT = ("<<<<<<<", "=======", ">>>>>>>")


@dataclass(frozen=True, slots=True)
class TaskLists:
    """What was read.

    files  each with its kind: `beads: .beads/issues.jsonl`
    notes  what was left out or read in another way than it stands there
    """

    tasks: tuple[ImportedTask, ...] = ()
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_lists(path: str | Path) -> TaskLists:
    """Read a list, or all lists of a project's folder.

    NotFound where there is none, NoTaskList for a file of another kind, Damaged for one that is damaged, UsageError for
    one that is too large, and where one of several lists is to be named.
    """
    base = Path(path).expanduser()
    notes: list[str] = []
    found: list[List] = []
    for one in lists_of(base) if base.is_dir() else [base]:
        try:
            found.append(_read_file(one))
        except NoTaskList as error:  # a file that only has the name of one
            if not base.is_dir():
                raise
            notes.append(str(error))
    found = found or [_claude_list(base)]
    return TaskLists(
        tuple(task for one in found for task in one.tasks),
        tuple(f"{one.origin}: {one.where}" for one in found),
        tuple(notes + [note for one in found for note in one.notes]),
    )


# ---- folders ----


def lists_of(folder: Path) -> list[Path]:
    """The lists of a folder that may be a project, or the folder of a tool within one; of two that one tool has in one
    folder the first.
    """
    found: dict[Path, Path] = {}
    for place in PLACES:
        parts = place.split("/")
        for known in range(len(parts)):  # `.beads` itself may have been named
            path = folder.joinpath(*parts[known:])
            is_here = not known or list(folder.absolute().parts[-known:]) == parts[:known]
            if is_here and path.is_file() and not path.is_symlink():
                found.setdefault(path.parent, path)
    return list(found.values())


def _claude_list(base: Path) -> List:
    """The list that a folder of Claude Code is, or holds as its only one."""
    for folder in (base, base / "tasks"):
        lists = [base] if folder is base and _is_claude_list(base) else [*filter(_is_claude_list, _subfolders(folder))]
        if len(lists) == 1:
            read = [(path.name, _tree(path)) for path in _json_files(lists[0])]
            return task_kinds.claude(lists[0], [one for one in read if task_kinds.is_claude_task(one[1])])
        if lists:
            lists.sort(key=lambda one: one.stat().st_mtime, reverse=True)
            names = ", ".join(task_kinds.word_of(one.name) for one in lists[:5]) + (", …" if len(lists) > 5 else "")
            what = f"holds {len(lists):,} task lists of Claude Code, of any project; newest first: {names}"
            raise UsageError(folder, what, f"name one of them: {_command(lists[0])}")
    where = ", ".join((*PLACES, "~/.claude/tasks/LIST/"))
    raise NotFound(base, f"no task list here; looked for {where}", "name the file: ralf import FILE --dry-run")


def _subfolders(folder: Path) -> list[Path]:
    with suppress(OSError), os.scandir(folder) as found:
        return [Path(one.path) for one in islice(found, MAX_FILES) if one.is_dir(follow_symlinks=False)]
    return []


def _json_files(folder: Path) -> list[Path]:
    """The JSON files of a folder, in the order of their numbers. OSError."""
    with os.scandir(folder) as found:
        names = [one.name for one in islice(found, MAX_FILES + 1) if one.name.endswith(".json")]
    if len(names) > MAX_FILES:
        raise Damaged(folder, f"more than {MAX_FILES:,} files", "name a file of one list: ralf import FILE")
    return [folder / name for name in sorted(names, key=lambda name: (len(name), name))]


def _is_claude_list(folder: Path) -> bool:
    """Whether a folder holds a task of Claude Code, in one of the first files of it."""
    with suppress(OSError, Damaged):
        for path in _json_files(folder)[:5]:
            with suppress(Damaged):
                if task_kinds.is_claude_task(_tree(path)):
                    return True
    return (folder / ".highwatermark").is_file()


# ---- files ----


def _command(path: Path) -> str:
    return f"ralf import {shlex.quote(os.fspath(path))} --dry-run"


def _read_file(path: Path) -> List:
    other = "name another file: ralf import PATH --dry-run"
    try:
        with open_regular(path) as file:
            head = file.read(len(_SQLITE))
        if head == _SQLITE:
            return aqua_tasks.aqua(path)
        text = _decoded(path, content_of(path, most=MAX_BYTES))
    except FileNotFoundError:
        raise NotFound(path, "no such file or folder", other) from None
    except OSError as error:
        raise Damaged(path, error.strerror or str(error), other) from None
    if not text.strip():
        raise NoTaskList(path, "is empty: not a task list", other)
    if (records := _lines_of(path, text)) is None:
        if len(text) > MAX_TREE:
            raise Damaged(path, f"has more than {MAX_TREE:,} characters", other)
        if not text.lstrip().startswith(("{", "[", *_CONFLICT)):
            raise _unknown(path)
        tree = _parsed(path, text, "")
        if task_kinds.is_claude_task(tree):
            what = "is one task of a list of Claude Code"
            raise UsageError(path, what, f"name its folder: {_command(path.parent)}")
        for is_one, read in _TREES:
            if is_one(tree):
                return read(path, tree)
        records = [(f"item {number}", one) for number, one in enumerate(tree if isinstance(tree, list) else [tree], 1)]
    if all(isinstance(one, dict) for _, one in records):
        for _, record in records[:20]:  # what the first of them look like
            for looks, take in _RECORDS:
                if looks(record):
                    return take(path, records)
    raise _unknown(path)


def _lines_of(path: Path, text: str) -> list[tuple[str, Record]] | None:
    """The records of a text in which each line is a JSON object of its own, by its first line; None for another."""
    head = [line for line in text.lstrip()[:MAX_LINE].split("\n", 50)[:50] if line.strip()]
    head = [line for line in head if not line.startswith(_CONFLICT)]
    try:
        if len(head) < 2 or not head[0].startswith("{") or not isinstance(json.loads(head[0]), dict):
            return None
    except (ValueError, RecursionError):
        return None
    records: list[tuple[str, Record]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"line {number}"
        record = _parsed(path, line, where) if len(line) <= MAX_LINE else None
        if not isinstance(record, dict):
            what = "not a JSON object" if len(line) <= MAX_LINE else f"more than {MAX_LINE:,} characters"
            raise Damaged(path, f"{where}: {what}", f"mend it, then: {_command(path)}")
        records.append((where, record))
        task_kinds.check_count(path, len(records))
    return records


def _decoded(path: Path, content: bytes) -> str:
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Damaged(path, f"line {line}: not UTF-8 text", f"mend it, then: {_command(path)}") from None


def _unknown(path: Path) -> NoTaskList:
    hint = "see docs/importing.md, or add tasks one by one: ralf task add TITLE"
    return NoTaskList(path, f"not a task list that ralf knows: {_KINDS}", hint)


def _tree(path: Path) -> Any:
    """The JSON value of a small file."""
    try:
        content = content_of(path, most=MAX_LINE)
    except OSError as error:
        raise Damaged(path, error.strerror or str(error), f"mend it, then: {_command(path.parent)}") from None
    return _parsed(path, _decoded(path, content), "")


def _parsed(path: Path, text: str, where: str) -> Any:
    """The JSON value of a text; Damaged says in which line it is damaged."""
    try:
        return json.loads(text)
    except RecursionError:
        what = "nested too deeply"
    except json.JSONDecodeError as error:
        where = where or f"line {error.lineno}"
        at = text.rfind("\n", 0, error.pos) + 1
        is_conflict = text.startswith(_CONFLICT, at) or text.startswith(_CONFLICT, error.pos)
        what = "a conflict that git has left" if is_conflict else f"not valid JSON: {error.msg}"
    except ValueError as error:  # a number of too many digits
        what = str(error).split("\n", 1)[0]
    raise Damaged(path, f"{where}: {what}" if where else what, f"mend it, then: {_command(path)}")
