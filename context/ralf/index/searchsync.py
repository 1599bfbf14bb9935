"""How the search index keeps up with a project: what a route has that the index has not, taken in as documents."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable

from ralf import cap, journal, state as states
from ralf.errors import UnknownToken
from ralf.index import searchdocs
from ralf.index.searchdocs import Document
from ralf.index.searchindex import DECISION, FILE, ROUTE_BITS, span_of
from ralf.journal import Record
from ralf.past import history
from ralf.project import Project

_CAMEL = re.compile(r"\b[A-Za-z]*[a-z0-9][A-Z][A-Za-z0-9]*\b")
_HUMP = re.compile(r"([a-z0-9])([A-Z])")
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
        state = states.load(project, route)
        writer.forget()
        own = state is not None and state.status != "foreign"  # what is foreign is never found
        for document in searchdocs.of_context(state.context) if state is not None and own else ():
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
    state = states.load(project, route)
    for decision in state.recorded.decisions if state is not None else ():  # as edits have left them
        document = searchdocs.of_decision(decision)
        writer.put(document, again=cap.is_bare(decision) and writer.has(document))
    if records:
        writer.synced(str(records[-1][0]), checkpoints)


def _take_record(writer: _Writer, project: Project, record: Record, checkpoints: int) -> int:
    """Take in one record; how many checkpoints there are with it. Nothing of a foreign one is found."""
    if record.foreign:
        return checkpoints
    if record.kind == "checkpoint":
        checkpoints += 1
        for document in searchdocs.of_checkpoint(project.store, record.payload, f"cp-{checkpoints:03d}"):
            writer.put(document, again=True)
    else:
        checkpoints = max([checkpoints, *history.numbers(record)])
    for document in searchdocs.of_record(record):
        writer.put(document)
    for decision in searchdocs.decisions(record):
        if record.kind != "checkpoint":
            writer.put(searchdocs.of_decision(decision))
        writer.mark(decision.supersedes, "superseded", decision.id)
    for label, status, successor in searchdocs.statuses(record):
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
            "select number, token, checkpoints, next, said, said_words, printed, printed_words from route"
            " where name = ?",
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
            "update route set token = ?, checkpoints = ?, next = ?, said = ?, said_words = ?, printed = ?,"
            " printed_words = ? where number = ?",
            (token, checkpoints, self._next, *self._counted, self._number),
        )

    def put(self, document: Document, *, again: bool = False) -> None:
        """Add a document; a decision or section whose label is known takes the place of what it was.

        again  the words of a decision that is known stay: it was said again, or the cap has left less of it
        """
        size = document.text.count(" ") + document.text.count("\n") + 1
        if self._replaced(document, size, again):
            return
        row = (self._number << ROUTE_BITS) + self._next
        self._next += 1
        values = (document.kind, document.label, document.status, document.successor, document.said, size)
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
