"""Claims by many at once: each command line on one task, a list taken down by workers, and a holder that dies.

    python benchmarks/claims.py                         ralf alone
    AQUA=/tmp/aqua/bin/aqua python benchmarks/claims.py     and aqua-coord beside it; see `aqua.py`
    bash benchmarks/claims_bd.sh                        the same for beads, where `bd` is installed

Whole commands, as agents type them: all of a round are started before the first is waited for.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aqua
from installed import ralf as installed
from measure import Row, main

from ralf.tasks import editing

TITLE = "Claims by many at once"

RACERS = 16
WORKERS, TASKS = 8, 40
LEASE = 2  # seconds
LATE = 2.0  # seconds after the lease within which a dead holder's task is to be claimed again
_PATIENCE = 15.0  # seconds that are waited for that


@dataclass
class Raced:
    """What came of the rounds of one tool."""

    winners: list[int] = field(default_factory=list)
    untold: int = 0
    losers: int = 0
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Tool:
    """A command line that claims tasks.

    claim    the words that claim a task, or any with None; `end`: those that complete what one holds
    agents   who claims: the environment of each
    won      which task a claim that printed this has got, "" for none
    holder   the name by which others are to be told who has it
    """

    name: str
    root: Path
    tasks: Callable[[int], list[str]]
    claim: Callable[[str | None], list[str]]
    end: Callable[[], list[str]]
    agents: Sequence[Mapping[str, str]]
    won: Callable[[subprocess.CompletedProcess[str]], str]
    holders: Sequence[str]


def produce(rounds: int) -> list[Row]:
    """The rows; see above."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        tools = [_ralf(Path(scratch) / "ralf")]
        if os.environ.get(aqua.NAMED) or shutil.which("aqua"):
            tools.insert(0, _aqua(Path(scratch) / "aqua"))
        else:
            print("aqua is not here: nothing stands beside ralf; see benchmarks/aqua.py", file=sys.stderr)
        raced = {tool.name: Raced() for tool in tools}
        for _ in range(rounds):
            for tool in tools:
                _round(tool, raced[tool.name])
        for name, found in raced.items():
            rows += _raced(name, found, ours=name == "ralf")
        for tool in tools:
            rows += _list(tool)
            rows.append(_dead(tool))
    return rows


# ---- the tools ----


def _ralf(root: Path) -> Tool:
    root.mkdir()
    command = installed()
    names = [f"racer-{number}" for number in range(RACERS)]

    def add(count: int) -> list[str]:
        return [editing.add(aqua.TITLE.format(number=number), root=root).task.id for number in range(count)]

    def claim(task: str | None) -> list[str]:
        return [command, "task", "claim", *([task] if task else []), "--lease", str(LEASE), "--json"]

    def won(done: subprocess.CompletedProcess[str]) -> str:
        return str(json.loads(done.stdout)["task"]["id"]) if not done.returncode else ""

    agents = [{"RALF_AGENT": name} for name in names]
    return Tool("ralf", root, add, claim, lambda: [command, "task", "done", "Done."], agents, won, names)


def _aqua(root: Path) -> Tool:
    command = aqua.command()
    aqua.project(command, root, 0)
    names = [f"racer{number}" for number in range(RACERS)]
    ids = [aqua.join(command, root, name) for name in names]

    def add(count: int) -> list[str]:
        found = [aqua.run(command, root, "add", aqua.TITLE.format(number=number), "--json") for number in range(count)]
        return [str(json.loads(text)["id"]) for text in found]

    def claim(task: str | None) -> list[str]:
        return [command, "claim", *([task] if task else []), "--json"]

    def won(done: subprocess.CompletedProcess[str]) -> str:
        try:
            return str(json.loads(done.stdout).get("id", ""))
        except ValueError:
            return ""

    agents = [{"AQUA_AGENT_ID": name} for name in ids]
    return Tool("aqua", root, add, claim, lambda: [command, "done"], agents, won, names)


def _start(tool: Tool, words: Sequence[str], agent: int) -> subprocess.Popen[str]:
    known = {**os.environ, **tool.agents[agent]}
    return subprocess.Popen(words, cwd=tool.root, env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _wait(started: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    out, err = started.communicate(timeout=120)
    return subprocess.CompletedProcess(started.args, started.returncode, out, err)


# ---- one task, many who want it ----


def _round(tool: Tool, found: Raced) -> None:
    [task] = tool.tasks(1)
    begun = time.perf_counter()
    done = [_wait(each) for each in [_start(tool, tool.claim(task), racer) for racer in range(RACERS)]]
    found.seconds.append(time.perf_counter() - begun)
    winners = [racer for racer, each in enumerate(done) if tool.won(each) == task]
    found.winners.append(len(winners))
    for racer, each in enumerate(done):
        if racer not in winners:
            found.losers += 1
            found.untold += not any(tool.holders[winner] in each.stdout + each.stderr for winner in winners)
    for winner in winners:
        _wait(_start(tool, tool.end(), winner))


def _raced(name: str, found: Raced, *, ours: bool) -> list[Row]:
    wrong = sum(count != 1 for count in found.winners)
    rounds = len(found.winners)
    return [
        Row(
            f"{name}: rounds of {RACERS} without one winner", wrong, f"of {rounds}", wrong, target=0.0 if ours else None
        ),
        Row(
            f"{name}: losers who were not told the holder",
            found.untold,
            f"of {found.losers:,}",
            found.untold / max(1, found.losers),
            target=0.0 if ours else None,
        ),
        Row(f"{name}: a round of {RACERS} claims", statistics.median(found.seconds), "s elapsed"),
    ]


# ---- a list, taken down by workers ----


def _list(tool: Tool) -> list[Row]:
    ids = tool.tasks(TASKS)
    taken: Counter[str] = Counter()
    guard = threading.Lock()

    def work(worker: int) -> None:
        misses = 0
        while misses < 3:  # a tool that says "none" to the loser of a race is asked again
            task = tool.won(_wait(_start(tool, tool.claim(None), worker)))
            if not task:
                misses += 1
                continue
            with guard:
                taken[task] += 1
            _wait(_start(tool, tool.end(), worker))

    begun = time.perf_counter()
    workers = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - begun
    wrong = sum(taken[task] != 1 for task in ids)
    ours = tool.name == "ralf"
    what = f"{tool.name}: {WORKERS} workers, {TASKS} tasks"
    return [
        Row(f"{what}: not claimed once", wrong, f"of {TASKS}", wrong, target=0.0 if ours else None),
        Row(f"{what}: all claimed and completed", seconds, "s elapsed"),
    ]


# ---- a holder that dies ----


def _dead(tool: Tool) -> Row:
    """How long after the end of its lease a task is claimed again whose holder is never heard of any more."""
    [task] = tool.tasks(1)
    assert tool.won(_wait(_start(tool, tool.claim(task), 0))) == task
    begun = time.perf_counter()
    while time.perf_counter() - begun < _PATIENCE:
        if tool.won(_wait(_start(tool, tool.claim(task), 1))) == task:
            late = max(0.0, time.perf_counter() - begun - LEASE)
            return Row(
                f"{tool.name}: a dead holder's task, after its lease of {LEASE} s", late, "s", late / LATE, 0, 1.0
            )
        time.sleep(0.1)
    return Row(f"{tool.name}: a dead holder's task, not claimed again within", _PATIENCE, "s", target=None)


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
