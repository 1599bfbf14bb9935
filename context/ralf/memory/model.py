"""The memory of an agent as callers see it: the schema of its items, by kind, and what they came to so far."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from typing import Any, NamedTuple

from ralf.errors import UsageError
from ralf.text import cleaning
from ralf.text.frozen import MISSING, dataclass, field, fields, replace


class Kind(NamedTuple):
    """A kind of items.

    heading  of their section of the file
    weight   what one is worth against others
    head     the field that a bullet begins with; before: what stands before it, with a colon
    same     the fields that two items have in common that say the same
    """

    heading: str
    weight: float
    head: str = "text"
    before: str = ""
    same: tuple[str, ...] = ("text",)


KINDS = {
    "trap": Kind("Traps", 1.5, same=("command", "resolution")),
    "command": Kind("Commands that Work", 1.2, "command", same=("command",)),
    "pattern": Kind("Workflow Patterns", 1.0),
    "preference": Kind("Tool Preferences", 2.0, "value", "key", ("key",)),
    "fact": Kind("Organizational Knowledge", 1.0),
    "relationship": Kind("Relationships", 0.8, "context", "agent", ("agent", "context")),
}

STATED = ("person", "file")
"""Whose items no agent and no model changes: what the user typed; what was written into the file, by nobody knows whom,
the user most likely.
"""

ORIGINS = ("mechanical", *STATED, "agent", "model")
"""Who says what an item says: a client's log, the user, an edit of the file, the agent, a model."""

CHOICES = {
    "origin": ORIGINS,
    "status": ("active", "offered", "dropped"),
    "purpose": ("test", "lint", "build", "other"),
    "type": ("workflow", "tool_usage"),
}
"""What a field may say besides nothing. An offered item is not handed to an agent before the user accepts it; of one
that is dropped the memory keeps that nobody but a person brings it back.
"""

LISTS = ("routes", "evidence")

COUNTERS = ("uses", "helpful", "harmful")

DEFAULT_AGENT = "main"
"""The agent that is meant where none is named."""

LONGEST_QUOTE = 200
"""Characters that an item keeps of a text that a tool printed."""

LONGEST_TEXT = 2_000
"""Characters of any other field."""

MOST_REFERENCES = 64
"""Routes, or references to evidence, of one item; the newest ones are kept, the journal has all."""

MOST = 10**9
"""That a counter goes up to."""

_PLACES = 9  # decimal places that a confidence is told apart by: far finer than one outcome moves it


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that an agent has learned.

    id          label within the memory: `trap-3`; never given twice
    kind        one of `KINDS`
    text        what it says, one line; for a trap or a command "" is enough: the fields below say it
    source      where it comes from, in words
    added       when, as ISO 8601 in UTC; last_seen: when it last occurred or was confirmed
    origin      one of `ORIGINS`
    routes      of the work in which it occurred
    evidence    references: `ROUTE cp-3`, `ROUTE DEC-012`, `ROUTE SESSION lines 3-9` of its transcript
    uses        how often it occurred, or was followed
    helpful     times that it was handed over and used; harmful: that what it says failed again afterwards
    base        what `confidence` counts before any outcome: 1.0 is a confidence of one half
    expires     date after which it is not handed over, "" for none
    status      active, offered or dropped
    command     of a trap or a command; error: what a trap's command printed, quoted, at most 200 characters
    resolution  what the agent did last before the trap's command passed
    purpose     of a command: test, lint, build, other
    key, value  of a preference; a key is unique, the newest value wins
    type        of a pattern: workflow, tool_usage
    agent       of a relationship; context: what for
    extra       fields that this version does not know, kept as they are
    """

    id: str
    kind: str
    text: str = ""
    source: str = ""
    added: str = ""
    origin: str = "agent"
    routes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    uses: int = 0
    helpful: int = 0
    harmful: int = 0
    base: float = 1.0
    last_seen: str = ""
    expires: str = ""
    status: str = "active"
    command: str = ""
    error: str = ""
    resolution: str = ""
    purpose: str = ""
    key: str = ""
    value: str = ""
    type: str = ""
    agent: str = ""
    context: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def confidence(self) -> float:
        """From 0 to 1, by what came of it when it was handed over: (helpful + base) / (helpful + harmful + 2)."""
        return round(min(1.0, max(0.0, (self.helpful + self.base) / (self.helpful + self.harmful + 2))), _PLACES)

    @property
    def percent(self) -> str:
        """The confidence in percent: whole ones, but for one that somebody has stated more finely."""
        return f"{100 * self.confidence:.0f}" if self.base == 1.0 else f"{100 * self.confidence:.6g}"

    def base_for(self, confidence: float) -> float:
        """The base with which the confidence is what somebody states; later outcomes count from there."""
        outcomes = self.helpful + self.harmful + 2
        return round(min(1.0, max(0.0, confidence)) * outcomes - self.helpful, _PLACES)

    @property
    def worth(self) -> float:
        """What it is worth against others, whatever the task: by kind, confidence and uses. What is stated counts
        twice, a trap without a resolution half, an offer a fifth.
        """
        worth = KINDS[self.kind].weight * self.confidence * (1 + log2(1 + self.uses))
        worth *= 2 if self.origin in STATED else 1
        worth /= 2 if self.kind == "trap" and not self.resolution else 1
        return worth / (5 if self.status == "offered" else 1)

    @property
    def words(self) -> str:
        """All that it says, as one text."""
        said = (self.text, self.key, self.value, self.command, self.error, self.resolution, self.agent, self.context)
        return " ".join(filter(None, said))

    def holds(self, today: str) -> bool:
        """Whether it may be handed over on a day: it is no offer, and has not expired."""
        return self.status == "active" and (not self.expires or self.expires[:10] >= today)

    @property
    def identity(self) -> tuple[str, ...]:
        """What it has in common with those that say the same: a trap's command and what resolved it, as one run may
        print an error in several lines; a preference's key, …
        """
        said = [getattr(self, name) for name in KINDS[self.kind].same]
        said[-1] = said[-1] or self.error or self.text
        return (self.kind, *(part.casefold() for part in said))


FIELDS: dict[str, Any] = {
    one.name: one.default_factory() if one.default_factory is not MISSING else one.default for one in fields(Item)
}
"""The fields of an item, and what they are at first."""

OWN = tuple(name for name in FIELDS if name not in ("id", "kind", "base", "extra"))
"""Those that somebody may state."""


_GONE = ("by", "stale", "successes")  # fields of earlier records


def item_of(tree: Mapping[str, Any]) -> Item:
    """An item of its plain tree; names that are not known here are kept among its extra fields."""
    own: dict[str, Any] = {
        name: tuple(map(str, tree[name])) if name in LISTS else tree[name] for name in FIELDS if name in tree
    }
    later = {name: str(value) for name, value in tree.items() if name not in FIELDS and name not in _GONE}
    return Item(**{**own, "extra": {**own.get("extra", {}), **later}})


def tree_of(item: Item) -> dict[str, Any]:
    """An item as a plain tree; what is as it always is at first is left out."""
    values = ((name, getattr(item, name)) for name in FIELDS)
    return {name: list(v) if name in LISTS else v for name, v in values if v != FIELDS[name]}


@dataclass(frozen=True, slots=True)
class Memory:
    """All that an agent remembers.

    entries         its items by label, with those that were dropped
    revision        how many records there are
    last_compacted  when it was last tidied, as ISO 8601 in UTC, "" for never
    last_written    time of the newest record
    outcomes        how many outcomes were counted, of all items that ever were
    notes           what a person wrote into the file that is no item: by heading, "" for the beginning
    numbers         by kind, the highest number that a label has got
    warnings        what is to be said of this reading: an unreadable file, a foreign one
    """

    agent: str
    entries: Mapping[str, Item] = field(default_factory=dict)
    revision: int = 0
    last_compacted: str = ""
    last_written: str = ""
    outcomes: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def items(self) -> tuple[Item, ...]:
        """The items, by kind, then in the order in which they were added."""
        kinds, held = [*KINDS], (item for item in self.entries.values() if item.status != "dropped")
        return tuple(sorted(held, key=lambda item: (kinds.index(item.kind), label_of(item.id)[1])))

    def get(self, label: str) -> Item | None:
        """The item of a label, None for none."""
        item = self.entries.get(label)
        return item if item is not None and item.status != "dropped" else None

    def alike(self, item: Item) -> Item | None:
        """The item that says what another one says, None for none: an offer never is what counts already, and what was
        dropped comes last.
        """
        candidates = (one for one in self.entries.values() if one.status in (item.status, "dropped"))
        said = (one for one in candidates if one.kind == item.kind and one.identity == item.identity)
        return min(said, key=lambda one: one.status == "dropped", default=None)

    def put(self, item: Item) -> Memory:
        """The memory with an item, in the place of the one with its label, which no other one ever gets."""
        kind, number = label_of(item.id)
        numbers = {**self.numbers, kind: max(number, self.numbers.get(kind, 0))}
        return replace(self, entries={**self.entries, item.id: item}, numbers=numbers)

    def without(self, label: str) -> Memory:
        """The memory without an item."""
        return replace(self, entries={one: item for one, item in self.entries.items() if one != label})

    def of_kind(self, kind: str) -> tuple[Item, ...]:
        """The items of a kind."""
        return tuple(item for item in self.items if item.kind == kind)

    @property
    def offers(self) -> tuple[Item, ...]:
        """The items that wait for the user's word."""
        return tuple(item for item in self.items if item.status == "offered")

    def best(self, kind: str | None = None) -> list[Item]:
        """The items, or those of a kind, the most valuable first."""
        return sorted((item for item in self.items if kind in (None, item.kind)), key=lambda item: -item.worth)


def label_of(label: str) -> tuple[str, int]:
    """The kind and the number of a label; ("", 0) for what is none."""
    kind, _, number = label.rpartition("-")
    return (kind, int(number)) if kind in KINDS and number.isascii() and number.isdecimal() else ("", 0)


def check_agent(name: str) -> str:
    """The name itself; UsageError for one that a route could not have."""
    try:
        return cleaning.check(name)
    except UsageError as error:
        raise UsageError(error.where, error.what.replace("a route name", "the name of an agent"), error.hint) from None
