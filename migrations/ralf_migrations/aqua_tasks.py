"""Reads Aqua's database: SQLite, one table of tasks.

Its checkpoints are tasks; here they are marks of the tasks that they follow. Its `serialize` writes its order into the
dependencies, so what was serialized there comes as that chain.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from ralf.errors import Damaged, UsageError
from ralf.text.frozen import replace
from ralf_migrations.task_formats import MAX_TASKS, List, NoTaskList, text_of, word_of, words_of

_CHECKPOINT = "__checkpoint__"
_MOST, _MOST_VALUE = 128 << 20, 16 << 20  # bytes of all tasks, and of one value
_COLUMNS = (
    "id title description status priority created_by claimed_by created_at result error tags context depends_on"
).split()


def aqua(path: Path) -> List:
    """The tasks of a database, the oldest first."""
    made = List("aqua", path)
    checkpoints: dict[str, tuple[str, ...]] = {}
    for row in _rows(path):
        record = {**row, **{key: _json(row[key]) for key in ("tags", "depends_on")}}
        if _CHECKPOINT in words_of(record["tags"]):
            checkpoints[word_of(record["id"])] = words_of(record["depends_on"])
        else:
            made.take(word_of(record["id"]), record)
    if checkpoints:
        made.note(f"{len(checkpoints):,} checkpoint tasks became checkpoints of the tasks that they follow")
        marked = {before for after in checkpoints.values() for before in after}
        for id_, task in made.found.items():
            after = tuple(one for one in _behind(task.task.after, checkpoints) if one != id_)
            made.found[id_] = replace(task, task=replace(task.task, after=after, checkpoint=id_ in marked))
    return made


def _behind(after: tuple[str, ...], checkpoints: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """What is waited for, with what each checkpoint waits for in its place."""
    seen: set[str] = set()
    left = [*reversed(after)]
    while left:
        if (one := left.pop()) not in seen:
            seen.add(one)
            left += reversed(checkpoints.get(one, ()))
            if one not in checkpoints:
                yield one


def _json(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _rows(path: Path) -> list[Mapping[str, Any]]:
    """The tasks of a database, the oldest first; a column that an older version of Aqua does not have is None.

    Only read: without a write-ahead log SQLite is told that nobody changes the file, else it would leave files there.
    """
    try:
        log = Path(f"{path}-wal")
        has_log = log.is_file() and log.stat().st_size > 0
        address = f"{path.absolute().as_uri()}?mode=ro{'' if has_log else '&immutable=1'}"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as db:
            return _selected(path, db)
    except (sqlite3.Error, OSError) as error:
        again = f"copy the database, and import the copy: ralf import {path.name} --dry-run"
        raise Damaged(path, f"cannot be read as a database: {error}", again) from None


def _selected(path: Path, db: sqlite3.Connection) -> list[Mapping[str, Any]]:
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE)
    db.text_factory = lambda content: content.decode("utf-8", "replace")
    db.execute("PRAGMA trusted_schema=OFF")
    kinds = dict(db.execute("SELECT name, upper(substr(sql, 1, 12)) FROM sqlite_master LIMIT 10000"))
    there = {str(row[1]) for row in db.execute("PRAGMA table_info(tasks)")}
    if kinds.get("tasks") != "CREATE TABLE" or not {"id", "title", "status"} <= there:
        raise NoTaskList(path, "an SQLite database, but not Aqua's", "see docs/importing.md")
    columns = ", ".join(name if name in there else f"NULL AS {name}" for name in _COLUMNS)
    found, size = [], 0
    for row in db.execute(f"SELECT {columns} FROM tasks LIMIT {MAX_TASKS + 1}"):  # noqa: S608 - names of ours
        size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
        if size > _MOST:  # rows of a forged file may share their bytes
            raise UsageError(path, f"tasks of more than {_MOST:,} bytes", "see docs/importing.md")
        found.append(dict(zip(_COLUMNS, row, strict=True)))
    names: dict[Any, Any] = {}
    if kinds.get("agents") == "CREATE TABLE":
        names = dict(db.execute("SELECT substr(id, 1, 200), substr(name, 1, 200) FROM agents LIMIT ?", (MAX_TASKS,)))
    found.sort(key=lambda row: (text_of(row["created_at"]), text_of(row["id"])))
    return [row | {key: names.get(row[key], row[key]) for key in ("created_by", "claimed_by")} for row in found]
