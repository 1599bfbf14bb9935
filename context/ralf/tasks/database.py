"""The SQLite file that the index of tasks lies in: opened, made anew where it is damaged, and its tables."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from ralf.errors import Busy
from ralf.storage import files
from ralf.storage.files import open_single_link
from ralf.tasks import origin, records
from ralf.tasks.records import Known

VERSION = 4

WAIT = 30.0
"""Seconds for which we wait for another process that writes the index."""

_MOST_TRIES = 5

_PAUSE = 0.001  # seconds between two attempts to write

_ENDING = ".sqlite"

_FILES_BESIDE = ("-journal", "-wal", "-shm")  # which SQLite opens by their names

_SCHEMA = """
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
create table plan(id text primary key, chain integer, place integer) without rowid;
create table chain(number integer primary key, name text, segments text);
"""

_TABLES = ("meta", "file", "known", "own", "shown", "task", "need", "plan", "chain")

T = TypeVar("T")


class Torn(sqlite3.DatabaseError):
    """The index contradicts itself, or the files that it is of: it is made anew."""


def rebuilt_when_damaged(folder: Path | None, work: Callable[[Path | None], T]) -> T:
    """`work(path)` with the index in a folder; when that turns out to be damaged it is removed and `work` is done once
    more, and where it cannot be written with None: in memory. Busy when somebody else has locked it for longer than we
    wait.
    """
    for _ in range(_MOST_TRIES if folder is not None else 0):
        path = _path_in(folder) if folder is not None else None
        try:
            return work(path)
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0)
            if _is_locked(error):
                raise Busy(path, f"locked by another process for {WAIT:g} s", "try again") from None
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY):
                break
            if code != sqlite3.SQLITE_READONLY_DBMOVED and path is not None:  # else it has been made anew
                with suppress(OSError):
                    for name in (path, path.with_name(path.name + "-journal")):
                        name.unlink(missing_ok=True)
    return work(None)


def _path_in(folder: Path) -> Path:
    """The index in a folder, which is made first; else a name for one. No name comes twice: what SQLite keeps beside an
    index that is gone is never taken for that of another.
    """
    files.make(folder)
    with os.scandir(folder) as entries:
        first, *others = sorted(entry.name for entry in entries if entry.name.endswith(_ENDING)) or [""]
    for name in others:  # two were made at once
        with suppress(OSError):
            (folder / name).unlink()
    return folder / (first or f"{os.urandom(8).hex()}{_ENDING}")


def _is_locked(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


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


class Database:
    """The index in one file, made when missing, or in memory. sqlite3.DatabaseError when it is damaged."""

    def __init__(self, path: Path | None) -> None:
        try:
            self._open(path)
        except (sqlite3.OperationalError, OSError) as error:
            if isinstance(error, sqlite3.Error) and _is_locked(error):
                raise
            self._open(None)  # a folder that cannot be written

    def _open(self, path: Path | None) -> None:
        self.db = sqlite3.connect(
            _writable(path) if path is not None else ":memory:", timeout=WAIT, isolation_level=None
        )
        self._values: dict[str, Any] = {}
        self._is_changed = False
        self.db.execute("pragma synchronous = off")  # a cache: what a crash takes is made anew
        made = f"{origin.boot()} {sys.hash_info.width} {sys.version_info[:2]}"
        if self._version() == VERSION:
            self.load()
        if self._version() != VERSION or self.meta("made") != made:
            with self.writing(fresh=True):
                for table in _TABLES:
                    self.db.execute(f"drop table if exists {table}")
                for statement in _SCHEMA.strip().split(";\n"):
                    self.db.execute(statement)
                self._values = {}
                self.set_meta("made", made)
                self.db.execute(f"pragma user_version = {VERSION}")
        self.known = KnownRows(self.db)

    def _version(self) -> int:
        return int(self.db.execute("pragma user_version").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    @contextmanager
    def writing(self, *, fresh: bool = False, patient: bool = True) -> Iterator[None]:
        """A block that writes, whole or not at all, and alone; within `alone` a part of that.

        fresh    whether nothing that is kept is to be read first
        patient  whether it waits for whoever writes; else it raises sqlite3.OperationalError
        """
        inner = self.db.in_transaction
        if inner:
            self.db.execute("savepoint part")
        else:
            self._patiently("begin immediate", wait=WAIT if patient else 0)
        try:
            if not (fresh or inner):
                self.load()
            yield
            if self._is_changed:
                self._keep()
            self._patiently("release part" if inner else "commit", wait=WAIT if patient else 0)
        except BaseException:
            with suppress(sqlite3.Error):
                self.db.execute("rollback to part" if inner else "rollback")
                self.load()
            raise

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A block of any number of `writing` in which nobody else writes; each counts though the block fails later."""
        self._patiently("begin immediate")
        try:
            self.load()
            yield
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self.db.execute("rollback")
            raise
        except BaseException:
            with suppress(sqlite3.Error):
                self._patiently("commit")
            raise
        self._patiently("commit")

    @contextmanager
    def as_one(self) -> Iterator[None]:
        """A block that reads everything as of one moment."""
        self.db.execute("begin")
        try:
            self.load()
            yield
        finally:
            if self.db.in_transaction:
                self.db.execute("rollback")

    def _patiently(self, statement: str, wait: float = WAIT) -> None:
        """Begin or end to write, as soon as nobody else is at it: SQLite itself would look ever more seldom."""
        deadline = time.monotonic() + wait
        self.db.execute("pragma busy_timeout = 0")
        try:
            while True:
                try:
                    self.db.execute(statement)
                except sqlite3.OperationalError as error:
                    if not _is_locked(error) or time.monotonic() > deadline:
                        raise
                    time.sleep(_PAUSE)
                else:
                    return
        finally:
            self.db.execute(f"pragma busy_timeout = {1000 * WAIT:.0f}")

    # ---- small things that are kept: all in one row, so that none is older than another ----

    def load(self) -> None:
        """Read what is kept. `Torn` where it is not what was kept."""
        row = self.db.execute("select value from meta where key = 'state'").fetchone()
        total, _, text = str(row[0]).partition(" ") if row is not None else ("", "", "")
        if total != _sum(text):
            raise Torn("what is kept of the index is not what was written")
        self._values, self._is_changed = json.loads(text), False

    def _keep(self) -> None:
        text = json.dumps(self._values, ensure_ascii=False, separators=(",", ":"))
        self.db.execute("insert or replace into meta values('state', ?)", (f"{_sum(text)} {text}",))
        self._is_changed = False

    def meta(self, key: str, default: Any = "") -> Any:
        """What is kept under a key."""
        return self._values.get(key, default)

    def set_meta(self, key: str, value: Any) -> None:
        """Keep something under a key; within `writing`."""
        if self._values.get(key) != value:
            self._values[key], self._is_changed = value, True


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def _writable(path: Path) -> Path:
    """`path`, made for this user only; OSError where it, or a file that SQLite keeps beside it, is a link or has a
    second name.
    """
    if path.parent.is_symlink():
        raise OSError(errno.ELOOP, "is a symbolic link", os.fspath(path.parent))
    os.close(open_single_link(os.fspath(path), os.O_RDWR | os.O_CREAT))
    for ending in _FILES_BESIDE:
        with suppress(FileNotFoundError):
            os.close(open_single_link(f"{path}{ending}", os.O_RDWR))
    return path
