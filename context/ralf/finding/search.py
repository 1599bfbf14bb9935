"""Searches a project: hits and their text.

The index is a cache: it knows the last record it has of each journal, reads newer ones before it answers, and is
rebuilt when it is missing, damaged or of another version.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from ralf import project as projects, routing
from ralf.finding.index import SearchIndex, rebuilt_when_damaged
from ralf.finding.ranking import Found, ranked
from ralf.project import Project
from ralf.route import shared
from ralf.text import matcher
from ralf.text.cleaning import one_line, trimmed

T = TypeVar("T")

_LONGEST = 2_000  # characters of a hit's text

_HEAD = 240  # characters of a unit's beginning that stand before a later piece of it

_NEAREST = 20  # rows that are found by their meaning

_SAME = 120  # first characters by which two hits say the same

_FOLLOWING, _WORTH_SHOWING = 6, 80  # pieces that may follow a hit; characters below which one says nothing

_FOLLOWED = ("text", "evidence")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One search result.

    kind    decision · turn (a message of the person's, what it answers, what was done, the closing text) · text
            (another one of the agent's) · failure (a command that failed, with its lines) · note, handover, checkpoint
            (a section) · evidence (what a tool printed)
    id      DEC-001; of all else the checkpoint that it belongs to, cp-001
    text    what was found, at most 2,000 characters
    score   larger is better; comparable within one answer only
    source  where it stands: session and lines
    status  of a decision: active, superseded, reversed, done, proposed, dropped, or extracted (by rules of an earlier
            version: nobody recorded it); of all else "", "taken back" where the person took the message back by
            rewinding, or reverted where a revert took the checkpoint back
    """

    route: str
    kind: str
    id: str
    text: str
    score: float
    source: str = ""
    status: str = ""


def search(
    query: str,
    *,
    route: str | None = None,
    root: str | os.PathLike[str] | None = None,
    limit: int = 5,
    warnings: list[str] | None = None,
    by_meaning: bool = True,
) -> list[SearchHit]:
    """Return what is known about `query`, best first; [] when nothing holds a word of it, or is near it in meaning.

    route     search this route only; None: all of the project
    limit     how many hits at most; a larger one adds hits below and changes none above
    warnings  is given what was not looked into, since nobody here has accepted it, and why the user's `embedder`
              found less than it might, or nothing; then the words alone count

    Of units that hold the same words, a decision in force comes first, then what was said, evidence last; the newer
    before the older. Where `config.local.yaml` names an embedder, what is near the query in meaning is found, too;
    without `by_meaning` it is not run. Raises RouteNotFound, UsageError (a refused name).
    """
    project = projects.find(root)
    if route is not None:
        route = routing.existing(project, route)
    if not matcher.words(query) or limit < 1 or not project.folder.exists():
        return []
    told = warnings if warnings is not None else []
    return _with_index(project, lambda path: _search(project, path, query, route, limit, told, by_meaning=by_meaning))


def _with_index(project: Project, work: Callable[[Path | None], T]) -> T:
    """`work` on the project's index, or with None, in memory, where none may be kept: git would see it."""
    path = project.indexes / "search.sqlite"
    try:
        project.make_room(path)
    except OSError:
        return work(None)
    return rebuilt_when_damaged(path, work)


def _search(
    project: Project,
    path: Path | None,
    query: str,
    route: str | None,
    limit: int,
    warnings: list[str],
    *,
    by_meaning: bool,
) -> list[SearchHit]:
    with closing(SearchIndex(path)) as index:
        index.renew(project, [route] if route is not None else routing.names_of(project))
        span = index.within(route)
        warnings += _not_searched(project, index.not_searched(span))
        near = _near(project, index, query, span, warnings) if by_meaning else ()
        return list(islice(_hits(index, ranked(index, query, span, near)), limit))


def _not_searched(project: Project, routes: Sequence[str]) -> Iterator[str]:
    """What was not looked into, and the command that says how to accept it."""
    found = (
        (sum(shared.waiting(project).values()), "record", "of other clones"),
        (len(routes), "route", "from elsewhere"),
    )
    parts = [f"{count:,} {noun}{'s' * (count > 1)} {whence}" for count, noun, whence in found if count]
    if parts:  # without their names, which a stranger chose: agents read this
        yield f"not searched, since nobody here has accepted it: {', '.join(parts)}: {project.command} status"


def _near(
    project: Project, index: SearchIndex, query: str, span: tuple[int, int], warnings: list[str]
) -> Sequence[int]:
    """The rows that are nearest to a query in meaning, nearest first; none without an embedder."""
    if not os.path.lexists(project.local_config_file):
        return ()
    from ralf.finding.embedding import MOST_TEXTS, embedder_of  # few projects have an embedder

    embedder = embedder_of(project, warnings)
    if embedder is None:
        return ()
    said = index.said(span, MOST_TEXTS)
    numbers = list(said)
    return [numbers[place] for place in embedder.nearest(query, list(said.values()), _NEAREST)]


def _hits(index: SearchIndex, found: Iterable[Found]) -> Iterator[SearchHit]:
    """The hits, none of which says what another has said, or stands in lines that another shows."""
    seen: list[str] = []
    lines: set[tuple[int, str, int]] = set()
    held: set[tuple[int, str]] = set()
    for one in found:
        row, plain = one.row, one_line(one.text).casefold()
        is_shown = bool(row.session) and (row.route, row.session, row.first) in lines
        is_told = row.kind == "checkpoint" and {(row.route, word) for word in one.held} <= held  # a section tells again
        if is_shown or is_told or any(plain[:_SAME] in known or known[:_SAME] in plain for known in seen):
            continue
        text, last = _shown(index, one)
        said = index.spoken(row) if row.kind == "decision" else []
        if said and one_line(said[0][1]).casefold() not in one_line(text).casefold():
            text = f"{text}\n\n{''.join(words for _, words in said)}"[:_LONGEST]
        lines |= {
            (row.route, row.session, n) for each in (row, *(by for by, _ in said)) for n in (each.first, each.last)
        }
        held |= {(row.route, word) for word in one.held}
        seen.append(one_line(text).casefold())
        source = f"{row.session} lines {row.first}-{max(last, row.last)}" if row.session else ""
        yield SearchHit(index.route_of(row), row.kind, row.label, text, round(one.score, 4), source, row.status)


def _shown(index: SearchIndex, one: Found) -> tuple[str, int]:
    """A hit's text and its last line: its unit whole, or its beginning and the best piece of it on; behind a text, or
    what a tool printed, what came next.
    """
    pieces = index.unit(one.row)
    texts = [text for row, text in pieces if row.id >= one.row.id]
    before = "".join(text for row, text in pieces if row.id < one.row.id)
    text = before + "".join(texts)
    if before and len(text) > _LONGEST:
        text = f"{trimmed(one_line(before), _HEAD)}\n[\u2026]\n{''.join(texts)}"
    text, last = text.strip(), one.row.last
    for row, more in index.following(one.row, _FOLLOWING) if one.row.kind in _FOLLOWED else ():
        left = _LONGEST - len(text) - 2
        if left < _WORTH_SHOWING:
            break
        text += f"\n\n{more.strip()[:left]}"
        last = max(last, row.last)
    return text[:_LONGEST], last
