"""Search: what is known about a question, over decisions, checkpoint sections, facts and evidence of a project.

The index is a cache. It remembers up to which record of each journal it goes, takes in what is newer before it
answers, and is made anew when it is missing, damaged or of another version.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ralf import project as projects, routing
from ralf.index import passages, searchwords
from ralf.index.passages import Passage, plain
from ralf.index.ranking import Question
from ralf.index.searchindex import ROUTE_BITS, SearchIndex, rebuilt_when_damaged
from ralf.index.searchwords import Word
from ralf.project import Project

T = TypeVar("T")

_MANY = 4  # documents that are read for each hit: several may be one thing
_FAR = 0.35  # share of the best score below which nothing is worth showing
_LONGEST = 2_000  # characters of a hit's text


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Something that was found.

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
    """What is known about `query`, best first; [] when nothing is relevant.

    route  search this route only; None: all of the project
    limit  how many hits at the most

    An active decision stands above the one that it supersedes; a decision and the message in which it was said are
    one hit. Raises RouteNotFound, UsageError (a refused name).
    """
    project = projects.find(root)
    if route is not None:
        route = routing.existing(project, route)
    if not searchwords.words(query) or limit < 1 or not project.folder.exists():
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
        found = passages.found(index, question, _MANY * limit)
        if not any(passage.answers for passage in found):
            return []
        ordered = passages.ordered(found)
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
