"""Tombstones: what a person dropped or had forgotten, known again when it is said again, and not to be read off.

Of a text they keep a hash, and 12 bits of each word that says what it is about: enough for the rule by which a decision
that is said again is recognised, too little to tell which of a dictionary's words it was. Pure, like the fold.
"""

from __future__ import annotations

import base64
import hashlib
import re
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
    return (*context.dropped, *context.forgotten)


def cover(tombstones: Iterable[Tombstone], decision: Decision) -> bool:
    """Whether a decision says what lies under one of the tombstones, in the same words or in nearly the same."""
    return bool(covering(tombstones, decision))


def covering(tombstones: Iterable[Tombstone], decision: Decision) -> list[Tombstone]:
    """The tombstones under which lies what a decision says, in the same words or in nearly the same."""
    stones = list(tombstones)
    if not stones:
        return []
    from ralf.summarizers.grammar import takes_back
    from ralf.summarizers.replacing import affirmed, alike

    said, failed, returns = _hash(decision), decision.kind == "failed-approach", takes_back(decision.decision)
    words = _fingerprints(affirmed(decision.decision))

    def is_alike(stone: Tombstone) -> bool:
        pairs = frozenset(stone.words[place : place + 2] for place in range(0, len(stone.words), 2))
        return (stone.kind == "failed-approach") == failed and not returns and alike(words, pairs)

    return [stone for stone in stones if stone.said == said or is_alike(stone)]


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

    if not of(context):
        return context
    gone = set(map(id, covering(of(context), decision)))

    def left(stones: Sequence[Tombstone]) -> tuple[Tombstone, ...]:
        return tuple(stone for stone in stones if stone.id != decision.id and id(stone) not in gone)

    return replace(context, dropped=left(context.dropped), forgotten=left(context.forgotten))


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


def _with(stones: Sequence[Tombstone], more: Sequence[Tombstone]) -> tuple[Tombstone, ...]:
    ids = {stone.id for stone in more}
    return (*(stone for stone in stones if stone.id not in ids), *more)
