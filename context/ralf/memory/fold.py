"""What the records of a memory come to: pure, over the rows of its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.memory import outcome, records
from ralf.memory.model import KINDS, MOST_REFERENCES, Item, Memory, label_of, order_of
from ralf.memory.records import Delta
from ralf.text.cleaning import one_line

_MOST = 10**9  # that a counter goes up to

LISTS = ("routes", "evidence")

COUNTERS = ("uses", "helpful", "harmful", "successes")


_HEAD, _ITEM, _SAME, _BURIED = "memory", "item/", "same/", "buried/"


class Book:
    """The items of a memory, and what it is beside them, as the rows of its document.

    head  the memory without its items
    """

    def __init__(self, agent: str, rows: Rows) -> None:
        self._rows = rows
        known = {name for name, _ in records.fields_of(Memory)}
        kept = (rows.one(_HEAD) or {}).items()
        self._head = Memory(agent, **{name: value for name, value in kept if name in known})

    @property
    def head(self) -> Memory:
        """The memory without its items."""
        return self._head

    @head.setter
    def head(self, head: Memory) -> None:
        self._head = head
        self._rows.put(_HEAD, {name: value for name, value in records.tree_of(head).items() if name != "agent"})

    def get(self, label: str) -> Item | None:
        """The item of a label, None for none."""
        tree = self._rows.one(f"{_ITEM}{label}")
        return records.item_of(tree) if tree is not None else None

    def find(self, identity: str) -> Item | None:
        """The first item of an identity, None for none."""
        labels = self._rows.one(f"{_SAME}{identity}")
        return self.get(labels[0]) if labels else None

    def put(self, item: Item) -> None:
        """Keep an item, in the place of the one with its label."""
        if (old := self.get(item.id)) is not None:
            self.remove(old)
        self._rows.put(f"{_ITEM}{item.id}", records.tree_of(item))
        key = f"{_SAME}{identity(item)}"
        labels = {*(self._rows.one(key) or ()), item.id}
        self._rows.put(key, sorted(labels, key=lambda label: (len(label), label)))

    def remove(self, item: Item) -> None:
        """Take an item out."""
        key = f"{_SAME}{identity(item)}"
        self._rows.put(f"{_ITEM}{item.id}", None)
        self._rows.put(key, [label for label in self._rows.one(key) or () if label != item.id] or None)

    def bury(self, identity: str, buried: bool) -> None:
        """Keep whether rules may not bring an identity back."""
        self._rows.put(f"{_BURIED}{identity}", buried or None)

    def is_buried(self, identity: str) -> bool:
        """Whether rules may not bring an identity back."""
        return self._rows.one(f"{_BURIED}{identity}") is not None

    def memory(self) -> Memory:
        """All of it."""
        found = (records.item_of(tree) for _, tree in self._rows.under(_ITEM))
        return replace(self.head, items=tuple(sorted(found, key=order_of)))


def identity(item: Item) -> str:
    """What two items have in common that say the same: a trap's command and what resolved it, as one run may tell an
    error in several lines; a preference's key, …; an offer never is what counts already.
    """
    parts: tuple[str, ...] = (item.text,)
    if item.kind == "trap":
        parts = (item.command, item.resolution or item.error or item.text)
    elif item.kind == "command":
        parts = (item.command or item.text,)
    elif item.kind == "preference":
        parts = (item.key or item.text,)
    elif item.kind == "relationship":
        parts = (item.agent, item.context or item.text)
    return "\n".join((item.status, item.kind, *(one_line(part).casefold() for part in parts)))


def apply(book: Book, record: Record) -> None:
    """Add a record to what those before it came to. A delta about an item that is not there does nothing."""
    for delta in records.deltas_of(record.body):
        _APPLY[type(delta)](book, delta, record)
    book.head = replace(book.head, revision=record.revision, last_written=record.at)


def _put(book: Book, item: Item) -> None:
    _take_number(book, item)
    book.put(item)


def _take_number(book: Book, item: Item) -> None:
    """Never give an item's label to another one."""
    kind, number = label_of(item.id)
    if number > book.head.numbers.get(kind, 0):
        book.head = replace(book.head, numbers={**book.head.numbers, kind: number})


def _add(book: Book, delta: records.Added, record: Record) -> None:
    item = delta.item
    if item.kind not in KINDS or not label_of(item.id)[1]:
        return  # of a later version
    if delta.again:
        book.bury(_plain(item), False)
        _put(book, item)
        return
    if not item.added:
        item = replace(item, added=record.at)
    if not item.last_seen:
        item = replace(item, last_seen=item.added)
    same = book.find(identity(item))
    if item.origin == "person":
        book.bury(_plain(item), False)
    elif same is None and book.is_buried(_plain(item)):
        _take_number(book, item)  # later records may name it
        return
    _put(book, _seen_again(same, item) if same is not None else item)


def _plain(item: Item) -> str:
    """An item's identity whether it is offered or not: who dropped the one wants the other no more."""
    return identity(replace(item, status="active"))


def _seen_again(old: Item, new: Item) -> Item:
    """An item that another one repeats, with what that one adds to it."""
    is_known = bool(new.evidence) and set(new.evidence) <= set(old.evidence)
    values: dict[str, Any] = {} if is_known else _summed(old, new)
    if not is_known or new.origin == "person":
        # The words that say it stay, but for those of a person, and where there were none.
        for name in ("text", "resolution", "purpose", "type", "source", "expires", "value", "context"):
            found = getattr(new, name)
            is_newer = old.origin != "person" or new.origin == "person"
            if found and (not getattr(old, name) or (name in ("value", "resolution") and is_newer)):
                values[name] = found
        if new.origin == "person":
            values |= {"origin": "person", "by": new.by or old.by}
        values["stale"] = ""
    return replace(old, **values)


def _summed(old: Item, new: Item) -> dict[str, Any]:
    """The counts of both, and all that leads to their evidence."""
    values: dict[str, Any] = {name: min(_MOST, getattr(old, name) + getattr(new, name)) for name in COUNTERS}
    values |= {name: _united(getattr(old, name), getattr(new, name)) for name in LISTS}
    values["last_seen"] = max(old.last_seen, new.last_seen)
    return values


def _united(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*old, *new)))[-MOST_REFERENCES:]


def _edit(book: Book, delta: records.Edited, _record: Record) -> None:
    item = book.get(delta.id)
    if item is None:
        return
    made = edited(item, delta.values)
    if delta.origin == "person" and "origin" not in delta.values:
        made = replace(made, origin="person", by=delta.by or made.by)
    if made.kind == "preference" and identity(made) != identity(item):
        other = book.find(identity(made))
        if other is not None:  # a key is unique, and the newest value wins
            book.remove(other)
    book.put(made)


def edited(item: Item, values: Mapping[str, Any]) -> Item:
    """An item with new values of fields; those that it does not have are kept as extra ones; "" takes one out."""
    known = dict(records.fields_of(Item))
    changes: dict[str, Any] = {}
    extra = dict(item.extra)
    for name, value in values.items():
        if name == "extra":
            extra = dict(value)
        elif name in known and name not in ("id", "kind"):
            changes[name] = tuple(value) if isinstance(known[name], tuple) else value
        elif name != "confidence" and value == "":
            extra.pop(name, None)
        elif name != "confidence":
            extra[name] = value
    made = replace(item, **changes, extra=extra)
    if "confidence" in values:
        made = replace(made, base=outcome.base_of(float(values["confidence"]), made.helpful, made.harmful))
    return made


def _drop(book: Book, delta: records.Dropped, _record: Record) -> None:
    item = book.get(delta.id)
    if item is None:
        return
    book.remove(item)
    if delta.origin != "mechanical":
        book.bury(_plain(item), True)


def _use(book: Book, delta: records.Used, record: Record) -> None:
    item = book.get(delta.id)
    if item is not None:
        new = Item(
            *(item.id, item.kind),
            uses=delta.times,
            successes=delta.successes,
            routes=delta.routes,
            evidence=delta.evidence,
            last_seen=delta.seen or record.at,
        )
        book.put(replace(item, **_summed(item, new)))


def _outcome(book: Book, delta: records.Outcome, _record: Record) -> None:
    item = book.get(delta.id)
    if item is None:
        return
    if delta.verdict in ("helpful", "harmful"):
        book.put(replace(item, **{delta.verdict: min(_MOST, getattr(item, delta.verdict) + 1)}))
        book.head = replace(book.head, outcomes=book.head.outcomes + 1)
    elif delta.verdict in ("stale", "fresh"):
        book.put(replace(item, stale=delta.reason or "no longer holds" if delta.verdict == "stale" else ""))


def _accept(book: Book, delta: records.Accepted, _record: Record) -> None:
    item = book.get(delta.id)
    if item is None or item.status != "offered":
        return
    made = replace(item, status="active", by=delta.by or item.by)
    if delta.origin == "person":
        made = replace(made, origin="person")
    same = book.find(identity(made))
    if same is not None:
        book.remove(same)
        made = replace(made, **_summed(same, made))
    book.bury(_plain(made), False)
    book.put(made)


def _merge(book: Book, delta: records.Merged, _record: Record) -> None:
    item = book.get(delta.id)
    for each in delta.ids:
        other = book.get(each)
        if item is None or other is None or other.id == item.id:
            continue
        book.remove(other)
        item = replace(item, **_summed(other, item))
        item = replace(item, added=min(filter(None, (item.added, other.added)), default=""))
    if item is not None:
        book.put(item)


def _compact(book: Book, delta: records.Compacted, record: Record) -> None:
    book.head = replace(book.head, last_compacted=record.at, compacted_size=delta.size)


def _measure(book: Book, delta: records.Measured, _record: Record) -> None:
    book.head = replace(book.head, metrics=_with(book.head.metrics, delta.name, delta.value))


def _note(book: Book, delta: records.Noted, _record: Record) -> None:
    book.head = replace(book.head, notes=_with(book.head.notes, delta.heading, delta.text))


def _with(values: Mapping[str, str], name: str, value: str) -> dict[str, str]:
    made = {**values, name: value}
    if not value:
        made.pop(name)
    return made


def _name(book: Book, delta: records.Named, record: Record) -> None:
    book.head = replace(book.head, snapshots={**book.head.snapshots, delta.name: record.revision})


def _restore(_book: Book, _delta: records.Restored, _record: Record) -> None:
    """Nothing: the other deltas of the record do it."""


_APPLY: dict[type[Any], Callable[[Book, Any, Record], None]] = {
    records.Added: _add,
    records.Edited: _edit,
    records.Dropped: _drop,
    records.Used: _use,
    records.Outcome: _outcome,
    records.Accepted: _accept,
    records.Merged: _merge,
    records.Compacted: _compact,
    records.Measured: _measure,
    records.Noted: _note,
    records.Named: _name,
    records.Restored: _restore,
}


def difference(now: Memory, then: Memory) -> list[Delta]:
    """The deltas that bring back what a memory was: its items, notes and metrics. Counters of labels go on."""
    deltas: list[Delta] = []
    old, new = {item.id: item for item in then.items}, {item.id: item for item in now.items}
    deltas += [records.Dropped(label, "restored", origin="mechanical") for label in new if label not in old]
    deltas += [
        records.Edited(label, values, origin="mechanical")
        for label, item in old.items()
        if label in new and (values := _differing(new[label], item))
    ]
    deltas += [records.Added(item, again=True) for label, item in old.items() if label not in new]
    for kind, was, has in (
        (records.Noted, then.notes, now.notes),
        (records.Measured, then.metrics, now.metrics),
    ):
        deltas += [kind(name, was.get(name, "")) for name in {**was, **has} if was.get(name, "") != has.get(name, "")]
    return deltas


def _differing(now: Item, then: Item) -> dict[str, Any]:
    return {
        name: records.plain(getattr(then, name))
        for name, _ in records.fields_of(Item)
        if getattr(now, name) != getattr(then, name)
    }
