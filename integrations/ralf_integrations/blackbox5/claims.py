"""A run of the loop holds its task as any agent does: the claim is that of `ralf task`, and what the run promises at
its end says what became of it.

A run whose task has no file claims nothing. A queue that the loop keeps beside the tasks is its own.
"""

from __future__ import annotations

import os
from pathlib import Path

from ralf.errors import Claimed, RalfError, StaleLease
from ralf.project import Project
from ralf.tasks import claims, origin, store
from ralf.tasks.model import TaskState
from ralf.transcripts.notes import session_of

_DONE, _FAILED = ("COMPLETE", "COMPLETED", "SUCCESS"), ("FAILED",)


def begin(project: Project, run: Path, task: str) -> str:
    """Claim the task of a run that begins, as long as the loop's process runs. Returns what the run is to be told where
    it does not have the task, "" where it has, or where there is none.
    """
    if not _is_there(project, task):
        return ""
    loop = os.getpgrp()
    try:
        claims.claim(task, by=session_of(run, project.root), process=loop, born=origin.born(loop), root=project.root)
    except Claimed as error:
        return f"{error}: another agent is at this task; take another one, or it is done twice"
    except (RalfError, OSError) as error:
        return f"{error}: this run does not hold the task"
    return ""


def end(project: Project, run: Path, task: str, promise: str, words: str) -> str:
    """Say what became of the task of a run that is over. Returns what went wrong, "" for nothing.

    promise  the tag at its end, or what its documents say; "" for nothing: another run goes on with the task
    words    what came of it
    """
    if not _is_there(project, task):
        return ""
    by, root = session_of(run, project.root), project.root
    try:
        if promise in _DONE:
            claims.done(words or "The run promised that it is complete.", task=task, lease="", by=by, root=root)
        elif promise in _FAILED:
            claims.fail(words or "The run said that it failed.", task=task, lease="", by=by, root=root)
        elif _holds(store.at(root).get(task), by):
            note = f"it promised {promise}" if promise else "it promised nothing"
            claims.release(task, lease="", by=by, outcome="unfinished", note=note, root=root)
    except (Claimed, StaleLease) as error:
        return f"{error}: what this run came to says nothing of the task"
    except (RalfError, OSError) as error:
        return str(error)
    return ""


def _is_there(project: Project, task: str) -> bool:
    try:
        return not store.at(project.root).get(task).is_foreign
    except (RalfError, OSError):
        return False


def _holds(state: TaskState, by: str) -> bool:
    return state.claim is not None and state.claim.by == by
