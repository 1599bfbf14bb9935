"""Which items of two versions of a shared route file, and of the one that both come from, are one; and their labels.
Pure.

Clones label by themselves, so a label alone says nothing: two may have given `DEC-007` to different decisions, and one
decision may bear two labels. Items are paired by what they are: when they were recorded, where, and in which words. Of
two that claim a label the one that was recorded first keeps it, in whatever order the versions are given.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from ralf.format.codec import to_tree
from ralf.model import Checkpoint, Decision, RouteContext, Section
from ralf.route import cap, edits
from ralf.route.matching import SAME, Same, Test, is_said, match, segment_of
from ralf.text.patterns import regex

T = TypeVar("T")


class Numbered(NamedTuple):
    """A checkpoint of a version: its entry in the history and its section, one of which may be folded."""

    id: str
    entry: Checkpoint | None
    section: Section | None

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other ids that it bears."""
        return self.entry.aliases if self.entry is not None else ()


Labelled = TypeVar("Labelled", bound="Decision | Numbered")

_NUMBER = regex(r"[A-Za-z]+-([0-9]{1,9})\Z")


@dataclass
class Pair(Generic[T]):
    """One item, as the version that both come from has it, and as both have it.

    label    in the merged file
    aliases  other labels that it bears or bore
    """

    base: T | None = None
    sides: list[T | None] = field(default_factory=lambda: [None, None])
    label: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def any(self) -> T:
        """The item as one of the two has it, else as it was."""
        return next(item for item in (*self.sides, self.base) if item is not None)


def pairs(
    base: Sequence[T],
    sides: Sequence[Sequence[T]],
    same: Same[T],
    likewise: Sequence[Test[T]] = (),
) -> list[Pair[T]]:
    """The items of a base and of two versions of it, paired: those of the base first, then the new ones.

    likewise  further tests whether items of the two versions are one, as they are now; the base is not asked
    """
    made = [Pair(base=item) for item in base]
    news: list[list[T]] = []
    for side, items in enumerate(sides):
        places = match(base, items, same)
        for item, place in zip(items, places, strict=True):
            if place is not None:
                made[place].sides[side] = item
        news.append([item for item, place in zip(items, places, strict=True) if place is None])
    if likewise:
        news = [_left_of(made, items, side, same._replace(tests=likewise)) for side, items in enumerate(news)]
    added = [Pair(sides=[item, None]) for item in news[0]]
    same = same._replace(tests=(*same.tests, *likewise))
    for item, place in zip(news[1], match(news[0], news[1], same), strict=True):
        if place is None:
            added.append(Pair(sides=[None, item]))
        else:
            added[place].sides[1] = item
    return [*made, *added]


def _left_of(
    made: Sequence[Pair[T]],
    items: Sequence[T],
    side: int,
    same: Same[T],
) -> list[T]:
    """The items of a side that are none of those which it no longer has and the other side still has; the rest is
    paired with them.
    """
    kept = [(pair, other) for pair in made if pair.sides[side] is None and (other := pair.sides[1 - side]) is not None]
    places = match([other for _, other in kept], items, same)
    for item, place in zip(items, places, strict=True):
        if place is not None:
            kept[place][0].sides[side] = item
    return [item for item, place in zip(items, places, strict=True) if place is None]


# ---- decisions ----


def decisions(base: RouteContext | None, sides: Sequence[RouteContext]) -> list[Pair[Decision]]:
    """The decisions of a base and of two versions of it, paired."""
    known = {item.id: item for item in base.decisions} if base is not None else {}
    lists = [edits.distinct(side.decisions, known) for side in sides]
    return pairs(base.decisions if base is not None else (), lists, SAME, likewise=[is_said])


# ---- checkpoints ----


def checkpoints(base: RouteContext | None, sides: Sequence[RouteContext]) -> list[Pair[Numbered]]:
    """The checkpoints of a base and of two versions of it, paired."""
    lists = [_numbered(side) for side in sides]
    return pairs(_numbered(base) if base is not None else [], lists, Same((_is_very_one, _is_one), _keys_of))


def _numbered(context: RouteContext) -> list[Numbered]:
    entries = {entry.checkpoint_id: entry for entry in context.checkpoint_history}
    sections = {f"cp-{one.number:03d}": one for one in context.body.sections if one.number is not None}
    ids = sorted({*entries, *sections}, key=lambda label: (digits(label), label))
    return [Numbered(label, entries.get(label), sections.get(label)) for label in ids]


def _keys_of(one: Numbered) -> Iterator[Hashable]:
    yield "id", one.id
    if one.entry is not None:
        yield "segment", segment_of(one.entry)
    if one.section is not None:
        yield "text", (one.section.title, one.section.text)


def _is_very_one(one: Numbered, other: Numbered) -> bool:
    return one.id == other.id and _is_one(one, other)


def _is_one(one: Numbered, other: Numbered) -> bool:
    """Whether two are one, whatever their numbers: of the same segment, else, without entries, in the same words."""
    if one.entry is not None and other.entry is not None:
        return segment_of(one.entry) == segment_of(other.entry)
    if one.section is not None and other.section is not None:
        return (one.section.title, one.section.text) == (other.section.title, other.section.text)
    return one.id == other.id


# ---- labels ----


def label_all(found: Sequence[Pair[Labelled]], taken: set[str], count: int, shape: str) -> list[dict[str, str]]:
    """Give each pair its label, and return for each of the two versions what its labels have become.

    One that the base has keeps that label as long as one of the two calls it so; of the others the one that was
    recorded first has the first choice. One that gets no label which it bears gets the next free one.

    taken  labels that nobody may get; `count`: how many were given
    shape  of a label, "DEC-{:03d}"
    """
    known: list[Pair[Labelled]] = []
    news: list[Pair[Labelled]] = []
    for pair in found:
        (known if pair.base is not None and pair.base.id in _labels(pair) else news).append(pair)
    news.sort(key=lambda pair: _first(pair.any))
    count = max([count, *(digits(label) for pair in found for label in _labels(pair))])
    ordered: list[Pair[Labelled]] = [*known, *news]
    for pair in ordered:
        base = [pair.base.id] if pair.base is not None else []
        wanted = [*base, *sorted(_labels(pair), key=lambda label: (digits(label), label))]
        label = next((one for one in wanted if one and one not in taken), "")
        if not label:
            count += 1
            while shape.format(count) in taken:
                count += 1
            label = shape.format(count)
        taken.add(label)
        known_as = [*wanted, *(alias for item in (pair.base, *pair.sides) if item for alias in item.aliases)]
        pair.label, pair.aliases = label, tuple(sorted({one for one in known_as if one} - {label}))
    return [
        {item.id: pair.label for pair in found if (item := pair.sides[side]) is not None and item.id} for side in (0, 1)
    ]


def _labels(pair: Pair[Labelled]) -> list[str]:
    return list(dict.fromkeys(item.id for item in pair.sides if item is not None))


def digits(label: str) -> int:
    """The number in a label, `DEC-012`, `cp-012`; 0 for another one."""
    found = _NUMBER.match(label)
    return int(found[1]) if found else 0


def _first(item: Decision | Numbered) -> tuple[str, str]:
    """By what new items are put in order: their time, then what they are, but for their labels."""
    parts: tuple[Any, ...] = (item.entry, item.section) if isinstance(item, Numbered) else (item,)
    trees = [to_tree(part) if part is not None else {} for part in parts]
    times = [str(tree.get("timestamp", "")) for tree in trees]
    told = [{key: value for key, value in tree.items() if key not in _LABELS} for tree in trees]
    return max(times), json.dumps(told, sort_keys=True, ensure_ascii=False)


_LABELS = frozenset(("id", "checkpoint_id", "aliases", "number", "summary_ref"))


def buried_labels(base: RouteContext | None, sides: Sequence[RouteContext]) -> set[str]:
    """The labels of tombstones, in either of two versions, whose decisions only they still tell."""
    known = {item.id for item in base.decisions} if base is not None else set()
    return {
        stone.id
        for side in sides
        for stone in (*side.dropped, *side.forgotten)
        if stone.id not in known
        and all(item.id != stone.id for item in side.decisions)
        and not any(item.id == stone.id and cap.is_of([stone], [item]) for other in sides for item in other.decisions)
    }
