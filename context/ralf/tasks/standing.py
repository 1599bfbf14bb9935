"""Whether what verified a task still holds: files that were edited for it may be others by now."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
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
    files = _Files(project)
    changed = {state.task.id: names for state in shown if (names := files.changed(state))}
    if not changed:
        return shown
    runs = [state for state in {one.task.id: one for one in (*shown, *others())}.values() if _is_verified(state)]
    stale = {id_ for id_, names in changed.items() if _is_stale(files, id_, names, runs)}
    return [_stale(state) if state.task.id in stale else state for state in shown]


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
        if new.state == "verified" and any(_Files(project).changed_at(name) > ended for name in new.files):
            new = replace(new, state="stale")
    if new is None or (old is not None and replace(new, at=old.at) == old):
        return None
    return new


def _is_verified(state: TaskState) -> bool:
    return state.task.status == "completed" and state.evidence is not None and state.evidence.state == "verified"


def _stale(state: TaskState) -> TaskState:
    proof = state.evidence
    return state if proof is None else replace(state, evidence=replace(proof, state="stale"))


def _is_stale(files: _Files, id_: str, names: Sequence[str], runs: Sequence[TaskState]) -> bool:
    (command,) = {one.evidence.command for one in runs if one.task.id == id_ and one.evidence is not None}
    same = [one for one in runs if one.task.id != id_ and one.evidence is not None and one.evidence.command == command]
    return not all(any(files.is_covered(name, one) for one in same) for name in names)


class _Files:
    """Files of a project as they are now, each looked at once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._digests: dict[str, str | None] = {}

    def changed(self, state: TaskState) -> list[str]:
        """The files of a verified task that are others than its evidence says."""
        if not _is_verified(state) or state.evidence is None:
            return []
        known = state.evidence.files
        self._look(known)
        return [name for name, digest in known.items() if self._digests[name] != digest]

    def _look(self, names: Iterable[str]) -> None:
        wanted = [name for name in names if name not in self._digests]
        found = proofs.digests(self._project, wanted)
        self._digests.update((name, found.get(name)) for name in wanted)

    def is_covered(self, name: str, state: TaskState) -> bool:
        """Whether a verified task's run has seen a file as it is now: the task has edited it so, or began when it was
        as it is.
        """
        proof = state.evidence
        if proof is None:
            return False
        if name in proof.files:
            return proof.files[name] == self._digests.get(name)
        began = seconds_of(state.attempts[0].began) if state.attempts else 0.0
        return self.changed_at(name) < began

    def changed_at(self, name: str) -> float:
        """When a file was changed last; of one that is gone, the folder that held it."""
        path = os.path.join(self._project.root, name)  # noqa: PTH118  # as it was recorded
        while True:
            try:
                seen = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                path = os.path.dirname(path)  # noqa: PTH120
            except OSError:
                return float("inf")
            else:
                return max(seen.st_mtime, seen.st_ctime)
