"""Searches a project: hits and their text.

The index is a cache: it knows the last record that it has of each journal, and reads newer ones before it answers.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ralf import project as projects, routing
from ralf.document.index import Index
from ralf.finding.index import SearchTables, with_database
from ralf.finding.ranking import Found, ranked
from ralf.project import Project
from ralf.route import shared
from ralf.storage.files import content_of
from ralf.text import matcher
from ralf.text.cleaning import one_line, trimmed

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
    status  of a decision: active, superseded, reversed, done, proposed or dropped; of all else "", "taken back" where
            the person took the message back by rewinding, or reverted where a revert took the checkpoint back
    at      when it was said or recorded, ISO 8601; "" where no record says it
    """

    route: str
    kind: str
    id: str
    text: str
    score: float
    source: str = ""
    status: str = ""
    at: str = ""


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
    others = shared.others(project)
    routes = [route] if route is not None else routing.names_of(project, others.by_route())

    def found(db: sqlite3.Connection, index: Index | None) -> tuple[list[SearchHit], list[str]]:
        tables = SearchTables(db, index)
        tables.catch_up(project, routes, others, every=route is None)
        number = tables.number_of(route)
        told = [*_not_searched(project, len(others.new), tables.foreign(number))]
        near = _near(project, tables, query, number, told) if by_meaning else ()
        return list(islice(_hits(tables, ranked(tables, query, number, near)), limit)), told

    hits, told = with_database(project, found)
    if warnings is not None:
        warnings += told
    return hits


def _not_searched(project: Project, records: int, routes: int) -> Iterator[str]:
    """What was not looked into, and the command that says how to accept it."""
    found = ((records, "record", "of other clones"), (routes, "route", "from elsewhere"))
    parts = [f"{count:,} {noun}{'s' * (count > 1)} {whence}" for count, noun, whence in found if count]
    if parts:  # without their names, which a stranger chose: agents read this
        yield f"not searched, since nobody here has accepted it: {', '.join(parts)}: {project.command} status"


def _near(project: Project, tables: SearchTables, query: str, route: int, warnings: list[str]) -> Sequence[int]:
    """The pieces that are nearest to a query in meaning, nearest first; none without an embedder."""
    try:
        if b"embedder" not in content_of(project.local_config_file):
            return ()
    except OSError:
        return ()
    from ralf.finding.embedding import MOST_TEXTS, nearest  # few projects have an embedder

    said = tables.said(route, MOST_TEXTS)
    numbers = list(said)
    return [numbers[place] for place in nearest(project, query, list(said.values()), _NEAREST, warnings)]


def _hits(tables: SearchTables, found: Iterable[Found]) -> Iterator[SearchHit]:
    """The hits, none of which says what another has said, or stands in lines that another shows."""
    seen: list[str] = []
    lines: set[tuple[int, str, int]] = set()
    held: set[tuple[int, str]] = set()
    for one in found:
        unit, plain = one.unit, one_line(one.unit.text).casefold()
        is_shown = bool(unit.session) and (unit.route, unit.session, unit.first) in lines
        holds = {(unit.route, word) for word in one.held}
        is_told = unit.kind == "checkpoint" and holds <= held  # a section tells again
        if is_shown or is_told or any(plain[:_SAME] in known or known[:_SAME] in plain for known in seen):
            continue
        text, last = _shown(tables, one)
        turn = tables.turn_of(unit) if unit.kind == "decision" else []
        if turn and one_line(turn[0].text).casefold() not in one_line(text).casefold():
            text = f"{text}\n\n{''.join(each.text for each in turn)}"[:_LONGEST]
        lines |= {(unit.route, unit.session, n) for each in (unit, *turn) for n in (each.first, each.last)}
        held |= holds
        seen.append(one_line(text).casefold())
        source = f"{unit.session} lines {unit.first}-{max(last, unit.last)}" if unit.session else ""
        route = tables.name_of(unit.route)
        yield SearchHit(route, unit.kind, unit.label, text, round(one.score, 4), source, unit.status, unit.at)


def _shown(tables: SearchTables, one: Found) -> tuple[str, int]:
    """A hit's text and its last line: its unit whole, or its beginning and the best piece of it on; behind a text, or
    what a tool printed, what came next.
    """
    pieces = tables.unit(one.unit.id)
    rest = "".join(piece.text for number, piece in pieces.items() if number >= one.number)
    before = "".join(piece.text for number, piece in pieces.items() if number < one.number)
    text = before + rest
    if before and len(text) > _LONGEST:
        text = f"{trimmed(one_line(before), _HEAD)}\n[\u2026]\n{rest}"
    text, last = text.strip(), one.unit.last
    for more in tables.following(one.unit, _FOLLOWING) if one.unit.kind in _FOLLOWED else ():
        left = _LONGEST - len(text) - 2
        if left < _WORTH_SHOWING:
            break
        text += f"\n\n{more.text.strip()[:left]}"
        last = max(last, more.last)
    return text[:_LONGEST], last
