"""Puts a memory's records on another history: those that were recorded here while another machine's came first. Pure.

A record stays what it is, under its id. What it says by place is put right: its number and the revisions that it names,
and labels of items that the other history has given to others. An item that both added is one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ralf.memory import fold, records
from ralf.memory.fold import Pages
from ralf.memory.model import Item, Memory, label_of
from ralf.storage.journal import Entry

_SUFFIX = 12  # hexadecimal digits


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

        The tokens mean nothing; a record that is not this user's stays as it is. One whose id the other history has
        for a record of another moment gets an id of its own. DamagedJournal.
        """
        found = []
        for entry in entries:
            known = self._lead.get(entry.id)
            if known is None:
                found.append(self._put(entry))
            elif self._is_same(entry, known):
                self._pass_over(entry, known)
            else:
                digest = hashlib.sha256(entry.record).hexdigest()[:_SUFFIX]
                found.append(self._put(entry._replace(id=f"{entry.id}-{digest}")))
        return found

    def _is_same(self, entry: Entry, other: Entry) -> bool:
        """Whether two entries of one id are one record, as it was numbered here and there, or purged. An id may name
        what two machines have done each for itself.
        """
        try:
            one, two = json.loads(entry.record), json.loads(other.record)
            is_purged = one.get("purged") is True or two.get("purged") is True
            if one["at"] != two["at"] or is_purged:
                return bool(one["at"] == two["at"])
            return _comparable(one, self.labels) == _comparable(two, {})
        except (ValueError, TypeError, LookupError, AttributeError):
            return True  # whatever it is, it is there

    def _put(self, entry: Entry) -> Entry:
        record = records.parsed(self._stream, entry)
        if record is None:
            return entry
        tree = json.loads(entry.record)
        number = self._book.head.revision + 1
        self._revisions[record.number] = tree["n"] = number
        if tree["v"] <= records.VERSION:
            tree["deltas"] = [self._delta(delta, number, record.at) for delta in tree["deltas"]]
        fold.apply(self._book, records.Record(number, record.at))
        content = json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        return entry._replace(token="", record=content)

    def _delta(self, tree: Mapping[str, Any], number: int, at: str) -> Mapping[str, Any]:
        """A delta with the labels and the revision that it means now; it is applied."""
        delta = records.delta_of(tree)
        if delta is None:  # of a later version
            return tree
        made = dict(tree)
        if isinstance(delta, records.Added):
            made |= self._added(tree, delta.item, again=delta.again)
        if "id" in made:
            made["id"] = self.labels.get(made["id"], made["id"])
        if "ids" in made:
            made["ids"] = [self.labels.get(label, label) for label in made["ids"]]
        if isinstance(delta, records.Restored) and "to" in made:
            made["to"] = self._revisions.get(made["to"], made["to"])
        if (now := records.delta_of(made)) is not None:
            fold.apply(self._book, records.Record(number, at, (now,)))
        return made

    def _added(self, tree: Mapping[str, Any], item: Item, *, again: bool) -> dict[str, Any]:
        """What a delta that adds an item says now: under which label."""
        kind, number = label_of(item.id)
        if not number:
            return {}  # of a later version
        same = self._book.find(fold.identity(item))
        if again and same is not None and same.id != self.labels.get(item.id, item.id):
            again = False  # the other history has another one that says the same: they are one
        if same is not None:
            label = same.id
        elif again:  # of what both have had, or of what this history has brought
            label = self.labels.get(item.id, item.id)
        else:
            label = item.id if number > self._book.head.numbers.get(kind, 0) else fold.label(self._book, kind)
        self.labels[item.id] = label
        return {"item": {**tree["item"], "id": label}, **({"again": again} if "again" in tree else {})}

    def _pass_over(self, entry: Entry, now: Entry) -> None:
        """Know what a record that the other history has, `now`, has made of labels and revisions."""
        if entry.foreign or now.foreign:
            return
        old, new = json.loads(entry.record), json.loads(now.record)
        self._revisions[old["n"]] = new["n"]
        for one, other in zip(_added_in(old), _added_in(new), strict=False):
            self.labels[one] = other


def _comparable(tree: Mapping[str, Any], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """The deltas of a record, but for what a rebase changes in them."""
    found = []
    for delta in tree["deltas"]:
        made = {name: value for name, value in delta.items() if name not in ("to", "again")}
        if "item" in made:
            made["item"] = {name: value for name, value in made["item"].items() if name != "id"}
        if "id" in made:
            made["id"] = labels.get(made["id"], made["id"])
        if "ids" in made:
            made["ids"] = [labels.get(label, label) for label in made["ids"]]
        found.append(made)
    return found


def _added_in(tree: Mapping[str, Any]) -> Sequence[str]:
    return [str(delta["item"].get("id", "")) for delta in tree.get("deltas", ()) if delta.get("kind") == "add"]
