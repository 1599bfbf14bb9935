"""A session that goes on with another route: what lies before belongs to the route that was in force, what follows to
the new one, and nothing to two. The border is in the journals: the end of the newest checkpoint that any of them has.
"""

from __future__ import annotations

from ralf import names, sessions
from ralf.project import Project
from ralf.sessions import Standing
from ralf_integrations.hooks import known
from ralf_integrations.hooks.session import Session

SECONDS = 2.0
"""That a hook waits for the last checkpoint of the route that is left."""


def settle(session: Session) -> None:
    """Close the segment of the route that the session has left since its last hook, if it is one that has anything of
    the session: else what was said before belongs to the new one, too.
    """
    left, source = session.known.route, session.readable
    if source is None or not names.is_valid(left) or left == session.route:
        return
    if not start(session.project, left, session.payload.session, source.session).position.byte:
        return
    from ralf_integrations.hooks import detached, foreground

    session.note(routes=tuple(dict.fromkeys((*session.known.routes, left))))
    known.remember(session.project, session.known)
    found = (session.project, left, source.path, session.payload.session)
    if not foreground.taken(*found, "route-change", SECONDS):
        detached.start_for(session, left, "route-change")


def start(project: Project, route: str, session: str, logged: str = "") -> Standing:
    """From where on a session's log belongs to a route: behind what this one and those before it have of it.

    session, logged   the session's id as the client's hooks tell it, and as its log does ("" where that is the same)
    """
    routes = dict.fromkeys((route, *filter(names.is_valid, known.of(project, session).routes)))
    found = (sessions.standing(project, one, logged or session) for one in routes)
    return max(found, key=lambda stand: stand.position.byte)
