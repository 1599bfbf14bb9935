"""A checkpoint for which a hook waits, but never longer than it may."""

from __future__ import annotations

import threading
from pathlib import Path

from ralf.project import Project
from ralf_integrations.hooks import taking
from ralf_integrations.hooks.session import Session

BYTES_PER_SECOND = 400_000
"""Of a transcript that a checkpoint takes at the least, on a slow machine with nothing loaded yet."""


def take(session: Session, reason: str, seconds: float) -> bool:
    """Make a checkpoint of what is new in a session's transcript; whether all of it is taken now.

    reason   as in `checkpoint`
    seconds  to wait; where there is too much for that, nothing is begun

    False: somebody else has to do it, detached, or the next hook. Raises what `checkpoint` does.
    """
    if session.transcript is None:
        return False
    return taken(session.project, session.route, session.transcript.path, session.payload.session, reason, seconds)


def taken(
    project: Project, route: str, transcript: Path, session: str, reason: str, seconds: float, *, patience: float = 0.0
) -> bool:
    """The same for any session of a project.

    patience  seconds to wait where the machine has more to do than this; 0: no more than `seconds`
    """
    begin = taking.start(project, route, session).position
    new = transcript.stat().st_size - begin.byte
    if new <= 0:
        return True
    if new > seconds * BYTES_PER_SECOND:
        return False
    failed: list[BaseException] = []

    def work() -> None:
        try:
            taking.take(project, route, session, transcript, reason)
        except BaseException as error:  # noqa: BLE001  # raised below, where somebody waits for it
            failed.append(error)

    # A thread, so that neither a lock nor a disk keeps the client waiting. One that is given up ends with the process:
    # whatever it has not acknowledged is still owed.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(max(seconds, patience))
    if failed:
        raise failed[0]
    return not thread.is_alive()
