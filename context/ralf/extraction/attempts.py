"""Counts the sessions that have worked on a route, and tells which of them last got anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ralf.model import ActiveWork, Checkpoint, Facts


def counted(work: ActiveWork, session: str, history: Sequence[Checkpoint], known: Facts, new: Facts) -> ActiveWork:
    """The work with its attempts after one more stretch.

    session  that of the stretch; one that is not in `history`, the checkpoints before, begins a new attempt
    known    the route's facts before the stretch, `new` those of the stretch
    """
    attempt = work.attempts or 1
    if history and session and all(entry.session != session for entry in history):
        attempt += 1
    progress = attempt if progressed(known, new) else work.last_progress
    return replace(work, attempts=attempt if attempt > 1 else work.attempts, last_progress=progress)


def progressed(known: Facts, new: Facts) -> bool:
    """Whether a stretch changed a file, made a commit, or saw a test's result that was not known."""
    results = {(test.command, test.result) for test in known.tests}
    return (
        any(set(path.did) - {"read"} for path in new.paths)
        or bool(new.commits)
        or any((test.command, test.result) not in results for test in new.tests)
    )


def said(work: ActiveWork) -> str:
    """One line for a route that has come back: "attempt 14; last outcome PARTIAL; nothing changed since attempt 9"."""
    parts = [f"attempt {work.attempts}"] if work.attempts is not None else []
    if work.outcome:
        parts.append(f"last outcome {work.outcome}")
    if work.attempts is not None and work.last_progress is not None and work.last_progress < work.attempts:
        parts.append(f"nothing changed since attempt {work.last_progress}")
    return "; ".join(parts)
