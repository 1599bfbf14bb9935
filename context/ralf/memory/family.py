"""The memory of an agent as a family of documents: its records and how they fold, what its file shows, what a change of
that file means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ralf.document.access import BY_AGENT
from ralf.document.family import Parsed, Stamp
from ralf.document.record import Enveloped, Record
from ralf.document.rows import Rows
from ralf.errors import NotFound, UsageError
from ralf.memory import file
from ralf.memory.file import Tree, fields_of
from ralf.memory.model import (
    CHOICES,
    COUNTERS,
    FIELDS,
    KINDS,
    LISTS,
    LONGEST_QUOTE,
    LONGEST_TEXT,
    MOST,
    MOST_REFERENCES,
    OWN,
    STATED,
    Item,
    Memory,
    item_of,
    label_of,
    tree_of,
)
from ralf.text import cleaning
from ralf.text.frozen import dataclass, fields, replace

STREAMS = "agents/"
"""Begins the names of the streams."""

_FROM_LOGS = ("trap", "command")
"""Kinds that a client's log proves; any other kind that no person stated is offered first."""

_LONGEST_NOTE, _LONGEST_REFERENCE, _LONGEST_NAME = 64 << 10, 200, 40

_FIRST = {"origin": "file", "status": "active"}  # what it is where the line is taken out of the file

_NAME = re.compile(r"[^A-Za-z0-9 _-]+")

_COLON = re.compile(r"(?<!:):+(?=\s|$)")


_DETAILS = ("text", "resolution", "purpose", "type", "source", "expires", "value", "context")

_ROW = "memory"

Delta = Mapping[str, Any]
"""One change of a memory, by its `kind`:

add      an item. One that says what another one says (`Item.identity`) is that one seen again: uses, routes and
         evidence are added, and nothing at all where it brings no new evidence. A preference of a known key replaces
         the value. What was dropped comes back only when a person adds it, or the file
edit     new values of an item's fields; `confidence` is one. origin: who edits. An edit by a person, or of the file,
         makes it theirs
drop     an item that is taken out, for good unless its origin is `mechanical`
use      an item that occurred again, or was followed
outcome  what came of an item that was handed over: helpful, harmful
accept   an offer that counts from now on
compact  a tidying that ended
note     what a person wrote below a heading and that is no item; "" takes it out
restore  the entries and notes that were at a revision `to`
"""


# ---- deltas ----


def stream_of(agent: str) -> str:
    """The name of the stream of an agent's memory."""
    return f"{STREAMS}{agent}"


def delta(kind: str, id: str = "", **values: Any) -> Delta:  # noqa: A002
    """A delta of a kind of `ralf.memory.family.Delta` about the item of a label."""
    return {"kind": kind, **({"id": id} if id else {}), **values}


def new_item(kind: str, **values: object) -> Delta:
    """The delta that adds an item; UsageError for a field that items do not have."""
    unknown = next((name for name in values if name not in OWN), "")
    if unknown:
        raise UsageError(unknown, "no field of an item", f"choose one of: {', '.join(sorted(OWN))}")
    return delta("add", item={"kind": kind, **values})


def stated(kind: str, text: str, **values: Any) -> Delta:
    """The delta that adds what somebody says in one text: a trap's or a command's command line, a preference or a
    relationship as "NAME: what", else the text itself. UsageError.

    values  further fields
    """
    schema = KINDS[kind]
    own: dict[str, Any] = {"command": text, "uses": 1} if kind == "trap" else {schema.head: text}
    if schema.before:
        name, colon, what = text.partition(": " if ": " in text else ":")
        if not (colon and name.strip() and what.strip()):
            raise UsageError(kind, 'say "NAME: what"', f'ralf memory add {kind} "NAME: what"')
        own = {schema.before: name.strip(), schema.head: what.strip()}
    return new_item(kind, **own, **values)


def edit_of(label: str, values: Sequence[str], origin: str = "person") -> Delta:
    """The delta of `FIELD=VALUE` that somebody types about an item; confidence is from 0 to 1 or in percent."""
    typed: dict[str, Any] = {}
    for value in values:
        name, sign, what = value.partition("=")
        if not sign or not name.strip():
            raise UsageError(value[:80], "is not FIELD=VALUE", "ralf memory edit --help")
        typed[name.strip()] = what
    share = typed.get("confidence", "")
    if share.replace(".", "", 1).isdigit():  # of 1, not in percent
        typed["confidence"] = float(share)
    return delta("edit", label, values=typed, origin=origin)


# ---- how they fold ----


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
    if kind == "restore" and "entries" in delta:
        entries = {label: item_of(tree) for label, tree in delta["entries"].items()}
        return replace(memory, entries=entries, notes=delta["notes"])
    if kind == "note":
        notes = {**memory.notes, delta.get("heading", ""): delta.get("text", "")}
        return replace(memory, notes={heading: text for heading, text in notes.items() if text})
    return memory


def may_change(item: Item, delta: Delta) -> bool:
    """Whether who makes a delta may: neither an agent nor a model edits or drops what a person said, says who speaks
    and what counts, or words what it has offered otherwise.
    """
    if delta["kind"] not in ("edit", "drop") or delta.get("origin", "agent") not in ("agent", "model"):
        return True
    is_fixed = delta["kind"] == "edit" and item.status == "offered"  # a person accepts the words that they have read
    return item.origin not in STATED and not is_fixed and {"origin", "status"}.isdisjoint(delta.get("values", ()))


def by_agent(delta: Delta) -> Delta:
    """The same delta as an agent's: what it adds is offered."""
    item = {**delta["item"], "origin": "agent", "status": "offered"} if "item" in delta else None
    return {**delta, "origin": "agent", **({"item": item} if item else {})}


def edited(item: Item, values: Mapping[str, Any]) -> Item:
    """An item with new values of fields; those that it does not have are kept as extra ones; "" takes one out."""
    own: dict[str, Any] = {n: tuple(v) if n in LISTS else v for n, v in values.items() if n in FIELDS}
    extra = {**own.pop("extra", item.extra), **{name: v for name, v in values.items() if name not in FIELDS}}
    share = extra.pop("confidence", None)
    edit = replace(item, **own, extra={name: value for name, value in extra.items() if value != ""})
    return edit if share is None else replace(edit, base=edit.base_for(float(share)))


def _add(memory: Memory, delta: Delta, at: str) -> Memory:
    item = item_of(delta["item"])
    if item.kind not in KINDS or not label_of(item.id)[1]:
        return memory  # of a later version
    added = item.added or at
    item = replace(item, added=added, last_seen=item.last_seen or added)
    alike = memory.alike(item) if not delta.get("again") else None  # again: of earlier records that restored it
    if alike is None or alike.status != "dropped":
        return memory.put(_seen_again(alike, item) if alike is not None else item)
    return memory.without(alike.id).put(item) if item.origin in STATED else memory


def _seen_again(old: Item, new: Item) -> Item:
    """An item that another one repeats, with what that one adds to it."""
    is_known = bool(new.evidence) and set(new.evidence) <= set(old.evidence)
    is_stated = new.origin in STATED
    if is_known and not is_stated:
        return old
    item = old if is_known else _summed(old, new)
    newest = ("value", "resolution") if is_stated or old.origin not in STATED else ()
    given = {name: getattr(new, name) for name in _DETAILS if name in newest or not getattr(old, name)}
    details: dict[str, Any] = {name: value for name, value in given.items() if value}
    is_theirs = is_stated and (old.origin != "person" or any(getattr(old, n) != v for n, v in details.items()))
    return replace(item, **details, origin=new.origin if is_theirs else old.origin)


def _summed(old: Item, new: Item) -> Item:
    """An item with the counts of both, and all that leads to their evidence."""
    values: dict[str, Any] = {name: min(MOST, getattr(old, name) + getattr(new, name)) for name in COUNTERS}
    for name in LISTS:
        values[name] = tuple(dict.fromkeys((*getattr(old, name), *getattr(new, name))))[-MOST_REFERENCES:]
    return replace(old, **values, last_seen=max(old.last_seen, new.last_seen))


def _edit(memory: Memory, item: Item, delta: Delta, _: str) -> Memory:
    after = edited(item, delta["values"])
    if delta.get("origin") in STATED and "origin" not in delta["values"]:
        after = replace(after, origin=delta["origin"])
    alike = memory.alike(after)
    if after.kind == "preference" and alike is not None:  # a key is unique, and the newest value wins
        memory = memory.without(alike.id)
    return memory.put(after)


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
    after = replace(item, **{verdict: min(MOST, getattr(item, verdict) + 1)})
    return replace(memory.put(after), outcomes=memory.outcomes + 1)


def _accept(memory: Memory, item: Item, delta: Delta, _: str) -> Memory:
    if item.status != "offered":
        return memory
    is_person = delta.get("origin", "person") == "person"
    accepted = replace(item, status="active", origin="person" if is_person else item.origin)
    alike = memory.alike(accepted)
    if alike is not None:
        memory = memory.without(alike.id)
        accepted = _summed(accepted, alike) if alike.status != "dropped" else accepted
    return memory.put(accepted)


_OF_ITEMS: dict[str, Callable[[Memory, Item, Delta, str], Memory]] = {
    "edit": _edit,
    "drop": _drop,
    "use": _use,
    "outcome": _outcome,
    "accept": _accept,
}


# ---- as they are recorded ----


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Makes values as they are kept.

    redact   removes secrets from a text
    by_hand  whether a person wrote them into the file: what a field cannot hold stays a text there
    """

    redact: Callable[[str], str]
    by_hand: bool = False

    def line(self, text: str, most: int = LONGEST_TEXT) -> str:
        """A text on one line, without secrets, and with nothing in it that nobody sees."""
        return cleaning.trimmed(self.redact(cleaning.one_line(cleaning.shown(text))), most)

    def fields(self, where: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of an item. UsageError."""
        clean: dict[str, Any] = {}
        for name, value in values.items():
            plain = name if name in FIELDS else _name_of(name)
            try:
                if plain:
                    clean[plain] = self.value(name, value)
            except ValueError as error:
                if not self.by_hand:
                    what = f"{name} cannot be {ascii(value)[:40]}{error if name in CHOICES else ''}"
                    raise UsageError(where, what, "ralf memory edit --help") from None
                clean[f"{name} said"] = self.line(value)
        return clean

    def value(self, name: str, value: Any) -> Any:
        """The value of a field. ValueError."""
        if name in LISTS:
            parts = value.split(";") if isinstance(value, str) else value
            lines = (self.line(str(one).replace(";", ","), _LONGEST_REFERENCE) for one in parts)
            return list(dict.fromkeys(filter(None, lines)))
        if name in COUNTERS:
            if not 0 <= (number := int(value or 0)) <= MOST:
                raise ValueError
            return number
        if name == "confidence":
            share = float(value.rstrip("%")) / 100 if isinstance(value, str) else float(value)
            if not 0 <= share <= 1:
                raise ValueError
            return share
        if name in CHOICES:
            if value not in ("", *CHOICES[name]):
                raise ValueError(f"; choose one of: {', '.join(CHOICES[name])}")
            return value or _FIRST.get(name, "")
        if not isinstance(value, str):
            return value
        line = self.line(value, LONGEST_QUOTE if name == "error" else LONGEST_TEXT)
        # the file tells a key from what follows by a colon
        return cleaning.one_line(_COLON.sub(" -", line)).strip(" -") if name in ("key", "agent") else line


def checked(
    memory: Memory, deltas: Sequence[Delta], redact: Callable[[str], str], *, by_hand: bool = False
) -> Iterator[Delta]:
    """The deltas of one record as they are recorded. UsageError, NotFound.

    memory   that they are for
    redact   removes secrets from a text
    by_hand  whether a person wrote them into the file: nothing is refused there
    """
    cleaner = Cleaner(redact, by_hand)
    for one in deltas:
        clean = _checked(memory, one, cleaner)
        memory = apply(memory, clean, memory.last_written)  # a delta may be about an item that one before it adds
        yield clean


def _checked(memory: Memory, given: Delta, cleaner: Cleaner) -> Delta:
    kind = given["kind"]
    if kind == "add":
        return {**given, "item": _item(memory, given["item"], cleaner)}
    if kind == "note":
        text = cleaner.redact(cleaning.shown(given["text"]))[:_LONGEST_NOTE].strip("\n")
        return {**given, "heading": cleaner.line(given["heading"]), "text": text}
    if "id" not in given:
        return given
    item = memory.get(given["id"])
    if item is None:
        shown = cleaning.one_line(cleaning.clean(given["id"]))[:80]
        raise NotFound(shown or '""', "no such item in the memory", "ralf memory show")
    if not may_change(item, given):
        if item.status == "offered" and item.origin not in STATED:
            what = "is offered: its words do not change"
            raise UsageError(item.id, what, f"ralf memory drop {item.id}, and add another")
        hint = f"type it yourself, in a terminal of your own: ralf memory {kind} {item.id}"
        raise UsageError(item.id, "a person says so, and no agent changes that", hint)
    values = {"values": cleaner.fields(item.id, given["values"])} if kind == "edit" else {}
    return {**{name: cleaner.value(name, value) for name, value in given.items() if name != "values"}, **values}


def _item(memory: Memory, tree: Mapping[str, Any], cleaner: Cleaner) -> dict[str, Any]:
    kind = tree["kind"]
    if kind not in KINDS:
        raise UsageError(ascii(kind)[1:-1][:40], f"no kind of item; choose one of: {', '.join(KINDS)}")
    item_tree = {"kind": kind, **cleaner.fields(kind, {name: value for name, value in tree.items() if name != "kind"})}
    share, item = item_tree.pop("confidence", None), item_of({"id": "", **item_tree})
    if share is not None and item.percent != f"{100 * share:.6g}":
        item_tree["base"] = item.base_for(share)
    missing = [name for name in (KINDS[kind].before, KINDS[kind].head) if name and not item_tree.get(name)]
    if missing and not cleaner.by_hand and not (kind == "trap" and item_tree.get("command")):
        raise UsageError(kind, f"a {kind} needs a {' and a '.join(missing)}", "ralf memory add --help")
    is_proved = item_tree.get("origin") == "mechanical" and kind in _FROM_LOGS
    if item_tree.get("origin") not in STATED and not is_proved:
        item_tree["status"] = "offered"  # text out of a tool never becomes a rule by itself
    return {"id": f"{kind}-{memory.numbers.get(kind, 0) + 1}", **item_tree}


def _name_of(text: str) -> str:
    return cleaning.one_line(_NAME.sub(" ", text))[:_LONGEST_NAME].strip(" _-")


# ---- the family ----


@dataclass(frozen=True, slots=True)
class MemoryFamily(Enveloped):
    """The memory of one agent. `redact` removes secrets from a text. See `ralf.document.family.Family`."""

    agent: str
    redact: Callable[[str], str]
    layout: int = file.LAYOUT

    def memory(self, rows: Rows) -> Memory:
        """The memory that rows hold."""
        if rows.held is None:
            tree = rows.one(_ROW) or {}
            entries = {label: item_of(item) for label, item in tree.get("entries", {}).items()}
            rows.held = Memory(**{**tree, "agent": self.agent, "entries": entries})
        return rows.held  # type: ignore[no-any-return]

    def fold(self, rows: Rows, record: Record) -> None:
        """See `Family.fold`."""
        memory = self.memory(rows)
        for each in record.body.get("deltas", ()):
            memory = apply(memory, by_agent(each) if record.by == BY_AGENT else each, record.at)
        rows.held = replace(memory, revision=record.revision, last_written=record.at)
        rows.put(_ROW, lambda: _tree_of(rows.held))

    def render(self, rows: Rows, stamp: Stamp) -> bytes:
        """See `Family.render`."""
        return file.render(self.memory(rows), stamp)

    def parse(self, content: bytes, path: Path) -> Parsed:
        """See `Family.parse`."""
        return file.parse(content, path)

    def changes(self, base: Tree | None, found: Tree, rows: Rows, *, is_whole: bool) -> Mapping[str, Any] | None:
        """See `Family.changes`."""
        memory = self.memory(rows)
        deltas = [*checked(memory, [*_differences(base, found, memory, is_whole)], self.redact, by_hand=True)]
        return {"deltas": deltas} if deltas else None

    def redacted(self, text: str) -> str:
        """See `Family.redacted`."""
        return self.redact(text)


def _tree_of(memory: Memory) -> dict[str, Any]:
    tree = {one.name: getattr(memory, one.name) for one in fields(Memory) if one.name not in ("agent", "warnings")}
    return {**tree, "entries": {label: tree_of(item) for label, item in memory.entries.items()}}


def _differences(base: Tree | None, found: Tree, memory: Memory, is_whole: bool) -> Iterator[Delta]:
    """What was changed from one file to another, as deltas of the file, whatever it says of whose they are.

    base  None where nobody knows it
    """
    before = {entry.label: entry.fields for entry in base.entries} if base is not None else {}
    for entry in found.entries:
        item = memory.get(entry.label)
        fields = before.get(entry.label, fields_of(item) if item is not None else {}) if entry.label else {}
        changes = _changed(fields, entry.fields)
        if item is None and changes:
            yield delta("add", item={"kind": entry.kind, **entry.fields, "origin": "file"})
        elif changes:
            yield delta("edit", entry.label, values=changes, origin="file")
    if base is not None and is_whole:
        there = {entry.label for entry in found.entries}
        for entry in base.entries:
            if entry.label not in there and entry.kind in found.kinds and memory.get(entry.label) is not None:
                yield delta("drop", entry.label, reason="taken out of the file", origin="file")
    notes = base.notes if base is not None else memory.notes
    for name in {**notes, **found.notes}:
        if notes.get(name, "") != found.notes.get(name, "") and (is_whole or name in found.notes):
            yield delta("note", heading=name, text=found.notes.get(name, ""))


def _changed(base: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """The fields that differ, with what the second one says; "" where it has none any more. Who takes the uses and the
    confidence out of a bullet has not said that there are none.
    """
    names = dict.fromkeys((*(name for name in base if name not in ("uses", "confidence")), *found))
    names.pop("origin", None)  # whose an item is no file says
    return {name: found.get(name, "") for name in names if base.get(name, "") != found.get(name, "")}
