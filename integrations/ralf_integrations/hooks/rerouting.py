"""A session that goes on with another route: what lies before belongs to the route that was in force, what follows to
the new one, and nothing to two. The border is in the journals: the end of the newest checkpoint that any of them has.
Where nobody has waited for that checkpoint, whoever takes the next one makes it first.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ralf import names, sessions
from ralf.errors import Damaged
from ralf.files import locks
from ralf.project import Project
from ralf.sessions import Standing
from ralf.transcripts import open_transcript
from ralf.transcripts.lines import open_regular
from ralf_integrations.hooks import known
from ralf_integrations.hooks.session import Session

SECONDS = 2.0
"""That a hook waits for the last checkpoint of the route that is left."""

_LAST = 60.0  # seconds that who comes next waits for it
_LONGEST_LINE = 8 << 20  # bytes at the end of a log in which the last line's beginning is looked for


def settle(session: Session) -> None:
    """Close the segment of the route that the session has left since its last hook, if it is one that has anything of
    the session: else what was said before belongs to the new one, too. At the session's end nothing is waited for.
    """
    left, source = session.known.route, session.readable
    if source is None:
        return
    owed = [one for one in session.known.left if _is_owed(session.project, source.session, *one)]
    session.note(left=tuple(owed))
    if not names.is_valid(left) or left == session.route:
        return
    if not start(session.project, left, session.payload.session, source.session).position.byte:
        return
    from ralf_integrations.hooks import detached, foreground

    session.note(routes=tuple(dict.fromkeys((*session.known.routes, left))))
    known.remember(session.project, session.known)
    border = _end_of_lines(source.path)
    if session.payload.event != "session-end":
        found = (session.project, left, source.path, session.payload.session)
        if foreground.taken(*found, "route-change", SECONDS):
            return
    session.note(left=(*(one for one in owed if one[0] != left), (left, border)))
    known.remember(session.project, session.known)  # before anybody makes another one
    detached.start_for(session, left, "route-change")


def start(project: Project, route: str, session: str, logged: str = "") -> Standing:
    """From where on a session's log belongs to a route: behind what this one and those before it have of it.

    session, logged   the session's id as the client's hooks tell it, and as its log does ("" where that is the same)
    """
    routes = dict.fromkeys((route, *filter(names.is_valid, known.of(project, session).routes)))
    found = (sessions.standing(project, one, logged or session) for one in routes)
    return max(found, key=lambda stand: stand.position.byte)


def take(project: Project, route: str, session: str, transcript: Path, reason: str) -> bool:
    """Make a checkpoint of what of a session's log belongs to a route, whatever was seen; whether one was made. Raises
    what `checkpoint` does.
    """
    from ralf.checkpoint import checkpoint  # only who makes one pays for it

    close(project, route, session, transcript)
    begin = start(project, route, session, open_transcript(transcript).session).position
    run = known.of(project, session).run
    return bool(checkpoint(route, transcript, root=project.root, reason=reason, begin=begin, run=run).checkpoints)


def close(project: Project, route: str, session: str, transcript: Path) -> None:
    """Make the last checkpoint of the routes that a session has left before this one, where nobody has yet. Busy where
    somebody is at one of them and does not get done. What one of them cannot take goes to the next.
    """
    from ralf.checkpoint import checkpoint

    found = known.of(project, session)
    for left, border in found.left:
        if left == route:
            return
        with locks.held(lock(project, left), f"{left}: its checkpoint", _LAST), suppress(Damaged):
            logged = open_transcript(transcript).session
            if _is_owed(project, logged, left, border):
                begin = start(project, left, session, logged).position
                checkpoint(left, transcript, root=project.root, reason="route-change", begin=begin, run=found.run)


def _is_owed(project: Project, logged: str, route: str, border: int) -> bool:
    """Whether a route that a session has left lacks something of what lies before the border."""
    return names.is_valid(route) and sessions.standing(project, route, logged).position.byte < border


def _end_of_lines(path: Path) -> int:
    """Where the last whole line of a log ends."""
    with open_regular(path) as file:
        size = file.seek(0, os.SEEK_END)
        begin = max(0, size - _LONGEST_LINE)
        file.seek(begin)
        found = file.read(size - begin).rfind(b"\n")
    return begin + found + 1 if found >= 0 else size


def lock(project: Project, route: str) -> Path:
    """The lock of whoever makes a checkpoint of a route for a hook."""
    return project.folder / "locks" / "hooks" / f"{route}.lock"
