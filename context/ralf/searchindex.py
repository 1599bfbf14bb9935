"""The full-text index behind search: what of a project's journals stands in it, and how it keeps up with them."""

from __future__ import annotations

import math
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ralf import evidence, journal, state as states
from ralf.context import RouteContext
from ralf.errors import Damaged, NotFound, UnknownToken
from ralf.model import Decision
from ralf.project import Project
from ralf.store import Store
from ralf.tree import from_tree

VERSION = 4
_PROSE = ("user", "assistant", "thinking")
_RAREST = 6.0  # in a large index rarity means no more than in one of some six hundred documents
CHUNK = 1_200  # characters of evidence in one document
_CAMEL = re.compile(r"\b[A-Za-z]*[a-z0-9][A-Z][A-Za-z0-9]*\b")
_HUMP = re.compile(r"([a-z0-9])([A-Z])")

_SCHEMA = """
create table doc(
    id integer primary key, route text, kind text, ident text, source text, status text, prose integer
);
create unique index doc_of_decision on doc(route, ident) where kind = 'decision';
create virtual table word using fts5(text, parts, tokenize='porter unicode61');
create table synced(route text primary key, token text, checkpoints integer);
"""

T = TypeVar("T")


class Document(NamedTuple):
    """What can be found: its kind, its label, its words, where they stand, a decision's status."""

    kind: str
    ident: str
    text: str
    source: str = ""
    status: str = ""
    prose: bool = True


def rebuilt_when_damaged(path: Path, work: Callable[[], T]) -> T:
    """`work()`; when the index turns out to be damaged, it is removed and `work` is done once more."""
    try:
        return work()
    except sqlite3.DatabaseError:
        for name in (path, path.with_name(path.name + "-journal")):
            name.unlink(missing_ok=True)
        return work()


class SearchIndex:
    """The index in one file; made when missing. sqlite3.DatabaseError when it is damaged."""

    def __init__(self, path: Path) -> None:
        try:
            self._db = sqlite3.connect(_writable(path), timeout=30)
            self._prepare()
        except (sqlite3.OperationalError, OSError):  # a folder that cannot be written: search still works, in memory
            self._db = sqlite3.connect(":memory:")
            self._prepare()

        self.left_out: list[str] = []
        """Routes whose journal could not be read: what the index has of them is all that is found."""

    def _prepare(self) -> None:
        self._db.row_factory = sqlite3.Row
        self._db.execute("pragma synchronous = off")  # a cache: what a crash takes is made anew
        if self._db.execute("pragma user_version").fetchone()[0] != VERSION:
            with self._db:
                self._db.execute("begin immediate")
                if self._db.execute("pragma user_version").fetchone()[0] != VERSION:
                    for table in ("word", "doc", "synced"):
                        self._db.execute(f"drop table if exists {table}")
                    for statement in _SCHEMA.strip().split(";\n"):
                        self._db.execute(statement)
                    self._db.execute(f"pragma user_version = {VERSION}")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # ---- asking ----

    def matching(self, match: str, route: str | None, *, prose: bool, limit: int) -> list[sqlite3.Row]:
        """The documents that match an FTS5 expression, best first, by bm25 (smaller is better)."""
        return self._db.execute(
            "select doc.*, word.text as text, bm25(word, 1.0, 0.5) as rank from word join doc on doc.id = word.rowid"
            " where word match ? and (? is null or doc.route = ?) and doc.prose = ? order by rank limit ?",
            (match, route, route, prose, limit),
        ).fetchall()

    def rarest(self) -> float:
        """What a word that stands in one document only adds to that document's bm25, about: the unit of relevance."""
        (size,) = self._db.execute("select count(*) from doc").fetchone()
        return min(_RAREST, math.log(max(1.0, (size - 0.5) / 1.5)))

    def knows(self, word: str, route: str | None) -> bool:
        """Whether a word, in any of its forms, stands in any document of a route, or of all."""
        found = self._db.execute(
            "select 1 from word join doc on doc.id = word.rowid"
            " where word match ? and (? is null or doc.route = ?) limit 1",
            (f'"{word}"', route, route),
        )
        return found.fetchone() is not None

    # ---- keeping up ----

    def renew(self, project: Project, routes: Sequence[str]) -> None:
        """Take in what the journals of these routes have that the index has not."""
        for route in routes:
            head = project.store.head(journal.stream_of(route))
            row = self._db.execute("select token, checkpoints from synced where route = ?", (route,)).fetchone()
            if head is not None and (row is None or row["token"] != head):
                try:
                    with self._db:
                        self._db.execute("begin immediate")
                        self._take(project, route, row)
                except Damaged:
                    if len(routes) == 1:
                        raise
                    self.left_out.append(route)

    def _take(self, project: Project, route: str, row: sqlite3.Row | None) -> None:
        try:
            records = list(journal.read(project.store, route, after=row["token"] if row is not None else None))
        except UnknownToken:  # the journal was rewritten, or is another
            records, row = list(journal.read(project.store, route)), None
        if row is None:
            self._forget(route)
        checkpoints = row["checkpoints"] if row is not None else 0
        for _, record in records:
            if record.kind == "checkpoint":
                checkpoints += 1
                for document in _of_checkpoint(project.store, record.payload, f"cp-{checkpoints:03d}"):
                    self._insert(route, document)
            elif record.kind == "import":
                imported = from_tree(RouteContext, record.payload.get("document", {}))
                checkpoints = max([imported.checkpoint_count, *(part.number or 0 for part in imported.body.sections)])
                for part in imported.body.sections:
                    label = f"cp-{part.number:03d}" if part.number is not None else ""
                    self._insert(route, Document("checkpoint", label, f"{part.title}\n{part.text}"))
            for decision in _decisions(record):
                self._upsert(route, _of_decision(decision))
                self._db.execute(
                    "update doc set status = 'superseded' where route = ? and kind = 'decision' and ident = ?",
                    (route, decision.supersedes),
                )
            for label in _removed(record):
                self._db.execute(
                    "update doc set status = 'dropped' where route = ? and kind = 'decision' and ident glob ?",
                    (route, label),
                )
        state = states.load(project, route)
        for decision in state.recorded.decisions if state is not None else ():  # as edits have left them
            self._upsert(route, _of_decision(decision))
        if records:
            self._db.execute("insert or replace into synced values (?, ?, ?)", (route, records[-1][0], checkpoints))

    def _forget(self, route: str) -> None:
        self._db.execute("delete from word where rowid in (select id from doc where route = ?)", (route,))
        self._db.execute("delete from doc where route = ?", (route,))

    def _insert(self, route: str, document: Document) -> None:
        kind, ident, text, source, status, prose = document
        cursor = self._db.execute(
            "insert into doc(route, kind, ident, source, status, prose) values (?, ?, ?, ?, ?, ?)",
            (route, kind, ident, source, status, prose),
        )
        values = (cursor.lastrowid, text, _parts(text))
        self._db.execute("insert into word(rowid, text, parts) values (?, ?, ?)", values)

    def _upsert(self, route: str, document: Document) -> None:
        known = self._db.execute(
            "select id from doc where route = ? and kind = 'decision' and ident = ?", (route, document.ident)
        ).fetchone()
        if known is None:
            self._insert(route, document)
            return
        self._db.execute("update doc set status = ? where id = ?", (document.status, known["id"]))
        self._db.execute(
            "update word set text = ?, parts = ? where rowid = ? and text is not ?",
            (document.text, _parts(document.text), known["id"], document.text),
        )


def _writable(path: Path) -> Path:
    """`path`, its folder made; OSError where the index cannot be written, or is a link that somebody laid."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OSError(path)
    return path


# ---- documents ----


def _parts(text: str) -> str:
    """The parts of the names in a text that are written in one word, `getUserById`: get User By Id."""
    return " ".join(_HUMP.sub(r"\1 \2", name) for name in dict.fromkeys(_CAMEL.findall(text)))


def _decisions(record: journal.Record) -> Iterator[Decision]:
    """The decisions that a record brings, with their labels."""
    payload = record.payload
    items = list(payload.get("decisions", ()))
    items += [payload["decision"]] if payload.get("decision") else []
    items += payload.get("document", {}).get("decisions", ())
    items += [change["value"] for change in payload.get("changes", ()) if _adds_decision(change)]
    for item in items:
        decision = from_tree(Decision, item)
        if decision.id:
            yield decision


def _removed(record: journal.Record) -> Iterator[str]:
    """The labels of decisions that a person took out of the file; `*` where the list as a whole was changed."""
    for change in record.payload.get("changes", ()):
        if change["at"] == ["decisions"]:
            yield "*"
        elif len(change["at"]) == 2 and change["at"][0] == "decisions" and change.get("removed"):
            yield str(change["at"][1])


def _adds_decision(change: Mapping[str, Any]) -> bool:
    return len(change["at"]) == 2 and change["at"][0] == "decisions" and isinstance(change.get("value"), dict)


def _of_decision(decision: Decision) -> Document:
    parts = [decision.decision, decision.rationale, *decision.alternatives]
    source = decision.source
    place = f"{source.session} lines {source.first_line}-{source.last_line}" if source is not None else ""
    return Document("decision", decision.id, "\n".join(part for part in parts if part), place, decision.status)


def _of_checkpoint(store: Store, payload: Mapping[str, Any], label: str) -> Iterator[Document]:
    source = payload.get("source", {})
    session = str(source.get("session", ""))
    place = f"{session} lines {int(source.get('from_line', 0)) + 1}-{source.get('to_line', 0)}"
    yield Document("checkpoint", label, f"{payload.get('title', '')}\n{payload.get('text', '')}", place)
    for text in _facts(payload.get("facts", {})):
        yield Document("fact", label, text, place, prose=False)
    digest = str(payload.get("evidence", ""))
    if digest:
        with suppress(NotFound):  # pruned
            for line in evidence.read(store, digest):
                for chunk in _chunks(line.text):
                    place = f"{session} lines {line.line}-{line.last}"
                    yield Document("evidence", label, chunk, place, prose=line.kind in _PROSE)


def _facts(facts: Mapping[str, Any]) -> Iterator[str]:
    for path in facts.get("paths", ()):
        yield f"{', '.join(path.get('did', ()))}: {path.get('path', '')}"
    for command in facts.get("commands", ()):
        status = command.get("status", "passed")
        ended = f"{status}, exit {command['exit']}" if command.get("exit") else status
        yield f"{command.get('command', '')} ({ended})"
    for error in facts.get("errors", ()):
        solved = f"\nsolved: {error['fixed_by']}" if error.get("fixed_by") else ""
        yield f"{error.get('error', '')}\nfrom: {error.get('command', '')}{solved}"
    for commit in facts.get("commits", ()):
        yield f"commit {commit.get('commit', '')} {commit.get('message', '')}"
    for test in facts.get("tests", ()):
        yield f"{test.get('result', '')}\nfrom: {test.get('command', '')}"


def _chunks(text: str) -> Iterator[str]:
    """The text in pieces of whole lines, each of about `CHUNK` characters at the most."""
    if len(text) <= CHUNK:
        yield text
        return
    piece: list[str] = []
    size = 0
    for line in text.split("\n"):
        for start in range(0, max(1, len(line)), CHUNK):
            part = line[start : start + CHUNK]
            if size + len(part) > CHUNK and piece:
                yield "\n".join(piece)
                piece, size = [], 0
            piece.append(part)
            size += len(part) + 1
    if piece:
        yield "\n".join(piece)
