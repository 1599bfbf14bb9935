"""Ranks what is indexed for a question: BM25, phrases, forms of words; then what is in force, said, and newer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from ralf.finding.index import DECIDED, PRINTED, SAID, WIDE, SearchTables, Span, route_number
from ralf.finding.units import Unit
from ralf.text.cleaning import Word
from ralf.text.matcher import flat, pairs, pieces, words
from ralf.text.patterns import regex

_CANDIDATES = {SAID: 80, PRINTED: 40, DECIDED: 80}

_RAREST = 6.0  # in a large index rarity means no more than in one of some four hundred rows

_FORM = 0.6  # of the rarity of a word, what another form of it counts

_PHRASE, _VERBATIM = 0.15, 0.6
"""By which share a text gains that holds all pairs of words side by side, and the whole question word for word."""

_LEAST = 0.1  # of the rarity of what a text holds, beside BM25, which takes a word of half the rows for nothing

_ALIKE, _SHORT = 0.2, 100  # share of the best score that the most alike gains; characters from which length tells

_WEIGHTS = {"decision": 1.2, "checkpoint": 0.5, "handover": 0.8}

_PRINTED, _PRINTED_MORE = 0.3, 0.5
"""What is evidence alone, against what was said; and where it holds more of the question than all that was said."""

_GONE = 0.8  # what no longer holds, against what does

_ABOUT_AS_GOOD, _ALIKE_SHARE = 0.6, 0.35
"""Units that hold the same words, at least this share of the question, and are about as good, count as equally good."""

_FUSION = 60  # k of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)

_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Found:
    """A unit that holds words of a question, with the text and the number of its best piece; how well that answers, and
    which words and pairs it holds; `share`: of the whole question, by rarity.
    """

    number: int
    unit: Unit
    score: float
    share: float = 0.0
    held: frozenset[str] = frozenset()

    @property
    def route(self) -> int:
        """The number of its route."""
        return route_number(self.unit)

    @property
    def is_in_force(self) -> bool:
        """Whether nothing says that it is over."""
        return self.unit.status in ("", "active", "done")


def ranked(tables: SearchTables, query: str, span: Span, near: Sequence[int] = ()) -> list[Found]:
    """The units that hold words of a question, best first. `near`: pieces that are near it in meaning, nearest first:
    both rankings are joined by reciprocal rank fusion.
    """
    found = _ordered(tables, _by_unit(_scored(tables, _Question(tables, query, span))))
    if not near:
        return found
    texts = tables.pieces(near)
    alone = _by_unit(Found(number, texts[number], 1 / (1 + rank)) for rank, number in enumerate(near))
    score: Counter[int] = Counter()
    for ranking in (found, alone):
        score.update({one.unit.id: _FUSION / (_FUSION + rank) for rank, one in enumerate(ranking)})
    both = {one.unit.id: one for one in [*alone, *found]}
    return _sorted(_replacing(tables, {id_: replace(one, score=score[id_]) for id_, one in both.items()}))


class _Question:
    """A question's words, how rare each is within a span, and the pieces that hold them best."""

    def __init__(self, tables: SearchTables, query: str, span: Span) -> None:
        self.words = [
            *words(query),
            *(Word(pair, "", 1.0) for run in WIDE.findall(query) for pair in map("".join, pairwise(run))),
        ]
        self.pairs = [((a, b), flat(f"{a} {b}")[:-1]) for a, b in pairs(query)]
        self.pieces, self.said = pieces(query), flat(query).strip()
        self.rarity: dict[str, float] = {}
        self.forms: dict[str, tuple[str, ...]] = {}
        whole, matches = tables.size(span), list[str]()
        for number, word in enumerate(self.words):
            count = tables.count(_match(word), span)
            if not count and not word.whole and not WIDE.search(word.text):
                self.words[number] = word = word._replace(start=word.text)  # as `auth` for `authentication`
            self.rarity[word.text] = word.weight * min(_RAREST, math.log(1 + (whole - count + 0.5) / (count + 0.5)))
            self.forms[word.text] = (word.text,) if WIDE.search(word.text) else _forms(word)
            matches += [_match(word), *([f'"{word.start}"*'] if word.start else [])]
        match = " OR ".join(matches)
        self.best = {mark: tables.best(match, mark, span, most) for mark, most in _CANDIDATES.items() if matches}
        self.best[SAID] = self.best.pop(DECIDED, {}) | self.best.get(SAID, {})


def _forms(word: Word) -> tuple[str, ...]:
    """A word as it can stand in a flat text, in the singular or the plural. A stemmer is less strict: it takes
    `reflecting` for `reflection` and `modified` for `modifiers`.
    """
    own = flat(word.text)[:-1]
    one = f"{own[:-3]}y" if own.endswith("ies") else own[:-1] if own.endswith("s") else own
    return tuple(f"{form} " for form in dict.fromkeys((own, one, f"{one}s", f"{one}es", f"{one[:-1]}ies")))


def _match(word: Word) -> str:
    return f'"{" ".join(word.text)}"' if WIDE.fullmatch(word.text) else f'"{word.text}"'


def _scored(tables: SearchTables, question: _Question) -> Iterator[Found]:
    """Each piece that holds words of a question, with its score."""
    whole, most = sum(question.rarity.values()), 0.0
    for mark in (SAID, PRINTED):
        read = tables.pieces(question.best.get(mark, ()))
        flats = {
            number: f"{flat(unit.text)}{flat(_HUMP.sub(' ', unit.text)) if _HUMP.search(unit.text) else ''}"
            for number, unit in read.items()
        }
        alike = _alike(question.pieces, flats)
        found = [
            _weighed(question, Found(number, unit, question.best[mark][number]), flats[number])
            for number, unit in read.items()
        ]
        best = max((one.score for one in found), default=0.0)
        most = max([most, *(one.share for one in found if mark == SAID)])
        for one in found:
            weight = _WEIGHTS.get(one.unit.kind, 1.0) if one.is_in_force else _GONE
            if mark == PRINTED:
                weight *= _PRINTED if one.share <= most else _PRINTED_MORE
            score = weight * (one.score + _ALIKE * best * alike[one.number])
            yield replace(one, score=score, share=one.share / whole if whole else 0.0)


def _weighed(question: _Question, one: Found, line: str) -> Found:
    """A piece with its score, and the rarity of what it holds as its share; `line`: its text, flat."""
    held, mass = set[str](), 0.0
    for word in question.words:
        is_exact = any(form in line for form in question.forms[word.text])
        if is_exact or (word.start and f" {word.start}" in line):
            mass += question.rarity[word.text] * (1.0 if is_exact else _FORM)
            held |= {word.text} if word.weight == 1.0 else set()
    together = [" ".join(pair) for pair, words_ in question.pairs if words_ in line]
    is_whole = " " in question.said and f" {question.said} " in line
    score = one.score + _LEAST * mass
    score *= 1 + _PHRASE * len(together) / max(1, len(question.pairs)) + _VERBATIM * is_whole
    return replace(
        one, score=score, share=mass, held=frozenset([*held, *together, *(["as a whole"] if is_whole else [])])
    )


def _alike(pieces_: Iterable[str], texts: Mapping[int, str]) -> dict[int, float]:
    """How alike flat texts are to a question, the most alike 1.0: by the pieces of words that they share with it, rare
    ones among these texts counting most. Finds forms of words that no stemmer joins, and words in the same order.
    """
    held = {number: [piece for piece in pieces_ if piece in text] for number, text in texts.items()}
    counts = Counter(chain.from_iterable(held.values()))
    value = {piece: math.log(1 + len(texts) / count) ** 2 for piece, count in counts.items()}
    alike = {n: sum(value[piece] for piece in held[n]) / math.sqrt(len(text) + _SHORT) for n, text in texts.items()}
    most = max(alike.values(), default=0.0)
    return {number: like / most if most else 0.0 for number, like in alike.items()}


def _by_unit(found: Iterable[Found]) -> list[Found]:
    """Of each unit the best piece, with what all its pieces hold."""
    best: dict[int, Found] = {}
    for one in found:
        other = best.get(one.unit.id, one)
        first, second = (one, other) if one.score > other.score else (other, one)
        best[one.unit.id] = replace(first, share=max(one.share, other.share), held=one.held | second.held)
    return list(best.values())


def _ordered(tables: SearchTables, found: list[Found]) -> list[Found]:
    """Best first. Of those that hold the same words and are about as good: what is in force, decisions, what was said
    before what was printed, the newest.
    """
    best: dict[tuple[int, frozenset[str]], float] = {}
    for one in found:
        best[one.route, one.held] = max(best.get((one.route, one.held), 0.0), one.score)
    raised = {one.unit.id: one for one in found}
    for one in found:
        most = best[one.route, one.held]
        if one.share >= _ALIKE_SHARE and len(one.held) > 1 and one.score >= _ABOUT_AS_GOOD * most:
            raised[one.unit.id] = replace(one, score=most)
    return _sorted(_replacing(tables, raised))


def _replacing(tables: SearchTables, found: dict[int, Found]) -> Iterable[Found]:
    """The units by their ids; a decision that replaced others answers as well as they do, and is found with them."""
    for one in list(found.values()):
        seen, unit = {one.unit.label}, one.unit
        while unit.kind == "decision" and unit.successor not in ("", *seen):
            seen.add(unit.successor)
            if (successor := tables.decision(unit.successor, unit)) is None:
                break
            number, unit = successor
            known = found.get(unit.id, Found(number, unit, 0.0))
            found[unit.id] = replace(known, score=max(known.score, one.score))
    return found.values()


_KINDS = {"decision": 0, "checkpoint": 2, "evidence": 3}


def _sorted(found: Iterable[Found]) -> list[Found]:
    newest = sorted(found, key=lambda one: (one.unit.at, one.number), reverse=True)
    return sorted(newest, key=lambda one: (-one.score, not one.is_in_force, _KINDS.get(one.unit.kind, 1)))
