"""Ranks documents for a question: by rare words, their forms and pieces, and phrases."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain, combinations
from operator import neg
from typing import NamedTuple

from ralf.finding.documents import DECISION
from ralf.finding.search_index import TABLES, Entry, SearchIndex, Table
from ralf.text.cleaning import Word
from ralf.text.matcher import apart, flat, pairs, pieces, stands, words

_SATURATION, _LENGTH = 1.2, 0.75  # k1 and b of BM25 (Robertson and Zaragoza 2009)

_SHORTEST = 150  # characters: shorter than this, a remark ("Now the tests:") is no better for being short

_RAREST = 6.0  # in a large index rarity means no more than in one of some four hundred documents

_FORM = 0.6  # another form of a word, against the word itself

_SAME_STEM = 0.5  # the same, where it is asked whether a text speaks of what is asked: `reflecting` for `reflection`

_AROUND = 0.15  # a word said around a decision, against one in it

_AGAIN, _OFTEN = 0.25, 0.5  # what a word adds each time that it is said again, and at the most

_PHRASE = 0.15  # what two words that stand side by side add to what they count by themselves

_VERBATIM = 0.6  # what a text gains by holding the whole question word for word, of what all its words count there

_NOTHING_ELSE = 1.3  # by what the score of a text is multiplied whose first line is the question and nothing else

_LONG = 40  # words up to which a question is looked for as a whole

_ALIKE = 0.2  # share of the best score that the most alike in its pieces of words gains

_SHORT = 100  # characters from which the length of a text begins to tell

_EVERYWHERE = 0.2  # share of the documents from which a word is no reason to look at one that has no other word

_NEWEST, _NEWEST_OF_A_FORM, _NEWEST_OF_ALL = 400, 150, 60
"""Documents that a word brings by itself, where more hold it, that another form of it brings, and that words bring
together: so older ones come. Of the last, more than are weighed.
"""

_CANDIDATES, _WEIGHED = 120, 36  # documents that are looked at for their length, and read for their words


class Ranked(NamedTuple):
    """A document, how well it answers, and which of the question's words it holds: the telling ones, and pairs.

    score  larger is better
    mass   the rarity of the words that it holds, added up; of those that it holds in another form, a part
    """

    entry: Entry
    text: str
    score: float
    mass: float
    held: frozenset[str]


class Question:
    """A question, looked up: which documents within a span hold which of its words.

    whole   the rarity of all its words, added up; of unknown ones, too
    rarest  the rarity of a word that stands in one document only
    """

    def __init__(self, index: SearchIndex, query: str, span: tuple[int, int]) -> None:
        self._index, self._span = index, span
        self._words, self._pieces = words(query), pieces(query)
        self._pairs = [((a, b), flat(f"{a} {b}")[:-1]) for a, b in pairs(query)]  # each as it begins in a flat text
        self._extents = {table: index.extent(table, span) for table in TABLES}
        self._count: dict[Table, dict[str, int]] = {table: {} for table in TABLES}
        self._found = {table: {word.text: self._holding(table, word) for word in self._words} for table in TABLES}
        guessed: set[str] = set()
        for word in self._words:
            if word.start and not any(found[word.text] for found in self._found.values()):
                for table in TABLES:  # nobody said it so: is it how a word begins, as `auth`?
                    self._found[table][word.text] = self._holding(table, word, "*")
                guessed.add(word.text)
        for table in TABLES:
            self._add_older(table, guessed)
        count = sum(extent.documents for extent in self._extents.values())
        self.rarest = _rarity(count, 1)
        self._rarity = {
            word.text: word.weight * _rarity(count, sum(counts[word.text] for counts in self._count.values()))
            for word in self._words
        }
        self._said = flat(query)
        self._is_name = len(query.split()) == 1
        self._verbatim = {table: self._whole(table) for table in TABLES}
        self._sure = {word.text: _FORM if word.text in guessed else 1.0 for word in self._words}
        self.whole = sum(
            self._rarity[word.text]
            for word in self._words
            if not word.whole or any(found[word.text] for found in self._found.values())
        )

    @property
    def valued(self) -> tuple[tuple[Word, float], ...]:
        """Its words, each with how rare it is."""
        return tuple((word, self._rarity[word.text]) for word in self._words)

    def ranked(self, table: Table) -> Iterator[list[Ranked]]:
        """The documents of a table that hold words of the question, in pages, each best first. What a page holds does
        not depend on how many are asked for.
        """
        documents, average = self._extents[table]
        found, counts = self._found[table], self._count[table]
        value = {
            word.text: self._sure[word.text] * word.weight * _rarity(documents, counts[word.text])
            for word in self._words
        }
        raw: defaultdict[int, float] = defaultdict(float)
        for word in sorted(self._words, key=lambda word: counts[word.text]):
            holding = found[word.text]
            if raw and counts[word.text] > max(_EVERYWHERE * documents, _CANDIDATES):
                holding &= raw.keys()
            for number in holding:
                raw[number] += value[word.text]
            if table == "said" and documents and word.weight == 1.0:
                self._add_forms(word, raw)
        verbatim = self._verbatim[table]
        for number in verbatim:
            raw[number] += _VERBATIM * sum(value.values())
        scored = sorted(zip(map(neg, raw.values()), raw, strict=True))  # of thousands: no function of ours for each
        for start in range(0, len(scored), _CANDIDATES):
            chosen = [number for _, number in scored[start : start + _CANDIDATES]]
            entries = self._index.entries(chosen)
            brevity = {number: _brevity(entries[number], average) for number in chosen}
            if self._is_name:  # a text that has a label says so at any length
                brevity |= {number: max(1.0, brevity[number]) for number in verbatim & brevity.keys()}
            read = sorted(chosen, key=lambda number: (-raw[number] * brevity[number], number))
            for some in filter(None, (read[:_WEIGHED], read[_WEIGHED:])):
                base = {number: (raw[number], brevity[number]) for number in some}
                yield self._page(table, {number: entries[number] for number in some}, base, value)

    def _page(
        self,
        table: Table,
        entries: Mapping[int, Entry],
        base: Mapping[int, tuple[float, float]],
        value: Mapping[str, float],
    ) -> list[Ranked]:
        """Documents, read and weighed; `base`: what they have for their words, and for their length."""
        texts = self._index.texts(table, entries)
        lines = {number: flat(text) for number, text in texts.items()}
        result = []
        for number, (raw, brevity) in base.items():
            held = [word for word in self._words if number in self._found[table][word.text]]
            lowered = texts[number].lower()
            together = [pair for pair, line in self._pairs if line in lines[number]]
            more = sum(value[word.text] * _again(word, lowered) for word in held)
            more += _PHRASE * sum(value.get(name, 0.0) for pair in together for name in pair)
            mass = self._mass(held, texts[number], lines[number])
            names = frozenset([*(word.text for word in held if word.weight == 1.0), *map(" ".join, together)])
            score = (raw + more) * brevity
            if number in self._verbatim[table]:
                names |= {"as a whole"}
                if flat(texts[number].partition("\n")[0]) == self._said:
                    names, score = names | {"and nothing else"}, score * _NOTHING_ELSE
            result.append(Ranked(entries[number], texts[number], score, mass, names))
        best, alike = max(item.score for item in result), _alike(self._pieces, lines)
        result = [item._replace(score=item.score + _ALIKE * best * alike[item.entry.id]) for item in result]
        return sorted(result, key=lambda item: (-item.score, item.entry.id))

    def _mass(self, held: list[Word], text: str, line: str) -> float:
        """The rarity of the words that a text holds, added up; of those that it holds in another form, a part."""
        other = [word for word in held if not word.whole and not stands(word, line)]
        if other:
            names = apart(text)
            other = [word for word in other if not stands(word, names)]
        all_of_it = sum(self._rarity[word.text] for word in held)
        return all_of_it - (1 - _SAME_STEM) * sum(self._rarity[word.text] for word in other)

    def _holding(self, table: Table, word: Word, ending: str = "") -> frozenset[int]:
        self._count[table][word.text] = 0
        if not self._extents[table].documents:
            return frozenset()
        newest, self._count[table][word.text] = self._newest(table, _match(word, ending), _NEWEST)
        return frozenset(newest)

    def _newest(self, table: Table, match: str, most: int) -> tuple[list[int], int]:
        """The newest documents that match, and how many do; where there are more, about how many, as near each other as
        these stand.
        """
        found = self._index.newest(table, match, self._span, most)
        if len(found) < most:
            return found, len(found)
        count = int(len(found) / self._index.share(found[-1], self._span))
        return found, max(len(found), min(count, self._extents[table].documents))

    def _add_older(self, table: Table, guessed: Container[str]) -> None:
        """Older documents that hold a word of which only the newest were told: decisions, those with a rarer word, and
        where all are as common, those with all words, or all but one.
        """
        match = {word.text: _match(word, "*" if word.text in guessed else "") for word in self._words}
        found, counts = self._found[table], self._count[table]
        common = [name for name in match if counts[name] > len(found[name])]
        rarer = [match[name] for name in match if found[name] and name not in common]
        if common and table == "said":
            for names in dict.fromkeys([*((name,) for name in common), tuple(common)]):
                decisions = self._both(table, " AND ".join([f'around: "{DECISION}"', *map(match.__getitem__, names)]))
                for name in names:
                    found[name] |= decisions
        if rarer:
            for name in common:
                found[name] |= self._both(table, f"({' OR '.join(rarer)}) AND {match[name]}")
        elif len(common) > 1:
            fewer = combinations(common, len(common) - 1) if len(common) > 2 else ()
            for names in (tuple(common), *fewer):
                older = self._both(table, " AND ".join(match[name] for name in names))
                for name in names:
                    found[name] |= older

    def _both(self, table: Table, match: str) -> frozenset[int]:
        return frozenset(self._index.newest(table, match, self._span, _NEWEST_OF_ALL))

    def _whole(self, table: Table) -> frozenset[int]:
        """The documents that hold the whole question word for word, those without a meaning of their own included."""
        said = self._said.split()
        if not 1 < len(said) <= _LONG:
            return frozenset()
        return self._holding(table, Word(" ".join(said), "", 1.0))

    def _add_forms(self, word: Word, raw: dict[int, float]) -> None:
        """What other forms of a word, and the word where it was said around a decision, add."""
        matches = [(_AROUND, f'around: "{word.text}"')]
        matches += [(_FORM, f'text: "{word.start}"*')] if word.start else []
        for share, match in matches:
            numbers, count = self._newest("said", match, _NEWEST_OF_A_FORM)
            value = share * _rarity(self._extents["said"].documents, count)
            for number in numbers:
                if number not in self._found["said"][word.text]:
                    raw[number] += value


def _match(word: Word, ending: str) -> str:
    return f'{{text parts}}: "{word.text}"{ending}'


def _rarity(count: int, holding: int) -> float:
    """How rare a word is that stands in so many of so many documents: BM25's idf, never negative."""
    return min(_RAREST, math.log(1 + (count - holding + 0.5) / (holding + 0.5)))


def _alike(pieces: Iterable[str], lines: Mapping[int, str]) -> dict[int, float]:
    """How alike flat texts are to a question, the most alike 1.0: by the pieces of words that they share with it, rare
    ones among these texts counting most. Finds forms of words that no stemmer joins, and words in the same order.
    """
    held = {number: [piece for piece in pieces if piece in line] for number, line in lines.items()}
    counts = Counter(chain.from_iterable(held.values()))
    value = {piece: _rarity(len(lines), count) ** 2 for piece, count in counts.items()}
    alike = {n: sum(value[piece] for piece in held[n]) / math.sqrt(len(line) + _SHORT) for n, line in lines.items()}
    most = max(alike.values())
    return {number: like / most if most else 0.0 for number, like in alike.items()}


def _brevity(entry: Entry, average: float) -> float:
    length = (entry.size if entry.kind == "decision" else max(entry.size, _SHORTEST)) / average
    return (_SATURATION + 1) / (1 + _SATURATION * (1 - _LENGTH + _LENGTH * length))


def _again(word: Word, lowered: str) -> float:
    """What a word adds by how often its stem stands in a text, near enough."""
    times = lowered.count(word.text[: max(4, len(word.text) - 3)])
    return min(_OFTEN, _AGAIN * max(0, times - 1))
