"""The memory of an agent as a family of documents: how it folds, what its file shows, what a change of that means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ralf.document.family import Parsed, Stamp
from ralf.document.record import Enveloped, Record
from ralf.document.rows import Rows
from ralf.memory import file
from ralf.memory.file import Entry, Tree, fields_of
from ralf.memory.fold import Book, Delta, apply
from ralf.memory.records import checked, delta
from ralf.text.frozen import dataclass


@dataclass(frozen=True, slots=True)
class MemoryFamily(Enveloped):
    """The memory of one agent. `redact` removes secrets from a text. See `ralf.document.family.Family`."""

    agent: str
    redact: Callable[[str], str]
    layout: int = file.LAYOUT

    def fold(self, rows: Rows, record: Record) -> None:
        """See `Family.fold`."""
        book = Book(self.agent, rows)
        for each in record.body.get("deltas", ()):
            apply(book, each, record.at)
        book.note(revision=record.revision, last_written=record.at)

    def render(self, rows: Rows, stamp: Stamp) -> bytes:
        """See `Family.render`."""
        return file.render(Book(self.agent, rows).memory(), stamp)

    def parse(self, content: bytes, path: Path) -> Parsed:
        """See `Family.parse`."""
        return file.parse(content, path)

    def changes(self, base: Tree | None, found: Tree, rows: Rows, *, is_whole: bool) -> Mapping[str, Any] | None:
        """See `Family.changes`."""
        book = Book(self.agent, rows)
        deltas = [*checked(book, [*_differences(base, found, book, is_whole)], self.redact, by_hand=True)]
        return {"deltas": deltas} if deltas else None

    def redacted(self, text: str) -> str:
        """See `Family.redacted`."""
        return self.redact(text)


def _differences(base: Tree | None, found: Tree, book: Book, is_whole: bool) -> Iterator[Delta]:
    """What was changed from one file to another, as deltas by a person. `base`: None where nobody knows."""
    before = {entry.label: entry.fields for entry in base.entries} if base is not None else {}
    for entry in found.entries:
        item = book.get(entry.label) if entry.label else None
        known = before.get(entry.label) if entry.label else {}
        if known is None:
            known = fields_of(item) if item is not None else {}
        changes = _changed(known, entry.fields)
        if item is not None:
            if changes:
                yield delta("edit", entry.label, values=changes, origin="person")
        elif entry.label and base is None:  # of a record that is lost: it keeps its label
            yield delta("add", item=_item(entry), again=True)
        elif changes:
            yield delta("add", item=_item(entry))
    left = {entry.label for entry in found.entries}
    for entry in base.entries if base is not None and is_whole else ():
        if entry.label not in left and entry.kind in found.kinds and book.get(entry.label) is not None:
            yield delta("drop", entry.label, reason="taken out of the file", origin="person")
    notes = base.notes if base is not None else book.head.get("notes", {})
    for name in {**notes, **found.notes}:
        if notes.get(name, "") != found.notes.get(name, "") and (is_whole or name in found.notes):
            yield delta("note", heading=name, text=found.notes.get(name, ""))


def _item(entry: Entry) -> dict[str, str]:
    return {"id": entry.label, "kind": entry.kind, "origin": "person", **entry.fields}


def _changed(base: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """The fields that differ, with what the second one says; "" where it has none any more. Who takes the uses and the
    confidence out of a bullet has not said that there are none.
    """
    names = dict.fromkeys((*(name for name in base if name not in ("uses", "confidence")), *found))
    return {name: found.get(name, "") for name in names if base.get(name, "") != found.get(name, "")}
