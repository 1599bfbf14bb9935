"""A session that goes on with another route: what lies before belongs to the route that was in force, what follows to
the new one, and nothing to two. The border is in the journals: the end of the newest checkpoint that any of them has.
Where nobody has waited for that checkpoint, whoever takes the next one makes it first (`taking`).
"""

from __future__ import annotations

import os
from pathlib import Path

from ralf import names
from ralf.transcripts.lines import open_regular
from ralf_integrations.hooks import detached, foreground, known, taking
from ralf_integrations.hooks.session import Session

SECONDS = 2.0
"""That a hook waits for the last checkpoint of the route that is left."""

_LONGEST_LINE = 8 << 20  # bytes at the end of a log in which the last line's beginning is looked for


def settle(session: Session) -> None:
    """Close the segment of the route that the session has left since its last hook, if it is one that has anything of
    the session: else what was said before belongs to the new one, too. At the session's end nothing is waited for.
    """
    left, source = session.known.route, session.readable
    if source is None:
        return
    owed = [one for one in session.known.left if taking.is_owed(session.project, source, *one)]
    session.note(left=tuple(owed))
    if not names.is_valid(left) or left == session.route:
        return
    if not taking.start(session.project, left, session.payload.session, source).position.byte:
        return
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


def _end_of_lines(path: Path) -> int:
    """Where the last whole line of a log ends."""
    with open_regular(path) as file:
        size = file.seek(0, os.SEEK_END)
        begin = max(0, size - _LONGEST_LINE)
        file.seek(begin)
        found = file.read(size - begin).rfind(b"\n")
    return begin + found + 1 if found >= 0 else size
