"""A RALF loop whose agent is killed in every third run: each next prompt says what the earlier runs came to.

The loop is `loop.sh`, as its tree has it, the agent a stand-in (`loop_agent.sh`) that writes a run's documents and a
promise tag, and dies at one of seven places, alone or with the whole loop, which is then started again. Nothing that
was written is lost, attempts are counted right, and where nothing changes the prompt says so from the set number on.

python -m tests.faults.loop --iterations 30
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults import rig

import ralf
from ralf import config
from ralf.facts.progress import MOST_RUNS
from ralf.maintenance.verify import verify
from ralf.project import Project
from ralf_integrations.blackbox5 import installing
from ralf_integrations.clients import installation

HERE = Path(__file__).parent
PLACES = ("begin", "thoughts", "closing", "torn", "results", "promised", "decisions")
PROMISES = ("COMPLETE", "PARTIAL", "BLOCKED", "RETRY", "FAILED", "nothing")
TASKS = ("TASK-ARCH-001", "TASK-MAINT-7")
STUCK = "TASK-STUCK-3"
NAMED = ("suffix", "metadata", "environment")
UNSAID = "ended without a word"
HANGS = 120.0  # seconds of one loop
_THIRD = 3


@dataclass(frozen=True)
class Run:
    """One iteration: its task, how its folder tells that, and what the agent does."""

    number: int
    task: str
    how: str
    when: str

    @property
    def outcome(self) -> str:
        """How it ended, as the next ones have to be told."""
        place = self.when.partition("-")[0]
        if place in ("results", "promised", "closing"):
            return "PARTIAL"  # as its documents say, or its output
        if place in PLACES or self.when == "nothing":
            return UNSAID
        return "RETRY" if self.when == "stuck" else self.when


def plan(iterations: int, seed: int) -> list[Run]:
    """What each iteration does: a kill in every third, of the whole loop in every second of those."""
    dice = random.Random(seed)
    runs, kills = [], 0
    for number in range(1, iterations + 1):
        last = iterations // _THIRD
        task = STUCK if number > iterations - last else TASKS[(number // 2) % len(TASKS)]
        how = NAMED[number % len(NAMED)] if number % 2 else dice.choice(NAMED)
        if number % _THIRD == 0:
            place = PLACES[kills % len(PLACES)] if task != STUCK else "begin"
            when = f"{place}-{'group' if kills % 2 or place == 'closing' else 'agent'}"
            kills += 1
        elif task == STUCK:
            when = "stuck"
        else:
            when = dice.choice(PROMISES)
        runs.append(Run(number, task, how, when))
    return runs


@contextlib.contextmanager
def tree() -> Iterator[Path]:
    """A project of a tree, with the loop's prompt, and ralf installed into it."""
    top = Path(tempfile.mkdtemp(prefix="ralf-loop-"))
    home = os.environ.get("HOME", "")
    os.environ["HOME"] = str(top / "home")  # the user whose loop it is
    try:
        root = top / "5-project-memory" / "blackbox5"
        (root / "bin").mkdir(parents=True)
        (root / ".autonomous" / "runs").mkdir(parents=True)
        (root / "bin" / "ralf.md").write_text("# RALF\n\nOne task per run.\n")
        project = Project(root)
        for part in installing.parts(project):
            change = installation.plan(project, part)
            if change is not None:
                installation.apply(project, change)
        yield root
    finally:
        os.environ["HOME"] = home
        shutil.rmtree(top, ignore_errors=True)


def loop(root: Path, plans: Path, first: int, last: int, *, start: Path | None = None) -> int:
    """Run the loop from one iteration to another; its exit status, -9 where it was killed."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("RALF_", "BB5_", "CLAUDE", "CODEX"))
    }
    env = kept | {"LOOP_PLAN": str(plans), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if start is not None:
        env["LOOP_START"] = str(start)
    command = ["bash", str(HERE / "loop.sh"), str(root), str(first), str(last)]
    with (plans / "shell").open("ab") as said:  # bash says there who was killed
        started = subprocess.Popen(command, env=env, cwd="/", start_new_session=True, stdout=said, stderr=said)
        try:
            return started.wait(HANGS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, 9)


@dataclass(frozen=True)
class Size:
    """How many runs of the loop."""

    iterations: int = 30


def run(size: Size, seed: int, _: Sequence[str]) -> rig.Found:
    """Run the loop over all iterations, started again wherever it died, and look at what it left."""
    found = rig.Found(rounds=size.iterations)
    runs = plan(size.iterations, seed)
    with tree() as root:
        plans = root.parents[1] / "plan"
        plans.mkdir()
        for one in runs:
            (plans / str(one.number)).write_text(f"{one.task} {one.how} {one.when}\n")
        start = _door(root) if _INSTEAD else None
        number, deaths = 1, 0
        while number <= size.iterations:
            status = loop(root, plans, number, size.iterations, start=start)
            done = max((int(path.stem) for path in plans.glob("*.run")), default=0)
            deaths += status == -9
            if status not in (0, -9) or done < number:
                found.note("failed", f"the loop ended with {status} in iteration {done} of {number}")
                break
            number = done + 1
        groups = sum(one.when.endswith("-group") for one in runs)
        found.note("unkilled", f"the loop died {deaths} times, not {groups}", deaths != groups)
        for place, task in enumerate(dict.fromkeys(one.task for one in runs)):  # one more, which finds what these left
            (plans / str(1000 + place)).write_text(f"{task} suffix nothing\n")
            loop(root, plans, 1000 + place, 1000 + place, start=start)
        _look(root, plans, runs, found)
    return found


_INSTEAD: list[str] = []
"""What is typed instead of the door's `start`, where that is broken on purpose."""

BROKEN = {
    # It hands over what is kept, and leaves those that died where they lie.
    "nothing taken in": lambda: _doing('"{door}" ralf show "$RALF_TASK_ID" --brief 2>/dev/null; true'),
    "nothing handed over": lambda: _doing('"{door}" start >/dev/null'),
}


@contextlib.contextmanager
def _doing(line: str) -> Iterator[None]:
    _INSTEAD.append(line)
    yield


def _door(root: Path) -> Path:
    """A door that does not do what it has to."""
    door, path = root / ".autonomous/context/hooks/context-checkpoint.sh", root.parents[1] / "broken.sh"
    path.write_text(f"#!/usr/bin/env bash\n{_INSTEAD[0].replace('{door}', str(door))}\n")
    path.chmod(0o755)
    return path


# ---- what it left ----


def _look(root: Path, plans: Path, runs: Sequence[Run], found: rig.Found) -> None:
    names = {one.number: (plans / f"{one.number}.run").read_text().strip() for one in runs}
    repeats = config.load(Project(root).config_file).health_repeats
    for task in dict.fromkeys(one.task for one in runs):
        _task(root, plans, [one for one in runs if one.task == task], names, repeats, found)
    markers = (plans / "acknowledged").read_text().splitlines()
    found.acknowledged = len(markers)
    texts = [
        (decision.decision, summary.route)
        for summary in ralf.list_routes(root=root)
        for decision in ralf.get_context(summary.route, root=root).decisions
    ]
    for marker in markers:
        task = next(one.task for one in runs if re.search(rf"\b{one.number}\Z", marker))
        held = [route for text, route in texts if re.search(rf"{re.escape(marker)}\b", text)]
        found.note("lost", f"the decision on {marker} is in {held or 'no route'}, not once in {task}", held != [task])
    for one in verify(root=root).findings:
        found.note("damaged", f"{one.path}: {one.what}", one.damage)


def _task(root: Path, plans: Path, runs: Sequence[Run], names: dict[int, str], repeats: int, found: rig.Found) -> None:
    """Each prompt of a task names the runs before it and how they ended; the attempts are counted right."""
    for place, one in enumerate(runs):
        lines = (plans / f"{one.number}.prompt").read_text().splitlines()
        for before in runs[max(0, place - MOST_RUNS) : place]:
            line = next((line for line in lines if names[before.number] in line), "")
            wrong = f"prompt {one.number} says {line!r} of {names[before.number]}: {before}"
            found.note("untold", wrong, before.outcome not in line)
        if one.task == STUCK:
            warns = any("attempts have changed nothing" in line for line in lines)
            wrong = f"prompt {one.number}, after {place} attempts of {repeats}: {warns}"
            found.note("warning", wrong, warns != (place >= repeats))
    attempts = ralf.get_context(runs[0].task, root=root).active_work.attempts
    wrong = f"{runs[0].task} has {attempts} attempts, not {len(runs) + 1}"  # the last look is one
    found.note("miscounted", wrong, attempts != len(runs) + 1)


if __name__ == "__main__":
    no_bash = "" if shutil.which("bash") else "no bash here"
    sys.exit(rig.command("loop", Size(), run, broken=BROKEN, why_not=lambda: no_bash))
