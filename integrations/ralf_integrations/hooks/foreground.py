"""A checkpoint for which a hook waits, but never longer than it may."""

from __future__ import annotations

from pathlib import Path

from ralf import detached as processes
from ralf.project import Project
from ralf.transcripts import open_transcript
from ralf_integrations.hooks import detached, taking
from ralf_integrations.hooks.detached import Why
from ralf_integrations.hooks.session import Session

BYTES_PER_SECOND = 400_000
"""Of a transcript that a checkpoint takes at the least, on a slow machine with nothing loaded yet."""


def take(session: Session, reason: Why, seconds: float) -> bool:
    """Make a checkpoint of what is new in a session's transcript; whether all of it is taken now.

    reason   as in `checkpoint`
    seconds  to wait; where there is too much for that, nothing is begun

    False: it goes on behind the client's back, it failed (`complaints`), or the next hook has to do it. OSError,
    NotImplementedError: no process could be started.
    """
    from ralf_integrations.hooks import naming  # few hooks wait for a checkpoint

    if session.transcript is None or not naming.by_work(session):
        return False
    return taken(session.project, session.route, session.transcript.path, session.payload.session, reason, seconds)


def taken(
    project: Project,
    route: str,
    transcript: Path,
    session: str,
    reason: Why,
    seconds: float,
    *,
    patience: float = 0.0,
    quiet: bool = False,
) -> bool:
    """The same for any session of a project.

    patience  seconds to wait where the machine has more to do than this; 0: no more than `seconds`
    quiet     nobody is told of what went wrong
    """
    source = open_transcript(transcript)
    new = source.size() - taking.start(project, route, session, source).position.byte
    if new <= 0:
        return True
    if new > seconds * BYTES_PER_SECOND:
        return False
    # A process of its own, so that no lock, disk or text keeps the client waiting: a thread at work on an expression
    # would let no other one run. What it has not acknowledged when it is given up is still owed, and it goes on.
    child = detached.begin(project, route, session, "", reason, [transcript], quiet=quiet)
    return processes.status_within(child, max(seconds, patience)) == 0
