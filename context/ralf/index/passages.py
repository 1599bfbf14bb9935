"""What a search finds as one thing, whether it answers the question, and which comes first.

A decision and the message in which it was said are one thing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ralf.index.ranking import Question, Ranked
from ralf.index.searchindex import ROUTE_BITS, TABLES, Entry, SearchIndex
from ralf.text import one_line

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
_ALIKE = 0.35  # share of a question by which two that hold the same words of it speak of the same
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


def found(index: SearchIndex, question: Question, wanted: int) -> list[Passage]:
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


def ordered(passages: Iterable[Passage]) -> list[Passage]:
    """Best first. Of those that hold the same words of the question and are about as good, the newest comes first: the
    later word holds.
    """
    best: dict[tuple[int, frozenset[str]], float] = {}
    keyed = [((passage.place >> ROUTE_BITS, passage.held), passage) for passage in passages]
    for key, passage in keyed:
        best[key] = max(best.get(key, 0.0), passage.score)
    for number, (key, passage) in enumerate(keyed):
        alike = passage.share >= _ALIKE and len(passage.held) > 1
        if alike and passage.score >= _ABOUT_AS_GOOD * best[key]:
            keyed[number] = (key, replace(passage, score=best[key]))
    return sorted((_below_successor(passage, keyed) for _, passage in keyed), key=_precedence)


def _below_successor(passage: Passage, keyed: Iterable[tuple[object, Passage]]) -> Passage:
    """A decision that was replaced, if what replaced it was found, too, no better than that."""
    if not passage.shown.successor:
        return passage
    route, wanted = passage.place >> ROUTE_BITS, passage.shown.successor
    scores = [p.score for _, p in keyed if p.shown.label == wanted and p.place >> ROUTE_BITS == route]
    return replace(passage, score=min([passage.score, *(score * _JUST_BELOW for score in scores)]))


def _precedence(passage: Passage) -> tuple[float, int]:
    return -passage.score, -passage.place
