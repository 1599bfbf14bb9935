"""Searches a project: questions, hits and their text.

The index is a cache: it knows the last record it has of each journal, reads newer ones before it answers, and is
rebuilt when it is missing, damaged or of another version.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from ralf import project as projects, routing
from ralf.finding.documents import ROUTE_BITS
from ralf.finding.passages import Passage, found_passages, fused_passages, plain
from ralf.finding.ranking import Question
from ralf.finding.search_index import BY_USER, Entry, SearchIndex, rebuilt_when_damaged
from ralf.project import Project
from ralf.text import matcher
from ralf.text.cleaning import Word

T = TypeVar("T")

_LONGEST = 2_000  # characters of a hit's text

_NEAREST = 20  # documents that are found by their meaning

_WORTH_SHOWING = 80  # characters of what follows a hit, below which it says nothing


UNSURE = "These hold only part of the question and may not answer it:"
"""Stands above the hits that are not sure, wherever hits are printed."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One search result.

    kind    decision, checkpoint, fact or evidence
    id      DEC-001, cp-001, or for evidence and facts the checkpoint that they belong to
    text    what was found, at most 2,000 characters; a decision with its reason, what was rejected, and the message
            in which it was said
    score   larger is better; comparable within one answer only
    source  where it stands: session and lines
    status  of a decision: active, superseded, reversed, done, proposed, dropped; of all else "", or reverted where a
            revert took the checkpoint back that it belongs to: then it comes after what stands
    sure    whether it holds enough of the question to be an answer, or is about as good as one that does; the others
            come last
    """

    route: str
    kind: str
    id: str
    text: str
    score: float
    source: str = ""
    status: str = ""
    sure: bool = True


def search(
    query: str,
    *,
    route: str | None = None,
    root: str | os.PathLike[str] | None = None,
    limit: int = 5,
    warnings: list[str] | None = None,
    by_meaning: bool = True,
) -> list[SearchHit]:
    """Return what is known about `query`: hits that answer it, then those that may (`sure` is False), each best first;
    [] when nothing holds a word of it, or is near it in meaning.

    route     search this route only; None: all of the project
    limit     how many hits at most; a larger one adds hits below and changes none above
    warnings  is given why the user's `embedder` found less than it might, or nothing; then the words alone count

    Where `config.local.yaml` names an embedder, what is near the query in meaning is found, too, as hits that may;
    without `by_meaning` it is not run.

    An active decision stands above the one that it supersedes; a decision and the message in which it was said are
    one hit. Raises RouteNotFound, UsageError (a refused name).
    """
    project = projects.find(root)
    if route is not None:
        route = routing.existing(project, route)
    if not matcher.words(query) or limit < 1 or not project.folder.exists():
        return []
    told = warnings if warnings is not None else []
    return _with_index(project, lambda path: _search(project, path, query, route, limit, told if by_meaning else None))


def valued(project: Project, query: str, route: str) -> tuple[tuple[Word, float], ...]:
    """The words of a query, each with how rare it is in a route: what its context is ordered by."""

    def look_up(path: Path | None) -> tuple[tuple[Word, float], ...]:
        with closing(SearchIndex(path)) as index:
            index.renew(project, [route])
            return Question(index, query, index.within(route)).valued

    return _with_index(project, look_up)


def _with_index(project: Project, work: Callable[[Path | None], T]) -> T:
    """`work` on the project's index, or with None, in memory, where none may be kept: git would see it."""
    path = project.indexes / "search.sqlite"
    try:
        project.make_room(path)
    except OSError:
        return work(None)
    return rebuilt_when_damaged(path, work)


def _search(
    project: Project, path: Path | None, query: str, route: str | None, limit: int, warnings: list[str] | None
) -> list[SearchHit]:
    with closing(SearchIndex(path)) as index:
        index.renew(project, [route] if route is not None else routing.names_of(project))
        span = index.within(route)
        question = Question(index, query, span)
        near = _near(project, index, query, span, warnings) if warnings is not None else ()
        pages = fused_passages(index, question, near) if near else found_passages(index, question)
        return list(islice(_hits(index, chain.from_iterable(pages)), limit))


def _near(
    project: Project, index: SearchIndex, query: str, span: tuple[int, int], warnings: list[str]
) -> Sequence[int]:
    """The documents that are nearest to a query in meaning, nearest first; none without an embedder."""
    if not os.path.lexists(project.local_config_file):
        return ()
    from ralf.finding.embedding import MOST_TEXTS, embedder_of  # few projects have an embedder

    embedder = embedder_of(project, warnings)
    if embedder is None:
        return ()
    said = index.said(span, MOST_TEXTS)
    numbers = list(said)
    return [numbers[place] for place in embedder.nearest(query, list(said.values()), _NEAREST)]


def _hits(index: SearchIndex, ordered: Iterable[Passage]) -> Iterator[SearchHit]:
    """The hits, none of which says what another has said. Behind one that is not sure, none is."""
    seen: list[str] = []
    held: set[tuple[int, str]] = set()
    sure = True
    for passage in ordered:
        said = plain(passage.message or passage.text)
        holds = {(passage.place >> ROUTE_BITS, word) for word in passage.held}
        repeated = any(said[:120] in known or known[:120] in said for known in seen)
        if not repeated and not (passage.shown.kind == "checkpoint" and holds <= held):  # a section tells it again
            held |= holds
            sure = sure and passage.answers
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
                sure=sure,
            )


def _shown_text(index: SearchIndex, passage: Passage) -> tuple[str, int]:
    """A hit's text and its last line: a decision with its message, where that says more; and what was said next. Behind
    a decision come the rest of its message and, where the user said it, the answer: all else would seem to be decided.
    """
    text, last, end = passage.text, passage.shown.last, passage.shown
    message = passage.message.strip()
    if message and not plain(text).startswith(plain(message)):
        text += f"\n\n{message}"
    decided = end.kind == "decision"
    if decided and passage.place != end.id:
        end = index.entries([passage.place])[passage.place]
    if end.kind != "evidence":
        return text[:_LONGEST], last
    following = index.following(end)
    beside = index.beside([end.id, *(entry.id for entry, _ in following)]) if decided else {}
    own = set(beside.get(end.id, ()))
    others = {number for number, decisions in beside.items() if not own.issuperset(decisions)}
    for entry, more in following:
        left = _LONGEST - len(text) - 2
        if left < _WORTH_SHOWING or (decided and _is_apart(entry, end, others)):
            break
        text += f"\n\n{more[:left]}" if entry.first != end.first else f"\n{more[:left]}"
        last = max(last, entry.last)
    return text[:_LONGEST], last


def _is_apart(entry: Entry, message: Entry, others: Container[int]) -> bool:
    """Whether what follows a message is not the answer to the user's alone: it decides something else, say."""
    if entry.first == message.first:
        return False
    return message.said != BY_USER or entry.said == BY_USER or entry.id in others
