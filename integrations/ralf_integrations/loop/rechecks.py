"""The last look at a loop's end: completed tasks that are not verified as their files are now, verified once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ralf.tasks import evidence as proofs
from ralf.tasks.model import TaskState
from ralf_integrations.loop import work as works
from ralf_integrations.loop.processes import Job
from ralf_integrations.loop.work import Work

_ROOM = 60.0  # seconds beyond the time limit of a `verify:` command, for recording what it came to

Group = tuple[Path, tuple[TaskState, ...]]
"""Tasks with the same `verify:`, and where it runs."""


class Recheck:
    """Runs the `verify:` commands of tasks that are not proven, each command once, one after the other.

    tell      called with what happens, and the task that it is about
    place_of  the working directory in which a task was done; None where that is not known
    """

    def __init__(
        self, work: Work, log: Path, tell: Callable[[str, TaskState], None], place_of: Callable[[str], Path | None]
    ) -> None:
        self._work, self._log, self._tell, self._place_of = work, log, tell, place_of
        self._left: list[Group] | None = None
        self._running: tuple[Job, tuple[TaskState, ...]] | None = None

    @property
    def is_running(self) -> bool:
        """Whether a command runs now."""
        return self._running is not None

    def again(self) -> None:
        """Look anew at what is not proven: an agent begins, which may edit files."""
        self._left = None

    def advance(self, completed: Callable[[], Sequence[TaskState]]) -> bool:
        """Do what is due; whether something is left to do.

        completed  the tasks to look at, with their evidence as it holds now
        """
        if self._running is not None:
            job, states = self._running
            if not job.is_over():
                return True
            self._running = None
            self._tell_outcome(states)
        if self._left is None:
            self._left = self._groups(completed()) if self._work.may_verify() else []
        if not self._left:
            return False
        place, states = self._left.pop(0)
        ids = [state.task.id for state in states]
        why = works.evidence_text(states[0])
        others = f" and {len(ids) - 1} more tasks" if len(ids) > 1 else ""
        self._tell(f"{why}: its `verify:` runs once more{others and f', for it{others}'}", states[0])
        seconds = self._work.verify_seconds() + _ROOM
        self._running = Job.start(lambda: self._work.verify_again(ids, place), str(self._log), seconds), states
        return True

    def _groups(self, completed: Sequence[TaskState]) -> list[Group]:
        found: dict[tuple[str, Path], list[TaskState]] = {}
        for state in completed:
            place = self._place_of(state.task.id)
            may_run = state.task.verify.strip() and not proofs.refusal_of(state)
            if may_run and not works.is_proven(state) and place is not None:
                found.setdefault((state.task.verify.strip(), place), []).append(state)
        return [(place, tuple(states)) for (_, place), states in found.items()]

    def _tell_outcome(self, states: Sequence[TaskState]) -> None:
        for state in states:
            found = self._work.get(state.task.id)
            if found is not None:
                self._tell(works.evidence_text(found), found)

    def end(self) -> None:
        """Run nothing more, and end what runs."""
        self._left = []
        if self._running is not None:
            self._running[0].end()
            self._running = None
