"""What the loop asks of the tasks, and says of them: the one module of it that calls `ralf.tasks` and `ralf.memory`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ralf import config, environment
from ralf.config import local_config
from ralf.errors import Busy, DamagedTask, NotFound, RalfError, UsageError
from ralf.finding.reader import get_context
from ralf.memory import selection
from ralf.memory.model import STATED
from ralf.memory.wording import fenced_lines, handed
from ralf.model import RouteContext
from ralf.project import Project
from ralf.tasks import claims, evidence as proofs, keeping, leases, standing
from ralf.tasks.book import Book
from ralf.tasks.model import Evidence, Task, TaskState
from ralf.tasks.refresh import refresh
from ralf.tasks.store import Tasks
from ralf.text.cleaning import fenced

_LABEL = "from ralf loop, which started you: what holds for every task"

_STANDING = """\
- Nobody answers questions here. Your claim is in the variable RALF_LEASE, which the commands of ralf read.
- Record what you decide, and why: `ralf decide {route} "WHAT" --because "WHY" --origin agent`
- When you are told that your context window is nearly full, hand over and end without `ralf task done`; a fresh agent
  goes on with the same task: `ralf handover {route} <<'EOF'`, Markdown with "## Now" and "## Next", `EOF`
- Ending while you hold a task, without `ralf task done`, `ralf task fail` or a hand-over, counts as a failed attempt,
  and the task is given to another agent.
"""

_PREFERENCES = "lasting preferences of the person, from the memory of this project"
_MOST_PREFERENCES = 24
_LEASE = 900  # seconds that a claim lasts without a sign of life, where the agent's process is not known
_TOKENS = 2_500  # of the text that a fresh agent reads first
_STANDS = {"completed": "done", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class Work:
    """The tasks of a project, for a loop."""

    project: Project

    @property
    def tasks(self) -> Tasks:
        """As they are on the disk."""
        return Tasks(self.project)

    def unfinished(self) -> list[TaskState]:
        """All tasks that are neither completed nor cancelled."""
        return [one for status in ("pending", "failed") for one in self.tasks.list(status=status).tasks]

    def completed(self, places: Sequence[Path] = ()) -> list[TaskState]:
        """All tasks that are completed, with their evidence as it holds now.

        places  further working directories: what was verified in one of them holds there
        """
        found = self.tasks.list(status="completed").tasks
        shown = {state.task.id: state for state in standing.current(self.project, found)}
        for place in places:
            stale = [one for one in found if (proof := shown[one.task.id].evidence) and proof.state == "stale"]
            shown |= {state.task.id: state for state in standing.current(Project(place), stale, lambda: found)}
        return list(shown.values())

    def verify_seconds(self) -> float:
        """How many seconds a `verify:` command may take; 0 where none may run."""
        with suppress(RalfError, OSError):
            found = local_config.local_config_of(self.project)
            return float(found.verify_timeout) if found.verify_commands else 0.0
        return 0.0

    def renew_evidence(self, task: str, place: Path) -> None:
        """Record of a completed task what its agent's session says that `ralf task done` could not know yet.

        place  where its agent worked
        """
        state = self.get(task)
        if state is not None:
            proof = standing.renewed(Project(place), state, self.context(state.task.context_route))
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
            if state is None or state.task.status != "completed" or proofs.refusal_of(state, for_person=True):
                continue
            context = self.context(state.task.context_route)
            if ran is None and (ran := proofs.verify(project, state.task, context)) is None:
                return
            names = [*(state.evidence.files if state.evidence is not None else ()), *proofs.edited(context)]
            files = proofs.digests(project, dict.fromkeys(names))
            claims.record_evidence(id_, replace(ran, files=files), root=self.project.root)

    def get(self, task: str) -> TaskState | None:
        """A task as it is recorded; None where it is gone."""
        return self.tasks.states([task]).get(task)

    def claim(self, task: str, *, by: str, process: int, born: int) -> TaskState | None:
        """Claim a task for a process; None where another was faster, or it can no longer be claimed. DamagedPlan."""
        root = self.project.root
        try:
            return claims.claim(task, by=by, seconds=_LEASE, process=process, born=born, keep=True, root=root)
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
        """The end of a claim whose holder did not end it. Nothing where it has ended, or its file cannot be read."""
        with suppress(Busy, NotFound, DamagedTask):
            claims.release(lease=lease, outcome=outcome, note=note, root=self.project.root)

    def fail(self, lease: str, reason: str) -> None:
        """Give a task up. Nothing where the claim has ended, or its file cannot be read: then nobody can claim it."""
        with suppress(Busy, NotFound, DamagedTask):
            claims.fail(reason, lease=lease, root=self.project.root)

    def done(self, lease: str, summary: str) -> None:
        """A task is done, as its agent's last message says. Nothing where the claim has ended; NotVerified where its
        `verify:` does not pass: then the claim stands.
        """
        with suppress(Busy, NotFound):
            claims.renew(lease, process=os.getpid(), root=self.project.root)  # its agent is gone: it stays taken
            claims.done(summary, lease=lease, for_person=True, root=self.project.root)

    def of_agent(self, task: str, agent: str) -> tuple[TaskState | None, list[TaskState]]:
        """A task as it stands, None where it is gone, and the other tasks that its agent has claimed."""

        def looked(book: Book) -> tuple[TaskState | None, list[TaskState]]:
            held = book.states(book.claimed(), recorded=True).values()
            mine = [one for one in held if one.claim is not None and one.claim.by == agent and one.task.id != task]
            return book.state_of(task, recorded=True), mine

        return self.tasks.read(looked)

    def prompt(self, state: TaskState, *, by: str, lease: str) -> str:
        """What a fresh agent reads first, all of it in fences: what the loop asks of it, what the person always wants,
        then its task and all that came before.
        """
        task, root, command = state.task, self.project.root, self.project.command
        asked = fenced(config.typed(_STANDING.format(route=task.context_route), command), label=_LABEL)
        try:
            read = refresh(by=by, lease=lease, task=task.id, max_tokens=_TOKENS, root=root).render()
        except RalfError as error:
            read = f"What came before cannot be read ({error}). Your task: `ralf task show {task.id}`\n"
        return asked + self._preferences(task) + read

    def _preferences(self, task: Task) -> str:
        """What the person has told the memory, and concerns every task or this one; "" where it is switched off."""
        with suppress(RalfError, OSError):
            if config.of(self.project).memory != "on":
                return ""
            name = environment.memory_name()
            chosen = selection.for_task(self.project, name, f"{task.title}\n{task.text}", tokens=selection.ON_REQUEST)
            own = [item for item in chosen.items if item.origin in STATED and item.kind != "trap"]
            if own:
                return f"{fenced_lines(own[:_MOST_PREFERENCES], handed, _PREFERENCES)}\n"
        return ""

    def handed_over(self, route: str, others: Collection[str] = ()) -> str:
        """What names the newest hand-over of a route by an agent, its time first; "" for none.

        others  sessions whose hand-overs do not count
        """
        context = self.context(route)
        made = context.handover.last if context is not None else None
        if made is None or made.author != "agent" or (made.session and made.session in others):
            return ""
        return f"{made.at} {hashlib.sha256(repr(made).encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    def context(self, route: str) -> RouteContext | None:
        """What is known of a route; None where nothing is, or it cannot be read."""
        with suppress(RalfError, OSError):
            return get_context(route, root=self.project.root)
        return None


def how_it_stands(state: TaskState | None, lease: str) -> str:
    """What became of a claim: done, failed, held or released. One whose process has ended is held until somebody says
    so.
    """
    if state is None:
        return "released"
    number = leases.parsed(lease)[1]
    attempt = next((one for one in state.attempts if one.number == number), None)
    outcome = attempt.outcome if attempt is not None else ""
    if outcome == "failed" or (outcome in ("", "done") and state.task.status in _STANDS):
        return _STANDS.get(state.task.status, "failed")
    taken = state.claim is not None and state.claim.number != number
    return "held" if not outcome and not taken and state.task.status == "pending" else "released"


def failures(state: TaskState | None) -> int:
    """How many attempts failed since the task was done or given up last, or put back by `ralf task edit`."""
    count = 0
    for attempt in reversed(state.attempts if state is not None else ()):
        if attempt.outcome in ("done", "failed"):
            break
        count += attempt.outcome in ("lost", "crashed", "killed", "hung", "unfinished")
    return count
