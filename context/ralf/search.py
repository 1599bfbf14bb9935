"""Search: what is known about a question, over decisions, checkpoint sections, facts and evidence of a project.

The index is a cache. It remembers up to which record of each journal it goes, takes in what is newer before it
answers, and is made anew when it is missing, damaged or of another version.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from ralf import names, project as projects, searchwords
from ralf.errors import RouteNotFound
from ralf.project import Project
from ralf.ranking import Question, Ranked
from ralf.searchindex import ROUTE_BITS, TABLES, Entry, SearchIndex, rebuilt_when_damaged
from ralf.searchwords import Word
from ralf.text import one_line

KIND_WEIGHTS = {"decision": 1.4, "checkpoint": 0.5, "fact": 1.0, "evidence": 1.0}
_PRINTED, _PRINTED_MORE = 0.5, 0.9
"""What a tool printed, against what somebody said; and where it holds more of the question than all that was said."""
_JUST_BELOW = 0.999
_GONE = 0.8  # a decision that no longer holds, against one that does
_SHARE = {"decision": 0.4, "printed": 0.9}
_MASS = {"decision": 1.15, "printed": 2.0}
_SAID_SHARE, _SAID_MASS = 0.5, 1.6
"""What a document must hold to answer a question: this share of its words, or so many of the rarest words; both by
rarity. A decision is short and deliberate, so less of it is chance; a tool prints all kinds of words.
"""
_ABOUT_AS_GOOD = 0.6  # share of the best score by which another document of the same words is as good
_MANY = 4  # documents that are read for each hit: several may be one thing
_ALIKE = 0.35  # share of a question by which two that hold the same words of it speak of the same
_FAR = 0.35  # share of the best score below which nothing is worth showing
_LONGEST = 2_000  # characters of a hit's text
_MARKS = str.maketrans("", "", "*_`")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Something that was found.

    kind    decision, checkpoint, fact or evidence
    id      DEC-001, cp-001, or for evidence and facts the checkpoint that they belong to
    text    what was found, at most 2,000 characters; a decision with its reason, what was rejected, and the message
            in which it was said
    score   larger is better; comparable within one answer only
    source  where it stands: session and lines
    status  of a decision: active, superseded, reversed, dropped; "" otherwise
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
    """What is known about `query`, best first; [] when nothing is relevant.

    route  search this route only; None: all of the project
    limit  how many hits at the most

    An active decision stands above the one that it supersedes; a decision and the message in which it was said are
    one hit. Raises RouteNotFound, UsageError (a refused name).
    """
    project = projects.find(root)
    if route is not None:
        found = projects.existing_route(project, names.check(route))
        if found is None:
            from ralf.reader import closest

            raise RouteNotFound(route, closest(project, route))
        route = found
    if not searchwords.words(query) or limit < 1 or not project.folder.exists():
        return []
    return rebuilt_when_damaged(_index_path(project), lambda: _search(project, query, route, limit))


def valued(project: Project, query: str, route: str) -> tuple[tuple[Word, float], ...]:
    """The words of a query, each with how rare it is in a route: what its context is ordered by."""

    def look_up() -> tuple[tuple[Word, float], ...]:
        with closing(SearchIndex(_index_path(project))) as index:
            index.renew(project, [route])
            return Question(index, query, index.within(route)).valued

    return rebuilt_when_damaged(_index_path(project), look_up)


def _index_path(project: Project) -> Path:
    return project.cache / "search.sqlite"


def _search(project: Project, query: str, route: str | None, limit: int) -> list[SearchHit]:
    with closing(SearchIndex(_index_path(project))) as index:
        index.renew(project, [route] if route is not None else projects.route_names(project))
        question = Question(index, query, index.within(route))
        said, printed = (question.ranked(table, _MANY * limit) for table in TABLES)
        most = max((item.mass for item in said), default=0.0)
        passages = _passages(index, said, question, lambda _: 1.0)
        passages += _passages(index, printed, question, lambda item: _PRINTED if item.mass <= most else _PRINTED_MORE)
        if not any(_answers(passage, question) for passage in passages):
            return []
        ordered = _ordered(passages)
        near = [passage for passage in ordered if passage.score >= _FAR * ordered[0].score]
        return list(_hits(index, near, limit))


# ---- what is one hit ----


@dataclass(frozen=True, slots=True)
class _Passage:
    """What is one hit: a document, or a decision with the message in which it was said.

    shown    what stands for it
    message  the words in which a decision was said, "" for all else
    """

    shown: Entry
    text: str
    message: str
    score: float
    mass: float
    share: float
    held: frozenset[str]
    place: int


def _passages(
    index: SearchIndex, ranked: list[Ranked], question: Question, weight: Callable[[Ranked], float]
) -> list[_Passage]:
    """The documents that were found, each decision together with its message."""
    groups: dict[int, list[Ranked]] = {}
    for item in ranked:
        groups.setdefault(_message_of(index, item), []).append(item)
    return [_passage(index, message, members, weight, question.whole) for message, members in groups.items()]


def _message_of(index: SearchIndex, item: Ranked) -> int:
    """The message in which a decision was said; anything else stands for itself."""
    entry = item.entry
    messages = index.beside(entry, decisions=False) if entry.kind == "decision" else []
    if len(messages) > 1:
        texts = index.texts("said", messages)
        messages = [number for number in messages if _holds(texts[number], item.text)] or messages
    return messages[0] if messages else entry.id


def _passage(
    index: SearchIndex, number: int, members: list[Ranked], weight: Callable[[Ranked], float], whole: float
) -> _Passage:
    decided = [item for item in members if item.entry.kind == "decision"]
    message = next((item for item in members if item.entry.id == number and item.entry.kind == "evidence"), None)
    best = max(members, key=lambda item: item.score)
    mass, held = max(item.mass for item in members), frozenset[str]().union(*(item.held for item in members))
    if decided:
        shown, text = decided[0].entry, decided[0].text
        said = message.text if message is not None else index.texts("said", [number]).get(number, "")
    elif message is not None and message.entry.said and (own := _decision_in(index, message)) is not None:
        (shown, text), said = own, message.text
    else:
        shown, text, said = best.entry, best.text, ""
    score = best.score * weight(best) * KIND_WEIGHTS[shown.kind] * (1.0 if shown.status in ("", "active") else _GONE)
    return _Passage(
        shown, text, said if number != shown.id else "", score, mass, mass / whole if whole else 0.0, held, number
    )


def _decision_in(index: SearchIndex, message: Ranked) -> tuple[Entry, str] | None:
    """The first decision that was said in a message."""
    numbers = index.beside(message.entry, decisions=True)
    texts = index.texts("said", numbers) if numbers else {}
    for number in numbers:
        if _holds(message.text, texts[number]):
            return index.entries([number])[number], texts[number]
    return None


def _holds(message: str, decision: str) -> bool:
    """Whether a decision begins in a message (Markdown aside)."""
    return _plain(decision.split("\n", 1)[0])[:40] in _plain(message)


def _plain(text: str) -> str:
    return one_line(text.translate(_MARKS)).casefold()


# ---- whether, and in which order ----


def _answers(passage: _Passage, question: Question) -> bool:
    """Whether a passage holds enough of a question to be an answer to it, and not a chance likeness."""
    kind = passage.shown.kind if passage.shown.said else "printed"
    enough = _MASS.get(kind, _SAID_MASS) * question.rarest
    return passage.share >= _SHARE.get(kind, _SAID_SHARE) or passage.mass >= enough


def _ordered(passages: Iterable[_Passage]) -> list[_Passage]:
    """Best first. Of those that hold the same words of the question and are about as good, the newest comes first: the
    later word holds.
    """
    best: dict[tuple[int, frozenset[str]], float] = {}
    keyed = [((passage.place >> ROUTE_BITS, passage.held), passage) for passage in passages]
    for key, passage in keyed:
        best[key] = max(best.get(key, 0.0), passage.score)
    for number, (key, passage) in enumerate(keyed):
        if (
            passage.share >= _SHARE["decision"]
            and len(passage.held) > 1
            and passage.score >= _ABOUT_AS_GOOD * best[key]
        ):
            keyed[number] = (key, replace(passage, score=best[key]))
    return sorted((_below_successor(passage, keyed) for _, passage in keyed), key=_precedence)


def _below_successor(passage: _Passage, keyed: Iterable[tuple[object, _Passage]]) -> _Passage:
    """A decision that was replaced, if what replaced it was found, too, no better than that."""
    if not passage.shown.successor:
        return passage
    route, wanted = passage.place >> ROUTE_BITS, passage.shown.successor
    scores = [p.score for _, p in keyed if p.shown.label == wanted and p.place >> ROUTE_BITS == route]
    return replace(passage, score=min([passage.score, *(score * _JUST_BELOW for score in scores)]))


def _precedence(passage: _Passage) -> tuple[float, int]:
    return -passage.score, -passage.place


def _hits(index: SearchIndex, passages: Iterable[_Passage], limit: int) -> Iterator[SearchHit]:
    """The first hits, none of which says what another has said."""
    seen: list[str] = []
    held: set[tuple[int, str]] = set()
    for passage in passages:
        if len(seen) == limit:
            return
        said = _plain(passage.message or passage.text)
        holds = {(passage.place >> ROUTE_BITS, word) for word in passage.held}
        repeated = any(said[:120] in known or known[:120] in said for known in seen)
        if not repeated and not (passage.shown.kind == "checkpoint" and holds <= held):  # a section tells it again
            held |= holds
            text, last = _shown_text(index, passage)
            seen.append(_plain(text) if passage.message else said)
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


def _shown_text(index: SearchIndex, passage: _Passage) -> tuple[str, int]:
    """A hit's text and its last line: a decision with its message, evidence with what follows it."""
    text, last = passage.text, passage.shown.last
    message = passage.message.strip()
    if message and _plain(message) not in _plain(text):
        text += f"\n\n{message}"
    if passage.shown.kind == "evidence":
        for entry, more in index.following(passage.shown):
            if len(text) + len(more) > _LONGEST:
                break
            text += f"\n\n{more}" if entry.first != passage.shown.first else f"\n{more}"
            last = entry.last
    return text[:_LONGEST], last
