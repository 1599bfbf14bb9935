"""Search: one SQLite full-text index per project over decisions, checkpoint sections, facts and evidence.

The index is a cache. It remembers up to which record of each journal it goes, takes in what is newer before it
answers, and is made anew when it is missing, damaged or of another version.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ralf import names, project as projects
from ralf.errors import RouteNotFound
from ralf.project import Project
from ralf.searchindex import SearchIndex, rebuilt_when_damaged
from ralf.text import one_line

KIND_WEIGHTS = {"decision": 1.6, "checkpoint": 0.8, "fact": 1.0, "evidence": 1.0}
_CANDIDATES = 40
_KNOWN = 0.75
"""Share of a question's words that must occur at all in what is searched. Below it the question is about something
else, and only a strong match counts."""
_WEAK, _STRONG = 0.5, 1.5  # rarest words that a match must be worth: to a question whose words are known, to any other
_OUTPUT_WEIGHT = 0.75  # what a tool printed, against what somebody said
_STOP = frozenset(
    "a about all also an and any are as at be because been but by can could decide decided decision decisions did do"
    " does for from had has have how i if in into is it its me my no not of on or our should so some than that the"
    " their them then there these they this to us use used using was we were what when where which who why will with"
    " would you your".split()
)
_WORD = re.compile(r"\w+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


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
    """The words of a query that mean something, each once: identifiers whole and in their parts, no stop words."""
    names = _WORD.findall(query)
    parts = [part for name in names for part in re.split(r"_+", _HUMP.sub("_", name)) if part != name]
    found = dict.fromkeys(word.lower() for word in (*names, *parts) if len(word) > 1)
    return [word for word in found if word not in _STOP]


def _index_path(project: Project) -> Path:
    return project.cache / "search.sqlite"


def _search(project: Project, words: list[str], route: str | None, limit: int) -> list[SearchHit]:
    with closing(SearchIndex(_index_path(project))) as index:
        index.renew(project, [route] if route is not None else projects.route_names(project))
        known = sum(index.knows(word, route) for word in words)
        least = index.rarest() * (_WEAK if known >= _KNOWN * len(words) else _STRONG)
        match = " OR ".join(f'"{word}"' for word in words) if known else ""
        rows = [
            (row, weight)
            for prose, weight in ((True, 1.0), (False, _OUTPUT_WEIGHT))
            for row in (index.matching(match, route, prose=prose, limit=max(_CANDIDATES, limit)) if match else ())
        ]
    hits = []
    for row, weight in rows:
        if -row["rank"] >= least:
            score = round(-row["rank"] * weight * KIND_WEIGHTS[row["kind"]], 4)
            hits.append(
                SearchHit(row["route"], row["kind"], row["ident"], row["text"], score, row["source"], row["status"])
            )
    return _ordered(hits)[:limit]


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
