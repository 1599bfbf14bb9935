"""What an item is worth against others, and which items are about the same thing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import log2

from ralf.memory.model import Item
from ralf.text.matcher import STOP, alike, content_words
from ralf.text.patterns import regex

_WEIGHT = {"preference": 2.0, "trap": 1.5, "command": 1.2, "pattern": 1.0, "fact": 1.0, "relationship": 0.8}

_OF_A_PERSON = 2.0  # what counts more than what a machine found

_STALE, _OFFERED = 0.1, 0.2

_DIFFERENCE = 8  # of so many words that two items have in common, one may differ: they are near-duplicates

_MOST_HOLDERS = 32  # facts with a word that one is compared with, the newest ones: a common word names no subject

_TOKEN = regex(r"[\w./+#@:-]+")

_NEGATION = frozenset(
    "not no never don't dont doesn't doesnt without cannot can't cant isn't isnt avoid instead".split()
)


def worth(item: Item) -> float:
    """What an item is worth, whatever the task: by kind, confidence and uses. A person's counts twice."""
    found = _WEIGHT[item.kind] * item.confidence * (1 + log2(1 + item.uses))
    if item.kind == "trap" and not item.resolution:
        found /= 2
    if item.origin == "person":
        found *= _OF_A_PERSON
    if item.stale:
        found *= _STALE
    return found * _OFFERED if item.status == "offered" else found


def text_of(item: Item) -> str:
    """What an item says, as one text."""
    said = (item.text, item.key, item.value, item.command, item.error, item.resolution, item.agent, item.context)
    return " ".join(filter(None, said))


# ---- about the same thing ----


def near_duplicates(items: Sequence[Item]) -> list[list[Item]]:
    """Groups of items, two or more, that say the same in nearly the same words: same kind, same status, same numbers,
    names, commands and negations. The first of a group is the one of the highest worth.
    """
    groups: dict[tuple[object, ...], list[list[Item]]] = {}
    for item in sorted(items, key=lambda item: -worth(item)):
        known = groups.setdefault(_fixed(item), [])
        words = content_words(_said(item))
        for group in known:
            first = content_words(_said(group[0]))
            common = len(words & first)
            if (common and max(len(words), len(first)) - common <= common // _DIFFERENCE) or _same(item, group[0]):
                group.append(item)
                break
        else:
            known.append([item])
    return [group for known in groups.values() for group in known if len(group) > 1]


def repeats(one: Item, other: Item) -> bool:
    """Whether an item says what another one says, or that with a few words more: the numbers, names and negations of
    both are the same.
    """
    if _fixed(one) != _fixed(other):
        return False
    return _same(one, other) or alike(content_words(_said(one)), content_words(_said(other)))


def _same(one: Item, other: Item) -> bool:
    return _said(one).casefold().rstrip(".!") == _said(other).casefold().rstrip(".!")


def _said(item: Item) -> str:
    return " ".join(text_of(item).split())


def _fixed(item: Item) -> tuple[object, ...]:
    """What near-duplicates have in common to the letter."""
    tokens = {token.strip(".,:") for token in _TOKEN.findall(_said(item))}
    exact = {token for token in tokens if re.search(r"[\d/_.+#@-]|[a-z][A-Z]", token)}
    return (
        *(item.kind, item.status, item.command.casefold(), item.resolution.casefold(), item.type, item.agent),
        *(frozenset(exact), frozenset(_NEGATION & {token.casefold() for token in tokens})),
    )


def _subject(item: Item) -> frozenset[str]:
    return frozenset(word for word in content_words(_said(item)) if word not in STOP)


def related(items: Iterable[Item]) -> list[Item]:
    """Items with those about the same thing side by side, each group in the place of its first one."""
    groups: list[list[Item]] = []
    places: dict[str, int] = {}  # by word: the newest group that has it
    for item in items:
        words = _subject(item) if item.kind == "fact" else frozenset[str]()
        found = [places[word] for word in words if word in places]
        place = max(set(found), key=lambda one: (found.count(one), -one)) if found else -1
        if place < 0 or found.count(place) * 2 < len(words):
            groups.append([])
            place = len(groups) - 1
        groups[place].append(item)
        places |= dict.fromkeys(words, place)
    return [item for group in groups for item in group]


def contradictions(items: Iterable[Item]) -> dict[str, list[str]]:
    """Facts that say different things of one subject: by label, the labels of the others.

    Most of their words are the same, and a number, a name or a negation is not.
    """
    facts = []
    for item in items:
        if item.kind == "fact" and not item.stale:
            words, exact = _subject(item), _fixed(item)[-2:]
            facts.append((item, words, exact, len(_plain(words, exact))))
    holders: dict[str, list[int]] = {}
    found: dict[str, list[str]] = {}
    for place, (item, words, exact, size) in enumerate(facts):
        near: dict[int, int] = {}
        for word in words:
            held = holders.setdefault(word, [])
            for other in held[-_MOST_HOLDERS:]:
                near[other] = near.get(other, 0) + 1
            held.append(place)
        for other, common in near.items():
            theirs, _, their_exact, their_size = facts[other]
            plain = min(size, their_size)
            if exact != their_exact and plain and common * 4 >= plain * 3:
                found.setdefault(item.id, []).append(theirs.id)
                found.setdefault(theirs.id, []).append(item.id)
    return found


def _plain(words: frozenset[str], exact: tuple[object, ...]) -> set[str]:
    """The words besides the numbers, names and negations."""
    tokens = exact[0] if isinstance(exact[0], frozenset) else frozenset[str]()
    parts = {part for token in tokens for part in content_words(str(token))}
    return set(words) - parts - _NEGATION
