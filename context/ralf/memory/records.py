"""The records of a memory: each has one or more deltas, which land together or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, fields
from typing import Any, ClassVar

from ralf.memory.model import Item
from ralf.text.frozen import dataclass

STREAMS = "agents/"
"""Begins the names of the streams."""


def stream_of(agent: str) -> str:
    """The name of the stream of an agent's memory."""
    return f"{STREAMS}{agent}"


# ---- deltas ----


@dataclass(frozen=True, slots=True)
class Added:
    """A new item. `item.id` may be "": the write gives it a label. `item.status` is "offered" for an offer.

    An item that says what one already says (`ralf.memory.fold.identity`) is that one seen again: uses, routes and
    evidence are added to it, and nothing at all where it brings no new evidence. A preference of a known key replaces
    the value. What was dropped before comes back only when a person adds it.

    again  whether it is put in as it is, under its label: a restore
    """

    kind: ClassVar[str] = "add"
    item: Item
    again: bool = False


@dataclass(frozen=True, slots=True)
class Edited:
    """New values of an item's fields, by name; `confidence` is one. `by` and `origin` say who edits, not who added.

    A person's edit makes the item theirs: its origin becomes `person`.
    """

    kind: ClassVar[str] = "edit"
    id: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    origin: str = "agent"


@dataclass(frozen=True, slots=True)
class Dropped:
    """An item that is taken out. Rules never bring back what a person or an agent dropped; a tidying's, origin
    `mechanical`, they do.
    """

    kind: ClassVar[str] = "drop"
    id: str = ""
    reason: str = ""
    by: str = ""
    origin: str = "agent"


@dataclass(frozen=True, slots=True)
class Used:
    """An item that occurred again, or was followed: `times` are added to its uses (and `successes` to a command's)."""

    kind: ClassVar[str] = "use"
    id: str = ""
    times: int = 1
    successes: int = 0
    routes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an item that was handed over.

    verdict  helpful, harmful; stale: it no longer holds, for `reason`; fresh: it does again
    evidence references to the receipt, and to what came of it
    """

    kind: ClassVar[str] = "outcome"
    id: str = ""
    verdict: str = "helpful"
    reason: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Accepted:
    """An offered item that counts from now on: the user said so, or it was offered often enough."""

    kind: ClassVar[str] = "accept"
    id: str = ""
    by: str = ""
    origin: str = "person"


@dataclass(frozen=True, slots=True)
class Merged:
    """Items that say what another one says: their counts, routes and evidence go to that one, and they are gone."""

    kind: ClassVar[str] = "merge"
    id: str = ""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compacted:
    """A tidying that ended; what it merged and dropped stands in the same record. `size`: bytes of the file then."""

    kind: ClassVar[str] = "compact"
    size: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """An improvement metric's newest value; "" takes it out."""

    kind: ClassVar[str] = "metric"
    name: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """What a person wrote into the file below a heading and that is no item; "" takes it out."""

    kind: ClassVar[str] = "note"
    heading: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A name for the revision before this record, to go back to: a snapshot."""

    kind: ClassVar[str] = "snapshot"
    name: str = ""


@dataclass(frozen=True, slots=True)
class Restored:
    """Says that the deltas of the same record bring back what the memory was at a revision."""

    kind: ClassVar[str] = "restore"
    to: int = 0
    name: str = ""


Delta = Added | Edited | Dropped | Used | Outcome | Accepted | Merged | Compacted | Measured | Noted | Named | Restored

_KINDS: dict[str, type[Any]] = {
    each.kind: each
    for each in (
        *(Added, Edited, Dropped, Used, Outcome, Accepted),
        *(Merged, Compacted, Measured, Noted, Named, Restored),
    )
}


# ---- as JSON ----

_fields: dict[type[Any], tuple[tuple[str, Any], ...]] = {}


def fields_of(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """The names of a class's fields, and what they are at first."""
    if kind not in _fields:
        _fields[kind] = tuple(
            (each.name, each.default_factory() if callable(each.default_factory) else each.default)
            for each in fields(kind)
        )
    return _fields[kind]


def tree_of(value: Any) -> dict[str, Any]:
    """A value as a plain tree; what is as it always is at first is left out."""
    tree = {}
    for name, default in fields_of(type(value)):
        found = getattr(value, name)
        if found != default:
            tree[name] = tree_of(found) if isinstance(found, Item) else plain(found)
    return tree


def plain(value: Any) -> Any:
    """A field as JSON has it: tuples are lists."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    return list(value) if isinstance(value, tuple) else value


def item_of(tree: Mapping[str, Any]) -> Item:
    """An item of its plain tree; names that are not known here are kept among its extra fields."""
    values, known = _values(Item, tree), dict(fields_of(Item))
    later = {name: str(value) for name, value in tree.items() if name not in known}
    return Item(**{**values, "extra": {**values.get("extra", {}), **later}})


def _values(kind: type[Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(map(str, tree[name])) if isinstance(default, tuple) else tree[name]
        for name, default in fields_of(kind)
        if name in tree
    }


def delta_of(tree: Mapping[str, Any]) -> Delta | None:
    """A delta of its plain tree; None for a kind that only a later version knows."""
    kind = _KINDS.get(tree["kind"])
    if kind is None:
        return None
    if kind is Added:
        return Added(item_of(tree["item"]), tree.get("again") is True)
    delta: Delta = kind(**_values(kind, tree))
    return delta


def body_of(deltas: Iterable[Delta]) -> dict[str, Any]:
    """The body of a record with some deltas."""
    return {"deltas": [{"kind": delta.kind, **tree_of(delta)} for delta in deltas]}


def deltas_of(body: Mapping[str, Any]) -> list[Delta]:
    """The deltas of a record's body, but for those of kinds that only a later version knows."""
    return [delta for tree in body.get("deltas", ()) if (delta := delta_of(tree)) is not None]
