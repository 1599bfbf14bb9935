"""What of a session's log belongs to a route: where it begins, and the checkpoint that takes it.

Routes that the session has left come first, where nobody has made their last checkpoint yet.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ralf import fingerprint, names, sessions
from ralf.errors import Damaged
from ralf.files import locks
from ralf.project import Project
from ralf.sessions import Standing
from ralf.transcripts import open_transcript
from ralf.transcripts.events import Position
from ralf_integrations.hooks import known

_LAST = 60.0  # seconds that who comes next waits for the last checkpoint of a route that is left


def start(project: Project, route: str, session: str, logged: str = "") -> Standing:
    """From where on a session's log belongs to a route: behind what this one and those before it have of it.

    session, logged   the session's id as the client's hooks tell it, and as its log does ("" where that is the same)
    """
    remembered = known.of(project, session)
    routes = dict.fromkeys((route, *filter(names.is_valid, remembered.routes)))
    found = [sessions.standing(project, one, logged or session) for one in routes]
    return max(*found, _own_part(remembered, logged or session), key=lambda stand: stand.position.byte)


def _own_part(remembered: known.Known, session: str) -> Standing:
    """Where a fork's log goes on by itself: the beginning of it is another session's."""
    byte, line = remembered.begins
    if byte and remembered.transcript:
        with suppress(OSError):
            if (found := fingerprint.take(Path(remembered.transcript), byte)) is not None:
                return Standing(session, Position(byte, line), *found)
    return Standing(session)


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
            if is_owed(project, logged, left, border):
                begin = start(project, left, session, logged).position
                checkpoint(left, transcript, root=project.root, reason="route-change", begin=begin, run=found.run)


def is_owed(project: Project, logged: str, route: str, border: int) -> bool:
    """Whether a route that a session has left lacks something of what lies before the border."""
    return names.is_valid(route) and sessions.standing(project, route, logged).position.byte < border


def lock(project: Project, route: str) -> Path:
    """The lock of whoever makes a checkpoint of a route for a hook."""
    return project.folder / "locks" / "hooks" / f"{route}.lock"
