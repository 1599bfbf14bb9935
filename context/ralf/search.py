"""Search: one SQLite full-text index per project over decisions, checkpoint sections, facts and evidence.

The index is a cache. It remembers up to which record of each journal it goes, takes in what is newer before it
answers, and is made anew when it is missing, damaged or of another version.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ralf import names, project as projects
from ralf.errors import RouteNotFound
from ralf.project import Project
from ralf.searchindex import SearchIndex, rebuilt_when_damaged
from ralf.text import one_line

KIND_BONUS = {"decision": 1.6, "checkpoint": 1.1, "fact": 1.0, "evidence": 1.0}
_CANDIDATES = 60
_ENOUGH = 0.5  # share of the query's words that a hit must hold when no document holds all
_STOP = frozenset(
    "a about all also an and any are as at be because been but by can could did do does for from had has have how i"
    " if in into is it its me my no not of on or our should so some than that the their them then there these they"
    " this to us use used using was we were what when where which who why will with would you your".split()
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Something that was found.

    kind    decision, checkpoint, fact or evidence
    id      DEC-001, cp-001, or for evidence and facts the checkpoint that they belong to
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

    An active decision stands above the one that it supersedes. Raises RouteNotFound, UsageError (a refused name).
    """
    project = projects.find(root)
    if route is not None:
        found = projects.existing_route(project, names.check(route))
        if found is None:
            from ralf.reader import closest

            raise RouteNotFound(route, closest(project, route))
        route = found
    words = query_words(query)
    if not words or limit < 1 or not project.folder.exists():
        return []
    return rebuilt_when_damaged(_index_path(project), lambda: _search(project, words, route, limit))


def query_words(query: str) -> list[str]:
    """The words of a query that mean something, each once."""
    found = dict.fromkeys(word for word in _WORD.findall(query.lower()) if len(word) > 1)
    return [word for word in found if word not in _STOP] or list(found)


def _index_path(project: Project) -> Path:
    return project.cache / "search.sqlite"


def _search(project: Project, words: list[str], route: str | None, limit: int) -> list[SearchHit]:
    with closing(SearchIndex(_index_path(project))) as index:
        index.renew(project, [route] if route is not None else projects.route_names(project))
        matches = index.matching(words, route, "AND", _CANDIDATES)
        if len(matches) < limit and len(words) > 1:
            matches += index.matching(words, route, "OR", _CANDIDATES)
    hits = {}
    for row in matches:
        share = _share(words, row)
        if row["id"] not in hits and share >= _ENOUGH:
            score = -row["rank"] * share * KIND_BONUS[row["kind"]]
            hits[row["id"]] = SearchHit(
                row["route"], row["kind"], row["ident"], row["text"], round(score, 4), row["source"], row["status"]
            )
    return _ordered(hits.values())[:limit]


def _share(words: list[str], row: sqlite3.Row) -> float:
    """How many of the query's words a document holds, by the first letters that a stem keeps."""
    text = row["text"].lower()
    return sum(word[: max(4, len(word) - 3)] in text for word in words) / len(words)


def _ordered(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Best first; what is superseded below everything; the same words once."""
    ordered = sorted(hits, key=lambda hit: (hit.status not in ("", "active"), -hit.score, hit.route, hit.id))
    kept: list[SearchHit] = []
    seen: list[str] = []
    for hit in ordered:
        said = one_line(hit.text).casefold()
        if not any(said[:120] in known or known[:120] in said for known in seen):
            kept.append(hit)
            seen.append(said)
    return kept
