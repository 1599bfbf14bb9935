"""The scheduler of the loop: fresh agents on ready tasks, one after another, until nothing is left or a cap is reached.

One process without threads. It waits for signals (a pipe that the kernel's signals write to), for the ends of adopted
processes, and for the next moment at which something is due.
"""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf.errors import DamagedPlan, RalfError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage.files import open_single_link
from ralf.tasks.model import TaskState
from ralf.text.cleaning import clean, one_line, trimmed
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop import caps, exits, processes, results, rounds, starts, state as states, work as works
from ralf_integrations.loop.caps import Spent
from ralf_integrations.loop.exits import Verdict
from ralf_integrations.loop.launch import Agent, Worktrees
from ralf_integrations.loop.logs import Logs
from ralf_integrations.loop.options import Event, Options, Result, View
from ralf_integrations.loop.processes import Ending, Job, Signals
from ralf_integrations.loop.rechecks import Recheck
from ralf_integrations.loop.starts import SETTLING, Place, Refused, Start
from ralf_integrations.loop.state import LoopState, Running
from ralf_integrations.loop.work import Work

_POLL = 1.0  # seconds between two looks for tasks that others finish or add
_SOON = 0.05  # seconds between two looks at a start that ends, or that was adopted
_ROTATE = 5.0  # seconds between two looks at the sizes of logs
_AHEAD = 64  # ready tasks beyond those that could be started that are looked at
_LOG = 4 << 20  # bytes of the loop's own log


class Loop:
    """One run of the loop."""

    def __init__(self, project: Project, options: Options, view: View) -> None:
        """UsageError, OSError where the project's store cannot be written."""
        project.prepare()  # before anything asks where its cache is
        self._project = project
        self._options = options
        self._view: View | None = view
        self._work = Work(project, options.seconds, options.tokens)
        self._logs = Logs(states.folder(project) / "logs")
        self._starts: list[Start] = []
        self._spent = Spent()
        self._state = LoopState()
        self._parked: dict[str, float] = {}  # by client, seconds since 1970
        self._not_before: dict[str, float] = {}  # by task, monotonic
        self._failed: dict[str, int] = {}  # failures by task that its records may not tell
        self._given_up: dict[str, str] = {}  # by task, why: those whose files cannot be written
        self._rounds: dict[str, tuple[str, int]] = {}  # by task: its signature, rounds that it is unchanged
        self._seen: dict[str, str] = {}  # titles by task: of all that were not done when somebody looked
        self._places: dict[str, Path] = {}
        self._closing: list[tuple[Start, str, Job]] = []  # with the lease of the task that is promised
        self._renewing: list[tuple[Start, Job]] = []  # looks at the evidence of tasks that are done
        self._done_in: dict[str, Path] = {}  # by task, the working directory of its agent
        self._recheck = Recheck(self._work, states.folder(project) / "verify.log", self._tell_check, self._place_of)
        self._is_stopped = False
        self._reason = ""  # once it is known why nothing new begins
        self._begun = time.monotonic()
        self._looked = self._rotated = self._drawn = self._checked = -math.inf
        self._said_waiting = self._said_damaged = ""
        self._is_saved = True
        self._warming: Iterator[None] | None = starts.warm(project)

    # ---- all of it ----

    def run(self) -> Result:
        """Work until nothing is left to do. AnotherLoop where one runs here already; OSError, RalfError where the store
        cannot be read: then all agents are ended, and their claims released.
        """
        with states.alone(self._project), Signals(detached=self._options.detached) as self._signals:
            self._state = LoopState(
                process=os.getpid(),
                born=session_registry.process_start(os.getpid()),
                machine=session_registry.machine(),
                began=round(time.time(), 3),
                detached=self._options.detached,
                log=str(states.log_file(self._project)),
                log_offset=states.log_size(self._project),
                workers=self._options.workers,
            )
            try:
                self._take_over()
                if problem := self._work.why_not_verified():
                    self._tell("warning", f"`verify:` does not run: {problem}")
                self._seen = {one.task.id: one.task.title for one in self._work.unfinished()}
                while self._turn():
                    self._wait()
                result = self._result()
            except BaseException as error:
                self._abandon(f"{type(error).__name__}: {error}")
                raise
            self._tell("over", f"{result.reason}; {caps.spent_text(self._spent)}")
            self._save(ended=round(time.time(), 3), status=result.status, reason=result.reason)
            return result

    def _turn(self) -> bool:
        """Do what is due; whether the loop goes on."""
        self._heed_signals()
        for start in list(self._starts):
            if start.advance(self._project, self._work, self._logs, self._options.grace):
                self._judge(start)
                self._starts.remove(start)  # not before: what goes wrong until then gives its claims back
                self._save()
        self._close()
        self._renewing = [one for one in self._renewing if not one[1].is_over()]
        if not self._is_stopped and (up := self._cap_of_running()):
            self._stop(f"cap reached: {up}")
        self._fill()
        self._warm()
        self._rotate()
        self._draw()
        if self._starts or self._closing or self._renewing or not (self._reason or self._is_nothing_left()):
            return True
        return self._is_rechecking()

    def _warm(self) -> None:
        """Prepare for checkpoints, a step at a time, once an agent runs that may need one."""
        if self._warming is not None and any(start.known.client for start in self._starts):
            try:
                next(self._warming)
            except (StopIteration, ImportError, OSError, RalfError):  # what is wrong, the checkpoint says
                self._warming = None

    def _cap_of_running(self) -> str:
        """The cap that the agents that run have reached, in words: on time, or on tokens as their transcripts tell."""
        for start in self._starts:
            if start.phase == "runs":
                start.look_at_usage(self._project, self._logs)
        return self._options.caps.reached_by_running(self._used(), time.monotonic() - self._begun)

    def _used(self) -> Spent:
        """What was used up, with what the agents that run have used so far."""
        running = sum(start.meter.tokens or 0 for start in self._starts if start.phase != "over")
        return replace(self._spent, tokens=self._spent.tokens + running)

    # ---- signals ----

    def _heed_signals(self) -> None:
        for number in self._signals.taken():
            if number == signal.SIGUSR1:
                self._recheck.end()
                self._drain("asked to stop after the agents that run")
            elif any(start.stopped for start in self._starts):
                self._tell("stop", "asked again: agents are killed")
                for start in self._starts:
                    start.end(0.0)
            else:
                self._stop(f"stopped by {signal.Signals(number).name}")

    def _drain(self, reason: str) -> None:
        """Start nothing new."""
        if not self._reason:
            self._reason = reason
            self._tell("stop", reason)
            self._save()

    def _stop(self, reason: str) -> None:
        """End all agents, and start nothing new."""
        self._reason = reason
        self._is_stopped = True
        self._recheck.end()
        count = sum(start.phase == "runs" for start in self._starts)
        self._tell("stop", f"{reason}; ending {count} agent{'s' * (count != 1)}" if count else reason)
        for start in self._starts:
            if start.phase == "runs":
                start.stopped = True
                start.end(self._options.grace)
        for start, _, job in self._closing:
            start.stopped = True
            job.end_within(self._options.grace)
        self._save()

    def _abandon(self, why: str) -> None:
        """Something went wrong that is not an agent's fault: end them, and give their tasks back."""
        self._recheck.end()
        for start in self._starts:
            with suppress(OSError):
                start.end(self._options.grace)
        for start in self._starts:
            with suppress(OSError, RalfError):
                Ending(start.known.process, start.known.mark, self._options.grace, start.known.born).wait()
            with suppress(OSError, RalfError):
                self._work.release(start.known.lease, "released", "its loop broke off")
        self._starts.clear()
        with suppress(OSError, RalfError):
            self._save(ended=round(time.time(), 3), status=1, reason=why)

    # ---- starts of a loop that was killed ----

    def _take_over(self) -> None:
        before = states.load(self._project)
        if before.machine not in ("", session_registry.machine()):
            return
        for known in before.running:
            is_running = processes.is_running(known.process, known.born)
            if not known.lease or (not known.opened and not is_running):
                self._work.release(known.lease, "released", "its loop was killed before the agent began")
                continue
            start = Start.adopted(known)
            self._work.adopt(known.lease)
            self._starts.append(start)
            told = f"{known.agent} of a loop that was killed"
            if self._options.adopt:
                self._tell("adopt", f"waiting for {told}", start)
            else:
                start.stopped = True
                start.end(self._options.grace)
                self._tell("adopt", f"ending {told}", start)
        self._save()

    # ---- new starts ----

    def _fill(self) -> None:
        free = self._options.workers - len(self._starts) - len(self._closing) - len(self._renewing)
        now = time.monotonic()
        if self._reason or free <= 0 or now < self._looked + _POLL:
            return
        self._looked = now
        if reached := self._options.caps.reached(self._spent, now - self._begun):
            self._drain(f"cap reached: {reached}")
            return
        busy = {start.known.task for start in (*self._starts, *(start for start, _, _ in self._closing))}
        busy |= self._given_up.keys() | {task for task, when in self._not_before.items() if when > now}
        for task in self._ready(free + _AHEAD, busy):
            if free <= 0 or self._reason:
                break
            agent = self._options.agent_for(task.task.role)
            if agent is None:
                continue
            try:
                begun = self._begin(agent, task)
            except DamagedPlan as error:  # a person is at it: agents that run go on, and nothing new begins
                if not (self._starts or self._closing):
                    raise
                if str(error) != self._said_damaged:
                    self._said_damaged = str(error)
                    self._tell("warning", f"nothing new is started: {error}")
                return
            if begun:
                free -= 1
                if reached := self._options.caps.reached(self._spent, now - self._begun):
                    self._drain(f"cap reached: {reached}")

    def _ready(self, most: int, without: set[str]) -> list[TaskState]:
        """The first tasks for which an agent can be started now: however many come before them that no agent does."""
        parked = {agent.role: self._is_parked(agent) for agent in self._options.agents}
        others = parked.get("", True) is False  # whoever has no role does what no other does
        roles = [role for role, is_parked in parked.items() if role and is_parked == others]
        return self._work.ready_for(roles, most, others=others, without=without)

    def _is_parked(self, agent: Agent) -> bool:
        until = self._parked.get(agent.client or agent.label, 0.0)
        if until and time.time() >= until:
            del self._parked[agent.client or agent.label]
            self._tell("park", f"the usage limit of {agent.label} should be over")
            until = 0.0
        return bool(until)

    def _begin(self, agent: Agent, task: TaskState) -> bool:
        """Start an agent on a task; False where another was faster."""
        worker = self._free_worker()
        try:
            try:
                place = self._place(worker)
            except RalfError as error:
                if not self._starts:
                    raise
                raise Refused(str(error)) from None
            start = starts.begin(self._work, agent, task, place)
        except Refused as error:
            self._drain(f"no agent can be started: {error}")
            return False
        if start is None:
            return False
        self._starts.append(start)
        self._recheck.again()
        self._seen[task.task.id] = task.task.title
        self._spent = replace(self._spent, starts=self._spent.starts + 1)
        self._save()
        attempt = works.failures(task) + 1
        told = f" (attempt {attempt} of {self._options.retries + 1})" if attempt > 1 else ""
        self._tell("start", f"{agent.label} (process {start.known.process}){told}", start, detail=task.task.title)
        return True

    def _free_worker(self) -> str:
        ending = (*(start for start, _, _ in self._closing), *(start for start, _ in self._renewing))
        taken = {start.known.worker for start in (*self._starts, *ending)}
        number = 1
        while f"w{number}" in taken:
            number += 1
        return f"w{number}"

    def _place(self, worker: str) -> Place:
        folder, note = self._project.root, {"RALF_PROJECT_DIR": str(self._project.root)}
        if self._options.worktrees is not None:
            if worker not in self._places or not self._places[worker].is_dir():  # an agent may have removed it
                self._places[worker] = Worktrees(self._options.worktrees, self._project.root).of(worker)
            folder, note = self._places[worker], {}
        return Place(worker, folder, self._logs, self._options.timeout, note, self._keep)

    def _keep(self, known: Running) -> None:
        self._save(also=known)

    # ---- what a start came to ----

    def _judge(self, start: Start) -> None:
        """Say what became of a start's claims."""
        known = start.known
        self._spent = self._spent.plus(start.tokens, start.told.usd)
        self._looked = -math.inf  # whatever it came to, something may begin now
        if start.left_behind:
            what = f"{start.left_behind} process{'es' * (start.left_behind != 1)}"
            self._tell("warning", f"ended {what} that {known.agent} left behind", start)
        own, others = self._work.of_agent(known.task, known.agent)
        for state in (own, *others):
            if state is None:
                self._tell("end", "its task is gone", start)
                continue
            self._done_in[state.task.id] = Path(known.cwd)
            is_main = state.task.id == known.task
            claim = state.claim
            number = known.number if is_main or claim is None else claim.number
            verdict = start.judge(state, number, self._handed(state, start), self._logs)
            lease = f"{state.task.id}:{number}"
            if verdict.promise:
                self._begin_closing(start, state, lease, verdict)
            else:
                self._settle(start, state, lease, verdict)

    def _handed(self, state: TaskState, start: Start) -> str:
        """What names a hand-over of the task's route that was made while a start ran, "" for none."""
        others = {one.known.session for one in self._starts if one is not start}  # tasks may share a route
        found = self._work.handed_over(state.task.context_route, others)
        began = datetime.fromtimestamp(start.known.began, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return found if found >= began or (found and state.task.id == start.known.task) else ""

    def _begin_closing(self, start: Start, state: TaskState, lease: str, verdict: Verdict) -> None:
        """What an agent promised is done as if it had used the command, which may run `verify:` and take its time."""
        work, text = self._work, starts.summary_of(verdict)
        how = work.done if verdict.outcome == "done" else work.fail
        log = str(self._logs.errors_of(start.known.name))
        seconds = SETTLING + (work.verify_seconds() if state.task.verify.strip() else 0.0)
        self._closing.append((start, lease, Job.start(lambda: how(lease, text), log, seconds)))
        self._tell("end", f"promised {verdict.promise}", start, state, detail=state.task.title)

    def _close(self) -> None:
        for one in list(self._closing):
            start, lease, job = one
            if job.is_over():
                self._closing.remove(one)
                self._looked = -math.inf
                task, _, number = lease.rpartition(":")
                state = self._work.get(task)
                if state is not None and works.how_it_stands(state, int(number)) == "held":
                    self._settle(start, state, lease, exits.promise_not_kept(state.evidence, stopped=start.stopped))
                elif state is not None:
                    self._renew_evidence(start, state)
                self._save()

    def _settle(self, start: Start, state: TaskState, lease: str, verdict: Verdict) -> None:
        """Record the outcome for one task, and what comes next."""
        outcome, task = verdict.outcome, state.task
        told, note = verdict.told, verdict.note
        if outcome in ("done", "failed"):
            self._forget(task.id)
            self._renew_evidence(start, state)
            self._tell("end", told, start, state, detail=task.title if outcome == "done" else state.reason or note)
            return
        if outcome == "limit" and verdict.limit is not None:
            self._work.release(lease, outcome, note)
            self._park(start, state, verdict.limit.ends(time.time()), named=bool(verdict.limit.until))
            return
        if outcome == "released":
            self._work.release(lease, outcome, note)
            self._tell("end", told, start, state, detail=note)
            return
        if outcome != "handed-over" and (tries := self._count(state)) > self._options.retries:
            self._give_up(task.id, lease, f"{note} (attempt {tries} of {self._options.retries + 1}: {outcome})")
            self._tell(
                "end", f"failed after {tries} attempt{'s' * (tries != 1)}: {told}", start, state, detail=verdict.rest
            )
            return
        if idle := self._idle_rounds(start, state):
            what = f"stalled: no change of its route, files, commits or tests over {idle} rounds"
            self._give_up(task.id, lease, f"{what}; the last one: {outcome}: {note}")
            self._tell("end", what, start, state)
            return
        self._work.release(lease, outcome, note)
        if outcome == "handed-over":
            self._tell("end", f"{told}; a fresh agent goes on", start, state)
            return
        delay = self._delay(task.id)
        self._not_before[task.id] = time.monotonic() + delay
        again = caps.duration_text(max(0.1, round(delay, 1)))
        self._tell("retry", f"{told}; again in {again}", start, state, detail=verdict.rest)

    def _renew_evidence(self, start: Start, state: TaskState) -> None:
        """Look at the evidence of a task again, now that the session of its agent is checkpointed. Its worker waits for
        it: the next agent there may edit the same files.
        """
        task, place, work = state.task, Path(start.known.cwd), self._work
        if task.status == "completed" and work.has_context(task.context_route):
            log = str(self._logs.errors_of(start.known.name))
            with suppress(OSError):
                job = Job.start(lambda: work.renew_evidence(task.id, place), log, SETTLING)
                self._renewing.append((start, job))

    def _give_up(self, task: str, lease: str, reason: str) -> None:
        """A task failed. Where that cannot be recorded, it is at least not tried again here."""
        self._forget(task)
        try:
            self._work.fail(lease, reason)
        except (RalfError, OSError) as error:
            self._given_up[task] = reason
            self._tell("warning", f"{task}: its failure is not recorded: {error}")
            self._work.release(lease, "crashed", reason)

    def _count(self, state: TaskState) -> int:
        """Attempts of a task that failed, the one that is over now among them."""
        known = self._failed.get(state.task.id, 0)
        self._failed[state.task.id] = max(known, works.failures(state)) + 1
        return self._failed[state.task.id]

    def _delay(self, task: str) -> float:
        tries = self._failed.get(task, 1)
        longest = min(self._options.longest, self._options.backoff * 2.0 ** min(tries - 1, 30))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  # so that workers do not come at once

    def _forget(self, task: str) -> None:
        for known in (self._failed, self._rounds, self._not_before):
            known.pop(task, None)

    def _idle_rounds(self, start: Start, state: TaskState) -> int:
        """Rounds over which nothing of a task has changed, if they are too many; else 0."""
        now = rounds.signature(self._project, Path(start.known.cwd), state)
        before, count = self._rounds.get(state.task.id, ("", 0))
        count = count + 1 if now == before else 0
        self._rounds[state.task.id] = now, count
        return count if 0 < self._options.stall <= count else 0

    def _park(self, start: Start, state: TaskState, until: float, *, named: bool) -> None:
        who = start.told.client or start.known.client or start.known.label
        at = datetime.fromtimestamp(until).astimezone().isoformat(sep=" ", timespec="minutes")
        what = f"usage limit of {who} until {at}{'' if named else ' (a guess: it names no time)'}"
        if not self._options.park:
            self._tell("park", what, start, state)
            self._drain(what)
            return
        client = start.known.client or start.known.label  # as `_is_parked` asks
        self._parked[client] = max(until, self._parked.get(client, 0.0))
        self._tell("park", f"{what}: waiting, then the same task", start, state)
        self._save()

    # ---- the end ----

    def _is_nothing_left(self) -> bool:
        """Whether no task can be started any more, whatever others do."""
        now = time.monotonic()
        if now < self._checked + _POLL / 2 and self._said_waiting:
            return False
        self._checked = now
        waiting = ""
        for state in self._work.unfinished():
            self._seen[state.task.id] = state.task.title
            if state.task.status != "pending" or state.is_foreign or state.task.id in self._given_up:
                continue
            agent = self._options.agent_for(state.task.role)
            if state.claim is not None:
                waiting = waiting or f"{state.task.id}, which {state.claim.by} holds"
            elif agent is not None and not state.waits_for:
                waiting = waiting or state.task.id
        if waiting and waiting != self._said_waiting and not self._parked and not self._not_before:
            self._tell("wait", f"waiting for {waiting}")
        self._said_waiting = waiting
        return not waiting

    def _is_rechecking(self) -> bool:
        """Whether completed tasks that are not verified as they are now are verified once more; not after a stop."""
        return self._recheck.advance(self._completed)

    def _completed(self) -> list[TaskState]:
        trees = self._options.worktrees
        return self._work.completed(sorted(trees.absolute().glob("w*")) if trees is not None else ())

    def _place_of(self, task: str) -> Path | None:
        """Where a task was done: one of an earlier loop with worktrees was done in any of them."""
        return self._done_in.get(task) if self._options.worktrees is not None else self._project.root

    def _tell_check(self, text: str, state: TaskState) -> None:
        self._tell("verify", text, state=state, detail=state.task.title)

    def _result(self) -> Result:
        completed = self._completed()
        return results.result(
            self._options, self._reason, self._work, completed, self._spent, self._given_up, self._seen
        )

    # ---- waiting, and what is told ----

    def _wait(self) -> None:
        now, clock = time.monotonic(), time.time()
        due = [now + _POLL]
        due += [now + (_SOON if one.is_waiting_for_a_step() else max(0.0, one.deadline - now)) for one in self._starts]
        due += [now + _SOON for _ in (*self._closing, *self._renewing)]
        due += [now + _SOON] if self._recheck.is_running else []
        due += [when for when in self._not_before.values() if when > now]
        due += [now + max(0.0, until - clock) for until in self._parked.values()]
        if self._warming is not None and any(start.known.client for start in self._starts):
            due.append(now)
        watched = [one for start in self._starts if not start.is_ours and (one := start.watched) is not None]
        try:
            self._signals.wait(watched, min(due) - now)
        finally:
            for descriptor in watched:
                os.close(descriptor)
        if any(when <= time.monotonic() for when in self._not_before.values()):
            self._looked = -math.inf
            self._not_before = {task: when for task, when in self._not_before.items() if when > time.monotonic()}
        if any(until <= time.time() for until in self._parked.values()):
            self._looked = -math.inf

    def _rotate(self) -> None:
        now = time.monotonic()
        if now < self._rotated + _ROTATE:
            return
        self._rotated = now
        for start in self._starts:
            for path in (self._logs.of(start.known.name), self._logs.errors_of(start.known.name)):
                self._logs.rotate(path)
        self._logs.prune(frozenset(name for start in self._starts for name in starts.log_names(start.known)))
        Logs(states.folder(self._project), size=_LOG).rotate(states.log_file(self._project))

    def _tell(
        self, kind: str, text: str, start: Start | None = None, state: TaskState | None = None, *, detail: str = ""
    ) -> None:
        at = datetime.now(UTC).astimezone().isoformat(timespec="seconds")
        task = state.task.id if state is not None else start.known.task if start is not None else ""
        worker = start.known.worker if start is not None else ""
        told, more = (trimmed(redactor_for(self._project).text(one_line(clean(one))), 500) for one in (text, detail))
        event = Event(at, kind, told, worker, task, more)
        path = states.log_file(self._project)
        with suppress(OSError), open(path, "ab", buffering=0, opener=open_single_link) as log:
            log.write(f"{at[:10]} {event.whole}\n".encode("utf-8", "replace"))
        if self._view is not None:
            try:
                self._view.event(event)
            except OSError:  # nobody reads on: a terminal that was closed, a pipe that has ended
                self._view = None
                if not self._options.detached and not self._reason:
                    self._stop("nobody reads what it prints")

    def _draw(self) -> None:
        if self._view is not None and time.monotonic() >= self._drawn + 0.25:
            self._drawn = time.monotonic()
            with suppress(OSError):
                self._view.draw(self._now())

    def _now(self, also: Running | None = None, **changes: Any) -> LoopState:
        running = [start.known for start in self._starts] + [start.known for start, _, _ in self._closing]
        spent = self._used()
        return replace(
            self._state,
            running=(*running, *([also] if also is not None else [])),
            starts=spent.starts,
            tokens=spent.tokens,
            usd=spent.usd,
            unknown=spent.unknown,
            unpriced=spent.unpriced,
            parked=dict(self._parked),
            **{"reason": self._reason, **changes},
        )

    def _save(self, *, also: Running | None = None, **changes: Any) -> None:
        try:
            states.save(self._project, self._now(also, **changes))
            self._is_saved = True
        except (OSError, RalfError) as error:  # claims hold without it: an agent that goes on is not doubled
            if self._is_saved:
                self._is_saved = False
                self._tell("warning", f"the state of the loop cannot be saved: {error}")
