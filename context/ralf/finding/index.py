"""The search tables of `index.db`: kept up with the routes before each question, and asked. Without an index that can
be used, the same tables are made in memory.

searched  of each route that search has read: up to which place of its journal, and whether it has foreign records
unit      what one hit shows, with the number of its route
piece     the text of a unit in pieces that are looked up each; its rowid begins with the id of its unit
vector    what an embedder made of a text, by the text's sha256
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TypeVar

from ralf.document.index import NAME, Index, shorten, with_index
from ralf.errors import Damaged
from ralf.finding import units
from ralf.finding.units import Unit
from ralf.project import Project
from ralf.route.shared import Others
from ralf.storage import journal
from ralf.text.patterns import regex

EVERY = 0
"""In the place of a route's number: all of them."""

_VERSION = 5  # of the tables; the file has it as its `application_id`

_SCHEMA = """
drop table if exists searched;
drop table if exists unit;
drop table if exists piece;
drop table if exists vector;
create table searched(number integer primary key, route text unique, token text, mark text, is_foreign integer);
create table unit(
    id integer primary key, route integer, key text, kind text, label text, status text, successor text, at text,
    session text, first integer, last integer
);
create index unit_route on unit(route);
create index unit_decision on unit(label, route) where kind = 'decision';
create index unit_session on unit(session, first) where kind in ('turn', 'text');
create virtual table piece using fts5(text, parts, mark, tokenize='porter unicode61');
create table vector(command text, text text, numbers blob, primary key(command, text)) without rowid;
"""

_WAIT = 2_000  # milliseconds for another process that writes the tables

_BITS = 18  # of a piece's number below that of its unit

_BY_PIECE = "piece join unit on id = piece.rowid >> 18 and piece.rowid between id << 18 and (id << 18) + 262143"
_BY_UNIT = (
    "unit cross join piece on piece.rowid between id << 18 and (id << 18) + 262143"  # else SQLite reads all pieces
)

_BEST = (  # one query for all: before the first row, BM25 counts each word in the whole table
    "select piece.rowid, bm25(piece, 1.0, 1.0, 0.0) as cost, kind from piece cross join unit"
    " on unit.id = piece.rowid >> 18 where piece match ? order by cost"
)

_FEW = (
    "insert into temp.few(rowid, text, parts) select rowid, text, parts from piece"
    " where rowid in (select value from json_each(?))"
)

T = TypeVar("T")


def with_database(project: Project, work: Callable[[sqlite3.Connection, Index | None], T]) -> T:
    """`work` with the database that has the search tables, and the index that it is; in memory where that cannot be
    used, now or in the middle: then it is done twice.
    """

    def asked(index: Index | None) -> T:
        if index is not None:
            with index.database() as db:
                db.execute(f"pragma busy_timeout = {_WAIT}")
                _make_tables(db)
                return work(db, index)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            _make_tables(db)
            return work(db, None)

    try:
        return with_index(project.room_for(NAME), asked)
    finally:
        shorten(project.room_for(NAME))


def _make_tables(db: sqlite3.Connection) -> None:
    version = "pragma application_id"
    if db.execute(version).fetchone()[0] == _VERSION:
        return
    with db:
        db.execute("begin immediate")
        if db.execute(version).fetchone()[0] != _VERSION:  # else another process has made them
            for statement in _SCHEMA.strip().split(";\n"):
                db.execute(statement)
            db.execute(f"{version} = {_VERSION}")


class SearchTables:
    """The tables in an open database."""

    def __init__(self, db: sqlite3.Connection, index: Index | None = None) -> None:
        self._db = db
        self._index = index

    # ---- asking ----

    def number_of(self, route: str | None) -> int:
        """The number of a route; -1 for one that the tables have nothing of."""
        if route is None:
            return EVERY
        row = self._db.execute("select number from searched where route = ?", (route,)).fetchone()
        return int(row[0]) if row is not None else -1

    def name_of(self, route: int) -> str:
        """The name of a route."""
        return str(self._db.execute("select route from searched where number = ?", (route,)).fetchone()[0])

    def foreign(self, route: int) -> int:
        """How many routes have what came from elsewhere and nobody has accepted: none of that is here."""
        statement = "select count(*) from searched where is_foreign and ? in (number, 0)"
        return int(self._db.execute(statement, (route,)).fetchone()[0])

    def held(self, numbers: Iterable[int], matches: Mapping[str, str]) -> dict[int, set[str]]:
        """Which of some FTS5 expressions, by their names, each of these pieces matches."""
        found: dict[int, set[str]] = {number: set() for number in numbers}
        self._db.execute("pragma temp_store = memory")
        self._db.execute("drop table if exists temp.few")  # an index of a few pieces answers at once
        self._db.execute("create virtual table temp.few using fts5(text, parts, tokenize='porter unicode61')")
        self._db.execute(_FEW, (json.dumps([*found]),))
        for name, match in matches.items():
            for (number,) in self._db.execute("select rowid from temp.few where few match ?", (match,)):
                found[number].add(name)
        return found

    def best(self, match: str, route: int, said: int, printed: int) -> dict[int, float]:
        """The pieces that match an FTS5 expression best, each with its BM25: so many of those that somebody said or
        recorded, of decisions alone, and of evidence.
        """
        within = f"({match}) AND mark: {_mark(route)}" if route != EVERY else match
        found, left = dict[int, float](), Counter(said=said, decision=said, evidence=printed)
        for number, cost, kind in self._db.execute(_BEST, (within,)):
            groups = {"evidence": ["evidence"], "decision": ["said", "decision"]}.get(kind, ["said"])
            if any(left[group] > 0 for group in groups):
                found[number] = -cost
            left.subtract(groups)
            if max(left.values()) <= 0:
                break
        return found

    def pieces(self, numbers: Iterable[int]) -> dict[int, Unit]:
        """Pieces by their numbers, each as the unit that it belongs to with its own text."""
        return dict(self._pieces("piece.rowid in (select value from json_each(?))", json.dumps([*numbers])))

    def unit(self, id_: int) -> dict[int, Unit]:
        """All pieces of a unit, in order."""
        return dict(self._pieces("piece.rowid between ? and ? order by piece.rowid", *_numbers(id_)))

    def turn_of(self, unit: Unit) -> list[Unit]:
        """The turns and texts in which a decision stands that was recorded with its lines."""
        where = (
            "session = ? and first <= ? and max(first, last) >= ? and kind in ('turn', 'text')"
            " and route = ? order by piece.rowid"
        )
        values = (unit.session, unit.last, unit.first, unit.route)
        return [one for _, one in self._pieces(where, *values, joined=_BY_UNIT) if unit.session]

    def following(self, unit: Unit, most: int) -> list[Unit]:
        """What comes after a unit: the same session's next pieces of its kind."""
        statement = "select id from unit where route = ? and id > ? and kind = ? and session = ? and status = ? limit ?"
        found = self._db.execute(statement, (unit.route, unit.id, unit.kind, unit.session, unit.status, most))
        return [piece for (id_,) in found for piece in self.unit(id_).values()][:most]

    def decision(self, label: str, unit: Unit) -> tuple[int, Unit] | None:
        """The beginning of the decision with a label in the route of a unit, with the number of that piece."""
        where = "kind = 'decision' and label = ? and route = ? order by piece.rowid limit 1"
        return next(self._pieces(where, label, unit.route, joined=_BY_UNIT), None)

    def said(self, route: int, most: int) -> dict[int, str]:
        """What was said and stands, with its text: decisions first, then the newest."""
        where = (
            "? in (route, 0) and kind <> 'evidence' and status not in (?, ?)"
            " order by kind <> 'decision', piece.rowid desc limit ?"
        )
        found = self._pieces(where, route, units.REVERTED, units.TAKEN_BACK, most)
        return {number: unit.text for number, unit in found}

    def _pieces(self, where: str, *values: object, joined: str = _BY_PIECE) -> Iterator[tuple[int, Unit]]:
        columns = "piece.rowid, kind, label, piece.text, status, successor, at, session, first, last, id, route"
        found = self._db.execute(f"select {columns} from {joined} where {where}", values)  # noqa: S608  # our own texts
        return ((row[0], Unit(*row[1:])) for row in found)

    # ---- keeping up ----

    def catch_up(self, project: Project, routes: Sequence[str], others: Others, *, every: bool) -> None:
        """Take in what these routes have that the tables have not; `every`: there are no others. A journal whose mark
        is the one that it had when the tables had all of it is not opened.
        """
        known = {row[0]: row[1:] for row in self._db.execute("select route, token, mark from searched")}
        theirs, marked = others.by_route(), []
        marks = project.store.files.marks("routes") if every and project.store.files is not None else {}
        for route in routes:
            shared = theirs.get(route, Others())
            mark = f"{marks[route]} {shared.state}" if route in marks else ""
            was, before = known.get(route, ("", ""))
            if mark and mark == before:
                continue
            token = f"{_place(project, route)} {shared.state}"
            try:
                while token.strip() and token != was:
                    was = self._take(project, route, was, token, shared)
            except Damaged:  # among many routes, what the tables have of this one is all that is found
                if not every:
                    raise
            if mark and token == was:
                marked.append((mark, route))
        gone = known.keys() - set(routes) if every else set()
        if marked or gone:
            with self._writing():
                self._db.executemany("update searched set mark = ? where route = ?", marked)
                for route in gone:
                    self._drop(self.number_of(route), [])
                    self._db.execute("delete from searched where route = ?", (route,))

    def _take(self, project: Project, route: str, was: str, token: str, others: Others) -> str:
        """Take in a route as it is at `token`, of its evidence only what is new. The token of what the tables then have
        of it: another process may have been first.
        """
        statement = "select distinct key from unit where route = ?"
        held = {key for (key,) in self._db.execute(statement, (self.number_of(route),))}
        found = units.of_route(project, route, others, held, self._index)
        with self._writing():
            row = self._db.execute("select token from searched where route = ?", (route,)).fetchone()
            if row is not None and row[0] != was:
                return str(row[0])
            self._db.execute("insert or ignore into searched(route) values (?)", (route,))
            values = (token, found.is_foreign, route)
            self._db.execute("update searched set token = ?, mark = '', is_foreign = ? where route = ?", values)
            number = self.number_of(route)
            self._drop(number, found.kept)
            for key, unit in found.new:
                self._put(number, key, unit)
        return token

    def _put(self, route: int, key: str, unit: Unit) -> None:
        values = (route, key, unit.kind, unit.label, *unit[3:-2])
        id_ = self._db.execute("insert into unit values (null, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid or 0
        texts = enumerate(units.chunks(unit.text), id_ << _BITS)
        rows = ((number, text, parts(text), _mark(route)) for number, text in texts)
        self._db.executemany("insert into piece(rowid, text, parts, mark) values (?, ?, ?, ?)", rows)

    def _drop(self, route: int, kept: Sequence[str]) -> None:
        """Remove the units of a route, but for those with one of these keys."""
        statement = "select id from unit where route = ? and key not in (select value from json_each(?))"
        found = self._db.execute(statement, (route, json.dumps(kept))).fetchall()
        self._db.executemany("delete from piece where rowid between ? and ?", (_numbers(id_) for (id_,) in found))
        self._db.executemany("delete from unit where id = ?", found)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._db.in_transaction:  # of a state that was read
            self._db.execute("rollback")
        with self._db:
            self._db.execute("begin immediate")
            yield


def _numbers(unit: int) -> tuple[int, int]:
    """The first and the last number that a piece of a unit may have."""
    return unit << _BITS, (unit + 1 << _BITS) - 1


def _mark(route: int) -> str:
    """The word that marks the pieces of a route."""
    return f"ralfroute{route}"


def _place(project: Project, route: str) -> str:
    """Up to where a route's journal goes; what its file is where it has none, "" where it has neither."""
    head = project.store.head(journal.stream_of(route))
    if head is not None:
        return head
    try:
        found = project.route_file(route).stat()
    except OSError:
        return ""
    return f"file:{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"


_CAMEL = regex(r"\b[A-Za-z]*[a-z0-9][A-Z][A-Za-z0-9]*\b")

_HUMP = regex(r"([a-z0-9])([A-Z])")

WIDE = regex("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]{2,}")
"""A run of a script that is written without blanks."""


def parts(text: str) -> str:
    """The parts of a text's words: of `getUserById` get User By Id, of a script without blanks each character."""
    names = [_HUMP.sub(r"\1 \2", name) for name in dict.fromkeys(_CAMEL.findall(text))]
    return " ".join([*names, *(" ".join(run) for run in WIDE.findall(text))])
