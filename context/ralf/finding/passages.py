"""Groups documents into passages, judges which answer the question, and orders them.

A decision and the message that states it are one passage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, zip_longest

from ralf.finding.documents import ROUTE_BITS
from ralf.finding.ranking import Question, Ranked
from ralf.finding.search_index import TABLES, Entry, SearchIndex
from ralf.text.cleaning import one_line

KIND_WEIGHTS = {"decision": 1.2, "checkpoint": 0.5, "fact": 1.0, "evidence": 1.0}

_PRINTED, _PRINTED_MORE = 0.5, 0.9
"""What a tool printed, against what somebody said; and where it holds more of the question than all that was said."""

_GONE = 0.8  # a decision that no longer holds, against one that does

_ENOUGH = {"decision": (0.3, 0.95), "said": (0.65, 1.6), "printed": (0.9, 2.0)}
"""What a document must hold to answer a question: this share of its words, or so many of the rarest words; both by
rarity. A decision is short and deliberate, so less of it is chance; a tool prints all kinds of words.
"""

_ABOUT_AS_GOOD = 0.6  # share of the best score by which another document of the same words is as good

_FUSION = 60  # k of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)

_ALIKE_SHARE = 0.35  # share of a question by which two that hold the same words of it speak of the same

_MARKS = str.maketrans("", "", "*_`")


@dataclass(frozen=True, slots=True)
class Passage:
    """What is one hit: a document, or a decision with the message in which it was said.

    shown    what stands for it, with its text
    message  the words in which a decision was said, "" for all else
    decided  the decision that was said in it, where there is one; what stands for it may be the message
    score    how well it answers; larger is better
    share    the rarity of the question's words in it, as a share of the whole question
    answers  whether it is an answer to the question, and not a chance likeness
    held     which of the question's telling words and pairs it holds
    place    its number, or its message's: later is larger
    """

    shown: Entry
    text: str
    message: str
    decided: Entry | None
    score: float
    share: float
    answers: bool
    held: frozenset[str]
    place: int


def found_passages(index: SearchIndex, question: Question) -> Iterator[list[Passage]]:
    """What holds words of a question, in pages, each best first."""
    for said, printed in zip_longest(*(question.ranked(table) for table in TABLES), fillvalue=()):
        yield _ordered(_passages(index, question, said, printed))


def fused_passages(index: SearchIndex, question: Question, near: Sequence[int]) -> Iterator[list[Passage]]:
    """What holds words of the question, and what is near it in meaning, in pages, each best first, by reciprocal rank
    fusion. `near`: documents, nearest first.

    What is found by its meaning alone is no sure answer: it stands behind all that are.
    """
    entries, texts = index.entries(near), index.texts("said", near)
    found = [Ranked(entries[n], texts[n], 0.0, 0.0, frozenset()) for n in near if n in entries and n in texts]
    alone = {passage.place: passage for passage in _passages(index, question, found, ())}
    by_meaning = {place: _reciprocal(rank) for rank, place in enumerate(alone)}
    ranks, least = count(), float("inf")
    for page in chain(found_passages(index, question), [[]]):
        fused = []
        for passage, rank in zip(page, ranks, strict=False):
            alone.pop(passage.place, None)
            fused.append(replace(passage, score=_reciprocal(rank) + by_meaning.get(passage.place, 0.0)))
        if not all(passage.answers for passage in page) or not page:
            fused += [replace(passage, score=by_meaning[place]) for place, passage in alone.items()]
            alone = {}
        fused = sorted(_replacing(fused), key=lambda passage: (not passage.answers, *_rank(passage)))
        for number, passage in enumerate(fused):
            least = min(least, passage.score)
            fused[number] = replace(passage, score=least)
        yield fused


def _reciprocal(rank: int) -> float:
    """What a place in one ranking, from 0, counts among several; 1 for the first."""
    return _FUSION / (_FUSION + rank)


def _passages(
    index: SearchIndex, question: Question, said: Sequence[Ranked], printed: Sequence[Ranked]
) -> list[Passage]:
    most = max((item.mass for item in said), default=0.0)
    said = [*said, *_successors(index, said)]
    weighed = [(item, 1.0) for item in said]
    weighed += [(item, _PRINTED if item.mass <= most else _PRINTED_MORE) for item in printed]
    beside = _Beside(index, said)
    groups: dict[int, list[tuple[Ranked, float]]] = {}
    for item, weight in weighed:
        groups.setdefault(beside.message_of(item), []).append((item, weight))
    return [_passage(beside, number, members, question) for number, members in groups.items()]


def _successors(index: SearchIndex, found: Iterable[Ranked]) -> Iterator[Ranked]:
    """The decisions that replaced ones which were found, and hold no word of the question themselves."""
    entries = [item.entry for item in found if item.entry.kind == "decision"]
    known = {entry.id for entry in entries}
    for entry in entries:
        if entry.successor and (next_one := index.decision(entry.successor, entry.id >> ROUTE_BITS)) is not None:
            successor, text = next_one
            if successor.id not in known:
                known.add(successor.id)
                entries.append(successor)
                yield Ranked(successor, text, 0.0, 0.0, frozenset())


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
    message = next((item for item in items if item.entry.id == number and item.entry.kind == "evidence"), None)
    found = next((item for item in items if item.entry.kind == "decision"), None)
    if found is not None:
        decided, text = found.entry, found.text
        said = beside.text(number) if number != decided.id else ""
    elif message is not None and (own := beside.decision_in(message)) is not None:
        (decided, text), said = own, message.text
    else:
        decided, text, said = None, items[0].text, ""
    shown = decided or items[0].entry
    if decided is not None and message is not None and (found is None or found.mass < message.mass):
        shown, text, said = message.entry, message.text, ""  # it answers more
    score = max(item.score * weight for item, weight in members) * KIND_WEIGHTS[shown.kind]
    return Passage(
        shown=shown,
        text=text,
        message=said,
        decided=decided,
        score=score * (1.0 if _is_in_force(shown) else _GONE),
        share=max(item.mass for item in items) / question.whole if question.whole else 0.0,
        answers=any(_answers(item, question) for item in items),
        held=frozenset[str]().union(*(item.held for item in items)),
        place=number,
    )


def _is_in_force(entry: Entry) -> bool:
    return entry.status in ("", "active", "done")  # what was carried out is no wrong answer


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
    chosen = {"decision": "decision", "fact": "said"}  # a fact is a line or two that was picked out
    kind = chosen.get(item.entry.kind, "said" if item.entry.said else "printed")
    share, rarest = _ENOUGH[kind]
    return item.mass >= min(share * question.whole, rarest * question.rarest) > 0


def _ordered(passages: Iterable[Passage]) -> list[Passage]:
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
    return list(_judged(sorted(_replacing([passage for _, passage in keyed]), key=_rank)))


def _rank(passage: Passage) -> tuple[float, bool, int]:
    """Best first; of those that are as good, what holds, and then the newest."""
    return -passage.score, not _is_in_force(passage.shown), -passage.place


def _judged(ordered: list[Passage]) -> Iterator[Passage]:
    """The passages, of which those answer the question that are about as good as the best one that holds enough of it;
    none, where others are far better than that.
    """
    enough = max((passage.score for passage in ordered if passage.answers), default=0.0)
    known = enough > 0 and enough >= _ABOUT_AS_GOOD * ordered[0].score
    for passage in ordered:
        yield replace(passage, answers=known and passage.score >= _ABOUT_AS_GOOD * enough)


def _replacing(passages: Sequence[Passage]) -> Iterator[Passage]:
    """The passages; a decision that replaced others answers the question as well as they do."""
    successors = {_name(passage): passage.decided.successor for passage in passages if passage.decided is not None}
    replaced: dict[tuple[int, str], list[Passage]] = {}
    for passage in passages:
        name = _name(passage)
        seen = {name}
        while successors.get(name) and (name := (name[0], successors[name])) not in seen:
            seen.add(name)
            replaced.setdefault(name, []).append(passage)
    for passage in passages:
        all_of_them = [passage, *replaced.get(_name(passage), ())]
        yield replace(
            passage,
            score=max(one.score for one in all_of_them),
            answers=any(one.answers for one in all_of_them),
        )


def _name(passage: Passage) -> tuple[int, str]:
    """The route and the id of a passage's decision, "" where there is none."""
    return passage.place >> ROUTE_BITS, passage.decided.label if passage.decided is not None else ""
