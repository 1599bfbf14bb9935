"""What the records of a memory come to: deltas, one added to a memory after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ralf.memory.model import COUNTERS, FIELDS, KINDS, LISTS, MOST, MOST_REFERENCES, Item, Memory, item_of, label_of

Delta = Mapping[str, Any]
"""One change of a memory, by its `kind`:

add      an item. One that says what another one says (`Item.identity`) is that one seen again: uses, routes and
         evidence are added, and nothing at all where it brings no new evidence. A preference of a known key replaces
         the value. What was dropped comes back only when a person adds it
edit     new values of an item's fields; `confidence` is one. origin: who edits. A person's edit makes it theirs
drop     an item that is taken out, for good unless its origin is `mechanical`
use      an item that occurred again, or was followed
outcome  what came of an item that was handed over: helpful, harmful
accept   an offer that counts from now on
compact  a tidying that ended
note     what a person wrote below a heading and that is no item; "" takes it out
snapshot a name for the revision of this record
restore  the entries and notes that were at a revision `to`
"""

_DETAILS = ("text", "resolution", "purpose", "type", "source", "expires", "value", "context")


def apply(memory: Memory, delta: Delta, at: str) -> Memory:
    """A memory with a delta of a record of a time. One of a later version, about an item that is not there, or about
    a person's item by somebody else, does nothing.
    """
    kind = delta["kind"]
    if kind in _OF_ITEMS:
        item = memory.get(delta.get("id", ""))
        return _OF_ITEMS[kind](memory, item, delta, at) if item is not None and may_change(item, delta) else memory
    if kind == "add":
        return _add(memory, delta, at)
    if kind == "compact":
        return replace(memory, last_compacted=at)
    if kind == "snapshot":
        return replace(memory, snapshots={**memory.snapshots, delta["name"]: memory.revision + 1})
    if kind == "restore" and "entries" in delta:
        entries = {label: item_of(tree) for label, tree in delta["entries"].items()}
        return replace(memory, entries=entries, notes=delta["notes"])
    if kind == "note":
        notes = {**memory.notes, delta.get("heading", ""): delta.get("text", "")}
        return replace(memory, notes={heading: text for heading, text in notes.items() if text})
    return memory


def may_change(item: Item, delta: Delta) -> bool:
    """Whether who makes a delta may: neither an agent nor a model edits or drops what a person said, or says who speaks
    and what counts.
    """
    if delta["kind"] not in ("edit", "drop") or delta.get("origin", "agent") not in ("agent", "model"):
        return True
    return item.origin != "person" and {"origin", "status"}.isdisjoint(delta.get("values", ()))


def by_agent(delta: Delta) -> Delta:
    """The same delta as an agent's: what it adds is offered."""
    item = {**delta["item"], "origin": "agent", "status": "offered"} if "item" in delta else None
    return {**delta, "origin": "agent", **({"item": item} if item else {})}


def edited(item: Item, values: Mapping[str, Any]) -> Item:
    """An item with new values of fields; those that it does not have are kept as extra ones; "" takes one out."""
    own: dict[str, Any] = {n: tuple(v) if n in LISTS else v for n, v in values.items() if n in FIELDS}
    extra = {**own.pop("extra", item.extra), **{name: v for name, v in values.items() if name not in FIELDS}}
    share = extra.pop("confidence", None)
    made = replace(item, **own, extra={name: value for name, value in extra.items() if value != ""})
    return made if share is None else replace(made, base=made.base_for(float(share)))


def _add(memory: Memory, delta: Delta, at: str) -> Memory:
    item = item_of(delta["item"])
    if item.kind not in KINDS or not label_of(item.id)[1]:
        return memory  # of a later version
    added = item.added or at
    item = replace(item, added=added, last_seen=item.last_seen or added)
    alike = memory.alike(item) if not delta.get("again") else None  # again: of earlier records that restored it
    if alike is None or alike.status != "dropped":
        return memory.put(_seen_again(alike, item) if alike is not None else item)
    return memory.without(alike.id).put(item) if item.origin == "person" else memory


def _seen_again(old: Item, new: Item) -> Item:
    """An item that another one repeats, with what that one adds to it."""
    is_known = bool(new.evidence) and set(new.evidence) <= set(old.evidence)
    is_person = new.origin == "person"
    if is_known and not is_person:
        return old
    made = old if is_known else _summed(old, new)
    newest = ("value", "resolution") if is_person or old.origin != "person" else ()
    given = {name: getattr(new, name) for name in _DETAILS if name in newest or not getattr(old, name)}
    details: dict[str, Any] = {name: value for name, value in given.items() if value}
    return replace(made, **details, origin="person" if is_person else old.origin)


def _summed(old: Item, new: Item) -> Item:
    """An item with the counts of both, and all that leads to their evidence."""
    values: dict[str, Any] = {name: min(MOST, getattr(old, name) + getattr(new, name)) for name in COUNTERS}
    for name in LISTS:
        values[name] = tuple(dict.fromkeys((*getattr(old, name), *getattr(new, name))))[-MOST_REFERENCES:]
    return replace(old, **values, last_seen=max(old.last_seen, new.last_seen))


def _edit(memory: Memory, item: Item, delta: Delta, _: str) -> Memory:
    made = edited(item, delta["values"])
    if delta.get("origin") == "person" and "origin" not in delta["values"]:
        made = replace(made, origin="person")
    alike = memory.alike(made)
    if made.kind == "preference" and alike is not None:  # a key is unique, and the newest value wins
        memory = memory.without(alike.id)
    return memory.put(made)


def _drop(memory: Memory, item: Item, delta: Delta, _: str) -> Memory:
    if delta.get("origin") == "mechanical":
        return memory.without(item.id)
    return memory.put(replace(item, status="dropped"))


def _use(memory: Memory, item: Item, delta: Delta, at: str) -> Memory:
    given: dict[str, Any] = {name: tuple(delta.get(name, ())) for name in LISTS}
    new = Item(item.id, item.kind, uses=delta.get("times", 1), last_seen=delta.get("seen") or at, **given)
    return memory.put(_summed(item, new))


def _outcome(memory: Memory, item: Item, delta: Delta, _: str) -> Memory:
    verdict = delta.get("verdict", "helpful")
    if verdict not in ("helpful", "harmful"):
        return memory
    made = replace(item, **{verdict: min(MOST, getattr(item, verdict) + 1)})
    return replace(memory.put(made), outcomes=memory.outcomes + 1)


def _accept(memory: Memory, item: Item, delta: Delta, _: str) -> Memory:
    if item.status != "offered":
        return memory
    is_person = delta.get("origin", "person") == "person"
    made = replace(item, status="active", origin="person" if is_person else item.origin)
    alike = memory.alike(made)
    if alike is not None:
        memory = memory.without(alike.id)
        made = _summed(made, alike) if alike.status != "dropped" else made
    return memory.put(made)


_OF_ITEMS: dict[str, Callable[[Memory, Item, Delta, str], Memory]] = {
    "edit": _edit,
    "drop": _drop,
    "use": _use,
    "outcome": _outcome,
    "accept": _accept,
}
