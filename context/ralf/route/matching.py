"""Which items of two versions of a route are one, whatever their labels: clones of a shared route label by themselves.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from ralf.model import Checkpoint, Decision
from ralf.text.cleaning import one_line

T = TypeVar("T")

Test = Callable[[T, T], bool]


def match(
    ours: Sequence[T], theirs: Sequence[T], tests: Sequence[Test[T]], keys: Callable[[T], Iterable[Hashable]]
) -> list[int | None]:
    """Of each item of theirs the place of the one in ours that it is, None where ours has none.

    tests  whether two items are one, the surest first: what an earlier one finds is never parted by a later one
    keys   two items without a key in common are not one
    """
    known: dict[Hashable, list[int]] = {}
    for place, item in enumerate(ours):
        for key in keys(item):
            known.setdefault(key, []).append(place)
    likely = [[place for key in keys(item) for place in known.get(key, ())] for item in theirs]
    found: list[int | None] = [None] * len(theirs)
    left = set(range(len(ours)))
    for test in tests:
        for number, item in enumerate(theirs):
            if found[number] is None:
                places = (each for each in likely[number] if each in left and test(ours[each], item))
                found[number] = same = next(places, None)
                left -= {same}
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
    """Of one label, in the same words, or reworded since."""
    if not one.id or one.id != other.id or (one.clone and other.clone and one.clone != other.clone):
        return False
    return said(one) == said(other) or one.timestamp == other.timestamp != ""


def _is_same_alias(one: Decision, other: Decision) -> bool:
    """Of labels that one of them bears beside its own, reworded since."""
    labels = {one.id, *one.aliases} & {other.id, *other.aliases}
    return bool(labels and one.clone) and _is_recorded_once(one, other)


def _is_recorded_once(one: Decision, other: Decision) -> bool:
    return one.timestamp == other.timestamp != "" and one.clone == other.clone


SAME: Sequence[Test[Decision]] = (_is_copy, _is_same_record, _is_same_label, _is_same_alias)
"""Tests whether two decisions are one; the surest first."""


def segment_of(entry: Checkpoint) -> tuple[str, ...]:
    """What tells a checkpoint from others, whatever its number."""
    return entry.timestamp, entry.session, entry.lines, entry.summary_ref.partition(":")[2]
