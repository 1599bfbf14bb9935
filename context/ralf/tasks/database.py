"""The tables of the index of tasks, and what is known of tasks as rows of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

from ralf.tasks import records
from ralf.tasks.records import Known

VERSION = 5

SCHEMA = """
create table meta(key text primary key, value text) without rowid;
create table file(
    path text primary key, stamp integer, digest text, id text, is_foreign integer, problem text, data text
) without rowid;
create index file_of_task on file(id);
create index file_any_case on file(id collate nocase);
create index file_of_digest on file(digest);
create index file_stamps on file(path, stamp);
create table known(id text primary key, data text) without rowid;
create index known_any_case on known(id collate nocase);
create table own(digest text primary key, recorded integer) without rowid;
create index own_unrecorded on own(digest) where recorded = 0;
create table shown(id text primary key, digest text) without rowid;
create table task(
    id text primary key, words text, status text, priority integer, role text, route text, created text, seq integer,
    finished text, blocked integer, claim integer, holder text, is_foreign integer, path text, data text, warnings text,
    chain integer, place integer, misplaced integer
) without rowid;
create index task_any_case on task(id collate nocase);
create index task_ready on task(status, is_foreign, blocked, claim, priority desc, created, seq, id);
create index task_claimed on task(claim) where claim > 0;
create index task_misplaced on task(id) where misplaced = 1;
create index task_words on task(words);
create index task_in_chain on task(chain, status, place) where chain is not null;
create table need(id text, on_id text, primary key(id, on_id)) without rowid;
create index need_on on need(on_id);
create table aside(inode integer primary key, content blob);
create table plan(id text primary key, chain integer, place integer) without rowid;
create table chain(number integer primary key, name text, segments text);
"""


class KnownRows(Mapping[str, Known]):
    """What is known of tasks, read when it is asked for, and written when `flush` is called."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.changed: dict[str, Known] = {}

    def __getitem__(self, id_: str) -> Known:
        if id_ in self.changed:
            return self.changed[id_]
        row = self._db.execute("select data from known where id = ?", (id_,)).fetchone()
        if row is None:
            raise KeyError(id_)
        return records.known_of(row[0])

    def __setitem__(self, id_: str, known: Known) -> None:
        self.changed[id_] = known

    def __iter__(self) -> Iterator[str]:
        return (id_ for (id_,) in self._db.execute("select id from known").fetchall())

    def __len__(self) -> int:
        return int(self._db.execute("select count(*) from known").fetchone()[0])

    def flush(self) -> list[str]:
        """Write what changed; the ids."""
        ids = list(self.changed)
        rows = [(id_, records.known_text(known)) for id_, known in self.changed.items()]
        self._db.executemany("insert or replace into known values(?, ?)", rows)
        self.changed.clear()
        return ids
