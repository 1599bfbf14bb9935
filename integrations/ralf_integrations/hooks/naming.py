"""The route of a session that has none: named after the first request that says what it is about, or, where none does,
once the session has worked. A greeting makes no route, and no checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ralf import routing
from ralf.errors import RalfError
from ralf.project import Project
from ralf.routing import DEFAULT
from ralf.transcripts import Transcript, open_transcript, requests
from ralf_integrations.hooks import wishes
from ralf_integrations.hooks.known import Known
from ralf_integrations.hooks.session import Session

_MOST_EVENTS = 2_000  # in which a session that has worked has called a tool
_MUCH = 2_000  # characters that an agent says who was asked for something


def by_request(session: Session, prompt: str) -> bool:
    """Name the session's route after the first of its requests that makes a name, its newest prompt included: people
    begin with a greeting, too. Whether it has a route now; a fork waits for the one of the session that it comes from.
    """
    if session.has_route:
        return True
    for request in () if session.known.forked else (*asked(session), prompt):
        if wishes.is_request(request) and routing.name(session.project, request, session=session.payload.session):
            session.rerouted()
            return True
    session.note(unnamed=True)
    return False


def by_work(session: Session) -> bool:
    """Name the route of a session that has worked though no request of it makes a name. Whether what is new in its log
    has a route to go to.
    """
    if session.has_route or not session.known.unnamed:
        return True
    if session.transcript is None or not has_worked(session.transcript):
        return False
    if routing.number(session.project, session=session.payload.session):
        session.rerouted()
    return True


def of_dead(project: Project, known: Known) -> str:
    """The route of a session that is over: a new one where it worked on none and has worked, "" where it has not."""
    if known.route != DEFAULT or not known.unnamed or not routing.names_sessions(project):
        return known.route
    try:
        worked = bool(known.transcript) and has_worked(open_transcript(Path(known.transcript)))
    except (RalfError, OSError):  # what is wrong with its log is no business of a session that begins
        return known.route
    return routing.number(project, session=known.session) if worked else ""


def has_begun(session: Session) -> bool:
    """Whether the session has a conversation of its own to go on with."""
    source = session.readable
    others = (request for request in asked(session) if request != session.payload.prompt.strip())
    return any(map(wishes.is_request, others)) or (source is not None and has_worked(source))


def has_worked(source: Transcript) -> bool:
    """Whether an agent has called a tool, or said more than one says to a greeting."""
    much = 0
    for event in islice(source.events(), _MOST_EVENTS):
        if event.kind == "assistant":
            much += len(event.text)
        if event.kind == "call" or much > _MUCH:
            return True
    return False


def asked(session: Session) -> Iterator[str]:
    """What the session was asked for first, as far as its log tells yet."""
    return iter(()) if session.readable is None else requests(session.readable)
