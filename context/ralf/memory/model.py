"""The memory of an agent as callers see it: its items, by kind, and what they came to so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ralf.errors import UsageError
from ralf.memory import outcome
from ralf.text import cleaning
from ralf.text.frozen import dataclass

KINDS = ("trap", "command", "preference", "fact", "pattern", "relationship")

ORIGINS = ("mechanical", "person", "agent", "model")
"""Who says what an item says: rules over transcripts, the user, the agent, a model."""

PURPOSES = ("test", "lint", "build", "other")

TYPES = ("workflow", "tool_usage")

STATUSES = ("active", "offered")
"""An offered item is not handed to an agent before the user accepts it."""

DEFAULT_AGENT = "main"
"""The agent that is meant where none is named."""

LONGEST_QUOTE = 200
"""Characters that an item keeps of a text that a tool printed."""

LONGEST_TEXT = 2_000
"""Characters of any other field."""

MOST_REFERENCES = 64
"""Routes, or references to evidence, of one item; the newest ones are kept, the journal has all."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that an agent has learned.

    id          label within the memory: `trap-3`; never given twice
    kind        one of `KINDS`
    text        what it says, one line; for a trap or a command "" is enough: the fields below say it
    source      where it comes from, in words
    added       when, as ISO 8601 in UTC; last_seen: when it last occurred or was confirmed
    by          who added it; origin: one of `ORIGINS`
    routes      of the work in which it occurred
    evidence    references: `ROUTE cp-3`, `ROUTE revision 12`, `session:first-last` of a transcript's lines
    uses        how often it occurred, or was followed
    helpful     times that it was handed over and used; harmful: that what it says failed again afterwards
    base        what `confidence` counts before any outcome: 1.0 is a confidence of one half
    expires     date after which it is not handed over, "" for none
    stale       why it no longer holds (`the path src/a.py is gone`), "" while it does
    status      one of `STATUSES`
    command     of a trap or a command; error: what a trap's command printed, quoted, at most 200 characters
    resolution  the agent's own command or edit after which the trap's command passed
    purpose     of a command, one of `PURPOSES`; successes: how often it passed
    key, value  of a preference; a key is unique, the newest value wins
    type        of a pattern, one of `TYPES`
    agent       of a relationship; context: what for
    extra       fields that this version does not know, kept as they are
    """

    id: str
    kind: str
    text: str = ""
    source: str = ""
    added: str = ""
    by: str = ""
    origin: str = "agent"
    routes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    uses: int = 0
    helpful: int = 0
    harmful: int = 0
    base: float = 1.0
    last_seen: str = ""
    expires: str = ""
    stale: str = ""
    status: str = "active"
    command: str = ""
    error: str = ""
    resolution: str = ""
    purpose: str = ""
    successes: int = 0
    key: str = ""
    value: str = ""
    type: str = ""
    agent: str = ""
    context: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def confidence(self) -> float:
        """From 0 to 1, by what came of it when it was handed over; see `ralf.memory.outcome`."""
        return outcome.confidence(self.helpful, self.harmful, self.base)


@dataclass(frozen=True, slots=True)
class Memory:
    """All that an agent remembers.

    items           by kind, then in the order in which they were added
    revision        how many records there are
    last_compacted  when `tidying` last ran, as ISO 8601 in UTC, "" for never; compacted_size: bytes of the file then
    last_written    time of the newest record
    outcomes        how many outcomes were counted, of all items that ever were
    metrics         improvement metrics by name, as they were recorded
    notes           what a person wrote into the file that is no item: by heading, "" for the beginning
    numbers         by kind, the highest number that a label has got
    snapshots       names of revisions, to go back to
    warnings        what is to be said of this reading: an unreadable file, a foreign one
    """

    agent: str
    items: tuple[Item, ...] = ()
    revision: int = 0
    last_compacted: str = ""
    compacted_size: int = 0
    last_written: str = ""
    outcomes: int = 0
    metrics: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    snapshots: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def get(self, label: str) -> Item | None:
        """The item of a label, None for none."""
        return next((item for item in self.items if item.id == label), None)

    def of_kind(self, kind: str) -> tuple[Item, ...]:
        """The items of a kind."""
        return tuple(item for item in self.items if item.kind == kind)

    @property
    def offers(self) -> tuple[Item, ...]:
        """The items that wait for the user's word."""
        return tuple(item for item in self.items if item.status == "offered")


def label_of(label: str) -> tuple[str, int]:
    """The kind and the number of a label; ("", 0) for what is none."""
    kind, _, number = label.rpartition("-")
    return (kind, int(number)) if kind in KINDS and number.isascii() and number.isdecimal() else ("", 0)


def label(said: str) -> str:
    """A label as it is written, `trap-3`, for what a person may type of it: `Trap-3`, `trap-03`."""
    kind, number = label_of(said.strip().lower())
    return f"{kind}-{number}" if number else said


def order_of(item: Item) -> tuple[int, int]:
    """Sorts items as they are shown: by kind, then in the order in which they were added."""
    return KINDS.index(item.kind), label_of(item.id)[1]


def check_agent(name: str) -> str:
    """The name itself; UsageError for one that a route could not have."""
    try:
        return cleaning.check(name)
    except UsageError as error:
        raise UsageError(error.where, error.what.replace("a route name", "the name of an agent"), error.hint) from None
