"""The sessions before this one: which of them are over, what of them is in no checkpoint yet, and which of them a
person means who wants to go on. A live session's work is never touched, and never handed to another.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ralf import names, routing, sessions
from ralf.errors import RalfError
from ralf.transcripts import open_transcript
from ralf_integrations.hooks import foreground, known as knowns
from ralf_integrations.hooks.handover import age, context_of
from ralf_integrations.hooks.known import Known
from ralf_integrations.hooks.session import Session

SECONDS = 2.0
"""Of work on what dead sessions have left, for which one that starts waits."""

_PATIENCE = 8.0  # seconds that it waits for that at the most, where the machine has more to do

_LEAST = 0.5  # seconds without which none is begun
_MOST_TRIED = 3  # of sessions that may have left nothing
_MOST_TOLD = 4  # routes that are offered in words


def of_route(session: Session, route: str) -> list[Known]:
    """The sessions of a route that are over, the one that was seen last first."""
    return [found for found in _over(session) if found.route == route]


def catch_up(session: Session, route: str) -> list[Known]:
    """Take into a route what its dead sessions have left, in a time that a person can wait; those for which it was too
    much, or whose transcript cannot be read.
    """
    deadline = time.monotonic() + SECONDS
    left = []
    for found in of_route(session, route):
        try:
            size = Path(found.transcript).stat().st_size if found.transcript else 0
            if size <= max(found.taken, sessions.standing(session.project, route, found.session).position.byte):
                continue
            seconds = deadline - time.monotonic()
            if seconds < _LEAST or not _is_its_log(found) or not _take(session, found, seconds):
                left.append(found)
                continue
        except (RalfError, OSError):  # what is wrong with it is no business of a session that begins
            continue
        knowns.remember(session.project, replace(found, taken=size))
    return left


def meant(session: Session) -> list[Known]:
    """The sessions that a person may mean who wants to go on, where the session has no route of its own yet: one for
    each route, all of this worktree and over; those whose client was killed first, then the ones seen last. What they
    have left is taken in, and the first of them has something to hand over.
    """
    found = _left_here(session)
    for number, one in enumerate(found[:_MOST_TRIED]):
        catch_up(session, one.route)
        if context_of(session.project, one.route) is not None:
            return found[number:]
    return []


def _left_here(session: Session) -> list[Known]:
    found = [one for one in _over(session) if one.worktree == session.worktree and one.route != session.route]
    by_route: dict[str, Known] = {}
    for one in sorted(found, key=lambda one: one.ended):
        if one.transcript or routing.known(session.project, one.route) is not None:
            by_route.setdefault(one.route, one)
    busy = {one.route for one in knowns.everyone(session.project) if knowns.live(one)}
    return [one for route, one in by_route.items() if route not in busy]


def told(found: Known) -> str:
    """A session that is over, in words."""
    how = "ended" if found.ended else "was interrupted"
    return f"Its last session {how} {age(found.seen)}."


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


def _over(session: Session) -> list[Known]:
    """The sessions that are over, but this one, the one seen last first."""
    found = [
        one
        for one in knowns.everyone(session.project)
        if one.session != session.payload.session and names.is_valid(one.route) and not knowns.live(one)
    ]
    return sorted(found, key=lambda one: -one.seen)


def _is_its_log(found: Known) -> bool:
    """Whether a transcript is what it is remembered to be."""
    source = open_transcript(Path(found.transcript))
    return source.session == found.session and source.format != "text"


def _take(session: Session, found: Known, seconds: float) -> bool:
    transcript = Path(found.transcript)
    with suppress(FileNotFoundError):
        return foreground.taken(
            *(session.project, found.route, transcript, found.session, "session-end", seconds),
            patience=_PATIENCE,
            quiet=True,
        )
    return False
