"""What lists and claims ask of all tasks, and of the plan: tables of `index.db`, so that SQL answers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ralf.document.index import TASKS, Index, Unusable

_OF_TASKS = ("task", "task_file")


class Entry(NamedTuple):
    """What a list knows of an id that a file or a record has.

    files    those that say that they are it: stamp, digest, whether it is foreign, and why it cannot be read, by name
    path     the name of the file that counts, "" where there is no such task
    is_due   whether its file and its records are not the same: the next write sees to it
    title    as it is looked for; order: of tasks of one second the one with the lower is the older one
    """

    files: Mapping[str, Sequence[Any]]
    path: str = ""
    is_foreign: bool = False
    is_due: bool = False
    status: str = ""
    role: str = ""
    route: str = ""
    title: str = ""
    created: str = ""
    priority: int = 0
    after: tuple[str, ...] = ()
    order: int = 0


class Entries:
    """The entries by their ids: those that an index keeps, as they were when a document's state was asked for; from the
    first change on all of them in memory.

    index    None: there are none yet
    instead  what gives them without the index: no error of it reaches who asks
    changed  the ids of those that are others now
    """

    def __init__(self, index: Index | None, instead: Callable[[], Entries]) -> None:
        self._index = index
        self._instead = instead
        self._is_whole = index is None  # whatever the index has is of another document
        self._is_apart = False  # from the index
        self.changed, self._is_plan_new = set[str](), False
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        for table in TASKS.values():
            self._db.execute(table)

    def keep(self, db: sqlite3.Connection) -> None:
        """Leave in the index what changed, within its transaction. Unusable where that says nothing of the rest."""
        if self._is_apart:
            raise Unusable
        if self._is_plan_new or self._is_whole:
            db.execute("delete from task_plan")
            _insert(db, "task_plan", self.ask("select * from task_plan"))
        for table in _OF_TASKS:
            if self._is_whole:
                db.execute(f"delete from {table}")  # noqa: S608
            for id_ in self.changed:
                db.execute(f"delete from {table} where id = ?", (id_,))  # noqa: S608
                _insert(db, table, self.ask(f"select * from {table} where id = ?", id_))  # noqa: S608

    def ask(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of the tables that answer a question in SQL."""
        if self._index is not None:
            try:
                return self._index.ask(question, *values)
            except Unusable:
                self._take()
        return self._db.execute(question, values).fetchall()

    def _take(self) -> None:
        """Have all of them in memory."""
        index, self._index = self._index, None
        if index is not None:
            try:
                found = {table: index.ask(f"select * from {table}") for table in TASKS}  # noqa: S608
            except Unusable:
                self._is_apart, self._db = True, self._instead()._db
            else:
                for table, rows in found.items():
                    _insert(self._db, table, rows)

    def put(self, id_: str, entry: Entry | None) -> None:
        """Keep the entry of an id; None: there is none any more."""
        if self.get(id_) == entry:
            return
        self._take()
        self.changed.add(id_)
        for table in _OF_TASKS:
            self._db.execute(f"delete from {table} where id = ?", (id_,))  # noqa: S608
        if entry is not None:
            files, *values, after, order = entry
            _insert(self._db, "task", [(id_, id_.casefold(), *values, json.dumps(after), order)])
            _insert(self._db, "task_file", [(id_, name, *file) for name, file in files.items()])

    def put_plan(self, chains: Iterable[Iterable[Sequence[str]]]) -> None:
        """Keep the chains of the plan in place of those before: each has segments of tasks."""
        self._take()
        self._is_plan_new = True
        self._db.execute("delete from task_plan")
        for number, segments in enumerate(chains):
            tasks = [(id_, segment) for segment, ids in enumerate(segments) for id_ in ids]
            _insert(self._db, "task_plan", [(number, place, *one) for place, one in enumerate(tasks)])

    def get(self, id_: str) -> Entry | None:
        """The entry of an id; None for none."""
        for _, _, *values, after, order in self.ask("select * from task where id = ?", id_):
            files = {
                name: (stamp, digest, bool(of_others), problem)
                for _, name, stamp, digest, of_others, problem in self.ask("select * from task_file where id = ?", id_)
            }
            entry = Entry._make([files, *values, tuple(json.loads(after)), order])
            return entry._replace(is_foreign=bool(entry.is_foreign), is_due=bool(entry.is_due))
        return None


def _insert(db: sqlite3.Connection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    for row in rows[:1]:
        db.executemany(f"insert into {table} values({', '.join('?' * len(row))})", rows)
