"""What lists and claims ask of all tasks: two tables in memory, which `index.db` keeps, so that SQL answers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ralf.document.index import TASKS, Index

ORDER = "status <> 'pending', priority desc, created, ord, id"
"""Of tasks, as they would be claimed: those that are pending come first."""


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
    after: Sequence[str] = ()
    order: int = 0


class Entries:
    """The entries by their ids. No error of the index reaches who asks: it is read once, and what changes is kept."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, uri=True)
        for table in TASKS.values():
            self._db.execute(table)
        self._changed = set[str]()

    def take(self, index: Index, stream: str, token: str) -> None:
        """Take those that an index has beside a document at a place of its journal. Unusable."""
        index.copy(self._db, TASKS, stream, token)

    def keep(self, db: sqlite3.Connection, *, is_whole: bool) -> None:
        """Leave in the index what changed, within its transaction.

        is_whole  whether what it has is of another document
        """
        for table in TASKS:
            if is_whole:
                db.execute(f"delete from {table}")  # noqa: S608
            for id_ in self._changed:
                db.execute(f"delete from {table} where id = ?", (id_,))  # noqa: S608
                for row in self.ask(f"select * from {table} where id = ?", id_):  # noqa: S608
                    db.execute(f"insert into {table} values({', '.join('?' * len(row))})", row)

    def ask(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of `task` and `task_file` that answer a question in SQL."""
        return self._db.execute(question, values).fetchall()

    def put(self, id_: str, entry: Entry | None) -> None:
        """Keep the entry of an id; None: there is none any more."""
        self._changed.add(id_)
        for table in TASKS:
            self._db.execute(f"delete from {table} where id = ?", (id_,))  # noqa: S608
        if entry is not None:
            files, *values = entry._replace(after=json.dumps([*entry.after]))
            self._db.execute(f"insert into task values(?, ?{', ?' * len(values)})", (id_, id_.casefold(), *values))
            rows = [(id_, name, *file) for name, file in files.items()]
            self._db.executemany("insert into task_file values(?, ?, ?, ?, ?, ?)", rows)

    def get(self, id_: str) -> Entry | None:
        """The entry of an id; None for none."""
        for _, _, *values, after, order in self.ask("select * from task where id = ?", id_):
            files = {
                name: (stamp, digest, bool(of_others), problem)
                for _, name, stamp, digest, of_others, problem in self.ask("select * from task_file where id = ?", id_)
            }
            entry = Entry._make([files, *values, json.loads(after), order])
            return entry._replace(is_foreign=bool(entry.is_foreign), is_due=bool(entry.is_due))
        return None

    def __getitem__(self, id_: str) -> Entry:
        if (found := self.get(id_)) is None:
            raise KeyError(id_)
        return found

    def __len__(self) -> int:
        ((found,),) = self.ask("select count(*) from task")
        return int(found)
