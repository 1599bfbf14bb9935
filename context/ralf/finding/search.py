"""Search over decisions, checkpoint sections, facts and evidence: questions, ranking and hits."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, combinations
from operator import neg
from pathlib import Path
from typing import NamedTuple, TypeVar

from ralf import project as projects, routing
from ralf.finding.documents import DECISION, ROUTE_BITS
from ralf.finding.search_index import TABLES, Entry, SearchIndex, Table, rebuilt_when_damaged
from ralf.project import Project
from ralf.text import matcher
from ralf.text.cleaning import Word, one_line
from ralf.text.matcher import apart, flat, pairs, pieces, stands, words

# --------------------
# Ranks documents by rare words, their forms and pieces, and phrases.


_SATURATION, _LENGTH = 1.2, 0.75  # k1 and b of BM25 (Robertson and Zaragoza 2009)

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

_NEWEST, _NEWEST_OF_A_FORM, _NEWEST_OF_ALL = 200, 150, 60
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
        self._words, self._pairs, self._pieces = words(query), pairs(query), pieces(query)
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

    def ranked(self, table: Table, wanted: int) -> list[Ranked]:
        """The documents of a table that hold words of the question, best first, `wanted` and more if there are."""
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
        chosen = [number for _, number in scored[: max(_CANDIDATES, wanted)]]
        entries = self._index.entries(chosen)
        brevity = {number: _brevity(entries[number].size, average) for number in chosen}
        if self._is_name:  # a text that has a label says so at any length
            brevity |= {number: max(1.0, brevity[number]) for number in verbatim & brevity.keys()}
        read = sorted(chosen, key=lambda number: (-raw[number] * brevity[number], number))[: max(_WEIGHED, wanted)]
        texts = self._index.texts(table, read)
        lines = {number: flat(text) for number, text in texts.items()}
        result = []
        for number in read:
            held = [word for word in self._words if number in found[word.text]]
            lowered = texts[number].lower()
            together = [(a, b) for a, b in self._pairs if f"{a} {b}" in lowered or f" {a} {b} " in lines[number]]
            more = sum(value[word.text] * _again(word, lowered) for word in held)
            more += _PHRASE * sum(value.get(name, 0.0) for pair in together for name in pair)
            mass = self._mass(held, texts[number], lines[number])
            names = frozenset([*(word.text for word in held if word.weight == 1.0), *map(" ".join, together)])
            names |= {"as a whole"} if number in verbatim else set()
            score = (raw[number] + more) * brevity[number]
            if number in verbatim and flat(texts[number].partition("\n")[0]) == self._said:
                names, score = names | {"and nothing else"}, score * _NOTHING_ELSE
            result.append(Ranked(entries[number], texts[number], score, mass, names))
        if not result:
            return result
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


def _brevity(size: int, average: float) -> float:
    return (_SATURATION + 1) / (1 + _SATURATION * (1 - _LENGTH + _LENGTH * size / average))


def _again(word: Word, lowered: str) -> float:
    """What a word adds by how often its stem stands in a text, near enough."""
    times = lowered.count(word.text[: max(4, len(word.text) - 3)])
    return min(_OFTEN, _AGAIN * max(0, times - 1))


# --------------------
# Groups documents into passages, decides whether they answer the question, and orders them.
#
# A decision and the message that states it are one passage.


KIND_WEIGHTS = {"decision": 1.4, "checkpoint": 0.5, "fact": 1.0, "evidence": 1.0}

_PRINTED, _PRINTED_MORE = 0.5, 0.9
"""What a tool printed, against what somebody said; and where it holds more of the question than all that was said."""

_JUST_BELOW = 0.999  # of its successor's score is the most that a decision that was replaced can have

_GONE = 0.8  # a decision that no longer holds, against one that does

_ENOUGH = {"decision": (0.3, 0.95), "said": (0.65, 1.6), "printed": (0.9, 2.0)}
"""What a document must hold to answer a question: this share of its words, or so many of the rarest words; both by
rarity. A decision is short and deliberate, so less of it is chance; a tool prints all kinds of words.
"""

_ABOUT_AS_GOOD = 0.6  # share of the best score by which another document of the same words is as good

_ALIKE_SHARE = 0.35  # share of a question by which two that hold the same words of it speak of the same

_MARKS = str.maketrans("", "", "*_`")


@dataclass(frozen=True, slots=True)
class Passage:
    """What is one hit: a document, or a decision with the message in which it was said.

    shown    what stands for it, with its text
    message  the words in which a decision was said, "" for all else
    score    how well it answers; larger is better
    share    the rarity of the question's words in it, as a share of the whole question
    answers  whether it is an answer to the question, and not a chance likeness
    held     which of the question's telling words and pairs it holds
    place    its number, or its message's: later is larger
    """

    shown: Entry
    text: str
    message: str
    score: float
    share: float
    answers: bool
    held: frozenset[str]
    place: int


def found_passages(index: SearchIndex, question: Question, wanted: int) -> list[Passage]:
    """What holds words of a question, `wanted` documents of each table or more, in no order."""
    said, printed = (question.ranked(table, wanted) for table in TABLES)
    most = max((item.mass for item in said), default=0.0)
    weighed = [(item, 1.0) for item in said]
    weighed += [(item, _PRINTED if item.mass <= most else _PRINTED_MORE) for item in printed]
    beside = _Beside(index, said)
    groups: dict[int, list[tuple[Ranked, float]]] = {}
    for item, weight in weighed:
        groups.setdefault(beside.message_of(item), []).append((item, weight))
    return [_passage(beside, number, members, question) for number, members in groups.items()]


class _Beside:
    """The messages and decisions that belong to documents which were found."""

    def __init__(self, index: SearchIndex, said: Iterable[Ranked]) -> None:
        self._beside = index.beside(item.entry.id for item in said)
        numbers = {number for others in self._beside.values() for number in others}
        self._entries, self._texts = index.entries(numbers), index.texts("said", numbers)

    def message_of(self, item: Ranked) -> int:
        """The message in which a decision was said; anything else stands for itself."""
        messages = self._beside.get(item.entry.id, ()) if item.entry.kind == "decision" else ()
        return next((n for n in messages if _holds(self._texts[n], item.text)), (*messages, item.entry.id)[0])

    def decision_in(self, message: Ranked) -> tuple[Entry, str] | None:
        """The first decision that was said in a message."""
        numbers = self._beside.get(message.entry.id, ()) if message.entry.kind == "evidence" else ()
        held = (n for n in numbers if _holds(message.text, self._texts[n]))
        return next(((self._entries[n], self._texts[n]) for n in held), None)

    def text(self, number: int) -> str:
        """The text of a message."""
        return self._texts[number]


def _passage(beside: _Beside, number: int, members: list[tuple[Ranked, float]], question: Question) -> Passage:
    items = [item for item, _ in members]
    shown, text, message = _shown(beside, number, items)
    score = max(item.score * weight for item, weight in members) * KIND_WEIGHTS[shown.kind]
    return Passage(
        shown=shown,
        text=text,
        message=message,
        score=score * (1.0 if shown.status in ("", "active") else _GONE),
        share=max(item.mass for item in items) / question.whole if question.whole else 0.0,
        answers=any(_answers(item, question) for item in items),
        held=frozenset[str]().union(*(item.held for item in items)),
        place=number,
    )


def _shown(beside: _Beside, number: int, items: list[Ranked]) -> tuple[Entry, str, str]:
    """What stands for documents that are one thing, its text, and the message of a decision: the decision, if one is
    there or was said in the message.
    """
    message = next((item for item in items if item.entry.id == number), None)
    decided = next((item for item in items if item.entry.kind == "decision"), None)
    if decided is not None:
        said = message.text if message is not None else beside.text(number)
        return decided.entry, decided.text, said if decided is not message else ""
    if message is not None and (own := beside.decision_in(message)) is not None:
        return *own, message.text
    return items[0].entry, items[0].text, ""


def _holds(message: str, decision: str) -> bool:
    """Whether a decision begins in a message (Markdown aside)."""
    return plain(decision.split("\n", 1)[0])[:40] in plain(message)


def plain(text: str) -> str:
    """A text for comparing: one line, in lower case, without Markdown's marks."""
    return one_line(text.translate(_MARKS)).casefold()


def _answers(item: Ranked, question: Question) -> bool:
    """Whether a document holds enough of a question to be an answer to it, and not a chance likeness. A message is
    judged as one, also where it is shown as the decision in it.
    """
    kind = "printed" if not item.entry.said else "decision" if item.entry.kind == "decision" else "said"
    share, rarest = _ENOUGH[kind]
    return item.mass >= min(share * question.whole, rarest * question.rarest) > 0


def ordered_passages(passages: Iterable[Passage]) -> list[Passage]:
    """Best first. Of those that hold the same words of the question and are about as good, the newest comes first: the
    later word holds.
    """
    best: dict[tuple[int, frozenset[str]], float] = {}
    keyed = [((passage.place >> ROUTE_BITS, passage.held), passage) for passage in passages]
    for key, passage in keyed:
        best[key] = max(best.get(key, 0.0), passage.score)
    for number, (key, passage) in enumerate(keyed):
        alike = passage.share >= _ALIKE_SHARE and len(passage.held) > 1
        if alike and passage.score >= _ABOUT_AS_GOOD * best[key]:
            keyed[number] = (key, replace(passage, score=best[key]))
    ordered = (_below_successor(passage, keyed) for _, passage in keyed)
    return sorted(ordered, key=lambda passage: (-passage.score, -passage.place))


def _below_successor(passage: Passage, keyed: Iterable[tuple[object, Passage]]) -> Passage:
    """A decision that was replaced, if what replaced it was found, too, no better than that."""
    if not passage.shown.successor:
        return passage
    route, wanted = passage.place >> ROUTE_BITS, passage.shown.successor
    scores = [p.score for _, p in keyed if p.shown.label == wanted and p.place >> ROUTE_BITS == route]
    return replace(passage, score=min([passage.score, *(score * _JUST_BELOW for score in scores)]))


# --------------------
# Searches a project.
#
# The index is a cache: it knows the last record it has of each journal, reads newer ones before it answers, and is
# rebuilt when it is missing, damaged or of another version.


T = TypeVar("T")

_MANY = 4  # documents that are read for each hit: several may be one thing

_FAR = 0.35  # share of the best score below which nothing is worth showing

_LONGEST = 2_000  # characters of a hit's text


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One search result.

    kind    decision, checkpoint, fact or evidence
    id      DEC-001, cp-001, or for evidence and facts the checkpoint that they belong to
    text    what was found, at most 2,000 characters; a decision with its reason, what was rejected, and the message
            in which it was said
    score   larger is better; comparable within one answer only
    source  where it stands: session and lines
    status  of a decision: active, superseded, reversed, dropped; of all else "", or reverted where a revert took the
            checkpoint back that it belongs to: then it comes after what stands
    """

    route: str
    kind: str
    id: str
    text: str
    score: float
    source: str = ""
    status: str = ""


def search(
    query: str, *, route: str | None = None, root: str | os.PathLike[str] | None = None, limit: int = 5
) -> list[SearchHit]:
    """Return what is known about `query`, best first; [] when nothing is relevant.

    route  search this route only; None: all of the project
    limit  how many hits at the most

    An active decision stands above the one that it supersedes; a decision and the message in which it was said are
    one hit. Raises RouteNotFound, UsageError (a refused name).
    """
    project = projects.find(root)
    if route is not None:
        route = routing.existing(project, route)
    if not matcher.words(query) or limit < 1 or not project.folder.exists():
        return []
    return _with_index(project, lambda path: _search(project, path, query, route, limit))


def valued(project: Project, query: str, route: str) -> tuple[tuple[Word, float], ...]:
    """The words of a query, each with how rare it is in a route: what its context is ordered by."""

    def look_up(path: Path | None) -> tuple[tuple[Word, float], ...]:
        with closing(SearchIndex(path)) as index:
            index.renew(project, [route])
            return Question(index, query, index.within(route)).valued

    return _with_index(project, look_up)


def _with_index(project: Project, work: Callable[[Path | None], T]) -> T:
    """`work` on the project's index, or with None, in memory, where none may be kept: git would see it."""
    path = project.cache / "search.sqlite"
    try:
        project.make_room(path)
    except OSError:
        return work(None)
    return rebuilt_when_damaged(path, work)


def _search(project: Project, path: Path | None, query: str, route: str | None, limit: int) -> list[SearchHit]:
    with closing(SearchIndex(path)) as index:
        index.renew(project, [route] if route is not None else routing.names_of(project))
        question = Question(index, query, index.within(route))
        found = found_passages(index, question, _MANY * limit)
        if not any(passage.answers for passage in found):
            return []
        ordered = ordered_passages(found)
        near = [passage for passage in ordered if passage.score >= _FAR * ordered[0].score]
        return list(_hits(index, near, limit))


def _hits(index: SearchIndex, ordered: Iterable[Passage], limit: int) -> Iterator[SearchHit]:
    """The first hits, none of which says what another has said."""
    seen: list[str] = []
    held: set[tuple[int, str]] = set()
    for passage in ordered:
        if len(seen) == limit:
            return
        said = plain(passage.message or passage.text)
        holds = {(passage.place >> ROUTE_BITS, word) for word in passage.held}
        repeated = any(said[:120] in known or known[:120] in said for known in seen)
        if not repeated and not (passage.shown.kind == "checkpoint" and holds <= held):  # a section tells it again
            held |= holds
            text, last = _shown_text(index, passage)
            seen.append(plain(text) if passage.message else said)
            entry = passage.shown
            yield SearchHit(
                route=index.route_of(entry.id),
                kind=entry.kind,
                id=entry.label,
                text=text,
                score=round(passage.score, 4),
                source=f"{entry.session} lines {entry.first}-{last}" if entry.session else "",
                status=entry.status,
            )


def _shown_text(index: SearchIndex, passage: Passage) -> tuple[str, int]:
    """A hit's text and its last line: a decision with its message, where that says more; evidence with what follows."""
    text, last = passage.text, passage.shown.last
    message = passage.message.strip()
    if message and not plain(text).startswith(plain(message)):
        text += f"\n\n{message}"
    if passage.shown.kind == "evidence":
        for entry, more in index.following(passage.shown):
            if len(text) + len(more) > _LONGEST:
                break
            text += f"\n\n{more}" if entry.first != passage.shown.first else f"\n{more}"
            last = entry.last
    return text[:_LONGEST], last
