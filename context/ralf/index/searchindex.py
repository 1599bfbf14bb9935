"""The full-text index behind search: one SQLite file per project, and what it can be asked.

Documents have numbers: the route's in the upper half, the place within the route in the lower. So a route is a range,
and asking one route costs the same however many others there are.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from ralf.errors import Busy, Damaged
from ralf.files.opening import ours_alone
from ralf.journal import stream_of
from ralf.project import Project

VERSION = 9
ROUTE_BITS = 32
WAIT = 30.0
"""Seconds for which we wait for another process that writes the index."""
_MOST_TRIES = 5
_LINES = 8  # a message and the decision in it begin no further apart than this
_FILES_BESIDE = ("-journal", "-wal", "-shm")  # which SQLite opens by their names
_FOLLOWING = 8  # documents among which what follows a message is looked for
ROUTES = "routes"
FILE = "file:"  # begins the token of a route that has no journal
DECISION = "ralfdecision"
"""A word that stands around each decision, so that decisions can be asked for among many messages."""

_SCHEMA = """
create table doc(
    id integer primary key, kind text, label text, status text, successor text, said integer, size integer,
    session text, first integer, last integer
);
create index doc_at on doc(session, first) where session <> '' and said;
create index doc_of_decision on doc(label) where kind = 'decision';
create index doc_of_checkpoint on doc(label) where kind = 'checkpoint';
create table route(
    number integer primary key, name text unique, token text, checkpoints integer, next integer,
    said integer, said_words integer, printed integer, printed_words integer, mark text not null default ''
);
create virtual table said using fts5(text, parts, around, tokenize='porter unicode61');
create virtual table printed using fts5(text, parts, tokenize='porter unicode61');
insert into said(said, rank) values ('automerge', 2);
insert into printed(printed, rank) values ('automerge', 2);
"""

_NEWEST = {
    "said": "select json_group_array(rowid) from"
    " (select rowid from said where said match ? and rowid between ? and ? order by rowid desc limit ?)",
    "printed": "select json_group_array(rowid) from"
    " (select rowid from printed where printed match ? and rowid between ? and ? order by rowid desc limit ?)",
}
_TEXTS = {
    "said": "select rowid, text from said where rowid in (select value from json_each(?))",
    "printed": "select rowid, text from printed where rowid in (select value from json_each(?))",
}
_BESIDE = """
select one.id, other.id from doc one join doc other
on other.session = one.session and other.session <> '' and other.said
and other.first between one.first - :lines and one.last and other.last >= one.first
and other.kind = case one.kind when 'decision' then 'evidence' else 'decision' end
and other.id >> :bits = one.id >> :bits
where one.id in (select value from json_each(:numbers)) and one.said and one.kind in ('decision', 'evidence')
order by 1, 2
"""

Table = Literal["said", "printed"]
"""What somebody said (messages, decisions, sections), and what tools printed (output, facts)."""
TABLES: tuple[Table, ...] = ("said", "printed")

T = TypeVar("T")


class Entry(NamedTuple):
    """A document as it stands in the index; `size` in words, `successor`: the decision that replaced this one."""

    id: int
    kind: str
    label: str
    status: str
    successor: str
    said: int
    size: int
    session: str
    first: int
    last: int


class Extent(NamedTuple):
    """How much there is to be searched: documents, and their words on average."""

    documents: int
    average: float


def rebuilt_when_damaged(path: Path, work: Callable[[Path | None], T]) -> T:
    """`work(path)`; when the index turns out to be damaged, it is removed and `work` is done once more, and where it
    cannot be written (a full disk) with None: in memory.

    Busy when somebody else has locked it for longer than we wait: it is not damaged, and stays.
    """
    for _ in range(_MOST_TRIES):
        try:
            return work(path)
        except sqlite3.DatabaseError as error:
            if _is_locked(error):
                raise Busy(path, f"locked by another process for {WAIT:g} s", "try again") from None
            code = getattr(error, "sqlite_errorcode", 0)
            if code == sqlite3.SQLITE_FULL:
                break
            if code != sqlite3.SQLITE_READONLY_DBMOVED:  # else somebody has removed it, and perhaps made it anew
                for name in (path, path.with_name(path.name + "-journal")):
                    name.unlink(missing_ok=True)
    return work(None)


def _is_locked(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class SearchIndex:
    """The index in one file, made when missing, or in memory. sqlite3.DatabaseError when it is damaged."""

    def __init__(self, path: Path | None) -> None:
        try:
            self._db = sqlite3.connect(_writable(path) if path is not None else ":memory:", timeout=WAIT)
            self._prepare()
        except (sqlite3.OperationalError, OSError) as error:
            if isinstance(error, sqlite3.Error) and _is_locked(error):
                raise
            # a folder that cannot be written: search still works, in memory
            self._db = sqlite3.connect(":memory:")
            self._prepare()

        self._before: tuple[tuple[int, int], dict[int, int], int] = ((1, 0), {}, 0)
        """Of the span that was asked for last: by route, how many documents the routes before it have; and all have."""

        self.left_out: list[str] = []
        """Routes that could not be read: what the index has of them is all that is found."""

    def _prepare(self) -> None:
        self._db.execute("pragma synchronous = off")  # a cache: what a crash takes is made anew
        if self._version() != VERSION:
            with self._db:
                self._db.execute("begin immediate")
                if self._version() != VERSION:
                    for (table,) in self._db.execute(
                        "select name from sqlite_master where type = 'table' and (sql like 'create virtual%'"
                        " or name in ('doc', 'route', 'synced'))"
                    ).fetchall():
                        self._db.execute(f"drop table {table}")
                    for statement in _SCHEMA.strip().split(";\n"):
                        self._db.execute(statement)
                    self._db.execute(f"pragma user_version = {VERSION}")

    def _version(self) -> int:
        (version,) = self._db.execute("pragma user_version").fetchone()
        return int(version)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # ---- asking ----

    def within(self, route: str | None) -> tuple[int, int]:
        """The first and last number that a document of a route, or of any, may have."""
        if route is None:
            return 0, 1 << 62
        row = self._db.execute("select number from route where name = ?", (route,)).fetchone()
        return span_of(row[0]) if row is not None else (1, 0)

    def route_of(self, number: int) -> str:
        """The route of a document."""
        row = self._db.execute("select name from route where number = ?", (number >> ROUTE_BITS,)).fetchone()
        return str(row[0])

    def extent(self, table: Table, span: tuple[int, int]) -> Extent:
        """How much of a table lies within a span."""
        said, said_words, printed, printed_words = self._db.execute(
            "select total(said), total(said_words), total(printed), total(printed_words) from route"
            " where number between ? and ?",
            (span[0] >> ROUTE_BITS, span[1] >> ROUTE_BITS),
        ).fetchone()
        documents, words = (said, said_words) if table == "said" else (printed, printed_words)
        return Extent(int(documents), words / documents if documents else 1.0)

    def newest(self, table: Table, match: str, span: tuple[int, int], most: int) -> list[int]:
        """The newest `most` documents within a span that match an FTS5 expression, in the time that these take."""
        (found,) = self._db.execute(_NEWEST[table], (match, *span, most)).fetchone()
        numbers: list[int] = json.loads(found)
        return numbers

    def share(self, number: int, span: tuple[int, int]) -> float:
        """Which part of a span's documents is as new as one of them, or newer."""
        if self._before[0] != span:
            ends = dict(
                self._db.execute(
                    "select number, next from route where number between ? and ? order by number",
                    (span[0] >> ROUTE_BITS, span[1] >> ROUTE_BITS),
                )
            )
            whole = sum(ends.values())
            up_to = accumulate(ends.values(), initial=0)
            self._before = (span, dict(zip(ends, up_to, strict=False)), whole)
        _, before, whole = self._before
        older = before.get(number >> ROUTE_BITS, whole) + (number & (1 << ROUTE_BITS) - 1)
        return max(1, whole - older) / max(1, whole)

    def entries(self, numbers: Iterable[int]) -> dict[int, Entry]:
        """Documents by their numbers."""
        listed = json.dumps(list(numbers))
        rows = self._db.execute("select * from doc where id in (select value from json_each(?))", (listed,))
        return {row[0]: Entry(*row) for row in rows}

    def texts(self, table: Table, numbers: Iterable[int]) -> dict[int, str]:
        """The documents' texts."""
        return dict(self._db.execute(_TEXTS[table], (json.dumps(list(numbers)),)).fetchall())

    def beside(self, numbers: Iterable[int]) -> dict[int, list[int]]:
        """For decisions the messages in which they stand, for messages the decisions in them, by their lines."""
        found: dict[int, list[int]] = {}
        given = {"numbers": json.dumps(list(numbers)), "lines": _LINES, "bits": ROUTE_BITS}
        for one, other in self._db.execute(_BESIDE, given):
            found.setdefault(one, []).append(other)
        return found

    def following(self, entry: Entry) -> list[tuple[Entry, str]]:
        """The evidence of the same kind that comes next, in its order: the rest of a message, the messages after it."""
        near = self.entries(range(entry.id + 1, entry.id + 1 + _FOLLOWING))
        chosen = [near[n] for n in sorted(near) if near[n].kind == "evidence" and near[n].said == entry.said]
        texts = self.texts("said" if entry.said else "printed", [other.id for other in chosen])
        return [(other, texts[other.id]) for other in chosen if other.session == entry.session]

    # ---- keeping up ----

    def renew(self, project: Project, routes: Sequence[str]) -> None:
        """Take in what these routes have that the index has not. A journal whose mark is the one that it had when the
        index had all of it is not opened.
        """
        known = {row[0]: row[1:] for row in self._db.execute("select name, token, mark from route")}
        marks = project.store.marks(ROUTES) if len(routes) > 1 else {}
        unchanged = {}
        for route in routes:
            was, mark = known.get(route, ("", ""))
            if mark and mark == marks.get(route):
                continue
            head = project.store.head(stream_of(route))
            token = head if head is not None else _token_of_file(project, route)
            if token == was and route in marks:
                unchanged[route] = marks[route]
            if token and token != was:
                from ralf.index import searchsync  # only news pays for all that it takes to read it

                try:
                    with self._db:
                        self._db.execute("begin immediate")
                        searchsync.take(self._db, project, route, token, journaled=head is not None)
                except Damaged:
                    if len(routes) == 1:
                        raise
                    self.left_out.append(route)
        if unchanged:
            self._remember(unchanged)

    def _remember(self, marks: Mapping[str, str]) -> None:
        """Keep the marks of journals that the index has all of; another time, where another process writes."""
        self._db.execute("pragma busy_timeout = 0")
        with suppress(sqlite3.OperationalError), self._db:
            self._db.execute("begin immediate")
            self._db.executemany("update route set mark = ? where name = ?", ((marks[name], name) for name in marks))
        self._db.execute(f"pragma busy_timeout = {1000 * WAIT:.0f}")


def span_of(number: int) -> tuple[int, int]:
    """The first and last number that a document of a route may have, by the route's number."""
    return number << ROUTE_BITS, ((number + 1) << ROUTE_BITS) - 1


def _token_of_file(project: Project, route: str) -> str:
    """What stands for the state of a route that has a file and no journal, "" where there is no file."""
    try:
        found = project.route_file(route).stat()
    except OSError:
        return ""
    return f"{FILE}{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"


def _writable(path: Path) -> Path:
    """`path`, made for this user only (SQLite gives others a look); OSError where the index cannot be written, or it,
    or a file that SQLite keeps beside it, is a link or has a second name.
    """
    if path.parent.is_symlink():
        raise OSError(errno.ELOOP, "is a symbolic link", os.fspath(path.parent))
    os.close(ours_alone(os.fspath(path), os.O_RDWR | os.O_CREAT))
    for ending in _FILES_BESIDE:
        with suppress(FileNotFoundError):
            os.close(ours_alone(f"{path}{ending}", os.O_RDWR))
    return path
