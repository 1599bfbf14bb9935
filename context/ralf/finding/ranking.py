"""Ranks what is indexed for a question: BM25 of words and of neighbours; then what is in force, said, and newer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ralf.finding.index import WIDE, SearchTables
from ralf.finding.units import Unit
from ralf.text.matcher import pairs, words

_SAID, _PRINTED = 80, 40  # candidates: of what was said, and of decisions, and of evidence

_WEIGHTS = {"decision": 1.2, "evidence": 0.6, "checkpoint": 0.5, "handover": 0.8}

_ABOUT_AS_GOOD = 0.6
"""Units that hold the same words, and score at least this share of the best of them, count as equally good."""

_FUSION = 60  # k of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)


@dataclass(frozen=True, slots=True)
class Found:
    """A unit that holds words of a question, with the text and the number of its best piece; how well that answers, and
    which telling words and pairs it holds.
    """

    number: int
    unit: Unit
    score: float
    held: frozenset[str] = frozenset()


def ranked(tables: SearchTables, query: str, route: int, near: Sequence[int] = ()) -> list[Found]:
    """The units that hold words of a question, best first. `near`: pieces that are near it in meaning, nearest first:
    both rankings are joined by reciprocal rank fusion.
    """
    found = _ordered(tables, _by_unit(_scored(tables, query, route)))
    if not near:
        return found
    texts = tables.pieces(near)
    alone = _by_unit(Found(number, texts[number], 1 / (1 + rank)) for rank, number in enumerate(near))
    score: Counter[int] = Counter()
    for ranking in (found, alone):
        score.update({one.unit.id: _FUSION / (_FUSION + rank) for rank, one in enumerate(ranking)})
    both = {one.unit.id: one for one in [*alone, *found]}
    return _sorted(_replacing(tables, {id_: replace(one, score=score[id_]) for id_, one in both.items()}))


def _terms(query: str) -> dict[str, tuple[str, float]]:
    """What is looked for: the words of a question, what begins like an uncommon one, and what stands side by side; by
    its text the FTS5 expression, and what it counts.
    """
    terms = {}
    for word in words(query):
        exact = f'"{" ".join(word.text)}"' if WIDE.fullmatch(word.text) else f'"{word.text}"'
        is_telling = word.start and word.weight == 1.0
        terms[word.text] = (f'{exact} OR "{word.start}"*' if is_telling else exact, word.weight)
    for run in WIDE.findall(query):
        terms |= {a + b: (f'"{a} {b}"', 1.0) for a, b in pairwise(run)}
    return terms | {f"{a} {b}": (f'"{a} {b}"', 1.0) for a, b in pairs(query)}


def _scored(tables: SearchTables, query: str, route: int) -> Iterator[Found]:
    """The pieces that hold a question best, each with its score."""
    terms = _terms(query)
    match = " OR ".join(expression for expression, _ in terms.values())
    best = tables.best(match, route, _SAID, _PRINTED) if terms else {}
    telling = {text: expression for text, (expression, weight) in terms.items() if weight == 1.0}
    held = tables.held(best, telling)
    for number, unit in tables.pieces(best).items():
        yield Found(number, unit, best[number] * _WEIGHTS.get(unit.kind, 1.0), frozenset(held[number]))


def _by_unit(found: Iterable[Found]) -> list[Found]:
    """Of each unit the best piece, with what all its pieces hold."""
    best: dict[int, Found] = {}
    for one in found:
        other = best.get(one.unit.id, one)
        first, second = (one, other) if one.score > other.score else (other, one)
        best[one.unit.id] = replace(first, held=one.held | second.held)
    return list(best.values())


def _ordered(tables: SearchTables, found: list[Found]) -> list[Found]:
    """Best first. Of those that hold the same words and are about as good: what is in force, decisions, what was said
    before what was printed, the newest.
    """
    best: dict[tuple[int, frozenset[str]], float] = {}
    for one in found:
        best[one.unit.route, one.held] = max(best.get((one.unit.route, one.held), 0.0), one.score)
    raised = {one.unit.id: one for one in found}
    for one in found:
        most = best[one.unit.route, one.held]
        if len(one.held) > 1 and one.score >= _ABOUT_AS_GOOD * most:
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

_IN_FORCE = ("", "active", "done")  # statuses of what nothing says is over


def _sorted(found: Iterable[Found]) -> list[Found]:
    newest = sorted(found, key=lambda one: (one.unit.at, one.number), reverse=True)
    return sorted(newest, key=lambda one: (-one.score, one.unit.status not in _IN_FORCE, _KINDS.get(one.unit.kind, 1)))
