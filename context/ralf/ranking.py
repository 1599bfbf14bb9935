"""Ranks what the search index holds: by rare words, forms of words and phrases, within the extent that is asked."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ralf.searchindex import Entry, SearchIndex, Table
from ralf.searchwords import Word

_SATURATION, _LENGTH = 1.2, 0.75  # k1 and b of BM25 (Robertson and Zaragoza 2009)
_RAREST = 6.0  # in a large index rarity means no more than in one of some four hundred documents
_FORM = 0.6  # another form of a word, against the word itself
_AROUND = 0.15  # a word said around a decision, against one in it
_AGAIN, _OFTEN = 0.25, 1.5  # what a word adds each time that it is said again, and the most that it counts by that
_PHRASE = 0.15  # what two words that stand side by side add to what they count by themselves
_CANDIDATES, _WEIGHED = 150, 40  # documents that are looked at for their length, and read for their words


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document, how well it answers, and which of the question's words it holds.

    score  larger is better
    mass   the rarity of the words that it holds itself, added up
    """

    entry: Entry
    text: str
    score: float
    mass: float
    held: frozenset[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question finds.

    ranked  best first
    whole   the rarity of all words of the question, added up; of unknown ones, too
    rarest  the rarity of a word that stands in one document only
    """

    ranked: Sequence[Ranked]
    whole: float
    rarest: float


def ranked(
    index: SearchIndex, words: Sequence[Word], pairs: Iterable[str], span: tuple[int, int], table: Table
) -> Answer:
    """The documents of a table (`said`, `printed`) that hold words of a question."""
    count, average = index.extent(table, span)
    rarity: dict[str, float] = {}
    exact: dict[str, frozenset[int]] = {}
    whole = 0.0
    raw: defaultdict[int, float] = defaultdict(float)
    for word in words:
        found = frozenset(index.holding(table, f'{{text parts}}: "{word.text}"', span)) if count else frozenset()
        rarity[word.text] = _rarity(count, len(found)) * word.weight
        exact[word.text] = found
        if found or not word.whole:
            whole += rarity[word.text]
        for number in found:
            raw[number] += rarity[word.text]
        if table == "said" and count:
            _add_forms(index, word, found, span, count, raw)
    chosen = sorted(raw, key=lambda number: (-raw[number], number))[:_CANDIDATES]
    entries = index.entries(chosen)
    scores = {number: raw[number] * _brevity(entries[number].size, average) for number in chosen}
    read = sorted(scores, key=lambda number: (-scores[number], number))[:_WEIGHED]
    texts = index.texts(table, read)
    result = []
    for number in read:
        lowered = texts[number].lower()
        held = [word for word in words if number in exact[word.text]]
        more = sum(rarity[word.text] * (_often(word, lowered) - 1) for word in held)
        more += sum(_PHRASE * sum(rarity.get(name, 0.0) for name in pair.split()) for pair in pairs if pair in lowered)
        score = scores[number] + more * _brevity(entries[number].size, average)
        mass = sum(rarity[word.text] for word in held)
        held_words = frozenset(word.text for word in held)
        result.append(Ranked(entries[number], texts[number], score, mass, held_words))
    result.sort(key=lambda item: (-item.score, item.entry.id))
    return Answer(result, whole, _rarity(count, 1))


def _add_forms(
    index: SearchIndex, word: Word, found: frozenset[int], span: tuple[int, int], count: int, raw: dict[int, float]
) -> None:
    """What other forms of a word, and the word where it was said around a decision, add."""
    if word.start:
        forms = index.holding("said", f'text: "{word.start}"*', span)
        value = _FORM * word.weight * _rarity(count, len(forms))
        for number in forms:
            if number not in found:
                raw[number] += value
    around = index.holding("said", f'around: "{word.text}"', span)
    value = _AROUND * word.weight * _rarity(count, len(around))
    for number in around:
        if number not in found:
            raw[number] += value


def _rarity(count: int, holding: int) -> float:
    """How rare a word is that stands in so many of so many documents: BM25's idf, never negative."""
    return min(_RAREST, math.log(1 + (count - holding + 0.5) / (holding + 0.5)))


def _brevity(size: int, average: float) -> float:
    return (_SATURATION + 1) / (1 + _SATURATION * (1 - _LENGTH + _LENGTH * size / average))


def _often(word: Word, lowered: str) -> float:
    """What a word counts by how often its stem stands in a text, near enough."""
    times = lowered.count(word.text[: max(4, len(word.text) - 3)])
    return min(_OFTEN, 1 + _AGAIN * max(0, times - 1))
