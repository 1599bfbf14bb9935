"""Where the files of tasks lie, which of the files there are tasks, and what a new task is called."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from re import Pattern
from stat import S_ISDIR

from ralf.errors import UsageError
from ralf.tasks.model import Task
from ralf.text import cleaning
from ralf.text.patterns import regex

TASKS = "tasks"

PREFIX = "TASK-"
"""The ids that are made begin so."""

OPEN = ("active", "working", "improvements")
"""Folders of tasks that are not completed; `active` is where they are written."""

CLOSED = ("completed", "cancelled")
"""Folders of tasks that are, called as their status."""

FOLDERS = (*OPEN, *CLOSED)

KEEP = "active/.gitkeep"
"""An empty file that stays, below `.autonomous/tasks`: git takes a folder from which all tasks went for one that was
renamed, and reports a conflict about each task that another clone adds to it.
"""

_LOOP = ".autonomous"

_FILE = "task.md"

_PARTS = ("subtasks", "tasks")  # folders within a task's folder that hold the tasks it was split into

_DEPTH = 6  # folders below `tasks`: `completed/2026-02/TASK-1/subtasks/TASK-2` has five

_MOST_LOOKS = 3  # at folders, while files move between them

_MONTH = regex(r"\d{4}-\d{2}\Z")

_NO_TASK = r"\A(?![._]|(?i:readme|index\.|(?:task[-_])?templates?\b))"

_ANY = regex(_NO_TASK + r"[^\n\ud800-\udfff]*\.md\Z")  # surrogates stand for bytes that are not UTF-8

_NAMED = regex(_NO_TASK + r"(?:(?:TASK|SUBTASK|IMP)-[^\n\ud800-\udfff]*\.md|(?i:task\.md))\Z")

_FOLDER = regex(r"[^.\ud800-\udfff][^\ud800-\udfff]*\Z")

_OWN = regex(r"\A(?i:task\.md)\Z")

# ---- scanning ----


def tops(folder: Path) -> list[Path]:
    """The folders that hold a project's tasks: its `.autonomous/tasks`, and the project's `tasks`, where RALF's loop
    keeps some.
    """
    return [folder, folder.parent.parent / TASKS] if folder.parent.name == _LOOP else [folder]


def scan(folder: Path) -> dict[str, int]:
    """The stamp of each task file below a project's folders of tasks (`tops`), by its name from the project's folder
    on.

    It follows no symbolic link, and leaves out hidden files, templates, names that are not UTF-8 and whatever else is
    no task. OSError for a folder that is there and cannot be read: nobody is to take its tasks for gone.
    """
    root = f"{folder.parent.parent}/"
    for _ in range(_MOST_LOOKS):
        found: dict[str, int] = {}
        above: dict[str, tuple[int, int]] = {}
        for top in tops(folder):
            _scan(root, os.fspath(top.relative_to(root)), _ANY if top == folder else _NAMED, 0, found, above)
        if all(_age(root + name) == age for name, age in above.items()):
            break  # else a file that moved from a folder that was not read yet into one that was would seem to be gone
    return found


def _age(path: str) -> tuple[int, int] | None:
    """What changes of a folder when a file comes into it or goes; None for what is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_ino) if S_ISDIR(found.st_mode) else None


def stamp(stat: os.stat_result) -> int:
    """What is another number once a file was changed, never 0; of numbers alone it is the same in every process."""
    return hash((stat.st_mtime_ns, stat.st_size, stat.st_ctime_ns, stat.st_ino)) or 1


def _scan(
    root: str,
    folder: str,
    called: Pattern[str],
    depth: int,
    found: dict[str, int],
    above: dict[str, tuple[int, int]] | None,
) -> None:
    """Add the files in a folder of a root, and in those below it.

    called  how the files are called that are tasks, in the folders of a root (depth 1)
    above   gets the folders that hold any number of tasks, as they were; None within the folder of a task
    """
    age = _age(root + folder)
    if age is None:
        return
    if above is not None:
        above[folder] = age
    match, inner = (called if depth else _NAMED).match, list[str]()
    opened = os.open(root + folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with os.scandir(opened) as entries:  # of an open folder each stat looks up one name, and not a path
            for entry in entries:
                name = entry.name
                if match(name) and entry.is_file(follow_symlinks=False):
                    try:
                        found[f"{folder}/{name}"] = stamp(entry.stat(follow_symlinks=False))
                    except FileNotFoundError:  # gone since
                        continue
                elif _FOLDER.match(name) and entry.is_dir(follow_symlinks=False):
                    inner.append(name)
    finally:
        os.close(opened)
    for name in inner if depth < _DEPTH else ():
        path, holds = f"{folder}/{name}", name in _PARTS or name in FOLDERS or _MONTH.match(name)
        if depth:
            _scan(root, path, _NAMED if holds else _OWN, depth + 1, found, above if holds else None)
        elif name in FOLDERS:
            _scan(root, path, called, 1, found, above)


# ---- placing ----


def place(folder: Path, task: Task, found: Path | None = None) -> Path:
    """Where the file of a task stands by its status, below a project's `.autonomous/tasks`.

    found  where it stands now. It keeps its name, its root and its form: of a `TASK-1-slug/task.md` the folder moves. A
           part of another task, in a folder of its own below that one's, stays.
    """
    wanted = task.status if task.status in CLOSED else OPEN[0]
    if found is None:
        return folder / wanted / f"{cleaning.check(task.id)}.md"
    state, unit = _state_and_unit(found)
    if state is None or unit is None or state.name == wanted or (state.name in OPEN and wanted in OPEN):
        return found
    return state.parent / wanted / unit


def check_inside(path: Path, *tops: Path) -> None:
    """UsageError where a folder in which the file of a task is to stand is a symbolic link, up to one of these: a
    repository may bring one, and what is written there lies elsewhere, where no task is looked for.
    """
    for folder in path.parents:
        if folder in tops:
            return
        if folder.is_symlink():
            raise UsageError(folder, "is a symbolic link: not followed", "remove the link")


def folder_status(found: Path) -> str:
    """What the folder of a task file says of its status: "completed", "cancelled", or "" for a task that is open, and
    for a part of another task.
    """
    state, unit = _state_and_unit(found)
    return state.name if state is not None and unit is not None and state.name in CLOSED else ""


def _state_and_unit(found: Path) -> tuple[Path | None, Path | None]:
    """The folder in `FOLDERS` that a file stands in, and what of the path below moves with it: the file, or its folder
    and the file; None for what does not move.
    """
    state = next((above for above in found.parents if above.name in FOLDERS and above.parent.name == TASKS), None)
    if state is None:
        return None, None
    parts = found.relative_to(state).parts
    if _MONTH.match(parts[0]):
        parts = parts[1:]
    is_unit = len(parts) == 1 or (len(parts) == 2 and parts[1].lower() == _FILE)
    return state, Path(*parts) if is_unit else None


def name_of(found: Path) -> str:
    """The id of a task whose file does not say it."""
    in_folder = found.name.lower() == _FILE and found.parent.name not in FOLDERS
    name = found.parent.name if in_folder else found.stem
    return cleaning.slug(name)


# ---- naming ----

_LETTERS = "0123456789bcdfghjkmnpqrstvwxyz"
"""Without vowels, which make words, and without `l`, which looks like 1."""

_RISK = 0.01


def new_id(count: int, is_taken: Callable[[str], object]) -> str:
    """An id that none of so many tasks has: `TASK-` and 4 to 8 characters.

    As many as keep the chance below 1 % that of all tasks, had each been named without knowing of the others, two have
    the same id: that is what happens in clones that do not see each other.
    """
    pairs = (count + 1) * count / 2
    length = next((n for n in range(4, 8) if pairs < _RISK * len(_LETTERS) ** n), 8)
    while True:
        made = PREFIX + _drawn(length)
        if not is_taken(made) and not made[5:].isdecimal():  # numbers are counted, and RALF's loop counts
            return made


def _drawn(length: int) -> str:
    """So many letters, each as likely as another. Not by `secrets`, whose import takes its time."""
    number = int.from_bytes(os.urandom(16), "big")
    return "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(length))
