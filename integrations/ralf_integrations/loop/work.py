"""What the loop asks of the tasks, and says of them: the one module of it that calls `ralf.tasks`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ralf.config import local_config
from ralf.errors import Busy, NotFound, RalfError, UsageError
from ralf.finding.reader import get_context
from ralf.model import RouteContext
from ralf.project import Project
from ralf.tasks import claims, evidence as proofs, folders, keeping, standing
from ralf.tasks.book import Book
from ralf.tasks.model import Evidence, TaskState
from ralf.tasks.refresh import refresh
from ralf.tasks.routes import route_of
from ralf.tasks.store import Tasks
from ralf_integrations.loop import prompts


@dataclass(frozen=True, slots=True)
class Work:
    """The tasks of a project, for a loop.

    seconds  how long a claim lasts without a sign of life, where the agent's process is not known
    tokens   of the text that a fresh agent reads first
    """

    project: Project
    seconds: int = 900
    tokens: int = 2_500

    @property
    def _tasks(self) -> Tasks:
        return Tasks(self.project)

    def ready(self, most: int) -> list[TaskState]:
        """The tasks that can be claimed now, in order."""
        return self._tasks.ready_for((), most, others=True)[:most]

    def ready_for(self, roles: Sequence[str], most: int, *, others: bool, without: Collection[str]) -> list[TaskState]:
        """The tasks that agents of these roles can claim now, or with `others` of all but these, in order."""
        return self._tasks.ready_for(roles, most, others=others, without=without)

    def unfinished(self) -> list[TaskState]:
        """All tasks that are neither completed nor cancelled."""
        return [one for status in ("pending", "failed") for one in self._tasks.list(status=status).tasks]

    def why_not_verified(self) -> str:
        """Why the `verify:` commands of pending tasks do not run here; "" where they do, or there are none."""
        wanted = any(one.task.verify.strip() for one in self._tasks.list(status="pending").tasks)
        return proofs.why_not_run(self.project) if wanted else ""

    def completed(self, places: Sequence[Path] = ()) -> list[TaskState]:
        """All tasks that are completed, with their evidence as it holds now.

        places  further working directories: what was verified in one of them holds there
        """
        found = self._tasks.list(status="completed").tasks
        shown = {state.task.id: state for state in standing.current(self.project, found)}
        for place in places:
            stale = [state for state in found if _is_stale(shown[state.task.id])]
            shown |= {state.task.id: state for state in standing.current(Project(place), stale, lambda: found)}
        return list(shown.values())

    def may_verify(self) -> bool:
        """Whether `verify:` commands may run here."""
        return self.verify_seconds() > 0

    def verify_seconds(self) -> float:
        """How many seconds a `verify:` command may take; 0 where none may run."""
        with suppress(RalfError, OSError):
            found = local_config.local_config_of(self.project)
            return float(found.verify_timeout) if found.verify_commands else 0.0
        return 0.0

    def has_context(self, route: str) -> bool:
        """Whether anything was recorded for a route."""
        with suppress(RalfError, OSError):
            return route_of(self.project, route) is not None
        return False

    def renew_evidence(self, task: str, place: Path) -> None:
        """Record of a completed task what its agent's session says that `ralf task done` could not know yet.

        place  where its agent worked
        """
        state = self.get(task)
        if state is not None:
            proof = standing.renewed(Project(place), state, self._context(state.task.context_route))
            if proof is not None:
                claims.record_evidence(task, proof, root=self.project.root)

    def verify_again(self, tasks: Sequence[str], place: Path) -> None:
        """Run the `verify:` command that completed tasks have in common, and record what it came to for each.

        place  where it runs, and where the files of the tasks are
        """
        project = Project(place)
        ran: Evidence | None = None
        for id_ in tasks:
            state = self.get(id_)
            if state is None or state.task.status != "completed" or proofs.refusal_of(state):
                continue
            context = self._context(state.task.context_route)
            if ran is None and (ran := proofs.verify(project, state.task, context)) is None:
                return
            names = [*(state.evidence.files if state.evidence is not None else ()), *proofs.edited(context)]
            files = proofs.digests(project, dict.fromkeys(names))
            claims.record_evidence(id_, replace(ran, files=files), root=self.project.root)

    def unreadable(self) -> list[tuple[Path, str]]:
        """The files of tasks that are not closed by their folder and cannot be read, and why."""
        return [one for one in self._tasks.list(limit=0).damaged if not folders.folder_status(one[0])]

    def gone(self, ids: Collection[str]) -> list[str]:
        """Those of some tasks that are not there any more."""
        found = self._tasks.states(list(ids))
        return [id_ for id_ in ids if id_ not in found]

    def get(self, task: str) -> TaskState | None:
        """A task; None where it is gone."""
        return self._tasks.states([task]).get(task)

    def claim(self, task: str, *, by: str, process: int, born: int) -> TaskState | None:
        """Claim a task for a process; None where another was faster, or it can no longer be claimed. DamagedPlan."""
        root = self.project.root
        try:
            return claims.claim(task, by=by, seconds=self.seconds, process=process, born=born, keep=True, root=root)
        except (Busy, NotFound):
            return None
        except UsageError:  # a person has closed it just now
            found = self.get(task)
            if found is not None and found.task.status == "pending" and not found.is_foreign:
                raise
            return None

    def adopt(self, lease: str) -> None:
        """Show signs of life from now on for an agent of a loop that was killed. Nothing where its claim has ended."""
        with suppress(Busy, NotFound, UsageError):
            keeping.adopt(lease, root=self.project.root)

    def release(self, lease: str, outcome: str, note: str) -> None:
        """The end of a claim whose holder did not end it. Nothing where it has ended."""
        with suppress(Busy, NotFound):
            claims.release(lease=lease, outcome=outcome, note=note, root=self.project.root)

    def fail(self, lease: str, reason: str) -> None:
        """Give a task up. Nothing where the claim has ended; Damaged, UsageError, OSError where its file cannot be
        written: then the claim stands.
        """
        with suppress(Busy, NotFound):
            claims.fail(reason, lease=lease, root=self.project.root)

    def done(self, lease: str, summary: str) -> None:
        """A task is done, as its agent's last message says. Nothing where the claim has ended; NotVerified where its
        `verify:` does not pass: then the claim stands.
        """
        with suppress(Busy, NotFound):
            claims.renew(
                lease, process=os.getpid(), root=self.project.root
            )  # its agent is gone: nobody else may claim it
            claims.done(summary, lease=lease, root=self.project.root)

    def of_agent(self, task: str, agent: str) -> tuple[TaskState | None, list[TaskState]]:
        """A task as it stands, None where it is gone, and the other tasks that its agent has claimed."""

        def looked(book: Book) -> tuple[TaskState | None, list[TaskState]]:
            held = book.states(book.claimed(), recorded=True).values()
            mine = [one for one in held if one.claim is not None and one.claim.by == agent and one.task.id != task]
            return book.state_of(task, recorded=True), mine

        return self._tasks.read(looked)

    def prompt(self, state: TaskState, *, by: str, lease: str) -> str:
        """What a fresh agent reads first: what the loop asks of it, then its task and all that came before."""
        task, root = state.task.id, self.project.root
        try:
            read = refresh(by=by, lease=lease, task=task, max_tokens=self.tokens, root=root).render()
        except RalfError as error:
            read = f"What came before cannot be read ({error}). Your task: `ralf task show {task}`\n"
        return prompts.standing(state.task, self.project.command) + read

    def handed_over(self, route: str, others: Collection[str] = ()) -> str:
        """What names the newest hand-over of a route by an agent, its time first; "" for none.

        others  sessions whose hand-overs do not count
        """
        context = self._context(route)
        made = context.handover.last if context is not None else None
        if made is None or made.author != "agent" or (made.session and made.session in others):
            return ""
        return f"{made.at} {hashlib.sha256(repr(made).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    def _context(self, route: str) -> RouteContext | None:
        with suppress(RalfError, OSError):
            return get_context(route, root=self.project.root)
        return None


# ---- what is known of a task ----


def how_it_stands(state: TaskState | None, number: int) -> str:
    """What became of the claim of that number: done, failed, held or released. A claim whose process has ended is held
    until somebody says so.
    """
    if state is None:
        return "released"
    attempt = next((one for one in state.attempts if one.number == number), None)
    outcome = attempt.outcome if attempt is not None else ""
    if outcome == "failed" or (outcome in ("", "done") and state.task.status in _STANDS):
        return _STANDS.get(state.task.status, "failed")
    taken = state.claim is not None and state.claim.number != number
    return "held" if not outcome and not taken and state.task.status == "pending" else "released"


_STANDS = {"completed": "done", "failed": "failed"}


def failures(state: TaskState | None) -> int:
    """How many attempts failed since it last was done or given up: a retry begins anew."""
    count = 0
    for attempt in reversed(state.attempts if state is not None else ()):
        if attempt.outcome in ("done", "failed"):
            break
        count += attempt.outcome in ("lost", "crashed", "killed", "hung", "unfinished")
    return count


def is_proven(state: TaskState) -> bool:
    """Whether a completed task is verified, or has nothing to verify: no `verify:`, and no test run is known.

    state  with its evidence as it holds now
    """
    evidence: Evidence | None = state.evidence
    if evidence is None:
        return not state.task.verify.strip()
    if evidence.state == "claimed":
        return not state.task.verify.strip() and not evidence.command
    return evidence.state == "verified"


def why_not_proven(state: TaskState) -> str:
    """Why `is_proven` is false of a completed task."""
    evidence: Evidence | None = state.evidence
    if evidence is None:
        return f"`{state.task.verify.strip()}` was not run"
    if evidence.state == "claimed" and evidence.command:
        return f"`{evidence.command}` {evidence.output or 'was not run since the last edit'}"
    return evidence_text(state)


def evidence_text(state: TaskState) -> str:
    """What says that a completed task is done, in words."""
    told = {"verified": "verified", "failed": "its check failed", "stale": "edited since it was verified"}
    return told.get(state.evidence.state if state.evidence is not None else "", "not verified")


def _is_stale(state: TaskState) -> bool:
    return state.evidence is not None and state.evidence.state == "stale"
