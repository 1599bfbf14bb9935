"""The full-text index behind search: one SQLite file per project, kept up with its routes."""

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

from ralf.errors import Busy, Damaged, UnknownToken
from ralf.finding import documents
from ralf.finding.documents import DECISION, FILE, ROUTE_BITS, Document, span_of
from ralf.project import Project
from ralf.route import cap, history
from ralf.route.load import load_state
from ralf.storage import journal
from ralf.storage.files import open_single_link
from ralf.storage.journal import Record, stream_of
from ralf.text.patterns import regex

# --------------------
# The index: one SQLite file per project.
#
# A document's number has the route's number in its upper half and its place within the route in the lower. So a route
# is a range, and the cost of asking one route does not depend on the others.


VERSION = 11

WAIT = 30.0
"""Seconds for which we wait for another process that writes the index."""

_MOST_TRIES = 5

_LINES = 8  # a message and the decision in it begin no further apart than this

_FILES_BESIDE = ("-journal", "-wal", "-shm")  # which SQLite opens by their names

_FOLLOWING, _FAR = 6, 200  # documents that are told to follow one, and among how many they are looked for

ROUTES = "routes"

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
    said integer, said_size integer, printed integer, printed_size integer, mark text not null default ''
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

_DECISION = (
    "select doc.*, text from doc join said on said.rowid = doc.id"
    " where kind = 'decision' and label = ? and doc.id between ? and ?"
)

_SAID = (
    "select doc.id, text from doc join said on said.rowid = doc.id where kind = 'decision'"
    " and doc.id between ? and ? order by doc.id desc limit ?",
    "select doc.id, text from doc join said on said.rowid = doc.id where kind <> 'decision' and doc.said"
    " and status <> 'reverted' and doc.id between ? and ? order by doc.id desc limit ?",
)

_BESIDE = """
select one.id, other.id from doc one join doc other
on other.session = one.session and other.session <> '' and other.said
and other.first between one.first - :lines and one.last and other.last >= one.first
and other.kind = case one.kind when 'decision' then 'evidence' else 'decision' end
and other.id >> :bits = one.id >> :bits
where one.id in (select value from json_each(:numbers)) and one.said and one.kind in ('decision', 'evidence')
order by 1, 2
"""

_NEXT = (
    "select * from doc where id > ? and id <= ? and kind = 'evidence' and session = ? and status = ?"
    " and (said or first = ?) order by id limit ?"
)

BY_USER = 2

Table = Literal["said", "printed"]
"""What somebody said (messages, decisions, sections), and what tools printed (output, facts)."""

TABLES: tuple[Table, ...] = ("said", "printed")

T = TypeVar("T")


class Entry(NamedTuple):
    """A document as it stands in the index; `size` in characters, `successor`: the decision that replaced this one,
    `said`: 0 what a tool printed, 1 what somebody said, `BY_USER` a message of the user's.
    """

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
    """How much there is to be searched: documents, and their characters on average."""

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
        said, said_size, printed, printed_size = self._db.execute(
            "select total(said), total(said_size), total(printed), total(printed_size) from route"
            " where number between ? and ?",
            (span[0] >> ROUTE_BITS, span[1] >> ROUTE_BITS),
        ).fetchone()
        documents, size = (said, said_size) if table == "said" else (printed, printed_size)
        return Extent(int(documents), size / documents if documents else 1.0)

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

    def decision(self, label: str, route: int) -> tuple[Entry, str] | None:
        """A decision of a route, by the route's number, with its text."""
        row = self._db.execute(_DECISION, (label, *span_of(route))).fetchone()
        return (Entry(*row[:-1]), row[-1]) if row is not None else None

    def said(self, span: tuple[int, int], most: int) -> dict[int, str]:
        """What was said within a span, with its text, and no revert took back: decisions first, then the newest."""
        found: dict[int, str] = {}
        for statement in _SAID:
            found |= dict(self._db.execute(statement, (*span, most - len(found))).fetchall())
        return found

    def beside(self, numbers: Iterable[int]) -> dict[int, list[int]]:
        """For decisions the messages in which they stand, for messages the decisions in them, by their lines."""
        found: dict[int, list[int]] = {}
        given = {"numbers": json.dumps(list(numbers)), "lines": _LINES, "bits": ROUTE_BITS}
        for one, other in self._db.execute(_BESIDE, given):
            found.setdefault(one, []).append(other)
        return found

    def following(self, entry: Entry) -> list[tuple[Entry, str]]:
        """What comes next in the transcript, in its order. Behind what was said, what was said: the rest of a message,
        the messages after it. Behind what a tool printed, also the rest of that. What a revert took back follows
        only what it took back, too.
        """
        last = min(span_of(entry.id >> ROUTE_BITS)[1], entry.id + _FAR)
        printed = entry.first if not entry.said else -1
        given = (entry.id, last, entry.session, entry.status, printed, _FOLLOWING)
        chosen = [Entry(*row) for row in self._db.execute(_NEXT, given)]
        texts = self.texts("said", [other.id for other in chosen]) | self.texts(
            "printed", [other.id for other in chosen if not other.said]
        )
        return [(other, texts[other.id]) for other in chosen if other.id in texts]

    # ---- keeping up ----

    def renew(self, project: Project, routes: Sequence[str]) -> None:
        """Take in what these routes have that the index has not. A journal whose mark is the one that it had when the
        index had all of it is not opened.
        """
        known = {row[0]: row[1:] for row in self._db.execute("select name, token, mark from route")}
        marks = journal.marks(project.store, ROUTES) if len(routes) > 1 else {}
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
                try:
                    with self._db:
                        self._db.execute("begin immediate")
                        take(self._db, project, route, token, journaled=head is not None)
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
    os.close(open_single_link(os.fspath(path), os.O_RDWR | os.O_CREAT))
    for ending in _FILES_BESIDE:
        with suppress(FileNotFoundError):
            os.close(open_single_link(f"{path}{ending}", os.O_RDWR))
    return path


# --------------------
# Updates the index with new records of a route.


_CAMEL = regex(r"\b[A-Za-z]*[a-z0-9][A-Z][A-Za-z0-9]*\b")

_HUMP = regex(r"([a-z0-9])([A-Z])")

_LABELLED = "select doc.id, size, text from doc join said on said.rowid = doc.id where kind = '{}' and label = ?"

_KNOWN = {kind: f"{_LABELLED.format(kind)} and doc.id between ? and ?" for kind in ("decision", "checkpoint")}
"""Each kind for itself, since an index over one kind serves only what names it."""

_FORGET = (
    "delete from said where rowid between ? and ?",
    "delete from printed where rowid between ? and ?",
    "delete from doc where id between ? and ?",
)


def take(database: sqlite3.Connection, project: Project, route: str, token: str, *, journaled: bool) -> None:
    """Take in what is new of a route up to `token`, within the transaction that is open."""
    writer = _Writer(database, route)
    if journaled:
        _take_records(writer, project, route)
    else:
        state = load_state(project, route)
        writer.forget()
        own = state is not None and state.status != "foreign"  # what is foreign is never found
        for document in documents.of_context(state.context) if state is not None and own else ():
            writer.put(document)
        writer.synced(token, 0)


def _take_records(writer: _Writer, project: Project, route: str) -> None:
    after, checkpoints = writer.since
    try:
        records = list(journal.read(project.store, route, after=after or None))
    except UnknownToken:  # the journal was rewritten, or is another
        records, after = list(journal.read(project.store, route)), ""
    if not after:
        checkpoints = 0
        writer.forget()
    for _, record in records:
        with journal.understood(route, record):
            checkpoints = _take_record(writer, project, record, checkpoints)
    if any(record.kind == "revert" and not record.foreign for _, record in records):
        writer.mark_undone(history.undone(project, route))
    state = load_state(project, route)
    for decision in state.recorded.decisions if state is not None else ():  # as edits have left them
        document = documents.of_decision(decision)
        writer.put(document, again=cap.is_bare(decision) and writer.has(document))
    if records:
        writer.synced(str(records[-1][0]), checkpoints)


def _take_record(writer: _Writer, project: Project, record: Record, checkpoints: int) -> int:
    """Take in one record; how many checkpoints there are with it. Nothing of a foreign one is found."""
    if record.foreign:
        return checkpoints
    if record.kind == "checkpoint":
        checkpoints += 1
        for document in documents.of_checkpoint(project.store, record.payload, f"cp-{checkpoints:03d}"):
            writer.put(document, again=True)
    else:
        checkpoints = max([checkpoints, *history.numbers(record)])
    for document in documents.of_record(record):
        writer.put(document)
    for decision in documents.decisions(record):
        if record.kind != "checkpoint":
            writer.put(documents.of_decision(decision))
        writer.mark(decision.supersedes, "superseded", decision.id)
    for label, status, successor in documents.statuses(record):
        writer.mark(label, status, successor)
    return checkpoints


class _Writer:
    """Writes one route's documents.

    since  the token up to which the index has the route's journal, "" for nothing, and its checkpoints up to there
    """

    def __init__(self, database: sqlite3.Connection, route: str) -> None:
        self._db = database
        database.execute("insert or ignore into route values (null, ?, '', 0, 1, 0, 0, 0, 0, '')", (route,))
        row = database.execute(
            "select number, token, checkpoints, next, said, said_size, printed, printed_size from route where name = ?",
            (route,),
        ).fetchone()
        self._number, token, checkpoints, self._next, *self._counted = row
        self.since = ("" if token.startswith(FILE) else str(token), int(checkpoints))

    def forget(self) -> None:
        """All that the index has of the route."""
        for statement in _FORGET:
            self._db.execute(statement, span_of(self._number))
        self._counted = [0, 0, 0, 0]

    def synced(self, token: str, checkpoints: int) -> None:
        """Remember up to where the index has the route."""
        self._db.execute(
            "update route set token = ?, checkpoints = ?, next = ?, said = ?, said_size = ?, printed = ?,"
            " printed_size = ? where number = ?",
            (token, checkpoints, self._next, *self._counted, self._number),
        )

    def put(self, document: Document, *, again: bool = False) -> None:
        """Add a document; a decision or section whose label is known takes the place of what it was.

        again  the words of a decision that is known stay: it was said again, or the cap has left less of it
        """
        size = len(document.text)
        if self._replaced(document, size, again):
            return
        row = (self._number << ROUTE_BITS) + self._next
        self._next += 1
        said_by = document.said + document.by_user
        values = (document.kind, document.label, document.status, document.successor, said_by, size)
        self._db.execute(
            "insert into doc values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (row, *values, document.session, document.first, document.last),
        )
        texts = (row, document.text, _parts(document.text))
        if document.said:
            said = (*texts, f"{DECISION} {document.around}" if document.kind == "decision" else document.around)
            self._db.execute("insert into said(rowid, text, parts, around) values (?, ?, ?, ?)", said)
        else:
            self._db.execute("insert into printed(rowid, text, parts) values (?, ?, ?)", texts)
        table = 0 if document.said else 2
        self._counted[table] += 1
        self._counted[table + 1] += size

    def has(self, document: Document) -> bool:
        """Whether what is known of a decision begins with these words."""
        known = self._known(document)
        return known is not None and known[2].startswith(document.text)

    def _known(self, document: Document) -> tuple[int, int, str] | None:
        if document.kind not in _KNOWN or not document.label:
            return None
        found = self._db.execute(_KNOWN[document.kind], (document.label, *span_of(self._number)))
        row: tuple[int, int, str] | None = found.fetchone()
        return row

    def _replaced(self, document: Document, size: int, again: bool) -> bool:
        known = self._known(document)
        if known is None:
            return False
        row, former, text = known
        if document.kind == "decision":
            self._db.execute(
                "update doc set status = ?, successor = ? where id = ?", (document.status, document.successor, row)
            )
        if document.text != text and not (again and document.kind == "decision"):
            texts = (document.text, _parts(document.text), row)
            self._db.execute("update said set text = ?, parts = ? where rowid = ?", texts)
            self._db.execute("update doc set size = ? where id = ?", (size, row))
            self._counted[1] += size - former
        return True

    def mark(self, label: str | None, status: str, successor: str = "") -> None:
        """Say of a decision (None: of all) that it no longer holds, and what replaced it."""
        self._db.execute(
            "update doc set status = ?, successor = ?"
            " where kind = 'decision' and label = coalesce(?, label) and id between ? and ?",
            (status, successor, label, *span_of(self._number)),
        )

    def mark_undone(self, labels: Iterable[str]) -> None:
        """Say of what belongs to these checkpoints that a revert took it back; of all else that it stands."""
        self._db.execute(
            "update doc set status = case when label in (select value from json_each(?)) then 'reverted' else '' end"
            " where kind <> 'decision' and id between ? and ?",
            (json.dumps(sorted(labels)), *span_of(self._number)),
        )


def _parts(text: str) -> str:
    """The parts of the names in a text that are written in one word, `getUserById`: get User By Id."""
    return " ".join(_HUMP.sub(r"\1 \2", name) for name in dict.fromkeys(_CAMEL.findall(text)))
