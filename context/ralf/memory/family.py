"""The memory of an agent as a family of documents: how it folds, what its file shows, what a change of that means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ralf.document.family import Parsed, Stamp
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.memory import document, outcome, records
from ralf.memory.checking import Checker
from ralf.memory.document import Document, Entry, entry_of, percent_of
from ralf.memory.fold import COUNTERS, LISTS, Book, apply
from ralf.memory.model import ORIGINS, PURPOSES, STATUSES, TYPES, Item
from ralf.memory.records import Delta, fields_of
from ralf.text.frozen import dataclass

_CHOICES = {"origin": ORIGINS, "status": STATUSES, "purpose": PURPOSES, "type": TYPES}

_FIRST = {"origin": "person", "status": "active"}  # what it is where a person takes the line out

_MOST = 10**9


@dataclass(frozen=True, slots=True)
class MemoryFamily:
    """The memory of one agent. `redact` removes secrets from a text. See `ralf.document.family.Family`."""

    agent: str
    redact: Callable[[str], str]
    layout: int = document.LAYOUT

    def fold(self, rows: Rows, record: Record) -> None:
        """See `Family.fold`."""
        apply(Book(self.agent, rows), record)

    def render(self, rows: Rows, stamp: Stamp) -> bytes:
        """See `Family.render`."""
        return document.render(Book(self.agent, rows).memory(), stamp)

    def parse(self, content: bytes, path: Path) -> Parsed:
        """See `Family.parse`."""
        return document.parse(content, path)

    def changes(
        self, base: Document | None, found: Document, rows: Rows, *, is_whole: bool
    ) -> Mapping[str, Any] | None:
        """See `Family.changes`."""
        book = Book(self.agent, rows)
        deltas = Checker(book, self.redact).checked([*_differences(base, found, book, is_whole)], by_hand=True)
        return records.body_of(deltas) if deltas else None

    def redacted(self, text: str) -> str:
        """See `Family.redacted`."""
        return self.redact(text)


def _differences(base: Document | None, found: Document, book: Book, is_whole: bool) -> Iterator[Delta]:
    """What was changed from one document to another, as deltas by a person. `base`: None where nobody knows."""
    before = {entry.label: entry for entry in base.entries} if base is not None else {}
    labels = set()
    for entry in found.entries:
        labels.add(entry.label)
        item = book.get(entry.label) if entry.label else None
        if entry.label in before:
            changes = changed_fields(before[entry.label].fields, entry.fields)
            if changes and item is not None:
                yield records.Edited(entry.label, values_of(changes), origin="person")
            elif changes:
                yield records.Added(item_of(entry))
        elif item is not None:
            changes = changed_fields(entry_of(item).fields, entry.fields)
            if changes:
                yield records.Edited(entry.label, values_of(changes), origin="person")
        elif entry.label and base is None:  # of a record that is lost: it keeps its label
            yield records.Added(item_of(entry, entry.label), again=True)
        else:
            yield records.Added(item_of(entry))
    for label, entry in before.items():
        is_out = is_whole and label not in labels and entry.kind in found.kinds
        if is_out and book.get(label) is not None:
            yield records.Dropped(label, "taken out of the file", origin="person")
    metrics, notes = (base.metrics, base.notes) if base is not None else (book.head.metrics, book.head.notes)
    for name in {**metrics, **found.metrics}:
        if metrics.get(name, "") != found.metrics.get(name, "") and (is_whole or name in found.metrics):
            yield records.Measured(name, found.metrics.get(name, ""))
    for name in {**notes, **found.notes}:
        if notes.get(name, "") != found.notes.get(name, "") and (is_whole or name in found.notes):
            yield records.Noted(name, found.notes.get(name, ""))


def values_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """Fields of a file as an item has them; a number or a list that is none stays text under its name, as an extra."""
    values: dict[str, Any] = {}
    for name, text in fields.items():
        if name in _CHOICES and text and text not in _CHOICES[name]:
            values[f"{name} said"] = text
        elif name in LISTS:
            values[name] = [one for part in text.split(";") if (one := part.strip())]
        elif name in COUNTERS:
            values[name if _is_count(text) else f"{name} said"] = int(text or "0") if _is_count(text) else text
        elif name == "confidence":
            share = _share(text)
            values[name if share is not None else "confidence said"] = text if share is None else share
        else:
            values[name] = text or _FIRST.get(name, "")
    return values


def _is_count(text: str) -> bool:
    return not text or (text.isascii() and text.isdecimal() and int(text[:12]) <= _MOST)


def _share(text: str) -> float | None:
    try:
        percent = float(text.rstrip("%"))
    except ValueError:
        return None
    return percent / 100 if 0 <= percent <= 100 else None


def item_of(entry: Entry, label: str = "") -> Item:
    """The item that an entry of a file says, as one that nobody knew."""
    values = values_of(entry.fields)
    share = values.pop("confidence", None)
    known = dict(fields_of(Item))
    own: dict[str, Any] = {
        name: tuple(value) if name in LISTS else value for name, value in values.items() if name in known
    }
    extra = {name: str(value) for name, value in values.items() if name not in known}
    item = Item(label, entry.kind, **{"origin": "person", **own}, extra=extra)
    if share is None or percent_of(item) == f"{100 * share:.6g}":
        return item
    return replace(item, base=outcome.base_of(share, item.helpful, item.harmful))


def changed_fields(base: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """The fields that differ, with what the second one says; "" where it has none any more. Who takes the uses and the
    confidence out of a bullet has not said that there are none.
    """
    names: Iterable[str] = dict.fromkeys((*(name for name in base if name not in ("uses", "confidence")), *found))
    return {name: found.get(name, "") for name in names if base.get(name, "") != found.get(name, "")}
