"""Checks deltas before they are recorded, cleans and redacts their texts, and gives new items their labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ralf.errors import NotFound, UsageError
from ralf.memory import records
from ralf.memory.fold import COUNTERS, LISTS, Book
from ralf.memory.model import KINDS, LONGEST_QUOTE, LONGEST_TEXT, ORIGINS, PURPOSES, STATUSES, TYPES, Item
from ralf.memory.records import Delta, fields_of
from ralf.text import cleaning

_MACHINE_MADE = ("trap", "command")
"""Kinds that rules find by themselves; any other kind that no person stated is offered first."""

_MOST = 10**9

_LONGEST_NOTE = 64 << 10

_LONGEST_REFERENCE = 200

_CHOICES: dict[str, Sequence[str]] = {
    "origin": ORIGINS,
    "status": STATUSES,
    "purpose": ("", *PURPOSES),
    "type": ("", *TYPES),
}

_NAME = re.compile(r"[^A-Za-z0-9 _-]+")

_COLON = re.compile(r"(?<!:):+(?=\s|$)")

_OUTCOMES = ("helpful", "harmful", "stale", "fresh")

_NEEDS = {"command": ("command",), "preference": ("key", "value"), "relationship": ("agent", "context")}


class Checker:
    """Checks the deltas of one record, in order. `redact` removes secrets from a text."""

    def __init__(self, book: Book, redact: Callable[[str], str]) -> None:
        self._book = book
        self._redact = redact
        self._numbers = dict(book.head.numbers)
        self._new: dict[str, Item] = {}
        self._gone: set[str] = set()

    def checked(self, deltas: Sequence[Delta], *, by_hand: bool = False) -> tuple[Delta, ...]:
        """The deltas as they are recorded. UsageError, NotFound.

        by_hand  whether a person wrote them into the file: nothing is refused there
        """
        return tuple(self._checked(delta, by_hand) for delta in deltas)

    def _checked(self, delta: Delta, by_hand: bool) -> Delta:
        if isinstance(delta, records.Added):
            return self._added(delta.item, by_hand, again=delta.again)
        if isinstance(delta, records.Measured):
            return replace(delta, name=self._name(delta.name), value=self._line(delta.value))
        if isinstance(delta, records.Noted):
            text = self._redact(cleaning.shown(delta.text))[:_LONGEST_NOTE].strip("\n")
            return replace(delta, heading=self._line(delta.heading), text=text)
        if isinstance(delta, records.Named):
            return replace(delta, name=cleaning.check(delta.name))
        if isinstance(delta, records.Compacted | records.Restored):
            return delta
        item = self._item(delta.id)
        if isinstance(delta, records.Edited):
            self._refuse_for_person(item, delta.origin)
            return replace(delta, values=self._values(item, delta.values), by=self._line(delta.by))
        if isinstance(delta, records.Dropped):
            self._refuse_for_person(item, delta.origin)
            self._gone.add(item.id)
            return replace(delta, reason=self._line(delta.reason), by=self._line(delta.by))
        if isinstance(delta, records.Outcome):
            if delta.verdict not in _OUTCOMES:
                raise UsageError(item.id, f"an outcome is one of: {', '.join(_OUTCOMES)}")
            return replace(delta, reason=self._line(delta.reason), evidence=self._references(delta.evidence))
        if isinstance(delta, records.Used):
            times, successes = _count(delta.times), _count(delta.successes)
            evidence = self._references(delta.evidence)
            routes = self._references(delta.routes)
            return replace(delta, times=times, successes=successes, routes=routes, evidence=evidence)
        if isinstance(delta, records.Merged):
            for label in delta.ids:
                self._gone.add(self._item(label).id)
            self._gone.discard(item.id)
            return delta
        return replace(delta, by=self._line(delta.by))

    def _item(self, label: str) -> Item:
        found = None if label in self._gone else self._new.get(label) or self._book.get(label)
        if found is None:
            shown = cleaning.one_line(cleaning.clean(label))[:80]
            raise NotFound(shown or '""', "no such item in the memory", "ralf memory show")
        return found

    def _refuse_for_person(self, item: Item, origin: str) -> None:
        if origin in ("agent", "model") and item.origin == "person":
            raise UsageError(item.id, "a person said so: an agent does not change it", f"ralf memory edit {item.id}")

    # ---- items ----

    def _added(self, item: Item, by_hand: bool, *, again: bool) -> Delta:
        if item.kind not in KINDS:
            raise UsageError(ascii(item.kind)[1:-1][:40], f"no kind of item; choose one of: {', '.join(KINDS)}")
        values = {name: getattr(item, name) for name, _ in fields_of(Item) if name not in ("id", "kind")}
        made = replace(item, **self._values(item, values, new=True))
        if again:
            self._new[made.id] = made
            return records.Added(made, again=True)
        if not by_hand:
            self._refuse_empty(made)
        if made.origin != "person" and made.status == "active" and not _is_found(made):
            made = replace(made, status="offered")  # text out of a tool never becomes a rule by itself
        number = self._numbers.get(item.kind, 0) + 1
        self._numbers[item.kind] = number
        made = replace(made, id=f"{item.kind}-{number}")
        self._new[made.id] = made
        return records.Added(made)

    @staticmethod
    def _refuse_empty(item: Item) -> None:
        names = _NEEDS.get(item.kind, ())
        missing = [name for name in names if not getattr(item, name)]
        if missing or not (names or item.text or item.command):
            what = f"a {item.kind} needs {' and '.join(missing) or 'a text'}"
            raise UsageError(item.kind, what, "ralf memory add --help")

    def _values(self, item: Item, values: Mapping[str, Any], *, new: bool = False) -> dict[str, Any]:
        """Fields as they are kept: on one line, redacted, cut to their limits."""
        made: dict[str, Any] = {}
        known = dict(fields_of(Item))
        for name, value in values.items():
            if name == "extra":
                made[name] = {self._name(one): self._line(str(each)) for one, each in value.items() if self._name(one)}
            elif name in LISTS:
                found = self._references(tuple(map(str, value)))
                made[name] = found if new else list(found)
            elif name in COUNTERS:
                made[name] = _count(value)
            elif name in ("base", "confidence"):
                made[name] = float(value)
            elif name in _CHOICES:
                if value not in _CHOICES[name]:
                    what = f"{ascii(value)[:40]} is no {name}; choose one of: {', '.join(filter(None, _CHOICES[name]))}"
                    raise UsageError(item.id or item.kind, what)
                made[name] = value
            elif name in known and name not in ("id", "kind"):
                most = LONGEST_QUOTE if name == "error" else LONGEST_TEXT
                made[name] = self._line(str(value), most)
            elif name not in known and (plain := self._name(name)):
                made[plain] = self._line(str(value))
        for name in ("key", "agent"):
            if name in made:  # the file tells it from what follows by a colon
                made[name] = cleaning.one_line(_COLON.sub(" -", made[name])).strip(" -")
        return made

    def _line(self, text: str, most: int = LONGEST_TEXT) -> str:
        """A text on one line, without secrets, and with nothing in it that nobody sees."""
        return cleaning.trimmed(self._redact(cleaning.one_line(cleaning.shown(text))), most)

    def _name(self, text: str) -> str:
        return cleaning.one_line(_NAME.sub(" ", text))[:40].strip(" _-")

    def _references(self, found: Sequence[str]) -> tuple[str, ...]:
        lines = (self._line(one.replace(";", ","), _LONGEST_REFERENCE) for one in found)
        return tuple(dict.fromkeys(filter(None, lines)))


def _is_found(item: Item) -> bool:
    """Whether rules may hold an item for true: a command and its exit status say it."""
    return item.origin == "mechanical" and item.kind in _MACHINE_MADE


def _count(value: Any) -> int:
    return max(0, min(_MOST, int(value)))
