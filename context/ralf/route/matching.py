"""Which items of two versions of a route are one, whatever their labels: clones of a shared route label by themselves.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from ralf.model import Checkpoint, Decision
from ralf.text.cleaning import one_line

T = TypeVar("T")

_ALIKE = 0.5  # share of what two say: one of them is the other, reworded

Test = Callable[[T, T], bool]


class Same(NamedTuple, Generic[T]):
    """By what two items are one.

    tests     whether they are, the surest first: what an earlier one finds is never parted by a later one
    keys      two without a key in common are not one
    likeness  how alike two are: of several that a test takes for one, the most alike are; None: the first
    """

    tests: Sequence[Test[T]]
    keys: Callable[[T], Iterable[Hashable]]
    likeness: Callable[[T, T], float] | None = None


def match(ours: Sequence[T], theirs: Sequence[T], same: Same[T]) -> list[int | None]:
    """Of each item of theirs the place of the one in ours that it is, None where ours has none."""
    tests, keys, likeness = same
    known: dict[Hashable, list[int]] = {}
    for place, item in enumerate(ours):
        for key in keys(item):
            known.setdefault(key, []).append(place)
    likely = [dict.fromkeys(place for key in keys(item) for place in known.get(key, ())) for item in theirs]
    found: list[int | None] = [None] * len(theirs)
    left = set(range(len(ours)))
    for test in tests:
        couples = [
            (number, place)
            for number, item in enumerate(theirs)
            if found[number] is None
            for place in likely[number]
            if place in left and test(ours[place], item)
        ]
        if likeness is not None and len(couples) > min(len({one[at] for one in couples}) for at in (0, 1)):
            couples.sort(key=lambda couple: -likeness(ours[couple[1]], theirs[couple[0]]))
        for number, place in couples:
            if found[number] is None and place in left:
                found[number] = place
                left.remove(place)
    return found


def said(decision: Decision) -> str:
    """What a decision says, white space and case aside."""
    return one_line(decision.decision).casefold()


def keys_of(decision: Decision) -> Iterator[Hashable]:
    """By what a decision may be another one of these: its words, and every label that it bears."""
    yield "said", said(decision)
    yield from (("label", label) for label in dict.fromkeys((decision.id, *decision.aliases)) if label)


def _is_copy(one: Decision, other: Decision) -> bool:
    return one.id == other.id and _is_same_record(one, other)


def _is_same_record(one: Decision, other: Decision) -> bool:
    return _is_recorded_once(one, other) and said(one) == said(other)


def _is_same_label(one: Decision, other: Decision) -> bool:
    return _bear_one_label(one, other) and said(one) == said(other)


def _is_reworded(one: Decision, other: Decision) -> bool:
    """Of one label, or, where the clone is known, of one that they bear beside their own; recorded at one time."""
    if not one.timestamp or one.timestamp != other.timestamp:
        return False
    labels = {one.id, *one.aliases} & {other.id, *other.aliases}
    return _bear_one_label(one, other) or bool(labels and one.clone and one.clone == other.clone)


def _bear_one_label(one: Decision, other: Decision) -> bool:
    return one.id == other.id != "" and not (one.clone and other.clone and one.clone != other.clone)


def _is_recorded_once(one: Decision, other: Decision) -> bool:
    return one.timestamp == other.timestamp != "" and one.clone == other.clone


def _likeness(one: Decision, other: Decision) -> float:
    """How alike two decisions are, 0 to 2: those of one label, which neither has exchanged, then those of which half of
    the pairs of characters are the same, then those of one label.
    """
    if one.id == other.id and not one.aliases and not other.aliases:
        return 2.0
    pairs, others = ({*pairwise(said(decision))} for decision in (one, other))
    share = 2 * len(pairs & others) / (len(pairs) + len(others) or 1)
    return share if share >= _ALIKE else _ALIKE / 2 * (one.id == other.id)


def is_said(one: Decision, other: Decision) -> bool:
    """Whether two say the same, and were recorded by two, or by hand: in these words it is one decision."""
    return said(one) == said(other) and one.status == other.status


SAME = Same((_is_copy, _is_same_record, _is_same_label, _is_reworded), keys_of, _likeness)
"""By what two decisions are one. Where labels of one clone were exchanged, those of one second are told by their words.
"""


def recorded_first(ours: Sequence[Decision], theirs: Sequence[Decision]) -> set[str]:
    """The labels of our decisions whose record is none of theirs: two that clones have made in the same words are one,
    which the first of both has recorded, so that all clones come to say the same.
    """
    others = {item.id: _record_of(item) for item in theirs}
    records = {item.id: _record_of(item) for item in ours}
    return {
        label
        for label, record in records.items()
        if all(record) and not ("", "") < others.get(label, ("", "")) < record
    }


def _record_of(item: Decision) -> tuple[str, str]:
    return (item.timestamp, item.clone) if item.timestamp and item.clone else ("", "")


def segment_of(entry: Checkpoint) -> tuple[str, ...]:
    """What tells a checkpoint from others, whatever its number."""
    return entry.timestamp, entry.session, entry.lines, entry.summary_ref.partition(":")[2]
