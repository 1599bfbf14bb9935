"""Puts a memory's records on another history: those that were recorded here while another machine's came first. Pure.

A record stays what it is, under its id. What it says by place is put right: its number and the revisions that it names,
and labels of items that the other history has given to others. An item that both added is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ralf.memory import fold, records
from ralf.memory.fold import Pages
from ralf.memory.model import Memory, label_of
from ralf.storage.journal import Entry


class Rebase:
    """Records after another history.

    shared  what both histories begin with, `lead` what follows in the other one: entries without seals
    labels  of the items that the records brought, as they were: as they are now
    """

    def __init__(self, agent: str, shared: Iterable[Entry], lead: Iterable[Entry]) -> None:
        self._stream = records.stream_of(agent)
        self._book = Pages(Memory(agent))
        self._lead = {entry.id: entry for entry in lead}
        self._revisions: dict[int, int] = {}
        self.labels: dict[str, str] = {}
        for entry in (*shared, *self._lead.values()):
            record = records.parsed(self._stream, entry)
            if record is not None:
                fold.apply(self._book, record)

    def moved(self, entries: Iterable[Entry]) -> list[Entry]:
        """The records, oldest first, as they are after the other history; those that it has are left out.

        The tokens mean nothing; a record that is not this user's stays as it is. DamagedJournal.
        """
        found = []
        for entry in entries:
            if entry.id in self._lead:
                self._pass_over(entry, self._lead[entry.id])
            else:
                found.append(self._put(entry))
        return found

    def _put(self, entry: Entry) -> Entry:
        record = records.parsed(self._stream, entry)
        if record is None:
            return entry
        tree = json.loads(entry.record)
        number = self._book.head.revision + 1
        self._revisions[record.number] = tree["n"] = number
        if not tree["v"] > records.VERSION:
            tree["deltas"] = [self._delta(delta, number, record.at) for delta in tree["deltas"]]
        fold.apply(self._book, records.Record(number, record.at))
        content = json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode()
        return entry._replace(token="", record=content)

    def _delta(self, tree: Mapping[str, Any], number: int, at: str) -> dict[str, Any]:
        """A delta with the labels and the revision that it means now; it is applied."""
        made = dict(tree)
        if "item" in made:
            made["item"] = {**made["item"], "id": self._label_of_added(made)}
        if "id" in made:
            made["id"] = self.labels.get(made["id"], made["id"])
        if "ids" in made:
            made["ids"] = [self.labels.get(label, label) for label in made["ids"]]
        if made["kind"] == records.Restored.kind and "to" in made:
            made["to"] = self._revisions.get(made["to"], made["to"])
        delta = records.delta_of(made)
        if delta is not None:
            fold.apply(self._book, records.Record(number, at, (delta,)))
        return made

    def _label_of_added(self, tree: Mapping[str, Any]) -> str:
        item = records.item_of(tree["item"])
        kind, number = label_of(item.id)
        if not number:
            return item.id  # of a later version
        if tree.get("again") is True and item.id not in self.labels:
            return item.id  # of what both have had
        same = self._book.find(fold.identity(item))
        if same is not None:
            label = same.id
        elif item.id in self.labels and tree.get("again") is True:
            label = self.labels[item.id]
        else:
            label = item.id if number > self._book.head.numbers.get(kind, 0) else fold.label(self._book, kind)
        self.labels[item.id] = label
        return label

    def _pass_over(self, entry: Entry, now: Entry) -> None:
        """Know what a record that the other history has, `now`, has made of labels and revisions."""
        if entry.foreign or now.foreign:
            return
        old, new = json.loads(entry.record), json.loads(now.record)
        self._revisions[old["n"]] = new["n"]
        for one, other in zip(old.get("deltas", ()), new.get("deltas", ()), strict=False):
            if "item" in one and "item" in other:
                self.labels[one["item"].get("id", "")] = other["item"].get("id", "")
