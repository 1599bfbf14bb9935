"""What is handed over to the next agent: the parts of the moment, and entries that stay until somebody ends them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from ralf.text.frozen import dataclass, field
from ralf.text.patterns import regex

Author = Literal["person", "agent", "model", "file", "import"]
"""Who wrote a text. file: a hand edit of the route file; import: somebody else, whose file came with the project."""

Kind = Literal["now", "why", "next", "open", "decision", "avoid", "done", "fact", "lasting", ""]
"""What a part of a hand-over is: of the moment, then kept; "" for one under a heading that is not on the list."""

KEPT: dict[Kind, str] = {"open": "OPEN", "decision": "DEC", "avoid": "DEC", "done": "DONE", "fact": "FACT"}
"""The kinds of entries that are kept, and what their ids begin with. What is lasting becomes an offer instead.

What to avoid is a failed approach among a route's decisions: they are numbered, dropped and found as one.
"""

_OTHER_NAMES: dict[Kind, str] = {"decision": "decided", "fact": "facts", "": "other"}

NAMES: dict[Kind, str] = {kind: _OTHER_NAMES.get(kind, kind) for kind in get_args(Kind)}
"""The word for each kind of part, in the fixed order."""

_MARK = regex(r"(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+")

MOST_IN_FILE: dict[Kind, int] = {"open": 20, "decision": 30, "avoid": 10, "done": 20, "fact": 20}


def number_of(id_: str) -> int:
    """The number in an id; 0 for none."""
    number = id_.partition("-")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 0


def next_id(prefix: str, ids: Iterable[str]) -> str:
    """The next id; of a shared route the tag of its clone stands behind the number."""
    newest = max((number_of(id_) for id_ in ids if id_.startswith(f"{prefix}-")), default=0)
    return f"{prefix}-{newest + 1:03d}"


@dataclass(frozen=True, slots=True)
class Ended:
    """Who ended an entry, why, and when; `why`: the id of a decision, if that took its place."""

    by: Author = "file"
    why: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """An entry that stays word for word until somebody ends it.

    id        "DEC-001"; "" until `carry` has numbered it
    words     exact words of the message that it rests on; where `by` is "", the person's message at its line
    by        in whose message the words were found: that one decided it
    line      line of that message in the transcript of `session`, 0 for none
    rejected  options that were turned down
    author    who worded it; `model`: the model's name
    marks     names in it that were not found in the record
    """

    kind: Kind = ""
    text: str = ""
    id: str = ""
    words: str = ""
    by: Literal["person", "agent", ""] = ""
    line: int = 0
    reason: str = ""
    rejected: tuple[str, ...] = ()
    author: Author = "model"
    model: str = ""
    at: str = ""
    session: str = ""
    marks: tuple[str, ...] = ()
    ended: Ended | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text: its heading as it was written, and its paragraphs and bullets; of a kept part none."""

    kind: Kind = ""
    heading: str = ""
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HandOver:
    """What somebody wrote at one moment; its kept entries are in `Carried`.

    at        what it knows of: of a model's the end of the segment, else the time of writing
    parts     the text of an agent or a person, in its order; `now`, `why` and `next` are then what it says of them
    marks     names in it that were not found in the record
    left_out  parts with the number of items for which there was no room: "3 facts"
    """

    now: str = ""
    why: str = ""
    next: tuple[str, ...] = ()
    author: Author = "model"
    model: str = ""
    at: str = ""
    session: str = ""
    parts: tuple[Part, ...] = ()
    marks: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.parts:
            put = object.__setattr__
            put(self, "now", "\n".join(self._items("now")))
            put(self, "why", "\n".join(self._items("why")))
            put(self, "next", tuple(" ".join(_MARK.sub("", item, count=1).split()) for item in self._items("next")))

    def _items(self, kind: Kind) -> list[str]:
        return [item for part in self.parts if part.kind == kind for item in part.items]

    def __bool__(self) -> bool:
        """Whether it says anything of the moment."""
        return bool(self.now or self.why or self.next or any(part.items for part in self.parts))


@dataclass(frozen=True, slots=True)
class Carried:
    """What a route hands over: the last hand-over, all kept entries, newest first, and what is offered to memory.

    numbers  the highest id of each kind that was ever given
    """

    last: HandOver | None = None
    kept: tuple[Kept, ...] = ()
    offers: tuple[Kept, ...] = ()
    numbers: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def current(self, kind: Kind) -> list[Kept]:
        """The entries of a kind that nobody has ended, newest first."""
        return [entry for entry in self.kept if entry.kind == kind and entry.ended is None]
