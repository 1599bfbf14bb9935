"""A session within a run of a loop: which run that is, and what runs before it have left that nobody has taken."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ralf import detached as processes
from ralf.errors import RalfError
from ralf_integrations.hooks import detached

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ralf_integrations.hooks.detached import Why
    from ralf_integrations.hooks.session import Session

SECONDS = 8.0
"""That a session which starts waits for what earlier runs have left; what takes longer goes on behind it."""


def catch_up(session: Session) -> None:
    """Take into the session's route what earlier runs of it have left: those that were killed have told nobody. What is
    wrong with one of their folders is no business of a session that begins.
    """
    if not session.project.run:
        return
    from ralf.runs import earlier

    with suppress(RalfError, OSError):
        _take(session, [folder.path for folder in earlier.left(session.project, session.route)], "run-ended")


def begun(session: Session) -> None:
    """Write down that our run has begun, so that it counts even where it is killed before it says a word. Not where git
    has brought its documents: a repository that has a folder of the run's name would speak by them.
    """
    if not session.project.run:
        return
    from ralf.runs import brought, current

    folder = current.folder(session.project.root)
    if folder is not None and not brought.is_brought(folder):
        with suppress(RalfError, OSError):
            _take(session, [folder.path], "run-begun")


def _take(session: Session, folders: Sequence[Path], why: Why) -> None:
    """Take folders of runs in, in a process of its own, for which a session that starts waits no longer than it may."""
    if folders:
        paths = [folder.absolute() for folder in folders]
        child = detached.begin(session.project, session.route, "", "", why, paths, quiet=True)
        processes.status_within(child, SECONDS)
