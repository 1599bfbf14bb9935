"""What the records of a memory come to: pure, over the rows of its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ralf.document.rows import Rows
from ralf.memory.model import (
    COUNTERS,
    FIELDS,
    KINDS,
    LISTS,
    MOST,
    MOST_REFERENCES,
    Item,
    Memory,
    item_of,
    label_of,
    order_of,
    tree_of,
)
from ralf.text.cleaning import one_line

Delta = Mapping[str, Any]

_ABOUT = {"id": "", "by": "", "origin": "agent"}

DELTAS: dict[str, dict[str, Any]] = {
    "add": {"item": {}, "again": False},
    "edit": {**_ABOUT, "values": {}},
    "drop": {**_ABOUT, "reason": ""},
    "use": {"id": "", "times": 1, "successes": 0, "routes": (), "evidence": (), "seen": ""},
    "outcome": {"id": "", "verdict": "helpful", "reason": "", "evidence": ()},
    "accept": {**_ABOUT, "origin": "person"},
    "merge": {"id": "", "ids": ()},
    "compact": {},
    "metric": {"name": "", "value": ""},
    "note": {"heading": "", "text": ""},
    "snapshot": {"name": ""},
    "restore": {"to": 0, "name": ""},
}
"""The kinds of deltas, each with its fields, and what they are where a record does not say.

add      an item. One that says what another one says (`identity`) is that one seen again: uses, routes and evidence are
         added, and nothing at all where it brings no new evidence. A preference of a known key replaces the value. What
         was dropped comes back only when a person adds it. again: it is put in as it is, under its label
edit     new values of an item's fields; `confidence` is one. by, origin: who edits. A person's edit makes it theirs
drop     an item that is taken out, for good unless its origin is `mechanical`
use      an item that occurred again, or was followed
outcome  what came of an item that was handed over: helpful, harmful; of earlier versions also stale and fresh
accept   an offer that counts from now on
compact  a tidying that ended
note     what a person wrote below a heading and that is no item; "" takes it out
snapshot a name for the revision of this record; restore: the deltas before it bring back what was at a revision
merge    of earlier versions: items that are gone, as another one says the same; metric: a line of a section
"""

_ITEM, _SAME, _BURIED, _HEAD = "item/", "same/", "buried/", "memory"

_METRICS = "Improvement Metrics"


class Book:
    """The items of a memory, and what it is beside them, as the rows of its document."""

    def __init__(self, agent: str, rows: Rows) -> None:
        self.agent = agent
        self.rows = rows

    @property
    def head(self) -> dict[str, Any]:
        """The fields of the memory that are not as at first, without its items."""
        return dict(self.rows.one(_HEAD) or {})

    def note(self, **values: Any) -> None:
        """Set fields of the memory; of those that map names, one name each: "", or 0, takes it out."""
        head = self.head
        for name, value in values.items():
            if isinstance(value, dict):
                value = {one: each for one, each in {**head.get(name, {}), **value}.items() if each}
            head[name] = value
        self.rows.put(_HEAD, head)

    def get(self, label: str) -> Item | None:
        """The item of a label, None for none."""
        tree = self.rows.one(f"{_ITEM}{label}")
        return item_of(tree) if tree is not None else None

    def find(self, item: Item) -> Item | None:
        """The newest item that says what another one says, None for none."""
        return self.get(str(self.rows.one(f"{_SAME}{identity(item)}")))

    def put(self, item: Item) -> None:
        """Keep an item, in the place of the one with its label, which no other one ever gets."""
        self.remove(item.id)
        kind, number = label_of(item.id)
        if number > self.head.get("numbers", {}).get(kind, 0):
            self.note(numbers={kind: number})
        self.rows.put(f"{_ITEM}{item.id}", tree_of(item))
        self.rows.put(f"{_SAME}{identity(item)}", item.id)

    def remove(self, label: str) -> None:
        """Take an item out."""
        item = self.get(label)
        self.rows.put(f"{_ITEM}{label}", None)
        if item is not None and self.rows.one(same := f"{_SAME}{identity(item)}") == label:
            self.rows.put(same, None)

    def bury(self, item: Item, buried: bool) -> None:
        """Keep whether only a person may bring an item back, offered or not."""
        self.rows.put(f"{_BURIED}{identity(item, 'active')}", buried or None)

    def is_buried(self, item: Item) -> bool:
        """Whether only a person may bring an item back."""
        return self.rows.one(f"{_BURIED}{identity(item, 'active')}") is not None

    def memory(self) -> Memory:
        """All of it."""
        items = sorted((item_of(tree) for _, tree in self.rows.under(_ITEM)), key=order_of)
        return Memory(self.agent, tuple(items), **self.head)


def identity(item: Item, status: str = "") -> str:
    """What two items of a status have in common that say the same: a trap's command and what resolved it, as one run
    may tell an error in several lines; a preference's key, …; an offer never is what counts already.
    """
    said = [getattr(item, name) for name in KINDS[item.kind].same]
    said[-1] = said[-1] or item.error or item.text
    return "\n".join((status or item.status, item.kind, *(one_line(part).casefold() for part in said)))


def apply(book: Book, delta: Delta, at: str) -> None:
    """Add a delta of a record of a time. One of a later version, or about an item that is not there, does nothing."""
    usual = DELTAS.get(delta["kind"])
    if usual is None:
        return
    found = {**usual, **delta}
    item = book.get(found.get("id", ""))
    if item is not None or "id" not in usual:
        _FOLDS[delta["kind"]](book, item, found, at)


def _add(book: Book, _: Any, delta: Delta, at: str) -> None:
    item = item_of(delta["item"])
    if item.kind not in KINDS or not label_of(item.id)[1]:
        return  # of a later version
    item = replace(item, added=item.added or at)
    item = replace(item, last_seen=item.last_seen or item.added)
    same = None if delta["again"] else book.find(item)
    if delta["again"] or item.origin == "person":
        book.bury(item, False)
    elif same is None and book.is_buried(item):
        book.note(numbers={item.kind: label_of(item.id)[1]})  # later records may name it
        return
    book.put(_seen_again(same, item) if same is not None else item)


def _seen_again(old: Item, new: Item) -> Item:
    """An item that another one repeats, with what that one adds to it."""
    is_known = bool(new.evidence) and set(new.evidence) <= set(old.evidence)
    is_person = new.origin == "person"
    if is_known and not is_person:
        return old
    values: dict[str, Any] = {} if is_known else _summed(old, new)
    for name in ("text", "resolution", "purpose", "type", "source", "expires", "value", "context"):
        is_newest = name in ("value", "resolution") and (is_person or old.origin != "person")
        if getattr(new, name) and (is_newest or not getattr(old, name)):
            values[name] = getattr(new, name)
    values |= {"origin": "person", "by": new.by or old.by} if is_person else {}
    return replace(old, **values, stale="")


def _summed(old: Item, new: Item) -> dict[str, Any]:
    """The counts of both, and all that leads to their evidence."""
    values: dict[str, Any] = {name: min(MOST, getattr(old, name) + getattr(new, name)) for name in COUNTERS}
    for name in LISTS:
        values[name] = tuple(dict.fromkeys((*getattr(old, name), *getattr(new, name))))[-MOST_REFERENCES:]
    return values | {"last_seen": max(old.last_seen, new.last_seen)}


def _edit(book: Book, item: Item, delta: Delta, _: str) -> None:
    made = edited(item, delta["values"])
    if delta["origin"] == "person" and "origin" not in delta["values"]:
        made = replace(made, origin="person", by=delta["by"] or made.by)
    same = book.find(made)
    if made.kind == "preference" and same is not None:  # a key is unique, and the newest value wins
        book.remove(same.id)
    book.remove(item.id)
    book.put(made)


def edited(item: Item, values: Mapping[str, Any]) -> Item:
    """An item with new values of fields; those that it does not have are kept as extra ones; "" takes one out."""
    own: dict[str, Any] = {n: tuple(v) if n in LISTS else v for n, v in values.items() if n in FIELDS}
    extra = {**own.pop("extra", item.extra), **{name: v for name, v in values.items() if name not in FIELDS}}
    share = extra.pop("confidence", None)
    made = replace(item, **own, extra={name: value for name, value in extra.items() if value != ""})
    return made if share is None else replace(made, base=made.base_for(float(share)))


def _drop(book: Book, item: Item, delta: Delta, _: str) -> None:
    book.remove(item.id)
    if delta["origin"] != "mechanical":
        book.bury(item, True)


def _use(book: Book, item: Item, delta: Delta, at: str) -> None:
    given: dict[str, Any] = {name: tuple(delta[name]) for name in LISTS}
    seen = delta["seen"] or at
    new = Item(item.id, item.kind, uses=delta["times"], successes=delta["successes"], last_seen=seen, **given)
    book.put(replace(item, **_summed(item, new)))


def _outcome(book: Book, item: Item, delta: Delta, _: str) -> None:
    verdict = delta["verdict"]
    if verdict in ("helpful", "harmful"):
        book.put(replace(item, **{verdict: min(MOST, getattr(item, verdict) + 1)}))
        book.note(outcomes=book.head.get("outcomes", 0) + 1)
    elif verdict in ("stale", "fresh"):
        book.put(replace(item, stale=delta["reason"] or "no longer holds" if verdict == "stale" else ""))


def _accept(book: Book, item: Item, delta: Delta, _: str) -> None:
    if item.status != "offered":
        return
    own: dict[str, Any] = {"origin": "person"} if delta["origin"] == "person" else {}
    made = replace(item, status="active", by=delta["by"] or item.by, **own)
    same = book.find(made)
    if same is not None:
        book.remove(same.id)
        made = replace(made, **_summed(same, made))
    book.bury(made, False)
    book.put(made)


def _merge(book: Book, item: Item, delta: Delta, _: str) -> None:
    for other in [found for label in delta["ids"] if label != item.id and (found := book.get(label)) is not None]:
        book.remove(other.id)
        item = replace(item, **_summed(other, item), added=min(item.added, other.added))
    book.put(item)


def _metric(book: Book, _: Any, delta: Delta, __: str) -> None:
    lines = book.head.get("notes", {}).get(_METRICS, "").splitlines()
    kept = [line for line in lines if not line.startswith(f"- {delta['name']}:")]
    new = [f"- {delta['name']}: {delta['value']}"] if delta["value"] else []
    book.note(notes={_METRICS: "\n".join(kept + new)})


def _snapshot(book: Book, _: Any, delta: Delta, __: str) -> None:
    book.note(snapshots={delta["name"]: book.head.get("revision", 0) + 1})


_FOLDS: dict[str, Callable[[Book, Any, Delta, str], None]] = {
    "add": _add,
    "edit": _edit,
    "drop": _drop,
    "use": _use,
    "outcome": _outcome,
    "accept": _accept,
    "merge": _merge,
    "metric": _metric,
    "snapshot": _snapshot,
    "restore": lambda *_: None,
    "compact": lambda book, _, __, at: book.note(last_compacted=at),
    "note": lambda book, _, delta, __: book.note(notes={delta["heading"]: delta["text"]}),
}
