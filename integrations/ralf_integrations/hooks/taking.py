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
from ralf.transcripts import Transcript, open_transcript
from ralf.transcripts.events import Position
from ralf_integrations.hooks import known

_LAST = 60.0  # seconds that who comes next waits for the last checkpoint of a route that is left


def start(project: Project, route: str, session: str, source: Transcript) -> Standing:
    """From where on a session's log belongs to a route: behind what this one and those before it have of it. In a log
    that was replaced since, that is its beginning.

    session  the session's id as the client's hooks tell it, which may be another than its log's
    """
    remembered = known.of(project, session)
    routes = dict.fromkeys((route, *filter(names.is_valid, remembered.routes)))
    found = (sessions.standing(project, one, source.session) for one in routes)
    still = (stand for stand in found if sessions.unchanged(stand, source))
    return max([*still, _own_part(remembered, source)], key=lambda stand: stand.position.byte)


def _own_part(remembered: known.Known, source: Transcript) -> Standing:
    """Where a fork's log goes on by itself: the beginning of it is another session's."""
    byte, line = remembered.begins
    found = fingerprint.take(source.path, byte) if byte else None
    return Standing(source.session) if found is None else Standing(source.session, Position(byte, line), *found)


def take(project: Project, route: str, session: str, transcript: Path, reason: str) -> bool:
    """Make a checkpoint of what of a session's log belongs to a route, whatever was seen; whether one was made. Raises
    what `checkpoint` does.
    """
    from ralf.checkpoint import checkpoint  # only who makes one pays for it

    close(project, route, session, transcript)
    begin = start(project, route, session, open_transcript(transcript)).position
    run = known.of(project, session).run
    report = checkpoint(route, transcript, root=project.root, reason=reason, begin=begin, run=run, restart=True)
    return bool(report.checkpoints)


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
            source = open_transcript(transcript)
            if is_owed(project, source, left, border):
                begin = start(project, left, session, source).position
                checkpoint(left, transcript, root=project.root, reason="route-change", begin=begin, run=found.run)


def is_owed(project: Project, source: Transcript, route: str, border: int) -> bool:
    """Whether a route that a session has left lacks something of what lies before the border, in the log that it was
    drawn in: one that was replaced has none.
    """
    if not names.is_valid(route):
        return False
    stand = sessions.standing(project, route, source.session)
    return stand.position.byte < border and sessions.unchanged(stand, source)


def lock(project: Project, route: str) -> Path:
    """The lock of whoever makes a checkpoint of a route for a hook."""
    return project.folder / "locks" / "hooks" / f"{route}.lock"
