"""Whether what verified a task still holds: files that were edited for it may be others by now."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ralf.project import Project
from ralf.tasks import evidence as proofs
from ralf.tasks.model import Evidence, TaskState
from ralf.tasks.records import seconds_of

if TYPE_CHECKING:
    from ralf.model import RouteContext

_SECOND = 1.0  # the times of evidence are whole seconds


def current(
    project: Project, states: Iterable[TaskState], others: Callable[[], Iterable[TaskState]] = list
) -> list[TaskState]:
    """Tasks with their evidence as it holds now: `verified` becomes `stale` where a file that was edited for the task
    is another one than when it was verified, and no other task's run of the same command has passed with it since.

    others  further completed tasks; asked only if a file has changed
    """
    shown = list(states)
    digest = cache(lambda name: proofs.digests(project, [name]).get(name))

    changes = {
        one.task.id: [name for name, known in proof.files.items() if digest(name) != known]
        for one in shown
        if (proof := _verified(one))
    }
    if not any(changes.values()):
        return shown
    runs = [(one, proof) for one in (*shown, *others()) if (proof := _verified(one))]

    def has_passed(name: str, command: str) -> bool:
        """Whether a task was verified by a command with a file as it is: it has edited it so, or began later."""
        return any(
            proof.files[name] == digest(name)
            if name in proof.files
            else bool(one.attempts) and not _has_changed_since(project, name, seconds_of(one.attempts[0].began))
            for one, proof in runs
            if proof.command == command
        )

    for number, one in enumerate(shown):
        if one.evidence and not all(has_passed(name, one.evidence.command) for name in changes.get(one.task.id, ())):
            shown[number] = replace(one, evidence=replace(one.evidence, state="stale"))
    return shown


def renewed(project: Project, state: TaskState, context: RouteContext | None) -> Evidence | None:
    """The evidence of a completed task, with what its route has learnt since the task was said to be done; None where
    that adds nothing. No command is run.

    project  where its agent worked; context: of its route

    `ralf task done` reads the route before the end of its agent's session is checkpointed, so the last edits and test
    runs are missing from it. Where `verify:` ran, its outcome stays; files that were edited after it make it stale.
    """
    old = state.evidence
    if context is None or state.task.status != "completed":
        return None
    if old is None or old.exit_status is None or not state.task.verify.strip():
        new = proofs.verify(project, state.task, context, runs=False)
    else:
        new = replace(old, files=proofs.digests(project, {**old.files, **dict.fromkeys(proofs.edited(context))}))
        if new.state == "verified" and any(
            _has_changed_since(project, name, seconds_of(old.at) + _SECOND) for name in new.files
        ):
            new = replace(new, state="stale")
    return None if new is None or (old is not None and replace(new, at=old.at) == old) else new


def _verified(state: TaskState) -> Evidence | None:
    """The evidence of a completed task that was verified, None for another one."""
    proof = state.evidence
    return proof if proof is not None and state.task.status == "completed" and proof.state == "verified" else None


def _has_changed_since(project: Project, name: str, seconds: float) -> bool:
    """Whether a file was changed after a time; one that is gone counts as such."""
    try:
        found = os.lstat(f"{project.root}/{name}")
    except OSError:
        return True
    return max(found.st_mtime, found.st_ctime) > seconds
