"""One start of an agent: from the claim of its task to the end of all its processes, and the checkpoint after it."""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ralf.project import Project
from ralf.tasks.model import TaskState
from ralf.transcripts.reader import open_transcript
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop import launch, processes
from ralf_integrations.loop.launch import Agent
from ralf_integrations.loop.processes import CannotStart, Ending, Gate, Job
from ralf_integrations.loop.state import Running
from ralf_integrations.loop.told import Told
from ralf_integrations.loop.work import Work

SETTLING = 120.0
"""Seconds that the checkpoint of a start's transcript, and `ralf task done` by its promise, may take."""

SOON = 0.05
"""Seconds between two looks at what ends, or was adopted."""

_LEFT_BEHIND = 1.0  # seconds of grace for what an agent leaves running when it ends


@dataclass(slots=True)
class Start:
    """A start that is not over."""

    known: Running  # as it stands in the loop's state
    told: Told  # what its client reports of it
    is_child: bool = False  # whether the process is ours, and not one of a loop that was killed
    grace: float = 0.0  # seconds between asking it to end and killing it
    status: int | None = None  # its exit status; None while it runs, and where nobody can know
    hung: bool = False
    stopped: bool = False
    left_behind: int = 0
    closing: dict[str, Job] = field(default_factory=dict)  # by task, the job that records what it has promised
    is_counted: bool = False  # whether what it used up is
    life: Iterator[float] = field(default_factory=lambda: iter(()))  # seconds until the next step, as long as there is
    due: float = 0.0
    _ending: Ending | None = None

    @property
    def runs(self) -> bool:
        """Whether it has neither ended nor been asked to."""
        return self._ending is None and not self.stopped

    def stop(self, grace: float) -> None:
        """End it, with all that it has started; said again, with less grace."""
        self.stopped = self.stopped or self.runs or bool(self.closing)
        self.grace = grace
        if self._ending is not None:
            self._ending.grace = min(self._ending.grace, grace)
        for job in self.closing.values():
            job.end_within(grace)

    def is_over(self) -> bool:
        """Do what is due; whether nothing is left to do."""
        wait = next(self.life, None)
        self.due = time.monotonic() + (wait or 0.0)
        return wait is None

    def course(self, project: Project) -> Iterator[float]:
        """Wait until it ends, end what it leaves behind, and have its transcript checkpointed: the next agent reads the
        route.
        """
        left = self.known.began + self.known.limit - time.time() if self.known.limit else math.inf
        deadline = time.monotonic() + left
        while not self._has_ended() and not self.stopped:
            if time.monotonic() >= deadline:
                self.hung = True
                break
            self.told.look()
            yield deadline - time.monotonic() if self.is_child else SOON
        ends_itself = not (self.hung or self.stopped)
        self._ending = self.ending(min(self.grace, _LEFT_BEHIND) if ends_itself else self.grace)
        while not self._ending.step():
            yield SOON
        self._has_ended()
        self.reap()
        self.left_behind = len(self._ending.asked) if ends_itself else 0
        self.told.finish(self.status)
        if (log := self.told.transcript) is not None:
            with suppress(OSError):
                job = Job(lambda: _checkpoint(project, self.known, log), str(self.told.errors), SETTLING)
                while not job.is_over():
                    yield SOON

    def ending(self, grace: float) -> Ending:
        """Its end, with all that it has started."""
        born = 0 if self.is_child else self.known.born  # nobody gets the number of a child before it is reaped
        return Ending(self.known.process, self.known.mark, grace, born)

    def reap(self) -> None:
        """Wait for it, once it has ended."""
        if self.is_child:
            self.is_child = False
            with suppress(ChildProcessError):
                os.waitpid(self.known.process, 0)

    def _has_ended(self) -> bool:
        if self.is_child:
            try:
                self.status = processes.status_of(self.known.process)
            except ChildProcessError:  # somebody else has waited for it
                self.is_child = False
            else:
                return self.status is not None
        return not processes.is_running(self.known.process, self.known.born)


def begin(
    work: Work,
    agent: Agent,
    task: TaskState,
    place: Running,
    *,
    logs: Path,
    note: Mapping[str, str],
    keep: Callable[[Running], None],
) -> Running | None:
    """Claim a task and start an agent on it; None where another was faster. CannotStart where its command is none.

    place  the worker, its working directory and the limit of the start; logs: the folder of its logs
    note   more variables for the agent
    keep   called with what stands in the loop's state before the command begins: a successor knows of it

    The claim names a process that only waits, and is durable before that becomes the command. Whoever is killed in
    between leaves a claim whose process is gone: it is free at once.
    """
    name, lease, gate = f"loop-{place.worker}-{secrets.token_hex(3)}", "", Gate()
    try:
        claimed = work.claim(task.task.id, by=name, process=gate.process, born=gate.born)
        if claimed is None or claimed.claim is None:
            gate.close()
            return None
        lease, route = claimed.claim.lease(claimed.task.id), claimed.task.context_route
        known = replace(place, task=claimed.task.id, title=claimed.task.title, route=route, lease=lease)
        known = replace(known, agent=name, client=agent.client, label=agent.label, name=lease.replace(":", "."))
        known = replace(known, process=gate.process, born=gate.born, began=round(time.time(), 3))
        keep(known)
        prompt = work.prompt(claimed, by=name, lease=lease)
        variables = {"RALF_LEASE": lease, "RALF_AGENT": name, "RALF_TASK_ID": route, **note}
        made = launch.make(agent, prompt, name=known.name, logs=logs, cwd=Path(place.cwd), variables=variables)
        known = replace(known, session=made.session, last=made.last, handed=work.handed_over(route))
        keep(known)
        gate.open(made)
    except BaseException as error:
        if not isinstance(error, CannotStart):
            with suppress(OSError):
                gate.close()
        if lease:
            work.release(lease, "released", "its agent was not started")
        raise
    return replace(known, opened=True)


def _checkpoint(project: Project, start: Running, log: Path) -> None:
    """In a process of its own: a checkpoint of what hooks have not taken, to the route that they saw it on last; and
    what the session says of a task that was done in it, before the next agent here may edit the same files.
    """
    import ralf

    known = session_registry.load(project, open_transcript(log).session)
    if known.taken != log.stat().st_size:
        ralf.checkpoint(known.route or start.route, log, root=project.root, reason="session-end")
    Work(project).renew_evidence(start.task, Path(start.cwd))
