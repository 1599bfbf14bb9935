"""Finds the checkpoints and writes of graphs' threads in their streams: an SQLite file in the cache.

It holds ids and places only. It may be lost at any moment: what is missing is read from the streams again.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ralf.errors import UnknownToken
from ralf.storage import files
from ralf.storage.files import open_single_link
from ralf.storage.journal import Entry, Store, Token
from ralf_integrations.doors.graph_records import CheckpointRecord, GraphRecord, record_of

_VERSION = 1

_of_parents: list[sqlite3.Connection | None] = []  # of processes that were forked: not even to be closed

_ENDINGS = ("", "-journal", "-wal", "-shm")  # of the files that SQLite opens by their names

_WAIT = 30.0  # seconds for another process that writes the index

_TABLES = (
    "create table stream(stream text primary key, token text) without rowid",
    "create table checkpoint(stream text, ns text, id text, parent text, token text, is_fork integer,"
    " primary key(stream, ns, id)) without rowid",
    "create index child on checkpoint(stream, ns, parent)",
    "create table pending(stream text, ns text, id text, task text, idx integer, path text, token text,"
    " place integer, primary key(stream, ns, id, task, idx)) without rowid",
)


class Found(NamedTuple):
    """A checkpoint that the index knows."""

    stream: str
    ns: str
    id: str
    token: Token


class Pending(NamedTuple):
    """A write that waits at a checkpoint: the record it stands in, and which of its writes it is."""

    task: str
    token: Token
    place: int


class GraphIndex:
    """The index of the streams of a store. Safe for threads; processes may share the file.

    path  of the file; None: in memory
    """

    def __init__(self, store: Store, path: Path | None) -> None:
        self._store = store
        self._path = path
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._known: dict[str, Token | None] = {}
        self._process = os.getpid()

    def close(self) -> None:
        """Close the file."""
        with self._held():
            if self._db is not None:
                self._db.close()
            self._db = None
            self._known.clear()

    @contextmanager
    def of(self, *streams: str) -> Iterator[View]:
        """What the index says of some streams as they are now. A damaged index is made anew, once."""
        with self._held():
            try:
                db = self._current(streams)
            except sqlite3.DatabaseError:
                self._remove()
                db = self._current(streams)
            yield View(db)

    def known_head(self, stream: str) -> Token | None:
        """The newest record of a stream that this process has seen, else its head."""
        with self._lock:
            return self._known.get(stream) or self._store.head(stream)

    def _held(self) -> threading.RLock:
        """The lock. A forked process opens the file itself, and leaves its parent's connection alone."""
        if self._process != os.getpid():
            _of_parents.append(self._db)
            self._db, self._known, self._lock, self._process = None, {}, threading.RLock(), os.getpid()
        return self._lock

    def _current(self, streams: Sequence[str]) -> sqlite3.Connection:
        db = self._opened()
        for stream in streams:
            head = self._store.head(stream)
            if head != self._known.get(stream) and head != self._token(db, stream):
                self._take(db, stream)
            self._known[stream] = head
        return db

    # ---- the file ----

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            try:
                self._db = self._connected(self._path)
            except (OSError, sqlite3.OperationalError):  # a folder that cannot be written
                self._db = self._connected(None)
        return self._db

    def _connected(self, path: Path | None) -> sqlite3.Connection:
        if path is not None:
            files.make(path.parent)
            for ending in _ENDINGS:
                flags = os.O_RDWR | (0 if ending else os.O_CREAT)
                with suppress(FileNotFoundError):
                    os.close(open_single_link(f"{path}{ending}", flags))
        db = sqlite3.connect(path or ":memory:", timeout=_WAIT, isolation_level=None, check_same_thread=False)
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = off")  # a cache: what a crash takes is read again
        if db.execute("pragma user_version").fetchone()[0] != _VERSION:
            db.execute("begin immediate")
            for name in ("stream", "checkpoint", "pending"):
                db.execute(f"drop table if exists {name}")
            for table in _TABLES:
                db.execute(table)
            db.execute(f"pragma user_version = {_VERSION}")
            db.execute("commit")
        return db

    def _remove(self) -> None:
        self.close()
        if self._path is not None:
            for ending in _ENDINGS:
                self._path.with_name(self._path.name + ending).unlink(missing_ok=True)

    # ---- keeping up ----

    @staticmethod
    def _token(db: sqlite3.Connection, stream: str) -> Token | None:
        row = db.execute("select token from stream where stream = ?", (stream,)).fetchone()
        return row[0] if row else None

    def _take(self, db: sqlite3.Connection, stream: str) -> None:
        """Read what is new in a stream."""
        with _writing(db):
            token = self._token(db, stream)
            try:
                self._add_all(db, stream, self._store.read(stream, after=token))
            except UnknownToken:  # rewritten, or begun anew
                _forget(db, stream)
                self._add_all(db, stream, self._store.read(stream))

    def added(self, stream: str, record: GraphRecord, token: Token, after: Token | None) -> None:
        """Take in a record that this process has just appended after another one."""
        with self._held():
            try:
                db = self._opened()
                with _writing(db):
                    if self._token(db, stream) == after:
                        self._add(db, stream, record, token)
                        self._reach(db, stream, token)
                        self._known[stream] = token
            except sqlite3.DatabaseError:  # the next look reads it
                self._remove()

    def _add_all(self, db: sqlite3.Connection, stream: str, entries: Iterable[Entry]) -> None:
        token = None
        for entry in entries:
            token = entry.token
            if (record := record_of(stream, entry)) is not None:
                self._add(db, stream, record, token)
        if token is not None:
            self._reach(db, stream, token)

    @staticmethod
    def _reach(db: sqlite3.Connection, stream: str, token: Token) -> None:
        db.execute("insert or replace into stream values(?, ?)", (stream, token))

    @staticmethod
    def _add(db: sqlite3.Connection, stream: str, record: GraphRecord, token: Token) -> None:
        at = (stream, record.ns, record.id)
        if isinstance(record, CheckpointRecord):
            row = (*at, record.parent, token, record.is_fork)
            db.execute("insert or replace into checkpoint values(?, ?, ?, ?, ?, ?)", row)
            return
        rows = [(*at, record.task, one.number, record.path, token, place) for place, one in enumerate(record.writes)]
        otherwise = "replace" if record.replaces else "ignore"
        db.executemany(f"insert or {otherwise} into pending values(?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def forget(self, stream: str) -> None:
        """Forget what is known of a stream that was dropped."""
        with self._held():
            self._known.pop(stream, None)
            db = self._opened()
            with _writing(db):
                _forget(db, stream)


class View:
    """What the index says, as things were when it was asked for; see `GraphIndex.of`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def checkpoint(self, stream: str, ns: str, id_: str | None = None) -> Found | None:
        """A checkpoint of a thread by its id; None: the newest one."""
        which, given = ("and id = ?", (stream, ns, id_)) if id_ else ("order by id desc limit 1", (stream, ns))
        row = self._db.execute(
            f"select stream, ns, id, token from checkpoint where stream = ? and ns = ? {which}",  # noqa: S608  # ours
            given,
        ).fetchone()
        return Found(*row) if row else None

    def has_child(self, stream: str, ns: str, parent: str, but: str) -> bool:
        """Whether a checkpoint, or the thread itself where `parent` is "", is continued by another one than `but`."""
        query = (
            "select 1 from checkpoint where stream = ? and ns = ? and parent = ? and id != ? and not is_fork limit 1"
        )
        return self._db.execute(query, (stream, ns, parent, but)).fetchone() is not None

    def listed(
        self, streams: Sequence[str], ns: str | None = None, id_: str | None = None, before: str | None = None
    ) -> list[Found]:
        """The checkpoints of threads, the newest first."""
        given = [("ns = ?", ns), ("id = ?", id_), ("id < ?", before)]
        wheres = [where for where, value in given if value is not None]
        values = [value for _, value in given if value is not None]
        found: list[Found] = []
        for stream in streams:
            where = " and ".join(["stream = ?", *wheres])
            query = f"select stream, ns, id, token from checkpoint where {where}"  # noqa: S608  # ours
            found += [Found(*row) for row in self._db.execute(query, (stream, *values))]
        return sorted(found, key=lambda one: one.id, reverse=True)

    def pending(self, found: Found) -> list[Pending]:
        """The writes that wait at a checkpoint, in the order in which they are applied."""
        rows = self._db.execute(
            "select task, token, place from pending where stream = ? and ns = ? and id = ? order by path, task, idx",
            found[:3],
        )
        return [Pending(*row) for row in rows]


@contextmanager
def _writing(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("begin immediate")
    try:
        yield
    except BaseException:
        db.execute("rollback")
        raise
    db.execute("commit")


def _forget(db: sqlite3.Connection, stream: str) -> None:
    for table in ("stream", "checkpoint", "pending"):
        db.execute(f"delete from {table} where stream = ?", (stream,))  # noqa: S608
