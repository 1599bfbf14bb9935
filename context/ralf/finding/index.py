"""The full-text index behind search: one SQLite file per project, a cache that is kept up with its routes."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from ralf.errors import Busy, Damaged
from ralf.finding import units
from ralf.finding.units import Unit
from ralf.project import Project
from ralf.route import history, shared
from ralf.route.load import load_state
from ralf.storage import journal
from ralf.storage.files import open_single_link
from ralf.storage.journal import stream_of
from ralf.text.patterns import regex

VERSION = 13

WAIT = 30.0
"""Seconds for which we wait for another process that writes the index."""

ROUTE_BITS = 32
"""A row's number has the route's number above these bits, its place in the route below: a route is a range."""

_MOST_TRIES = 5

_FILES_BESIDE = ("-journal", "-wal", "-shm")  # which SQLite opens by their names

_SCHEMA = """
create table doc(
    id integer primary key, unit integer, kind text, label text, key text, status text, successor text, at text,
    session text, first integer, last integer
);
create index doc_of_decision on doc(label) where kind = 'decision';
create index doc_of_unit on doc(unit);
create index doc_at on doc(session, first) where kind in ('turn', 'text');
create table route(number integer primary key, name text unique, token text, next integer, mark text default '',
  foreign_part integer default 0);
create virtual table said using fts5(text, parts, mark, tokenize='porter unicode61');
create virtual table printed using fts5(text, parts, tokenize='porter unicode61');
create view piece as select doc.*, coalesce(said.text, printed.text, '') as words from doc
left join said on said.rowid = doc.id and kind <> 'evidence'
left join printed on printed.rowid = doc.id and kind = 'evidence';
"""

_COUNT = {
    "said": "select count(*) from said where said match ? and rowid between ? and ?",
    "printed": "select count(*) from printed where printed match ? and rowid between ? and ?",
}

_BEST = {
    "said": "select rowid, -rank from said where said match ? and rowid between ? and ? order by rank limit ?",
    "printed": "select rowid, -rank from printed where printed match ? and rowid between ? and ? order by rank limit ?",
}

_BEST_DECISIONS = (
    "select rowid, -bm25(said, 1.0, 1.0, 0.0) from said where said match ? and rowid between ? and ?"
    " order by bm25(said, 1.0, 1.0, 0.0) limit ?"
)

_DECIDED = "ralfdecision"
"""A word that marks each decision, so that decisions can be asked for among many messages."""

_SPOKEN = (
    "select * from piece where session = ? and first <= ? and max(first, last) >= ? and kind in ('turn', 'text')"
    " and id between ? and ? order by id"
)

_SAID = (
    "select * from piece where kind <> 'evidence' and status not in (?, ?) and id between ? and ?"
    " order by kind <> 'decision', id desc limit ?"
)

_FOLLOWING = (
    "select * from piece where id > ? and id <= ? and kind = ? and session = ? and status = ? order by id limit ?"
)

_DECISION = "select * from piece where kind = 'decision' and label = ? and id between ? and ? order by id"

_PUT = {
    "said": "insert into said(rowid, text, parts, mark) values (?, ?, ?, ?)",
    "printed": "insert into printed(rowid, text, parts) values (?, ?, ?)",  # has no mark
}

_OTHERS = "select id from doc where id between ? and ? and key not in (select value from json_each(?))"

_FORGET = ("delete from said where rowid = ?", "delete from printed where rowid = ?", "delete from doc where id = ?")

Table = Literal["said", "printed"]
"""What somebody said or recorded, and what is evidence alone."""

TABLES: tuple[Table, ...] = ("said", "printed")

T = TypeVar("T")


class Row(NamedTuple):
    """A piece of a unit. `unit`: the number of its first piece; `key`: what a unit of evidence depends on; the rest as
    in `ralf.finding.units.Unit`.
    """

    id: int
    unit: int
    kind: str
    label: str
    key: str
    status: str
    successor: str
    at: str
    session: str
    first: int
    last: int

    @property
    def route(self) -> int:
        """The number of its route."""
        return self.id >> ROUTE_BITS


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

    def _prepare(self) -> None:
        self._db.execute("pragma synchronous = off")  # a cache: what a crash takes is made anew
        if self._version() != VERSION:
            with self._db:
                self._db.execute("begin immediate")
                if self._version() != VERSION:
                    for (table,) in self._db.execute(
                        "select name from sqlite_master where type = 'table' and (sql like 'create virtual%'"
                        " or name in ('doc', 'route'))"
                    ).fetchall():
                        self._db.execute(f"drop table {table}")
                    self._db.execute("drop view if exists piece")
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
        """The first and last number that a row of a route, or of any, may have."""
        if route is None:
            return 0, 1 << 62
        row = self._db.execute("select number from route where name = ?", (route,)).fetchone()
        return _span(row[0]) if row is not None else (1, 0)

    def route_of(self, row: Row) -> str:
        """The name of a row's route."""
        (name,) = self._db.execute("select name from route where number = ?", (row.route,)).fetchone()
        return str(name)

    def not_searched(self, span: tuple[int, int]) -> list[str]:
        """Routes that have what came from elsewhere and nobody has accepted: none of that is here."""
        rows = self._db.execute(
            "select name from route where foreign_part and number between ? and ? order by name",
            (span[0] >> ROUTE_BITS, span[1] >> ROUTE_BITS),
        )
        return [name for (name,) in rows]

    def size(self, span: tuple[int, int]) -> int:
        """How many rows a span has."""
        (found,) = self._db.execute("select count(*) from doc where id between ? and ?", span).fetchone()
        return int(found)

    def count(self, table: Table, match: str, span: tuple[int, int]) -> int:
        """How many rows within a span match an FTS5 expression."""
        (found,) = self._db.execute(_COUNT[table], (match, *span)).fetchone()
        return int(found)

    def best(self, table: Table, match: str, span: tuple[int, int], most: int) -> dict[int, float]:
        """The rows within a span that match an FTS5 expression best, each with its BM25; of what was said as many
        decisions beside.
        """
        found = dict(self._db.execute(_BEST[table], (match, *span, most)))
        if table == "said":
            found |= dict(self._db.execute(_BEST_DECISIONS, (f"({match}) AND mark: {_DECIDED}", *span, most)))
        return found

    def pieces(self, numbers: Iterable[int]) -> dict[int, tuple[Row, str]]:
        """Rows with their texts, by their numbers."""
        return self._pieces("select * from piece where id in (select value from json_each(?))", json.dumps([*numbers]))

    def unit(self, row: Row) -> list[tuple[Row, str]]:
        """All pieces of a row's unit, in order."""
        return [*self._pieces("select * from piece where unit = ? order by id", row.unit).values()]

    def spoken(self, row: Row) -> list[tuple[Row, str]]:
        """The turns and texts in which a decision stands that was recorded with its lines."""
        given = (row.session, row.last, row.first, *_span(row.route))
        return [*self._pieces(_SPOKEN, *given).values()] if row.session else []

    def following(self, row: Row, most: int) -> list[tuple[Row, str]]:
        """What comes after a row's unit: the same session's next pieces of its kind."""
        last = max(other.id for other, _ in self.unit(row))
        found = self._pieces(_FOLLOWING, last, _span(row.route)[1], row.kind, row.session, row.status, most)
        return [*found.values()]

    def decision(self, label: str, route: int) -> tuple[Row, str] | None:
        """The beginning of a decision of a route, by the route's number."""
        return next(iter(self._pieces(_DECISION, label, *_span(route)).values()), None)

    def said(self, span: tuple[int, int], most: int) -> dict[int, str]:
        """What was said within a span and stands, with its text: decisions first, then the newest."""
        found = self._pieces(_SAID, units.REVERTED, units.TAKEN_BACK, *span, most)
        return {number: text for number, (_, text) in found.items()}

    def _pieces(self, statement: str, *given: object) -> dict[int, tuple[Row, str]]:
        return {row[0]: (Row(*row[:-1]), str(row[-1])) for row in self._db.execute(statement, given)}

    # ---- keeping up ----

    def renew(self, project: Project, routes: Sequence[str]) -> None:
        """Take in what these routes have that the index has not. A journal whose mark is the one that it had when the
        index had all of it is not opened.
        """
        known = {row[0]: row[1:] for row in self._db.execute("select name, token, mark from route")}
        theirs = shared.states(project)
        marks = journal.marks(project.store, "routes") if len(routes) > 1 else {}
        marks = {route: f"{mark}{theirs.get(route, '')}" for route, mark in marks.items()}
        unchanged = {}
        for route in routes:
            was, mark = known.get(route, ("", ""))
            if mark and mark == marks.get(route):
                continue
            head = project.store.head(stream_of(route))
            token = (head if head is not None else _token_of_file(project, route)) + theirs.get(route, "")
            if token == was and route in marks:
                unchanged[route] = marks[route]
            if token and token != was:
                try:
                    with self._db:
                        self._db.execute("begin immediate")
                        self._take(project, route, token, journaled=head is not None)
                except Damaged:  # among many routes, what the index has of this one is all that is found
                    if len(routes) == 1:
                        raise
        if unchanged:
            self._remember(unchanged)

    def _remember(self, marks: Mapping[str, str]) -> None:
        """Keep the marks of journals that the index has all of; another time, where another process writes."""
        self._db.execute("pragma busy_timeout = 0")
        with suppress(sqlite3.OperationalError), self._db:
            self._db.execute("begin immediate")
            self._db.executemany("update route set mark = ? where name = ?", ((marks[name], name) for name in marks))
        self._db.execute(f"pragma busy_timeout = {1000 * WAIT:.0f}")

    def _take(self, project: Project, route: str, token: str, *, journaled: bool) -> None:
        """Take in a route as it is at `token`; of its evidence only what is new."""
        self._db.execute("insert or ignore into route(name, token, next) values (?, '', 1)", (route,))
        number, after = self._db.execute("select number, next from route where name = ?", (route,)).fetchone()
        put = _Writer(self._db, number, after)
        if not journaled:
            state = load_state(project, route)
            own = state is None or state.status != "foreign"  # what is foreign is never found
            put.forget_others([])
            is_foreign = not own
            put.all(units.of_context(state.context) if state is not None and own else ())
            put.all(units.of_others(project, route))
        else:
            records = list(history.records(project, route))
            is_foreign = any(record.foreign for _, record in records)
            with journal.understood(route):
                spans = units.spans(project, route, records)
                put.forget_others(span.key for span in spans)
                held = put.keys()
                for span in spans:
                    if span.key not in held:
                        put.all(units.of_evidence(project.store, span), span.key)
                put.all(units.of_route(project, route, records, spans))
        values = (token, put.next, is_foreign, number)
        self._db.execute("update route set token = ?, next = ?, foreign_part = ? where number = ?", values)


def _span(route: int) -> tuple[int, int]:
    return route << ROUTE_BITS, ((route + 1) << ROUTE_BITS) - 1


def _token_of_file(project: Project, route: str) -> str:
    """What stands for the state of a route that has a file and no journal, "" where there is no file."""
    try:
        found = project.route_file(route).stat()
    except OSError:
        return ""
    return f"file:{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"


def _writable(path: Path) -> Path:
    """`path`, made for this user only (SQLite gives others a look); OSError where the index cannot be written, or it,
    or a file that SQLite keeps beside it, is a link or has a second name.
    """
    if path.parent.is_symlink():
        raise OSError(errno.ELOOP, "is a symbolic link", os.fspath(path.parent))
    os.close(open_single_link(os.fspath(path), os.O_RDWR | os.O_CREAT))
    for ending in _FILES_BESIDE:
        with suppress(FileNotFoundError):
            os.close(open_single_link(f"{path}{ending}", os.O_RDWR))
    return path


class _Writer:
    """Writes the rows of one route, within the transaction that is open; `next`: place of the next row."""

    def __init__(self, database: sqlite3.Connection, route: int, after: int) -> None:
        self._db, self._route, self.next = database, route, after

    def keys(self) -> set[str]:
        """The keys of the rows that the route has."""
        rows = self._db.execute("select distinct key from doc where id between ? and ?", _span(self._route))
        return {key for (key,) in rows}

    def forget_others(self, keys: Iterable[str]) -> None:
        """The route's rows, but for those with one of these keys."""
        rows = self._db.execute(_OTHERS, (*_span(self._route), json.dumps([*keys]))).fetchall()
        for statement in _FORGET:
            self._db.executemany(statement, rows)

    def all(self, found: Iterable[Unit], key: str = "") -> None:
        """Add units."""
        for unit in found:
            first = (self._route << ROUTE_BITS) + self.next
            table: Table = "printed" if unit.kind == "evidence" else "said"
            for text in units.chunks(unit.text):
                row = (self._route << ROUTE_BITS) + self.next
                self.next += 1
                values = (row, first, *unit._replace(text=key))
                self._db.execute("insert into doc values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
                mark = (_DECIDED if unit.kind == "decision" else "",) if table == "said" else ()
                self._db.execute(_PUT[table], (row, text, parts(text), *mark))


_CAMEL = regex(r"\b[A-Za-z]*[a-z0-9][A-Z][A-Za-z0-9]*\b")

_HUMP = regex(r"([a-z0-9])([A-Z])")

_WIDE = regex("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]{2,}")  # written without blanks


def parts(text: str) -> str:
    """The parts of a text's words: of `getUserById` get User By Id, of a script without blanks each character."""
    names = [_HUMP.sub(r"\1 \2", name) for name in dict.fromkeys(_CAMEL.findall(text))]
    return " ".join([*names, *(" ".join(run) for run in _WIDE.findall(text))])
