"""The sessions before this one: which of them are over, what of them is in no checkpoint yet, and which of them a
person means who wants to go on. A live session's work is never touched, and never handed to another.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Container
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from ralf import checkout, names, routing, sessions
from ralf.errors import RalfError
from ralf.project import Project
from ralf.transcripts import open_transcript, requests
from ralf_integrations.hooks import foreground, known as knowns, naming
from ralf_integrations.hooks.handover import age, context_of, line
from ralf_integrations.hooks.known import Known
from ralf_integrations.hooks.session import Session

SECONDS = 2.0
"""Of work on what dead sessions have left, for which one that starts waits."""

_PATIENCE = 8.0  # seconds that it waits for that at the most, where the machine has more to do

_LEAST = 0.5  # seconds without which none is begun
_MOST_TRIED = 3  # of sessions that may have left nothing
_MOST_ASKED = 10  # of routes that are looked at for words
_SHORTEST_WORD = 4  # letters of a word that tells what work is about
_WORD = re.compile(r"[^\W_]+")
_MOST_TOLD = 4  # routes that are offered in words


def of_route(project: Project, route: str, but: str) -> list[Known]:
    """The sessions of a route that are over, the one that was seen last first; `but` is left out."""
    return [found for found in _over(project, but) if found.route == route and not found.unnamed]


def catch_up(project: Project, route: str, but: str) -> list[Known]:
    """Take into a route what its dead sessions have left, in a time that a person can wait; those for which it was too
    much, or whose transcript cannot be read. The session `but` is left alone.
    """
    deadline = time.monotonic() + SECONDS
    left = []
    for found in of_route(project, route, but):
        try:
            size = Path(found.transcript).stat().st_size if found.transcript else 0
            if size in (0, found.taken, sessions.standing(project, route, found.session).position.byte):
                continue  # one that has become shorter was replaced
            seconds = deadline - time.monotonic()
            if seconds < _LEAST or not _is_its_log(found) or not _take(project, found, seconds):
                left.append(found)
                continue
        except (RalfError, OSError):  # what is wrong with it is no business of a session that begins
            continue
        knowns.remember(project, replace(found, taken=size))
    return left


def meant(session: Session, about: str = "") -> list[Known]:
    """The sessions that a person may mean who wants to go on, where the session has no route of its own yet: one for
    each route, all of this worktree and over; those whose client was killed first, then the ones seen last. What they
    have left is taken in, and the first of them has something to hand over.

    about  words for the work that is meant: only routes that have them, "" for any
    """
    found = _left_here(session)
    if about:
        found = [one for one in found[:_MOST_ASKED] if _is_about(session, one, about)]
    for number, one in enumerate(found[:_MOST_TRIED]):
        catch_up(session.project, one.route, session.payload.session)
        if context_of(session.project, one.route) is not None:
            return found[number:]
    return []


def announced(session: Session) -> str:
    """The line about the work that was interrupted in this worktree, for a session that has no route; "" for none."""
    found = meant(session)
    return line(session, found[0].route, said=said_of(found)) if found else ""


def _left_here(session: Session) -> list[Known]:
    everyone = list(knowns.everyone(session.project))
    place = cache(partial(_place, session))
    here = place(session.worktree)
    by_route: dict[str, Known] = {}
    for known in _over(session.project, session.payload.session):
        one = _with_route(session.project, known) if place(known.worktree) == here else None
        if one is None or (one.route == session.route and session.has_route):
            continue
        if one.transcript or routing.known(session.project, one.route) is not None:
            by_route.setdefault(one.route, one)
    busy = {one.route for one in everyone if knowns.live(one)}
    known_routes = {one.route for one in everyone} | by_route.keys()
    found = [*by_route.values(), *_files_here(session, here, known_routes)]
    found.sort(key=lambda one: (one.ended, -one.seen))
    return [one for one in found if one.route not in busy]


def _with_route(project: Project, known: Known) -> Known | None:
    """A session that is over with the route that its work has, None where it has not worked: it is not asked again."""
    route = naming.of_dead(project, known)
    if route != known.route:
        known = replace(known, route=route, unnamed=False)
        knowns.remember(project, known)
    return known if route else None


def _files_here(session: Session, here: Path, known: Container[str]) -> list[Known]:
    """Routes on which no session has worked, but whose file says that work is under way: the person wrote it here, or
    has accepted it. Only for the worktree in which the files lie.
    """
    if here != _place(session, str(session.project.folder)):
        return []
    files = {}
    for route in routing.names_of(session.project):
        if route not in known:
            with suppress(OSError):
                files[route] = session.project.route_file(route).stat().st_mtime
    found = []
    for route in sorted(files, key=lambda route: -files[route])[:_MOST_TRIED]:
        with suppress(RalfError, OSError):
            context = context_of(session.project, route)
            if (
                context is not None
                and context.active_work.work_status == "in_progress"
                and not any(entry.session for entry in context.checkpoint_history)
            ):
                found.append(Known("", route=route, worktree=session.worktree, seen=files[route]))
    return found


def _place(session: Session, folder: str) -> Path:
    """The worktree in which a folder lies; outside of git the project, or the folder itself."""
    path = Path(os.path.realpath(folder))
    if (top := checkout.worktree(path)) is not None:
        return top
    root = Path(os.path.realpath(session.project.root))
    return root if path.is_relative_to(root) else path


def _is_about(session: Session, one: Known, about: str) -> bool:
    """Whether at least half of the words that tell the work stand in a route's name, goal or requests."""
    words = {word for word in _WORD.findall(about.casefold()) if len(word) >= _SHORTEST_WORD}
    texts = [one.route]
    with suppress(RalfError, OSError):
        if (context := context_of(session.project, one.route)) is not None:
            texts += [context.goal, *(fact.request for fact in context.facts.requests)]
        if one.transcript:
            texts += requests(open_transcript(Path(one.transcript)))
    there = set(_WORD.findall(" ".join(texts).casefold()))
    return bool(words) and 2 * len(words & there) >= len(words)


def said_of(found: list[Known]) -> list[str]:
    """What is to be said of the sessions that may be meant, of which the first one is."""
    return [sentence for sentence in (told(found[0]), offered(found[1:])) if sentence]


def told(found: Known) -> str:
    """A session that is over, in words."""
    if not found.session:
        return f"Its file was written {age(found.seen)}."
    how = "ended" if found.ended else "was interrupted"
    return f"Its last session {how} {age(found.seen)}.{_origin(found)}"


def _origin(found: Known) -> str:
    """What the route of a session went on from, in words."""
    before = [route for route in (*found.routes, *found.briefed) if route != found.route]
    return f" It went on from {before[-1]}: `ralf context show {before[-1]} --brief`." if before else ""


def offered(found: list[Known]) -> str:
    """Routes of sessions that are over, in words; "" for none."""
    routes = [f"{one.route} ({'ended' if one.ended else 'interrupted'} {age(one.seen)})" for one in found[:_MOST_TOLD]]
    return f"Other work that was left here: {', '.join(routes)}; `ralf context show ROUTE --brief`." if routes else ""


def unread(left: list[Known]) -> str:
    """What could not be taken of dead sessions, in words; "" for nothing."""
    if not left:
        return ""
    what = "A session of it" if len(left) == 1 else f"{len(left)} sessions of it"
    return f"{what} left work that is in no checkpoint yet: `ralf context checkpoint {left[0].route}` takes it in."


def _over(project: Project, but: str) -> list[Known]:
    """The sessions that are over, but one, the one seen last first."""
    found = [
        one
        for one in knowns.everyone(project)
        if one.session != but and names.is_valid(one.route) and not knowns.live(one)
    ]
    return sorted(found, key=lambda one: -one.seen)


def _is_its_log(found: Known) -> bool:
    """Whether a transcript is what it is remembered to be."""
    source = open_transcript(Path(found.transcript))
    return source.session == found.session and source.format != "text"


def _take(project: Project, found: Known, seconds: float) -> bool:
    transcript = Path(found.transcript)
    with suppress(FileNotFoundError):
        return foreground.taken(
            *(project, found.route, transcript, found.session, "session-end", seconds),
            patience=_PATIENCE,
            quiet=True,
        )
    return False
