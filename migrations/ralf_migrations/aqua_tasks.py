"""Reads Aqua's database: SQLite, one table of tasks.

Its checkpoints are tasks; here they are marks of the tasks that they follow. Its `serialize` writes its order into the
dependencies, so what was serialized there comes as that chain.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ralf.errors import Damaged, UsageError
from ralf.tasks.model import PRIORITY
from ralf_migrations.task_kinds import (
    MAX_AFTER,
    MAX_TASKS,
    List,
    NoTaskList,
    begun,
    check_count,
    text_of,
    time_of,
    whole_of,
    word_of,
    words_of,
)

_STATUSES = {
    "pending": "pending",
    "claimed": "pending",
    "done": "completed",
    "failed": "failed",
    "abandoned": "cancelled",
}

_CHECKPOINT = "__checkpoint__"

_MOST = 128 << 20

_STEPS, _ROUNDS = 100_000, 1_000  # instructions of SQLite between two looks, and how many looks: seconds


def aqua(path: Path) -> List:
    """The tasks of a database, the oldest first."""
    made = List("aqua", os.fspath(path))
    rows = _rows(path)
    checkpoints: dict[str, tuple[str, ...]] = {}
    for row in rows:
        id_, tags, after = word_of(row["id"]), words_of(_json(row["tags"])), words_of(_json(row["depends_on"]))
        status = made.status(id_, text_of(row["status"]), _STATUSES)
        if _CHECKPOINT in tags:
            checkpoints[id_] = after
            continue
        is_begun, context = text_of(row["status"]) == "claimed", text_of(row["context"])
        is_new = status == "pending" and not is_begun
        made.add(
            id_,
            text_of(row["title"]),
            [("", text_of(row["description"])), ("Context", context if is_new else "")],
            status=status,
            priority=min(max(whole_of(row["priority"]) or PRIORITY, 1), 10),
            tags=tags,
            after=after,
            created=time_of(row["created_at"]),
            created_by=word_of(row["created_by"]),
            summary=text_of(row["result"]) if status == "completed" else "",
            reason=text_of(row["error"]) if status == "failed" else "",
            progress="" if is_new else begun(is_begun, word_of(row["claimed_by"]), context),
        )
    _without_checkpoints(made, checkpoints)
    return made


def _without_checkpoints(made: List, checkpoints: Mapping[str, tuple[str, ...]]) -> None:
    """Whoever waits for a checkpoint waits for what that waits for."""
    if not checkpoints:
        return
    made.note(f"{len(checkpoints):,} checkpoint tasks became checkpoints of the tasks that they follow")
    marked = {before for after in checkpoints.values() for before in after}
    through: dict[str, tuple[str, ...]] = {}

    def behind(first: str) -> tuple[str, ...]:
        stack = [first]
        while stack:  # the checkpoints that one waits for come before it; a circle of them ends where it began
            one = stack[-1]
            missing = [other for other in checkpoints[one] if other in checkpoints and other not in through]
            through.setdefault(one, ())
            if missing:
                stack += missing
                continue
            waits = dict.fromkeys(t for other in checkpoints[one] for t in through.get(other, (other,)))
            through[stack.pop()] = tuple(waits)[:MAX_AFTER]
        return through[first]

    for id_, task in made.found.items():
        if any(one in checkpoints for one in task.after):
            after = dict.fromkeys(t for o in task.after for t in (behind(o) if o in checkpoints else (o,)))
            task = replace(task, after=tuple(one for one in after if one != id_)[:MAX_AFTER])
        made.found[id_] = replace(task, checkpoint=True) if id_ in marked else task


_COLUMNS = (
    "id title description status priority created_by claimed_by created_at result error tags context depends_on"
).split()


def _rows(path: Path) -> list[Mapping[str, Any]]:
    """The tasks of a database, the oldest first; a column that an older version of Aqua does not have is None.

    Only read: without a write-ahead log SQLite is told that nobody changes the file, else it would leave files there.
    """
    again = f"copy the database, and import the copy: ralf import {path.name} --dry-run"
    try:
        size = path.stat().st_size
        log = Path(f"{path}-wal")
        has_log = log.is_file() and log.stat().st_size > 0
        if size > 256 << 20:
            raise UsageError(path, "a database of more than 256 MiB", again)
        address = f"{path.absolute().as_uri()}?mode=ro{'' if has_log else '&immutable=1'}"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as db:
            return _selected(path, db)
    except (sqlite3.Error, OSError) as error:
        raise Damaged(path, f"cannot be read as a database: {error}", again) from None


def _selected(path: Path, db: sqlite3.Connection) -> list[Mapping[str, Any]]:
    rounds = iter(range(_ROUNDS))
    db.set_progress_handler(lambda: next(rounds, None) is None, _STEPS)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 16 << 20)
    db.text_factory = lambda content: content.decode("utf-8", "replace")
    db.execute("PRAGMA trusted_schema=OFF")
    kinds = {
        str(name): str(sql)
        for name, sql in db.execute("SELECT name, substr(sql, 1, 40) FROM sqlite_master LIMIT 10000")
    }
    there = {str(row[1]) for row in db.execute("PRAGMA table_info(tasks)")}
    if not kinds.get("tasks", "").upper().startswith("CREATE TABLE") or not {"id", "title", "status"} <= there:
        is_beads = {"issues", "dependencies"} <= kinds.keys()
        hint = (
            "let beads write its list, then import that: bd export -o issues.jsonl"
            if is_beads
            else "see docs/task-import.md"
        )
        raise NoTaskList(path, "an SQLite database, but not Aqua's", hint)
    columns = ", ".join(name if name in there else f"NULL AS {name}" for name in _COLUMNS)
    found = []
    size = 0
    cursor = db.execute(f"SELECT {columns} FROM tasks LIMIT {MAX_TASKS + 1}")  # noqa: S608 - names of ours
    for row in cursor:  # rows of a forged file may share their bytes
        size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
        if size > _MOST:
            raise UsageError(path, f"tasks of more than {_MOST:,} bytes", "see docs/task-import.md")
        found.append(row)
    check_count(path, len(found))
    names: dict[Any, Any] = {None: None}
    if kinds.get("agents", "").upper().startswith("CREATE TABLE"):
        names |= dict(db.execute("SELECT substr(id, 1, 200), substr(name, 1, 200) FROM agents LIMIT ?", (MAX_TASKS,)))
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in found]
    rows.sort(key=lambda row: (text_of(row["created_at"]), text_of(row["id"])))
    return [row | {key: names.get(row[key], row[key]) for key in ("created_by", "claimed_by")} for row in rows]


def _json(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
