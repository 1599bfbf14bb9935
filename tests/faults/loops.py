"""Random schedules of faults for `ralf loop`: agents that crash, are killed, hang, fail, say nothing or odd things,
hand over, reach a usage limit or leave processes behind, and a loop that is killed itself, in the middle of serialising
too.

The agent is `loop_stand_in.py`. Afterwards the judge reads files, the journal and the agents' own log of when each
began and ended: no task is lost, none has two agents at once, and status 0 means that all of them are completed.

    python -m tests.faults.loops --rounds 500
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import rig, tasked, tenure
from tests.faults.tenure import Fault, Span

from ralf.tasks import editing

STAND_IN = Path(__file__).with_name("loop_stand_in.py")
TIME_OUT = 4.0  # seconds that the loop gives an agent
HANGS = 180.0  # seconds of one schedule
RETRIES = 6  # more than the faults of a plan and the deaths of a loop come to

FAULTS = (
    *("crash", "crash", "killed", "killed", "silent", "hand over", "hand over", "leave and crash"),
    *("hang", "stopped"),
)
"""What an attempt may do that does not end the task; the last two take the time that an agent is given."""
LIMIT = "limit"
"""It reaches a usage limit, where the agents of a schedule are those of a client that has one."""
CLIENTS = ("", "", "claude", "codex")
ENDINGS = ("done", "done", "odd", "done and crash", "done and linger", "leave")
_RARE = 2


@dataclass(frozen=True)
class Planned:
    """A task of a schedule.

    after  the places of those that it waits for
    acts   what its attempts do, and how many seconds each takes
    """

    title: str
    after: tuple[int, ...] = ()
    checkpoint: bool = False
    priority: int = 5
    acts: tuple[tuple[str, float], ...] = ()

    @property
    def fails(self) -> bool:
        """Whether its agent says in the end that it cannot be done."""
        return bool(self.acts) and self.acts[-1][0] == "fail"


@dataclass(frozen=True)
class Schedule:
    """What happens.

    serialize  every how many tasks a checkpoint comes; 0: the tasks are not put into a sequence
    cut        seconds after which the command that does so is killed, and typed again; None for never
    deaths     seconds after which the loop is killed, one for each time that it is started but the last
    client     which one the agents stand in for, "" for none
    """

    tasks: tuple[Planned, ...]
    workers: int = 1
    serialize: int = 0
    cut: float | None = None
    deaths: tuple[float, ...] = ()
    client: str = ""

    def expected(self) -> list[str]:
        """What becomes of each task."""
        found: list[str] = []
        for task in self.tasks:
            blocked = any(found[place] != "completed" for place in task.after)
            found.append("pending" if blocked else "failed" if task.fails else "completed")
        return found


def schedule(seed: int, number: int) -> Schedule:
    """One at random, the same for the same numbers."""
    dice = random.Random(f"{seed} {number}")
    tasks = []
    client = dice.choice(CLIENTS)
    usual = (*FAULTS[:-_RARE], *([LIMIT] * 3 if client else ()))
    for number in range(dice.randint(3, 6)):
        after = tuple(sorted(dice.sample(range(number), min(number, dice.choice((0, 0, 1, 2))))))
        faults = [dice.choice(FAULTS if dice.random() < 0.35 else usual) for _ in range(dice.randint(1, 2))]
        acts = faults if dice.random() < 0.45 else []
        acts.append("fail" if dice.random() < 0.06 else dice.choice(ENDINGS))
        taken = tuple((act, round(dice.uniform(0.05, 0.5), 3)) for act in acts)
        checkpoint, priority = dice.random() < 0.2, dice.randint(1, 10)
        tasks.append(Planned(f"Carry over table {number}", after, checkpoint, priority, taken))
    serialize = dice.choice((0, 0, 1, 2))
    return Schedule(
        tuple(tasks),
        workers=dice.choice((1, 1, 2, 3)),
        serialize=serialize,
        cut=dice.uniform(0.1, 0.5) if serialize and dice.random() < 0.5 else None,
        deaths=tuple(dice.uniform(0.4, 2.5) for _ in range(dice.choice((0, 0, 0, 1, 1, 2)))),
        client=client,
    )


# ---- what is left of it ----


@dataclass
class History:
    """What a schedule has left: ids in the order of its tasks, what files and stream say, and the agents' log.

    statuses   what the file of each task says
    completed  ids that files or stream say to be completed
    log        time, what, task, number of the claim, process of the agent; in the order of the times
    exits      the statuses of the loop each time that it was started; -9 where it was killed
    errors     what the last one wrote to stderr
    alive      processes of agents that are left at the end
    order      of the tasks in the sequence, as its file has them
    prompts    what each agent was told first, by its task and claim
    """

    schedule: Schedule
    ids: list[str]
    statuses: dict[str, str] = field(default_factory=dict)
    completed: set[str] = field(default_factory=set)
    records: list[dict[str, object]] = field(default_factory=list)
    log: list[tuple[float, str, str, int, int]] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    errors: str = ""
    alive: list[int] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    prompts: dict[str, bytes] = field(default_factory=dict)


def judged(history: History) -> Iterator[Fault]:
    """What is wrong with a history."""
    ids, plan = history.ids, history.schedule
    yield from tenure.lost(ids, history.statuses)
    for task, status in history.statuses.items():
        if task not in ids:
            yield "invented", f"{task}, {status}"
        elif " and " in status:
            yield "doubled", f"{task} has two files: {status}"
    yield from tenure.overlapping(spans(history.log))
    yield from tenure.of_records(history.records)
    yield from _early(history)
    yield from _miscounted(history)
    last = history.exits[-1] if history.exits else None
    undone = [task for task in ids if task not in history.completed]
    if last == 0 and undone:
        yield "false complete", f"status 0, and {', '.join(undone)} not completed"
    if last != 0 and not undone:
        yield "false incomplete", f"status {last}, and all are completed: {history.errors[-300:]}"
    if last not in (0, 1) or "Traceback" in history.errors:
        yield "failed", f"the loop ended with {last}: {history.errors[-600:]}"
    for task, planned, expected in zip(ids, plan.tasks, plan.expected(), strict=True):
        got = "completed" if task in history.completed else history.statuses.get(task, "nothing")
        if got != expected and not (got == "pending" and _is_behind_a_failed_one(history, task)):
            acts = [act for act, _ in planned.acts]
            yield "wrong", f"{task} is {got}, not {expected} after {acts}, deaths {plan.deaths}"
    for task in {task for _, what, task, _, _ in history.log if what == "begin"} & set(ids):
        title = plan.tasks[ids.index(task)].title.encode()
        prompts = [text for name, text in history.prompts.items() if name.startswith(f"{task}.")]
        if not all(title in text for text in prompts):
            yield "unprompted", f"{task}: an agent was not told its task"
    if history.alive:
        yield "left", f"{len(history.alive)} processes of agents live on"


def _miscounted(history: History) -> Iterator[Fault]:
    """An attempt that ended at a usage limit is recorded as that, and never as a failure."""
    told = {(task, number) for _, what, task, number, _ in history.log if what == LIMIT}
    for record in history.records:
        if record["kind"] == "release" and (record["task"], record["lease"]) in told:
            told.discard((str(record["task"]), int(str(record["lease"]))))
            if record["outcome"] not in ("limit", "released"):
                yield "miscounted", f"{record['task']}: a usage limit is recorded as {record['outcome']}"
    for task, number in told if -9 not in history.exits else ():
        yield "miscounted", f"{task}: claim {number} ended at a usage limit, and no record says so"


def _is_behind_a_failed_one(history: History, task: str) -> bool:
    """Whether the sequence puts a task behind one that failed: that keeps it from being begun, as a dependency does."""
    before = history.order[: history.order.index(task)] if task in history.order else []
    return any(history.statuses.get(one) == "failed" for one in before)


def spans(log: Sequence[tuple[float, str, str, int, int]]) -> list[Span]:
    """When each agent, or a process that it left behind, worked on a task: from its first line to its last.

    One that has said that it is ending its task holds it no more: what it does until it ends is its own affair, and the
    task's next agent may begin if it gave the task back. Not so a process that it has left behind.
    """
    times: dict[tuple[str, int, int], list[float]] = {}
    ended: set[tuple[str, int, int]] = set()
    for when, what, task, number, agent in log:
        key = (task, number, agent)
        if key not in ended or what == "child":
            times.setdefault(key, []).append(when)
        if what == "ending":
            ended.add(key)
    return [
        Span(task, f"agent {agent} of claim {number}", min(known), max(known))
        for (task, number, agent), known in times.items()
    ]


def _early(history: History) -> Iterator[Fault]:
    """An agent that began before what its task waits for was ended by one of its own."""
    ending: dict[str, float] = {}
    for when, what, task, _, _ in history.log:
        if what == "ending":
            ending.setdefault(task, when)
        if what == "begin" and task in history.ids:
            for place in history.schedule.tasks[history.ids.index(task)].after:
                before = history.ids[place]
                if ending.get(before, when) >= when:
                    yield "early", f"{task} began before {before} was completed"


# ---- the run ----


def play(number: int, seed: int) -> History:
    """Play one schedule; what it left."""
    plan = schedule(seed, number)
    with tempfile.TemporaryDirectory(prefix="ralf-loops-") as top:
        root, folder = Path(top) / "project", Path(top) / "plan"
        folder.mkdir()
        root.mkdir()
        ids = _laid(root, folder, plan)
        history = History(plan, ids)
        try:
            _serialized(root, plan, history)
            _looped(root, folder, plan, history)
        finally:
            time.sleep(0.1)
            history.alive = tasked.alive_with(STAND_IN.name, str(folder))
            for process in history.alive:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        history.statuses = tenure.statuses(root)
        history.completed = tenure.completed(root)
        history.records = tenure.records(root)
        history.order = _order(root, ids)
        history.log = log_of(folder)
        history.prompts = {path.stem: path.read_bytes() for path in folder.glob("*.prompt")}
    return history


def _laid(root: Path, folder: Path, plan: Schedule) -> list[str]:
    ids: list[str] = []
    for task in plan.tasks:
        after = [ids[place] for place in task.after]
        state = editing.add(task.title, after=after, checkpoint=task.checkpoint, priority=task.priority, root=root)
        ids.append(state.task.id)
        (folder / f"{ids[-1]}.json").write_text(json.dumps(task.acts))
    made = tasked.environment(folder)
    known = {name: value for name, value in made.items() if name.startswith("PYTHON")}
    (folder / "ralf").write_text(json.dumps({"command": tasked.COMMAND, "environment": known}))
    (folder / "log").touch()
    return ids


def _order(root: Path, ids: Sequence[str]) -> list[str]:
    path = root / ".autonomous" / "tasks" / "plan.yaml"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return sorted((task for task in ids if task in text), key=text.index)


def log_of(folder: Path) -> list[tuple[float, str, str, int, int]]:
    """The agents' log."""
    lines = [line.split() for line in (folder / "log").read_text().splitlines()]
    return sorted((float(line[0]), line[1], line[2], int(line[3]), int(line[4])) for line in lines)


def _serialized(root: Path, plan: Schedule, history: History) -> None:
    """Put the tasks into a sequence; killed in the middle, the command is typed again."""
    if not plan.serialize:
        return
    words = [*tasked.COMMAND, "serialize", "--every", str(plan.serialize)]
    known = tasked.environment(root.parent)
    if plan.cut is not None:
        started = subprocess.Popen(words, cwd=root, env=known, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(plan.cut)
        started.kill()
        started.wait()
    done = subprocess.run(words, cwd=root, env=known, capture_output=True, text=True, check=False)
    if done.returncode:
        history.errors = done.stderr
        history.exits.append(done.returncode + 100)


_IMPATIENT = "from ralf_integrations.health import limits\nlimits.LEAST = 0.3\nfrom ralf_cli.main import run\nrun()\n"
"""`ralf`, but that a usage limit is waited for no longer than it lasts."""


def command(folder: Path, plan: Schedule) -> list[str]:
    """`ralf loop`, as it is typed."""
    agent = " ".join([sys.executable, "-I", "-S", str(STAND_IN), str(folder)])
    if plan.client:
        path = folder / plan.client
        path.write_text(f"#!/bin/sh\nSTAND_IN_FOR={plan.client} exec {agent}\n")
        path.chmod(0o700)
        agent = str(path)
    words = ["loop", "--workers", str(plan.workers), "--agent", agent, "--timeout", f"{TIME_OUT:g}s"]
    words += ["--retries", str(RETRIES), "--stall", str(RETRIES), "--backoff", "0.05s", "--grace", "0.5s"]
    return [sys.executable, "-c", _IMPATIENT, *words]


def _looped(root: Path, folder: Path, plan: Schedule, history: History) -> None:
    known = tasked.environment(root.parent)
    deadline = time.monotonic() + HANGS
    for death in (*plan.deaths, None):
        with (folder / "said").open("wb") as out, (folder / "errors").open("wb") as errors:
            started = subprocess.Popen(
                command(folder, plan), cwd=root, env=known, stdin=subprocess.DEVNULL, stdout=out, stderr=errors
            )
            try:
                status = started.wait(death if death is not None else max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()
                status = -9 if death is not None else 124
        history.exits.append(status)
        history.errors = (folder / "errors").read_text(errors="replace")
        if status != -9:
            return


def run(size: rig.Rounds, seed: int, _: Sequence[str]) -> rig.Found:
    """So many schedules, a few at once."""

    def share(numbers: Sequence[int]) -> rig.Found:
        found = rig.Found(rounds=len(numbers))
        for number in numbers:
            history = play(number, seed)
            found.acknowledged += len(history.ids)
            for kind, example in judged(history):
                found.note(kind, f"schedule {number}: {example}")
        return found

    return rig.shared_out(share, range(size.first, size.first + size.rounds), jobs=size.jobs)


if __name__ == "__main__":
    sys.exit(rig.command("loops", rig.Rounds(500), run))
