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
    is another one than when it was verified, and no other task's run of the same command has passed since.

    others  further completed tasks; asked only if a file has changed
    """
    shown = list(states)
    digest = cache(lambda name: proofs.digests(project, [name]).get(name))
    changed = {
        state.task.id: [name for name, known in proof.files.items() if digest(name) != known]
        for state in shown
        if (proof := _verified(state)) is not None
    }
    if not any(changed.values()):
        return shown
    runs = {one.task.id: one for one in (*shown, *others())}.values()

    def is_covered(name: str, id_: str, command: str) -> bool:
        """Whether another verified task's run of a command has seen a file as it is now: the task has edited it so, or
        began when it was as it is.
        """
        for one in runs:
            proof = _verified(one)
            if proof is None or one.task.id == id_ or proof.command != command:
                continue
            began = seconds_of(one.attempts[0].began) if one.attempts else 0.0
            if proof.files[name] == digest(name) if name in proof.files else changed_at(project, name) < began:
                return True
        return False

    for number, state in enumerate(shown):
        proof, names = state.evidence, changed.get(state.task.id, ())
        if proof is not None and not all(is_covered(name, state.task.id, proof.command) for name in names):
            shown[number] = replace(state, evidence=replace(proof, state="stale"))
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
        names = dict.fromkeys([*old.files, *proofs.edited(context)])
        new = replace(old, files=proofs.digests(project, names))
        ended = seconds_of(old.at) + _SECOND
        if new.state == "verified" and any(changed_at(project, name) > ended for name in new.files):
            new = replace(new, state="stale")
    if new is None or (old is not None and replace(new, at=old.at) == old):
        return None
    return new


def _verified(state: TaskState) -> Evidence | None:
    """The evidence of a completed task that was verified, None for another one."""
    proof = state.evidence
    return proof if proof is not None and state.task.status == "completed" and proof.state == "verified" else None


def changed_at(project: Project, name: str) -> float:
    """When a file of a project was changed last; of one that is gone, the folder that held it."""
    path = os.path.join(project.root, name)  # noqa: PTH118  # as it was recorded
    while True:
        try:
            seen = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            path = os.path.dirname(path)  # noqa: PTH120
        except OSError:
            return float("inf")
        else:
            return max(seen.st_mtime, seen.st_ctime)
