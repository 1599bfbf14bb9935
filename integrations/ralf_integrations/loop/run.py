"""The scheduler of the loop: fresh agents on ready tasks, one after another, until nothing is left or a cap is reached.

One process without threads. It waits for signals and the ends of its children, and for the next moment at which
something is due. What is to be done for one start is one generator, `_life`.
"""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ralf.errors import DamagedPlan, NotFound, RalfError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.storage.files import open_single_link
from ralf.tasks import evidence as proofs
from ralf.tasks.model import TaskState
from ralf.text.cleaning import clean, one_line, trimmed
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop import logs, outcomes, processes, starts, state as states, work as works
from ralf_integrations.loop.launch import Agent, NoWorktree, worktree
from ralf_integrations.loop.options import Event, Options, Result, Spent, duration_text, spent_text
from ralf_integrations.loop.outcomes import Ended, Verdict
from ralf_integrations.loop.processes import CannotStart, Job, Signals
from ralf_integrations.loop.starts import SETTLING, SOON, Start
from ralf_integrations.loop.state import LoopState, Running
from ralf_integrations.loop.told import Told
from ralf_integrations.loop.work import Work

_LONGEST_PAUSE = 300.0  # seconds before a task is tried again
_POLL = 1.0  # seconds between two looks for tasks that others finish or add
_TIDY = 5.0  # seconds between two looks at the sizes of logs
_AHEAD = 64  # ready tasks beyond those that could be started that are looked at
_LOG = 4 << 20  # bytes of the loop's own log
_RECORDING = 60.0  # seconds beyond the time limit of a `verify:` command, for recording what it came to


class Loop:
    """One run of the loop."""

    def __init__(self, project: Project, options: Options, view: Callable[[Event], None]) -> None:
        """`view` is told what happens. NotFound without a project; UsageError, OSError where it cannot be written."""
        if project.nothing_here:
            raise NotFound(project.root, "no project here, nor above", "ralf init")
        project.prepare()  # before anything asks where its cache is
        self._project = project
        self._options = options
        self._view: Callable[[Event], None] | None = view
        self._work = Work(project)
        self._logs = states.folder(project) / "logs"
        self._starts: list[Start] = []
        self._spent = Spent()
        self._state = LoopState()
        self._not_before: dict[str, float] = {}  # by task, monotonic
        self._rounds: dict[str, tuple[str, int]] = {}  # by task: its signature, rounds that it is unchanged
        self._seen: dict[str, str] = {}  # titles by task: of all that were not done when somebody looked
        self._done_in: dict[str, Path] = {}  # by task, the working directory of its agent
        self._check: Iterator[Job] = self._checks()
        self._checking: Job | None = None
        self._is_stopped = False
        self._begun = time.monotonic()
        self._looked = self._tidied = self._idle_looked = -math.inf
        self._said: dict[str, str] = {}  # what was told last of what may hold on

    # ---- all of it ----

    def run(self) -> Result:
        """Work until nothing is left to do. Busy where one runs here already; OSError, RalfError where the store
        cannot be read: then all agents are ended, and their claims released.
        """
        with states.alone(self._project), Signals() as self._signals:
            self._state = LoopState(
                process=os.getpid(),
                born=session_registry.process_start(os.getpid()),
                machine=session_registry.machine(),
                began=round(time.time(), 3),
                log=str(states.log_file(self._project)),
            )
            try:
                self._take_over()
                unfinished = self._work.unfinished()
                self._seen = {one.task.id: one.task.title for one in unfinished}
                if any(one.task.verify.strip() for one in unfinished) and (why := proofs.why_not_run(self._project)):
                    self._tell("warning", f"`verify:` does not run: {why}")
                while self._turn():
                    self._wait()
                result = self._result()
            except BaseException as error:
                self._abandon(f"{type(error).__name__}: {error}")
                raise
            self._tell("over", f"{result.reason}; {spent_text(self._spent)}")
            self._over(result.status, result.reason)
            return result

    def _turn(self) -> bool:
        """Do what is due; whether the loop goes on."""
        self._heed_signals()
        for start in list(self._starts):
            if start.is_over():
                self._starts.remove(start)  # not before: what goes wrong until then gives its claims back
                self._looked = -math.inf  # whatever it came to, something may begin now
                self._save()
        lasts = time.monotonic() - self._begun
        if not self._is_stopped and (cap := self._options.caps.reached_by_running(self._used(), lasts)):
            self._stop(f"cap reached: {cap}")
        self._fill()
        self._tidy()
        if self._starts or (self._checking is None and not self._state.reason and not self._is_nothing_left()):
            return True
        if self._checking is None or self._checking.is_over():
            self._checking = next(self._check, None)
        return self._checking is not None or not (self._state.reason or self._is_nothing_left())

    def _used(self) -> Spent:
        """What was used up, with what the agents that run have used so far."""
        running = sum(start.told.tokens or 0 for start in self._starts if not start.is_counted)
        return replace(self._spent, tokens=self._spent.tokens + running)

    # ---- signals ----

    def _heed_signals(self) -> None:
        for number in self._signals.taken():
            if number == signal.SIGUSR1:
                self._check = iter(())
                self._drain("asked to stop after the agents that run")
            elif self._is_stopped:
                self._tell("stop", "asked again: agents are killed")
                for start in self._starts:
                    start.stop(0.0)
            else:
                self._stop(f"stopped by {signal.Signals(number).name}")

    def _drain(self, reason: str) -> None:
        """Start nothing new."""
        if not self._state.reason:
            self._state.reason = reason
            self._tell("stop", reason)
            self._save()

    def _stop(self, reason: str) -> None:
        """End all agents, and start nothing new."""
        self._state.reason, self._is_stopped = reason, True
        self._check = iter(())
        if self._checking is not None:
            self._checking.end_within(0.0)
        count = sum(start.runs for start in self._starts)
        self._tell("stop", f"{reason}; ending {count} agent{'s' * (count != 1)}" if count else reason)
        for start in self._starts:
            start.stop(self._options.grace)
        self._save()

    def _abandon(self, why: str) -> None:
        """Something went wrong that is not an agent's fault: end them, and give their tasks back."""
        if self._checking is not None:
            self._checking.end_within(0.0)
            self._checking.is_over()
        for start in self._starts:
            with suppress(OSError, RalfError):
                start.ending(self._options.grace).wait()
                start.reap()
            with suppress(OSError, RalfError):
                self._work.release(start.known.lease, "released", "its loop broke off")
        self._starts.clear()
        with suppress(OSError, RalfError):
            self._over(1, why)

    # ---- starts of a loop that was killed ----

    def _take_over(self) -> None:
        before = states.load(self._project)
        if before.machine not in ("", session_registry.machine()):
            return
        for known in before.running:
            if not known.lease or (not known.opened and not processes.is_running(known.process, known.born)):
                self._work.release(known.lease, "released", "its loop was killed before the agent began")
                continue
            self._work.adopt(known.lease)
            start = self._add(known)
            told = f"{known.agent} of a loop that was killed"
            if self._options.adopt:
                self._tell("adopt", f"waiting for {told}", start)
            else:
                start.stop(self._options.grace)
                self._tell("adopt", f"ending {told}", start)
        self._save()

    # ---- new starts ----

    def _fill(self) -> None:
        free = self._options.workers - len(self._starts)
        now = time.monotonic()
        if self._state.reason or self._checking is not None or free <= 0 or now < self._looked + _POLL:
            return
        self._looked = now
        self._not_before = {task: when for task, when in self._not_before.items() if when > now}
        busy = {task for start in self._starts for task in (start.known.task, *start.closing)}
        busy |= self._not_before.keys()
        ready = iter(self._ready(free + _AHEAD, busy))
        while free > 0 and not self._state.reason:
            if reached := self._options.caps.reached(self._spent, now - self._begun):
                self._drain(f"cap reached: {reached}")
                return
            if (task := next(ready, None)) is None:
                return
            agent = self._options.agent_for(task.task.role)
            try:
                free -= agent is not None and self._begin(agent, task)
            except DamagedPlan as error:  # a person is at it: agents that run go on, and nothing new begins
                if not self._starts:
                    raise
                self._tell_once("damaged", "warning", f"nothing new is started: {error}")
                return

    def _ready(self, most: int, without: set[str]) -> list[TaskState]:
        """The first tasks for which an agent can be started now: however many come before them that no agent does."""
        parked = {agent.role: self._is_parked(agent) for agent in self._options.agents}
        others = parked.get("", True) is False  # whoever has no role does what no other does
        roles = [role for role, is_parked in parked.items() if role and is_parked == others]
        return self._work.tasks.ready_for(roles, most, others=others, without=without)

    def _is_parked(self, agent: Agent) -> bool:
        until = self._state.parked.get(agent.client or agent.label, 0.0)
        if until and time.time() >= until:
            del self._state.parked[agent.client or agent.label]
            self._tell("park", f"the usage limit of {agent.label} should be over")
            until = 0.0
        return bool(until)

    def _begin(self, agent: Agent, task: TaskState) -> bool:
        """Start an agent on a task; False where another was faster."""
        taken = {start.known.worker for start in self._starts}
        worker = next(f"w{number}" for number in range(1, 2 + len(taken)) if f"w{number}" not in taken)
        root, trees = self._project.root, self._options.worktrees
        note = {"RALF_PROJECT_DIR": str(root)} if trees is None else {}
        begun = None
        try:
            folder = root if trees is None else worktree(trees, root, worker)
            place = Running(worker=worker, cwd=str(folder), limit=self._options.timeout or 0.0)
            begun = starts.begin(self._work, agent, task, place, logs=self._logs, note=note, keep=self._save)
        except CannotStart as error:
            self._drain(f"no agent can be started: {error.filename}: {error.strerror}")
        except NoWorktree as error:
            if not self._starts:
                raise
            self._drain(f"no agent can be started: {error}")
        if begun is None:
            return False
        start = self._add(begun, is_child=True)
        self._check = self._checks()  # it may edit files
        self._seen[task.task.id] = task.task.title
        self._spent = replace(self._spent, starts=self._spent.starts + 1)
        self._save()
        attempt = works.failures(task) + 1
        told = f" (attempt {attempt} of {self._options.retries + 1})" if attempt > 1 else ""
        self._tell("start", f"{agent.label} (process {start.known.process}){told}", start, detail=task.task.title)
        return True

    def _add(self, known: Running, *, is_child: bool = False) -> Start:
        output, errors = (self._logs / f"{known.name}{end}" for end in (".log", ".err"))
        start = Start(known, Told(self._project, known, output, errors), is_child, self._options.grace)
        start.life = self._life(start)
        self._starts.append(start)
        return start

    # ---- what a start came to ----

    def _life(self, start: Start) -> Iterator[float]:
        """All that is to be done for a start, until its worker is free: yields the seconds until the next step."""
        known = start.known
        yield from start.course(self._project)
        self._spent, start.is_counted = self._spent.plus(start.told.tokens, start.told.usd), True
        if count := start.left_behind:
            self._tell("warning", f"ended {count} process{'es' * (count != 1)} that {known.agent} left behind", start)
        own, others = self._work.of_agent(known.task, known.agent)
        if own is None:
            self._tell("end", "its task is gone", start)
        promised: dict[str, str] = {}  # by task, the lease under which what its agent promised is being recorded
        for state in (own, *others):
            if state is not None:
                self._done_in[state.task.id] = Path(known.cwd)
                is_other = state is not own and state.claim is not None
                lease = state.claim.lease(state.task.id) if is_other and state.claim else known.lease
                verdict = self._verdict(start, state, lease)
                if verdict.promise:
                    self._close(start, state, lease, verdict)
                    promised[state.task.id] = lease
                else:
                    self._settle(start, state, lease, verdict)
        for id_, lease in promised.items():
            while not start.closing[id_].is_over():
                yield SOON
            del start.closing[id_]
            state = self._work.get(id_)
            if state is not None and works.how_it_stands(state, lease) == "held":
                refused = outcomes.refusal(state.evidence, known.began)
                ended = Ended(start.status, "held", stopped=start.stopped, refused=refused)
                self._settle(start, state, lease, outcomes.judge(ended))
        logs.redact((start.told.output, start.told.errors), redactor_for(self._project).text)

    def _verdict(self, start: Start, state: TaskState, lease: str) -> Verdict:
        """What a start came to for a task that its agent had."""
        told, known = start.told, start.known
        is_main = state.task.id == known.task
        others = {one.known.session for one in self._starts if one is not start}  # tasks may share a route
        handed = self._work.handed_over(state.task.context_route, others)
        began = datetime.fromtimestamp(known.began, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return outcomes.judge(
            Ended(
                start.status,
                works.how_it_stands(state, lease),
                hung=start.hung,
                stopped=start.stopped,
                handed_over=handed not in ("", known.handed) and (is_main or handed >= began),
                refused=outcomes.refusal(state.evidence, known.began),
                message=told.message,
                limit=told.limit,
                said=logs.last_line(told.errors) or logs.last_line(told.output),
            )
        )

    def _close(self, start: Start, state: TaskState, lease: str, verdict: Verdict) -> None:
        """What an agent promised is done as if it had used the command, which may run `verify:` and take its time."""
        how = self._work.done if verdict.outcome == "done" else self._work.fail
        text = verdict.summary or f"its agent promised {verdict.promise}"
        seconds = SETTLING + (self._work.verify_seconds() if state.task.verify.strip() else 0.0)
        start.closing[state.task.id] = Job(lambda: how(lease, text), str(start.told.errors), seconds)
        self._tell("end", f"promised {verdict.promise}", start, state, detail=state.task.title)

    def _settle(self, start: Start, state: TaskState, lease: str, verdict: Verdict) -> None:
        """Record the outcome for one task, and what comes next."""
        outcome, task, told, why = verdict.outcome, state.task, verdict.told, ""
        detail = task.title if outcome == "done" else state.reason if outcome == "failed" else verdict.said
        tries = 0 if outcome == "handed-over" else works.failures(state) + 1
        if outcome not in ("done", "failed", "released", "limit"):
            if tries > self._options.retries:
                why = f"{verdict.note} (attempt {tries} of {self._options.retries + 1}: {outcome})"
                told = f"failed after {tries} attempt{'s' * (tries != 1)}: {told}"
            elif idle := self._idle_rounds(start, state):
                told, detail = f"stalled: no change of its route, files, commits or tests over {idle} rounds", ""
                why = f"{told}; the last one: {outcome}: {verdict.note}"
        if why or outcome in ("done", "failed"):
            if why:
                self._work.fail(lease, why)
            self._rounds.pop(task.id, None)
            self._tell("end", told, start, state, detail=detail)
            return
        self._work.release(lease, outcome, verdict.note)
        if verdict.limit is not None:
            self._park(start, state, verdict.limit.ends(time.time()), named=bool(verdict.limit.until))
        elif outcome in ("released", "handed-over"):
            more = "; a fresh agent goes on" * (outcome == "handed-over")
            self._tell("end", f"{told}{more}", start, state, detail=detail)
        else:
            longest = min(_LONGEST_PAUSE, self._options.backoff * 2.0 ** min(tries - 1, 30))
            delay = longest * random.uniform(0.5, 1.0)  # noqa: S311  # so that workers do not come at once
            self._not_before[task.id] = time.monotonic() + delay
            again = duration_text(max(0.1, round(delay, 1)))
            self._tell("retry", f"{told}; again in {again}", start, state, detail=detail)

    def _idle_rounds(self, start: Start, state: TaskState) -> int:
        """Rounds over which nothing of a task has changed, if they are too many; else 0."""
        now = outcomes.signature(Path(start.known.cwd), state, self._work.context(state.task.context_route))
        before, count = self._rounds.get(state.task.id, ("", 0))
        count = count + 1 if now == before else 0
        self._rounds[state.task.id] = now, count
        return count if 0 < self._options.stall <= count else 0

    def _park(self, start: Start, state: TaskState, until: float, *, named: bool) -> None:
        who = start.told.client or start.known.label
        what = f"usage limit of {who} until {_at(until)}{'' if named else ' (a guess: it names no time)'}"
        if not self._options.park:
            self._tell("park", what, start, state)
            self._drain(what)
            return
        client = start.known.client or start.known.label  # as `_is_parked` asks
        self._state.parked[client] = max(until, self._state.parked.get(client, 0.0))
        self._tell("park", f"{what}: waiting, then the same task", start, state)
        self._save()

    # ---- the end ----

    def _is_nothing_left(self) -> bool:
        """Whether no task can be started any more, whatever others do. Else it says what it waits for."""
        if time.monotonic() < self._idle_looked + _POLL / 2:
            return False
        is_left, held, waits = False, list[str](), list[str]()
        for state in self._work.unfinished():
            self._seen[state.task.id] = state.task.title
            if state.task.status != "pending" or state.is_foreign:
                continue
            agent = self._options.agent_for(state.task.role)
            if state.claim is not None:
                held.append(f"{state.task.id}, which {state.claim.by} holds")
            elif agent is not None and not state.waits_for:
                waits.append(self._why_not_yet(state.task.id, agent))
                is_left = True
        self._tell_once("held", "wait", f"waiting for {_some(held)}" if held else "")
        before, self._state.waits = self._state.waits, _some([*held, *waits])
        if self._state.waits != before:
            self._save()
        if is_left or held:
            self._idle_looked = time.monotonic()
        return not (is_left or held)

    def _why_not_yet(self, task: str, agent: Agent) -> str:
        """What keeps a task that is ready from being started; "" for nothing."""
        if until := self._state.parked.get(agent.client or agent.label, 0.0):
            return f"the end of the usage limit of {agent.client or agent.label} at {_at(until)}"
        if (when := self._not_before.get(task, 0.0)) > time.monotonic():
            return f"{task}, which is tried again at {_at(time.time() + when - time.monotonic(), 'seconds')}"
        return ""

    def _checks(self) -> Iterator[Job]:
        """The last look: completed tasks that are not verified as their files are now, verified once more, each command
        once, one after the other.
        """
        work, seconds = self._work, self._work.verify_seconds()
        groups: dict[tuple[str, Path], list[TaskState]] = {}
        for state in self._completed() if seconds else ():
            command, place = state.task.verify.strip(), self._done_in.get(state.task.id)
            if self._options.worktrees is None:
                place = self._project.root
            if (
                command
                and place is not None
                and not proofs.refusal_of(state, for_person=True)
                and outcomes.why_not_proven(state)
            ):
                groups.setdefault((command, place), []).append(state)
        for (_, place), group in groups.items():
            first, ids = group[0], [state.task.id for state in group]
            others = f" and {len(ids) - 1} more tasks" if len(ids) > 1 else ""
            text = f"{outcomes.evidence_text(first)}: its `verify:` runs once more{others and f', for it{others}'}"
            self._tell("verify", text, state=first, detail=first.task.title)
            log = states.folder(self._project) / "verify.log"
            yield Job(partial(work.verify_again, ids, place), str(log), seconds + _RECORDING)
            for found in filter(None, map(work.get, ids)):
                self._tell("verify", outcomes.evidence_text(found), state=found, detail=found.task.title)

    def _completed(self) -> list[TaskState]:
        trees = self._options.worktrees
        return self._work.completed(sorted(trees.absolute().glob("w*")) if trees is not None else ())

    def _result(self) -> Result:
        completed = self._completed()
        return outcomes.result(self._options, self._state.reason, self._work, completed, self._spent, self._seen)

    # ---- waiting, and what is told ----

    def _wait(self) -> None:
        """Until a signal, the end of a child, or whatever is due next."""
        now = time.monotonic()
        pauses = [*self._not_before.values(), *(now + until - time.time() for until in self._state.parked.values())]
        due = [now + _POLL, *(start.due for start in self._starts), *(one for one in pauses if one > now)]
        due += [now + SOON] * (self._checking is not None)
        self._signals.wait(min(due) - now)
        if any(now < one <= time.monotonic() for one in pauses):
            self._looked = -math.inf

    def _tidy(self) -> None:
        now = time.monotonic()
        if now >= self._tidied + _TIDY:
            self._tidied = now
            logs.tidy(self._logs, [start.known.name for start in self._starts])
            logs.rotate(states.log_file(self._project), _LOG)

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
                self._view(event)
            except OSError:  # nobody reads on: a terminal that was closed, a pipe that has ended
                self._view = None
                if not self._state.reason:
                    self._stop("nobody reads what it prints")

    def _tell_once(self, what: str, kind: str, text: str) -> None:
        """Tell what may hold on for long, unless it was told already; "": it no longer holds."""
        if self._said.get(what, "") != text:
            self._said[what] = text
            if text:
                self._tell(kind, text)

    def _over(self, status: int, reason: str) -> None:
        self._state.ended, self._state.status, self._state.reason = round(time.time(), 3), status, reason
        self._save()

    def _save(self, also: Running | None = None) -> None:
        """Keep the state, with a start that is about to begin."""
        self._state.running = (*(start.known for start in self._starts), *([also] if also is not None else []))
        self._state.spent = self._used()
        if self._starts:
            self._state.waits = ""
        try:
            states.save(self._project, self._state)
            self._said.pop("unsaved", None)
        except (OSError, RalfError) as error:  # claims hold without it: an agent that goes on is not doubled
            self._tell_once("unsaved", "warning", f"the state of the loop cannot be saved: {error}")


def _some(texts: list[str]) -> str:
    """The first of some texts, each once."""
    found = [*dict.fromkeys(filter(None, texts))]
    return "; ".join([*found[:3], *([f"{len(found) - 3} more"] if len(found) > 3 else [])])


def _at(seconds: float, to: str = "minutes") -> str:
    """A time since 1970, as the clock on the wall shows it."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec=to)
