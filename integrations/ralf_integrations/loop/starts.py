"""One start of an agent, from the claim of its task to its outcome."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Literal

from ralf.errors import RalfError
from ralf.project import Project
from ralf.route import offsets
from ralf.tasks.model import TaskState
from ralf.transcripts.reader import open_transcript
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop import exits, launch, logs, processes, told, work as works
from ralf_integrations.loop.exits import Ended, Verdict
from ralf_integrations.loop.launch import Agent
from ralf_integrations.loop.logs import Logs
from ralf_integrations.loop.meter import Meter
from ralf_integrations.loop.processes import CannotStart, Ending, Gate, Job, Launch
from ralf_integrations.loop.state import Running
from ralf_integrations.loop.told import Told
from ralf_integrations.loop.work import Work

SETTLING = 120.0
"""Seconds that the checkpoint of a start's transcript, and `ralf task done` by its promise, may take."""

_GROWN = 150_000  # bytes by which a transcript grows at least until another checkpoint may be due

_LEFT_BEHIND = 1.0  # seconds of grace for what an agent leaves running when it ends

Phase = Literal["runs", "ends", "settles", "closes", "over"]


class Refused(Exception):
    """The command of an agent cannot be started at all: no task is at fault."""


@dataclass(slots=True)
class Start:
    """A start that is not over.

    known     as it stands in the loop's state
    is_ours   whether the process is our child: its status can be told
    deadline  by the monotonic clock
    meter     of the tokens that it has used so far
    """

    known: Running
    is_ours: bool
    deadline: float = math.inf
    phase: Phase = "runs"
    status: int | None = None
    hung: bool = False
    stopped: bool = False
    left_behind: int = 0
    told: Told = field(default_factory=Told)
    meter: Meter = field(default_factory=lambda: Meter(""))
    _ending: Ending | None = None
    _job: Job | None = None
    _midway: Job | None = None
    _seen: int = 0  # bytes of its transcript at the last look for a checkpoint that is due

    # ---- its beginning ----

    @classmethod
    def adopted(cls, known: Running) -> Start:
        """A start of a loop that was killed, which goes on."""
        left = known.began + known.limit - time.time()
        deadline = time.monotonic() + left if known.limit else math.inf
        return cls(known, is_ours=False, deadline=deadline, meter=Meter(known.client))

    @property
    def watched(self) -> int | None:
        """A descriptor that can be read when the process has ended, None where the system has none. To be closed."""
        return processes.watch(self.known.process)

    # ---- its course ----

    def advance(self, project: Project, work: Work, logs_of: Logs, grace: float) -> bool:
        """Do what is due; whether it is over, and its claims are to be judged."""
        if self.phase == "runs":
            self._look(grace)
        if self._midway is not None and self._midway.is_over():
            self._midway = None
        if self.phase == "ends" and self._ending is not None and self._ending.step() and self._midway is None:
            self._settle(project, logs_of)
        if self.phase == "settles" and (self._job is None or self._job.is_over()):
            self.phase = "over"
            self._job = None
        return self.phase == "over"

    def _look(self, grace: float) -> None:
        ended = self._has_ended()
        if not ended and time.monotonic() >= self.deadline:
            self.hung = True
            self.end(grace)
        elif ended:
            self._ending = self._ending_within(min(grace, _LEFT_BEHIND))
            self.phase = "ends"

    def end(self, grace: float) -> None:
        """End it, with all that it has started."""
        if self.phase in ("runs", "ends"):
            self._ending = self._ending_within(grace)
            self.phase = "ends"

    def _ending_within(self, grace: float) -> Ending:
        return Ending(self.known.process, self.known.mark, grace, self.known.born)

    def _has_ended(self) -> bool:
        if not self.is_ours:
            return not processes.is_running(self.known.process, self.known.born)
        try:
            self.status = processes.status_of(self.known.process)
        except ChildProcessError:  # somebody else has waited for it
            self.is_ours = False
            return self._has_ended()
        return self.status is not None

    def _settle(self, project: Project, logs_of: Logs) -> None:
        """Have the transcript checkpointed, if there is one with something new: the next agent reads the route."""
        if self.is_ours:
            self._has_ended()
            processes.reap(self.known.process)
        if self._ending is not None and not (self.hung or self.stopped):
            self.left_behind = self._ending.ended
        self.phase = "settles"
        known = self.known
        errors = logs_of.errors_of(known.name)
        log = told.transcript_of(project, known.client, known.session, known.process, known.born, errors)
        if log is not None and _owes(project, known.route, log):
            route = known.route
            with suppress(OSError):
                self._job = Job.start(lambda: _checkpoint(project.root, route, log), str(errors), SETTLING)
        self.told = told.of(  # while the checkpoint is made
            project,
            known.client,
            session=known.session,
            process=known.process,
            born=known.born,
            output=logs_of.of(known.name),
            errors=errors,
            last=Path(known.last) if known.last else None,
            status=self.status,
        )

    def look_at_usage(self, project: Project, logs_of: Logs) -> None:
        """Read the tokens that it has used, every few seconds, and have checkpoints made that have fallen due."""
        known = self.known
        errors = logs_of.errors_of(known.name)
        is_new = self.meter.look(
            lambda: told.transcript_of(project, known.client, known.session, known.process, known.born, errors)
        )
        log, size = self.meter.path, self.meter.size
        if is_new and log is not None and size >= self._seen + _GROWN and self._midway is None:
            self._seen = size
            with suppress(OSError, RalfError):
                if not session_registry.load(project, open_transcript(log).session).seen:  # else hooks see to it
                    route = known.route
                    work = lambda: _checkpoint_if_due(project.root, route, log)  # noqa: E731
                    self._midway = Job.start(work, str(errors), SETTLING)

    @property
    def tokens(self) -> int | None:
        """The tokens that it has used: what its client told at the end, or its transcript before, if that is more."""
        found = [one for one in (self.told.tokens, self.meter.tokens) if one is not None]
        return max(found, default=None)

    def is_waiting_for_a_step(self) -> bool:
        """Whether it is to be looked at again soon, whatever happens."""
        return self.phase != "runs" or not self.is_ours

    # ---- its outcome ----

    def judge(self, state: TaskState | None, number: int, handed: str, logs_of: Logs) -> Verdict:
        """What it came to for a task that its agent had.

        number  of the claim
        handed  what names the newest hand-over of the task's route
        """
        known = self.known
        return exits.judge(
            Ended(
                self.status,
                works.how_it_stands(state, number),
                hung=self.hung,
                stopped=self.stopped,
                handed_over=bool(handed) and handed != known.handed,
                message=self.told.message,
                limit=self.told.limit,
                said=logs.last_line(logs_of.errors_of(known.name)) or logs.last_line(logs_of.of(known.name)),
            )
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a start is made.

    worker  the slot; `cwd`: its working directory
    limit   seconds that a start may take, None for any
    note    more variables for the agent
    keep    called with what stands in the loop's state before the command begins: a successor knows of it
    """

    worker: str
    cwd: Path
    logs: Logs
    limit: float | None
    note: Mapping[str, str]
    keep: Callable[[Running], None]


def begin(work: Work, agent: Agent, task: TaskState, place: Place) -> Start | None:
    """Claim a task and start an agent on it; None where another was faster. Refused where its command is none.

    The claim names a process that only waits, and is durable before that becomes the command. Whoever is killed in
    between leaves a claim whose process is gone: it is free at once.
    """
    gate = Gate.make()
    name = f"loop-{place.worker}-{secrets.token_hex(3)}"
    lease = ""
    try:
        claimed = work.claim(task.task.id, by=name, process=gate.process, born=gate.born)
        if claimed is None or claimed.claim is None:
            gate.close()
            return None
        lease = claimed.claim.lease(claimed.task.id)
        place.keep(_known(agent, claimed, lease, gate, name, place))
        known, made = _made(work, agent, claimed, lease, gate, name, place)
        place.keep(known)
        gate.open(made)
    except CannotStart as error:
        work.release(lease, "released", "its agent was not started")
        raise Refused(f"{error.filename}: {error.strerror}") from None
    except BaseException:
        with suppress(OSError):
            gate.close()
        if lease:
            work.release(lease, "released", "its agent was not started")
        raise
    deadline = time.monotonic() + place.limit if place.limit else math.inf
    return Start(replace(known, opened=True), is_ours=True, deadline=deadline, meter=Meter(agent.client))


def _made(
    work: Work, agent: Agent, claimed: TaskState, lease: str, gate: Gate, name: str, place: Place
) -> tuple[Running, Launch]:
    """What the state says of a start, and what its gate becomes."""
    task = claimed.task
    called = lease.replace(":", ".")
    variables = {"RALF_LEASE": lease, "RALF_AGENT": name, "RALF_TASK_ID": task.context_route, **place.note}
    prompt = work.prompt(claimed, by=name, lease=lease)
    made = launch.make(agent, prompt, name=called, logs=place.logs, cwd=place.cwd, variables=variables)
    known = replace(
        _known(agent, claimed, lease, gate, name, place),
        session=made.session,
        last=str(made.last or ""),
        handed=work.handed_over(task.context_route),
    )
    return known, made.launch


def _known(agent: Agent, claimed: TaskState, lease: str, gate: Gate, name: str, place: Place) -> Running:
    return Running(
        worker=place.worker,
        task=claimed.task.id,
        title=claimed.task.title,
        route=claimed.task.context_route,
        lease=lease,
        agent=name,
        client=agent.client,
        label=agent.label,
        process=gate.process,
        born=gate.born,
        name=lease.replace(":", "."),
        cwd=str(place.cwd),
        began=round(time.time(), 3),
        limit=place.limit or 0.0,
    )


# ---- the transcript of a start ----


def _owes(project: Project, route: str, log: Path) -> bool:
    """Whether a transcript has something that no route has."""
    try:
        session = open_transcript(log).session
        known = session_registry.load(project, session)
        size = log.stat().st_size
        taken = {offsets.ingest_offset(project, one, session).position.byte for one in (route, known.route) if one}
    except (RalfError, OSError):
        return False
    return size not in taken and size != known.taken


_NEEDED = (
    *("ralf.api", "ralf.checkpointing.flow", "ralf.checkpointing.progress"),
    *("ralf.checkpointing.record", "ralf.facts.facts", "ralf.redact.assignments"),
    *("ralf.redact.redactor", "ralf.route.archive", "ralf.checkpointing.section", "ralf.tasks.standing"),
    *("ralf.transcripts.claude_code", "ralf.transcripts.codex", "ralf_integrations.blackbox5.client"),
)
"""Modules that a checkpoint loads only when it comes to it, with all that they load."""


_LONG = 1_500  # lines


def warm(project: Project) -> Iterator[None]:
    """Load what a checkpoint needs, a step at a time while agents run, so that the processes that make one have it:
    modules, the tokenizer, and patterns, whose compiling is half of what a checkpoint costs a process that begins.
    """
    from ralf.redact import redactor_for
    from ralf.text import matcher, tokens

    for name in _NEEDED:
        import_module(name)
        yield
    tokens.count("\u00e9t\u00e9")  # loads the tokenizer
    yield
    redactor_for(project).text("password = warm\n" * _LONG)  # and the engine, which long texts are worth
    yield
    yield from matcher.compile_all()


def _checkpoint(root: Path, route: str, log: Path) -> None:
    """In a process of its own: a checkpoint of what is new, to the route that the session was seen on last."""
    import ralf
    from ralf import project as projects

    session = open_transcript(log).session
    known = session_registry.load(projects.find(root), session)
    ralf.checkpoint(known.route or route, log, root=root, reason="session-end")


def _checkpoint_if_due(root: Path, route: str, log: Path) -> None:
    """In a process of its own: the checkpoints that have fallen due while an agent runs."""
    from ralf.checkpointing import progress

    for _ in progress.watch(route, log, root=root, once=True):
        pass


def summary_of(verdict: Verdict) -> str:
    """What a promise says of its task."""
    return verdict.summary or f"its agent promised {verdict.promise}"


def log_names(known: Running) -> set[str]:
    """The files of a start in the folder of the logs."""
    ends = (".log", ".log.1", ".err", ".err.1", ".prompt.md", ".last.md")
    return {f"{known.name}{end}" for end in ends}
