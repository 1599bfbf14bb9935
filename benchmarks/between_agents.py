"""Seconds between two agents of `ralf loop`, from the exit of one to the first instruction of the next, with
nothing to checkpoint and with 50,000 tokens that no checkpoint has; and the CPU time of loop, agents and checkpoints.

The agent stands in for Claude Code: a process that is there at once, keeps a transcript, and completes its task.
Elapsed time depends on what else the machine does, CPU time hardly; a ratio is what it took to what it may take.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import synthetic
from installed import ralf as installed
from measure import Row, main

from ralf.tasks import editing

TITLE = "Between two agents of a loop"

OWED = 50_000
MOST = {0: 0.3, OWED: 2.0}  # seconds
_AGENT = """\
import os, subprocess, sys, time
begun = time.monotonic()
session = sys.argv[sys.argv.index("--session-id") + 1]
folder = os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "projects", "harbour")
os.makedirs(folder, exist_ok=True)
with open(os.environ["BETWEEN_SESSION"]) as source, open(os.path.join(folder, f"{session}.jsonl"), "w") as log:
    log.write(source.read().replace("SESSION", session))
time.sleep(1.5)
done = [os.environ["BETWEEN_RALF"], "task", "done", "The tables are carried over, and every reader reads both of them"]
subprocess.run(done, stdout=subprocess.DEVNULL, check=True)
with open(os.environ["BETWEEN_LOG"], "a") as log:
    log.write(f"{begun} {time.monotonic()}\\n")
    log.flush()
    os._exit(0)
"""


def produce(rounds: int) -> list[Row]:
    """The rows; see above."""
    rows = []
    for owed, most in MOST.items():
        pauses, cpu = _looped(rounds + 1, owed)
        what = f"{owed:,} tokens owed" if owed else "nothing owed"
        middle = statistics.median(pauses)
        rows.append(Row(f"from exit to next start, {what}", middle, "s elapsed", middle / most, target=1.0))
        rows.append(Row(f"loop, agents and checkpoints for each start, {what}", cpu, "s CPU"))
    return rows


def _looped(starts: int, owed: int) -> tuple[list[float], float]:
    """The seconds between the agents of a loop, and its CPU seconds for each of them."""
    with tempfile.TemporaryDirectory(prefix="ralf-between-") as scratch:
        top = Path(scratch)
        root, agent = top / "project", top / "claude"
        root.mkdir()
        (top / "agent.py").write_text(_AGENT)
        agent.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {top / "agent.py"} "$@"\n')
        agent.chmod(0o700)
        turns = (line for number in range(owed // synthetic.TURN_TOKENS) for line in synthetic.turn(number, "SESSION"))
        (top / "session").write_bytes(b"".join(turns))
        before: tuple[str, ...] = ()
        for number in range(starts):
            before = (editing.add(f"Carry over table {number}", after=before, root=root).task.id,)
        known = {name: value for name, value in os.environ.items() if not name.startswith(("RALF_", "CLAUDE", "CODEX"))}
        known |= {
            "CLAUDE_CONFIG_DIR": str(top / "clients"),
            "BETWEEN_LOG": str(top / "log"),
            "BETWEEN_RALF": installed(),
            "BETWEEN_SESSION": str(top / "session"),
        }
        began = _cpu()
        words = [installed(), "--root", str(root), "loop", "--agent", str(agent), "--json"]
        done = subprocess.run(words, cwd=root, env=known, capture_output=True, text=True, check=True)
        cpu = (_cpu() - began) / starts
        completed = json.loads(done.stdout.splitlines()[-1])["completed"]
        if completed != starts:
            raise SystemExit(f"{completed} of {starts} tasks were completed: {done.stdout}")
        times = [tuple(map(float, line.split())) for line in (top / "log").read_text().splitlines()]
    return [begun - ended for (_, ended), (begun, _) in pairwise(times)], cpu


def _cpu() -> float:
    """CPU seconds of the children that have ended."""
    told = os.times()
    return told.children_user + told.children_system


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))
