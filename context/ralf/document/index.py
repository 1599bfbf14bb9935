"""`index.db`: the states of documents, as rows of a SQLite file, and the tables of search. A cache: it may be deleted
or damaged at any time.

No error of it reaches anyone. Whoever cannot use it folds the journal in memory; a damaged one is removed.
"""

from __future__ import annotations

import ctypes
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from ralf.document.rows import Source
from ralf.storage import files
from ralf.storage.files import open_single_link
from ralf.text.frozen import NamedTuple

NAME = "index.db"

_VERSION = 10  # of the tables, and of the rows in them

_WAIT = 0.05  # seconds for another process that writes

TASKS = {
    "task": """create table task(id text primary key, folded text, path text, is_foreign int, is_due int, status text,
        role text, route text, title text, created text, priority int, needs text, ord int) without rowid""",
    "task_file": """create table task_file(id text, name text, stamp int, digest text, is_foreign int, problem text,
        primary key(id, name)) without rowid""",
    "task_plan": """create table task_plan(chain int, place int, id text unique, segment int, primary key(chain, place))
        without rowid""",
}
"""The tables of the list of tasks, which are kept beside the rows of its document (`ralf.tasks.entries`)."""

TASK_ORDER = "status <> 'pending', priority desc, created, ord, id"
"""Of tasks, as they would be claimed: those that are pending come first."""

_SCHEMA = f"""
begin immediate;
drop table if exists document;
drop table if exists row;
create table row(name text, key text, value text, primary key(name, key)) without rowid;
{"".join(f"drop table if exists {name}; {table};" for name, table in TASKS.items())}
create index task_ordered on task({TASK_ORDER}, status, is_foreign, role, route);
create index task_due on task(id) where is_due;
create index task_file_problem on task_file(name, problem) where problem <> '';
pragma user_version = {_VERSION};
commit;
"""

_BESIDE = ("-wal", "-shm", "-journal")

_MOST_OPEN = 8  # files that stay open

T = TypeVar("T")


class _Open(NamedTuple):
    """A connection, the inode of its file, and the bytes of the memory beside it that SQLite shares with others."""

    db: sqlite3.Connection
    inode: int
    shared: int


_idle: dict[Path, _Open] = {}  # by file; the longest unused first


class Unusable(Exception):
    """The index cannot be used now; what was to be done is done without it."""


@contextmanager
def using(path: Path | None) -> Iterator[Index | None]:
    """The index at a path, for a block; None where there is none, and where it is unusable."""
    index = opened(path)
    try:
        yield index
    finally:
        if index is not None:
            index.close()


def with_index(path: Path | None, work: Callable[[Index | None], T]) -> T:
    """What is done with tables of one's own in the index at a path; without one where it is unusable, now or in the
    middle. It may be done twice.
    """
    with using(path) as index, suppress(Unusable):
        return work(index)
    return work(None)


_LONG_LOG = 512 << 10  # bytes


def shorten(path: Path | None) -> None:
    """Move a long log of the index at a path into its file: it takes room, and whoever opens it first has to read it. A
    write is too short to wait for that, a checkpoint and a search are not. Nothing while others use the index.
    """
    with suppress(OSError):
        if path is not None and Path(f"{path}-wal").stat().st_size > _LONG_LOG:
            with_index(path, lambda index: index.ask("pragma wal_checkpoint(truncate)") if index is not None else None)


class Index:
    """An open index, at `path`. Every method raises Unusable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turns: dict[str, int] = {}  # how often each document had been kept when its rows were asked for
        self._open = _idle_connection(path) or _connected(path)
        self._db = self._open.db

    def close(self) -> None:
        """Leave the file open for whoever opens it next in this process."""
        try:
            self._db.rollback()
        except sqlite3.Error:
            self._db.close()
            return
        other = _idle.pop(self.path, None)  # of another thread
        _idle[self.path] = self._open
        if other is not None:
            _close(self.path, other)
        if len(_idle) > _MOST_OPEN:
            close_idle(1)

    def state(self, name: str, instead: Callable[[str], Source] | None = None) -> tuple[str, Kept] | None:
        """The place up to which a document's journal is folded, and its rows, both of one moment; None for none.

        instead  what gives the rows up to that place once the index is unusable; without it Unusable is raised then
        """
        with suppress(sqlite3.Error):
            self._db.rollback()
        self.ask("begin")
        ((version, text),) = self.ask(_STATE, name)
        if version != _VERSION:
            raise Unusable
        if text is None:
            return None
        token, self._turns[name] = _place(text)
        return token, Kept(self, name, None if instead is None else partial(instead, token))

    def keep(
        self,
        name: str,
        before: str | None,
        token: str,
        changed: Mapping[str, Any],
        beside: Callable[[sqlite3.Connection], None] | None = None,
    ) -> None:
        """Keep what changed since `state` was asked; nothing where somebody else was first.

        before  the place of the journal then, None where the rows are all there are; token: the place by now
        beside  keeps what the document has in tables of its own
        """
        with suppress(sqlite3.Error, OSError, Unusable):
            rows = [(name, key, _text(value)) for key, value in changed.items() if value is not None]
            self._db.rollback()
            with self._db:
                self._db.execute("begin immediate")
                text = self._db.execute(_STATE, (name,)).fetchone()[1]
                if before is None:
                    self._db.execute("delete from row where name = ?", (name,))
                elif text is None or _place(text) != [before, self._turns.get(name)]:
                    return
                gone = [(name, key) for key, value in changed.items() if value is None]
                self._db.executemany("delete from row where name = ? and key = ?", gone)
                self._db.executemany("insert or replace into row values(?, ?, ?)", rows)
                if beside is not None:
                    beside(self._db)
                turn = self._turns[name] = _place(text)[1] + 1 if text else 1
                self._db.execute("insert or replace into row values(?, '', ?)", (name, _text([token, turn])))

    def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What a statement in SQL says."""
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            _remove_if_damaged(self.path, error)
            raise Unusable from error

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Its database, for who has tables of their own in it; what SQLite raises within the block is Unusable."""
        try:
            yield self._db
        except sqlite3.DatabaseError as error:
            _remove_if_damaged(self.path, error)
            raise Unusable from error


_STATE = "select user_version, value from pragma_user_version left join row on name = ? and key = ''"
"""A document's place, and how often it was kept: the first of its rows."""

_SOME = "select key, value from row where name = ? and key in"

_ROWS = "select key, value from row where name = ? and key >= ? and key < ? and key > '' order by key"


class Kept:
    """The rows of a document, as they were when its state was asked for."""

    def __init__(self, index: Index, name: str, instead: Callable[[], Source] | None) -> None:
        self._index = index
        self._name = name
        self._instead = instead
        self._other: Source | None = None

    def some(self, keys: Iterable[str]) -> dict[str, Any]:
        """See `Source.some`."""
        wanted = list(keys)
        texts = self._texts(f"{_SOME} ({', '.join('?' * len(wanted))})", *wanted)
        with suppress(TypeError, ValueError):
            if texts is not None:
                return dict.fromkeys(wanted) | {key: _parsed(text) for key, text in texts}
        return self._folded().some(wanted)

    def under(self, prefix: str) -> Iterable[tuple[str, Any]]:
        """See `Source.under`."""
        texts = self._texts(_ROWS, prefix, f"{prefix}\U0010ffff")
        with suppress(TypeError, ValueError):
            if texts is not None:
                return [(key, _parsed(text)) for key, text in texts]
        return self._folded().under(prefix)

    def _texts(self, statement: str, *keys: str) -> list[tuple[Any, ...]] | None:
        if self._other is None:
            with suppress(Unusable):
                return self._index.ask(statement, self._name, *keys)
        return None

    def _folded(self) -> Source:
        """What has the same rows without the index."""
        if self._other is None:
            if self._instead is None:
                raise Unusable
            self._other = self._instead()
        return self._other


@lru_cache(maxsize=2_000)
def _parsed(text: str) -> Any:
    """The value of a row. The same text is the same object: what others make of it they can keep."""
    return json.loads(text)


def _text(value: Any) -> str:
    value = value() if callable(value) else value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _place(text: str) -> list[Any]:
    """The place of a document, and how often it was kept."""
    try:
        token, turn = json.loads(text)
    except (TypeError, ValueError) as error:
        raise Unusable from error
    return [token, turn]


def _idle_connection(path: Path) -> _Open | None:
    """The connection of this process to the file that lies at a path, None for none that nobody uses."""
    found = _idle.pop(path, None)
    if found is None or (_is_there(path, found) and _is_sound(path, found)):
        return found
    if _is_there(path, found):
        _remove(path)  # and never touch the connection again
    else:
        found.db.close()
    return None


def _is_there(path: Path, found: _Open) -> bool:
    """Whether the file of a connection still has its name: the inode of an open file is not given to another one."""
    with suppress(OSError):
        return path.stat().st_ino == found.inode
    return False


def _is_sound(path: Path, found: _Open) -> bool:
    """Whether nobody has cut the memory that SQLite shares: to touch it then would kill the process."""
    with suppress(OSError):
        return os.stat(f"{path}-shm").st_size >= found.shared  # noqa: PTH116
    return False


def _close(path: Path, found: _Open) -> None:
    if not _is_there(path, found) or _is_sound(path, found):
        found.db.close()


def close_idle(most: int = sys.maxsize) -> None:
    """Close the connections to some files, those that were not used for the longest time first."""
    for path in list(_idle)[:most]:
        if (found := _idle.pop(path, None)) is not None:
            _close(path, found)


os.register_at_fork(before=close_idle)  # SQLite allows no connection to be open in both processes


def _connected(path: Path) -> _Open:
    """A new connection to the file at a path, which is made where there is none."""
    files.make(path.parent)
    descriptor = open_single_link(os.fspath(path), os.O_RDWR | os.O_CREAT)  # for this user only, and no link
    inode = os.fstat(descriptor).st_ino
    os.close(descriptor)
    for ending in _BESIDE:
        with suppress(FileNotFoundError):
            os.close(open_single_link(f"{path}{ending}", os.O_RDONLY))
    db = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    # Who closes a file last has to wait for the disk. So nobody does, not even a process that ends.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(db))
    for setting in (
        "page_size = 16384",
        "journal_mode = wal",
        "synchronous = normal",
        "wal_autocheckpoint = 256",  # 4 MB: each process that is the first to open it reads the whole log
        "trusted_schema = off",
        "cell_size_check = on",
    ):
        db.execute(f"pragma {setting}")
    (version,) = db.execute("pragma user_version").fetchone()
    if version > _VERSION:
        raise Unusable
    if version < _VERSION:
        db.executescript(_SCHEMA)
    with suppress(FileNotFoundError):
        return _Open(db, inode, os.stat(f"{path}-shm").st_size)  # noqa: PTH116
    return _Open(db, inode, 0)


def opened(path: Path | None) -> Index | None:
    """The index at a path, to be closed; None where there is none, and where it is unusable."""
    if path is None:
        return None
    for _ in range(2):
        try:
            return Index(path)
        except sqlite3.DatabaseError as error:
            if not _remove_if_damaged(path, error):
                return None
        except (OSError, Unusable):
            return None
    return None


def _remove_if_damaged(path: Path, error: sqlite3.DatabaseError) -> bool:
    """Remove an index that is damaged; whether it was. One that is locked, full or unwritable stays."""
    if isinstance(error, sqlite3.OperationalError) and "no such" not in str(error):
        return False
    _remove(path)
    return True


def _remove(path: Path) -> None:
    with suppress(OSError):
        for ending in ("", *_BESIDE):
            Path(f"{path}{ending}").unlink(missing_ok=True)


def files_in(cache: Path) -> list[Path]:
    """The files of the index in the folder of a cache, and of the search index of earlier versions: all of them hold
    words of documents.
    """
    return [path for names in (f"{NAME}*", "search*") for path in cache.glob(names)]
