"""A session within a run of a loop: which run that is, and what runs before it have left that nobody has taken."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ralf.errors import RalfError

if TYPE_CHECKING:
    from ralf_integrations.hooks.session import Session

SECONDS = 2.0
"""Of work on what earlier runs have left, for which a session that starts waits; one of them is always finished."""


def catch_up(session: Session) -> None:
    """Take into the session's route what earlier runs of it have left: those that were killed have told nobody. What is
    wrong with one of their folders is no business of a session that begins.
    """
    if not session.project.run:
        return
    from ralf.checkpoint import checkpoint
    from ralf.runs import earlier

    deadline = time.monotonic() + SECONDS
    with suppress(RalfError, OSError):
        for folder in earlier.left(session.project, session.route):
            with suppress(RalfError, OSError):
                checkpoint(session.route, folder.path, root=session.project.root, reason="run-ended")
            if time.monotonic() >= deadline:
                return


def begun(session: Session) -> None:
    """Write down that our run has begun, so that it counts even where it is killed before it says a word."""
    if not session.project.run:
        return
    from ralf.checkpoint import checkpoint
    from ralf.runs import current

    folder = current.folder(session.project.root)
    if folder is not None:
        with suppress(RalfError, OSError):
            checkpoint(session.route, folder.path, root=session.project.root, reason="run-begun")
