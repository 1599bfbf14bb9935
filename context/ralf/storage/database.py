"""A SQLite file of the cache: opened safely, made anew where it is damaged or of another version, else kept up."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ralf.errors import Busy
from ralf.storage import files
from ralf.storage.files import open_single_link
from ralf.text.patterns import regex

WAIT = 30.0
"""Seconds for which we wait for another process that writes the index."""

_MOST_TRIES = 5

_PAUSE = 0.001  # seconds between two attempts to write

_ENDING = ".sqlite"

_FILES_BESIDE = ("-journal", "-wal", "-shm")  # which SQLite opens by their names

_TABLE = regex(r"(?m)^create (?:virtual )?table (\w+)")

T = TypeVar("T")


class Torn(sqlite3.DatabaseError):
    """What the file holds contradicts itself, or what it was made of: it is made anew."""


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


class Database:
    """The file, made when missing, or in memory. sqlite3.DatabaseError when it is damaged.

    version  of the tables; schema: the statements that make them, of which one is a table `meta(key, value)`
    """

    version: ClassVar[int]
    schema: ClassVar[str]

    def __init__(self, path: Path | None, boot: str) -> None:
        """Open the file; `boot` names this run of the machine: what was written before a crash counts for nothing."""
        try:
            self._open(path, boot)
        except (sqlite3.OperationalError, OSError) as error:
            if isinstance(error, sqlite3.Error) and _is_locked(error):
                raise
            self._open(None, boot)  # a folder that cannot be written

    def _open(self, path: Path | None, boot: str) -> None:
        self.db = sqlite3.connect(
            _writable(path) if path is not None else ":memory:", timeout=WAIT, isolation_level=None
        )
        self._values: dict[str, Any] = {}
        self._is_changed = False
        self.db.execute("pragma synchronous = off")  # a cache: what a crash takes is made anew
        made = f"{boot} {sys.hash_info.width} {sys.version_info[:2]}"
        if not self._is_made(made):
            with self.writing(fresh=True):
                if self._is_made(made):  # by another process that has opened the file as well
                    return
                for table in _TABLE.findall(self.schema):
                    self.db.execute(f"drop table if exists {table}")
                for statement in self.schema.strip().split(";\n"):
                    self.db.execute(statement)
                self._values = {}
                self.set_meta("made", made)
                self.db.execute(f"pragma user_version = {self.version}")

    def _is_made(self, made: str) -> bool:
        """Whether the file has the tables of this version, of this run of the machine. `Torn`."""
        if self._version() != self.version:
            return False
        self.load()
        return bool(self.meta("made") == made)

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
