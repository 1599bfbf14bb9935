"""Probes a checkpoint against its own segment: which of the segment's items do its words give back?

The probes are read from the events (`ralf.proving.items`), never from what was extracted of them: a fault of the
extractor shows as a low recall.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ralf.evidence import Line
from ralf.proving.items import Item, seen
from ralf.text import one_line
from ralf.transcripts.events import Event
from ralf.tree import to_tree

PROBED = ("requests", "decisions", "to-dos", "paths", "failed commands", "numbers")
"""The kinds by which a checkpoint is judged: what the next agent asks for, and rules can tell for certain."""

FLOORS: Mapping[str, float] = {"decisions": 0.75, "to-dos": 0.9, "numbers": 0.75, "names": 0.75, "names told": 0.34}
"""Share of what one summary gives back that another must give back, too, to take its place: by kind. Those are the
kinds that a summariser answers for; requests, paths and commands are in the facts, which no summariser writes."""

_PREFIX, _CLAUSE = 60, 40  # characters at the beginning of a text, of a clause, by which it is known again
_SHORTEST_CLAUSE, _SHORTEST_ERROR = 25, 8
_MOST_READ = 20_000  # characters of one statement
_CLAUSES = re.compile(r"(?<=[.!?:;])\s+|\n+")
_ENDS = ".!?:;"
_WORD = re.compile(r"\w{4,}|\w*[\d_]\w*")
_EXACT = re.compile(r"[\d_]")  # a word that may not be paraphrased: a name, a number
_ENOUGH = 0.7  # of the longer words of a decision, in one line: it may have been put in other words


@dataclass(frozen=True, slots=True)
class Recall:
    """How many distinct items were asked for, by kind, how many of them were given back, and which were not."""

    asked: Mapping[str, int]
    found: Mapping[str, int]
    missing: tuple[Item, ...]

    @property
    def share(self) -> float | None:
        """The share that was given back, 0 to 1 with two decimals, never rounded up; None where nothing was asked."""
        asked = sum(self.asked.values())
        return 100 * sum(self.found.values()) // asked / 100 if asked else None


class Words:
    """The words of a checkpoint, one value a line, in which items are looked up."""

    def __init__(self, text: str) -> None:
        self._lines = [one_line(line) for line in text.split("\n")]
        self._flat = " ".join(self._lines)
        self._known: dict[tuple[str, str], bool] = {}

    @classmethod
    def of(cls, *values: object) -> Words:
        """The words of texts, trees and the values of `ralf.model`, in any mixture."""
        return cls("\n".join(_texts(values)))

    def give_back(self, item: Item) -> bool:
        """Whether an item can be read off these words.

        Paths, numbers, names, commits: whole, not as part of a longer one. Requests, commands, to-dos: their first 60
        characters. Decisions: those, or in one line most of their words, with all names and numbers. Statements: a
        clause. Errors and tests: a line of the output.
        """
        known = self._known.get(item.key)
        if known is None:
            known = self._known[item.key] = self._look_up(item)
        return known

    def _look_up(self, item: Item) -> bool:
        if item.kind in ("paths", "numbers", "names", "names told", "commits"):
            return self._has_whole(item.text)
        if item.kind == "statements":
            clauses = (one_line(clause) for clause in _CLAUSES.split(item.text[:_MOST_READ]))
            return any(
                len(clause) >= _SHORTEST_CLAUSE and clause[:_CLAUSE].rstrip(_ENDS) in self._flat for clause in clauses
            )
        if item.kind == "errors":
            lines = (one_line(line) for line in item.text.split("\n"))
            return any(len(line) >= _SHORTEST_ERROR and line[:_PREFIX] in self._starts for line in lines)
        if item.kind == "tests":
            return any(one_line(line) in self._flat for line in item.text.split("\n"))
        return beginning(item.text) in self._flat or (item.kind == "decisions" and self._says(item.text))

    def _has_whole(self, name: str) -> bool:
        place = self._flat.find(name)
        while place >= 0:
            around = self._flat[max(0, place - 1) : place], self._flat[place + len(name) : place + len(name) + 1]
            if not any(sign.isalnum() or sign == "_" for sign in around):
                return True
            place = self._flat.find(name, place + 1)
        return False

    def _says(self, text: str) -> bool:
        words = set(_WORD.findall(text.lower()))
        hits = Counter(line for word in words for line in self._index.get(word, ()))
        exact = [self._index.get(word, set()) for word in words if _EXACT.search(word)]
        likely = (line for line, hit in hits.items() if hit >= _ENOUGH * len(words))
        return any(all(line in lines for lines in exact) for line in likely)

    @cached_property
    def _starts(self) -> frozenset[str]:
        return frozenset(line[:_PREFIX] for line in self._lines)

    @cached_property
    def _index(self) -> Mapping[str, set[int]]:
        found: dict[str, set[int]] = defaultdict(set)
        for number, line in enumerate(self._lines):
            for word in _WORD.findall(line.lower()):
                found[word].add(number)
        return found


def measure(
    of: Iterable[Event | Line] | Sequence[Item], words: Words | str, *, kinds: Sequence[str] = PROBED
) -> Recall:
    """How much of a segment the words of its checkpoint give back.

    of     the segment: its events, the lines of its evidence (which tell less), or what `items.seen` found in either
    words  what the checkpoint says: `Words.of` its parts, or a text
    kinds  the kinds of items that are asked for
    """
    found = list(of)
    items = found if found and isinstance(found[0], Item) else seen(found)  # type: ignore[arg-type]
    where = Words(words) if isinstance(words, str) else words
    asked: Counter[str] = Counter()
    given: Counter[str] = Counter()
    missing = []
    for item in {item.key: item for item in items if isinstance(item, Item) and item.kind in kinds}.values():
        asked[item.kind] += 1
        if where.give_back(item):
            given[item.kind] += 1
        else:
            missing.append(item)
    return Recall(dict(asked), dict(given), tuple(missing))


def beginning(text: str) -> str:
    """The beginning of a text, by which it is known again."""
    return one_line(text[: 4 * _PREFIX])[:_PREFIX]


def refuse(before: Recall, after: Recall) -> str:
    """Why a summary must not take the place of another, "" where it may.

    before, after  what the present one and the new one give back of the same items
    """
    for kind, floor in FLOORS.items():
        had, has = before.found.get(kind, 0), after.found.get(kind, 0)
        if has < floor * had:
            return f"gives back {has} of the {had} {kind} that the embedded summary gives back"
    return ""


def _texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from _texts(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _texts(value)
        elif hasattr(value, "__dataclass_fields__"):
            yield from _texts(to_tree(value).values())
