"""Tombstones: what a person dropped or had forgotten, known again when it is said again, and not to be read off.

Of a text they keep a hash, and 12 bits of each word that says what it is about: enough for the rule by which a decision
that is said again is recognised, too little to tell which of a dictionary's words it was. Pure, like the fold.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ralf.context import RouteContext
from ralf.model import Decision, Tombstone

_SAID_DIGITS = 12
_WORD = re.compile(r"\w+")


def tombstone(decision: Decision) -> Tombstone:
    """The tombstone of a decision."""
    from ralf.summarizers.replacing import affirmed  # here and below: only who buries something pays for it

    words = _fingerprints(affirmed(decision.decision))
    return Tombstone(decision.id, decision.kind, _hash(decision), "".join(sorted(words)))


def of(context: RouteContext) -> tuple[Tombstone, ...]:
    """All tombstones of a route."""
    return context.dropped + context.forgotten  # one of them alone is the same tuple, about which more is known


def cover(tombstones: Sequence[Tombstone], decision: Decision) -> bool:
    """Whether a decision says what lies under one of the tombstones, in the same words or in nearly the same."""
    return bool(covering(tombstones, decision))


def covering(tombstones: Sequence[Tombstone], decision: Decision) -> list[Tombstone]:
    """The tombstones, in their order, under which lies what a decision says, in the same words or in nearly the
    same. What was asked of many before is looked up: the next question costs no more than with a few.
    """
    stones = tuple(tombstones)
    if not stones:
        return []
    from ralf.summarizers.grammar import takes_back
    from ralf.summarizers.replacing import FEWEST_ALIKE, affirmed, alike

    said, failed, returns = _hash(decision), decision.kind == "failed-approach", takes_back(decision.decision)
    words = _fingerprints(affirmed(decision.decision))

    def covers(stone: Tombstone) -> bool:
        if stone.said == said:
            return True
        return (stone.kind == "failed-approach") == failed and not returns and alike(words, frozenset(_words_of(stone)))

    places = _places_of(stones)
    likely = (stones[place] for place in places.likely(said, words, FEWEST_ALIKE))
    return [stone for stone in (*likely, *stones[places.count :]) if covers(stone)]


def is_buried(tombstones: tuple[Tombstone, ...], label: str) -> bool:
    """Whether one of the tombstones is that of a label."""
    places = _places_of(tombstones)
    return label in places.labels or any(stone.id == label for stone in tombstones[places.count :])


class _Places:
    """Where the tombstones of a tuple stand that may cover a decision.

    labels  of all of them
    """

    def __init__(self, stones: tuple[Tombstone, ...]) -> None:
        self.stones = stones
        self.count = len(stones)
        self.labels = frozenset(stone.id for stone in stones)
        self._said: dict[str, list[int]] = {}
        self._words: dict[str, list[int]] = {}
        for place, stone in enumerate(stones):
            self._said.setdefault(stone.said, []).append(place)
            for word in set(_words_of(stone)):
                self._words.setdefault(word, []).append(place)

    def likely(self, said: str, words: frozenset[str], fewest: int) -> list[int]:
        """Where those stand that say the same, or have at least so many of the words."""
        shared = Counter(place for word in words for place in self._words.get(word, ()))
        alike = [place for place, count in shared.items() if count >= fewest]
        return sorted({*alike, *self._said.get(said, ())})


_LOOSE = 64  # tombstones that are looked at one by one: the newest, so that not each drop makes it all anew
_MOST_KNOWN = 4  # routes that a process asks about in turns
_known: tuple[_Places, ...] = (_Places(()),)
"""Never changed but replaced as a whole: another thread may be looking."""


def _places_of(stones: tuple[Tombstone, ...]) -> _Places:
    """The places of all but the last few."""
    global _known
    for known in _known:
        if known.stones is stones:
            return known
        if known.count <= len(stones) <= known.count + _LOOSE and stones[: known.count] == known.stones:
            return known
    made = _Places(stones)
    _known = (_known[0], *_known[1:][1 - _MOST_KNOWN :], made)
    return made


def _words_of(stone: Tombstone) -> list[str]:
    return [stone.words[place : place + 2] for place in range(0, len(stone.words), 2)]


def _hash(decision: Decision) -> str:
    words = " ".join(_WORD.findall(decision.decision.casefold())) or decision.decision
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:_SAID_DIGITS]


def _fingerprints(words: Iterable[str]) -> frozenset[str]:
    """12 bits of each word's hash, as two characters."""
    hashes = (hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest() for word in words)
    return frozenset(base64.urlsafe_b64encode(hashed[:3])[:2].decode() for hashed in hashes)


# ---- what burying and raising makes of a route ----


def dropped(context: RouteContext, stone: Tombstone) -> RouteContext:
    """The context with a decision dropped, whether or not the cap has folded it away."""
    decisions = tuple(replace(item, status="dropped") if item.id == stone.id else item for item in context.decisions)
    return replace(context, decisions=decisions, dropped=_with(context.dropped, [stone]))


def forgotten(context: RouteContext, stones: Sequence[Tombstone]) -> RouteContext:
    """The context without decisions whose words were purged."""
    ids = {stone.id for stone in stones}
    return replace(
        context,
        decisions=tuple(item for item in context.decisions if item.id not in ids),
        dropped=tuple(stone for stone in context.dropped if stone.id not in ids),
        forgotten=_with(context.forgotten, stones),
    )


def raised(context: RouteContext, decision: Decision) -> RouteContext:
    """The context without the tombstones over a decision that a person brings back."""

    def left(stones: tuple[Tombstone, ...]) -> tuple[Tombstone, ...]:
        gone = set(map(id, covering(stones, decision)))
        if not gone and not is_buried(stones, decision.id):
            return stones
        return tuple(stone for stone in stones if stone.id != decision.id and id(stone) not in gone)

    dropped, forgotten = left(context.dropped), left(context.forgotten)
    if dropped is context.dropped and forgotten is context.forgotten:
        return context
    return replace(context, dropped=dropped, forgotten=forgotten)


def as_edited(before: RouteContext, edited: RouteContext) -> RouteContext:
    """A context that a person edited: decisions that they took out are dropped, those brought back are not."""
    was, now = ({item.id: item for item in context.decisions} for context in (before, edited))
    for label, item in was.items():
        after = now.get(label)
        if after is None or (after.status == "dropped" and item.status != "dropped"):
            edited = replace(edited, dropped=_with(edited.dropped, [tombstone(item)]))
    buried = {stone.id for stone in of(edited)}
    for label, item in now.items():
        old = was.get(label)
        if item.status == "active" and (old is None or old.status == "dropped" or (label in buried)):
            edited = raised(edited, item)
    return edited


def _with(stones: tuple[Tombstone, ...], more: Sequence[Tombstone]) -> tuple[Tombstone, ...]:
    ids = {stone.id for stone in more}
    if any(is_buried(stones, label) for label in ids):
        stones = tuple(stone for stone in stones if stone.id not in ids)
    return (*stones, *more)
