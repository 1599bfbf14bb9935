"""What it takes to take over 5,000 run folders of a loop, nine in ten of them skeletons, and to look once more.

`--folders N` makes another number of them. All text is made; shapes and shares are those of the loop's real folders.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from measure import Row, main, python, run

TITLE = "Migrating run folders"
FOLDERS = 5_000
MOST_SECONDS, MOST_MEMORY = 120.0, 200e6
_TIRED = 0.6  # share of the runs that one task has had: it was tried again and again
_WRITTEN = 0.1  # share of the folders in which somebody wrote


def produce(rounds: int) -> list[Row]:
    """Once from nothing, then once more, when nothing is new."""
    count = int(sys.argv[sys.argv.index("--folders") + 1]) if "--folders" in sys.argv else FOLDERS
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        written = make(root, count)
        command = python(
            f"from ralf import project\n"
            f"from ralf_migrations.importing import import_all\n"
            f"report = import_all(project.find({str(root)!r}), 'run-folders')\n"
            f"assert len(report.files) == {count}, len(report.files)\n"
            f"assert len(report.those('imported')) == {written}, len(report.those('imported'))\n"
            f"assert not report.those('unreadable')"
        )
        rows = []
        for name in (f"{count:,} run folders, {written:,} of them written", "the same again"):
            begin = time.perf_counter()
            sample = run(command)
            took = time.perf_counter() - begin
            rows.append(Row(name, took, "s elapsed", took / MOST_SECONDS, sample.peak, 1.0))
            rows.append(Row(f"{name}: CPU", sample.cpu, "s CPU"))
            rows.append(Row(f"{name}: memory", sample.peak / 1e6, "MB", sample.peak / MOST_MEMORY, 0, 1.0))
        kept = sum(path.stat().st_size for path in (root / ".autonomous" / "context").rglob("*") if path.is_file())
        return [*rows, Row("kept of it", kept / 1e6, "MB")]


def make(root: Path, count: int) -> int:
    """Run folders below a project, the same for the same count; how many of them anybody wrote into."""
    dice = random.Random(count)  # noqa: S311  no secret
    written = 0
    for number in range(count):
        stamp = (
            f"202602{1 + number * 20 // count:02d}_{number // 3600 % 24:02d}{number // 60 % 60:02d}{number % 60:02d}"
        )
        tired = dice.random() < _TIRED
        task = "TASK-0815" if tired else f"TASK-{1000 + number // 40}"
        places = (
            f".autonomous/runs/run-{stamp}-{task}",
            f"runs/executor/run-{number:05d}",
            f"runs/unknown/run-{stamp}",
        )
        folder = root / (places[0] if tired or number % 3 == 0 else places[number % 3])
        folder.mkdir(parents=True)
        if dice.random() < _WRITTEN:
            _written(folder, task, stamp, dice)
            written += 1
        else:
            _skeleton(folder, task, stamp)
    return written


def _skeleton(folder: Path, task: str, stamp: str) -> None:
    for name, headings in (
        ("THOUGHTS", ("Reasoning",)),
        ("DECISIONS", ("Decisions Made",)),
        ("LEARNINGS", ("What Worked Well", "What Was Harder Than Expected")),
        ("RESULTS", ("Outcomes",)),
    ):
        body = "\n\n".join(f"## {heading}" for heading in headings)
        text = f"# {name} - {task}\n\n**Started:** {_time(stamp)}\n**Run:** {stamp}\n\n{body}\n"
        (folder / f"{name}.md").write_text(text)
    (folder / "status.txt").write_text("PENDING\n")


def _written(folder: Path, task: str, stamp: str, dice: random.Random) -> None:
    words = [f"part{dice.randrange(2_000)}" for _ in range(1_500)]

    def said(length: int) -> str:
        start = dice.randrange(len(words) - length)
        return " ".join(words[start : start + length])

    steps = (f"## Step {n}\n\nLooked at `src/{words[n]}.py` and found that {said(60)}." for n in range(6))
    thoughts = "\n\n".join(steps)
    (folder / "THOUGHTS.md").write_text(f"# Thoughts - {task}\n\n## Task\n{task}: {said(6)}\n\n{thoughts}\n")
    decisions = "\n\n---\n\n".join(
        f"## Decision {n}: {said(5)}\n\n**Context:** {said(12)}\n\n**Options Considered:**\n1. {said(4)}\n"
        f"2. {said(4)}\n\n**Selected:** {said(7)}\n\n**Rationale:**\n- {said(10)}\n- {said(10)}\n\n"
        f"**Reversibility:** HIGH"
        for n in range(1, 5)
    )
    (folder / "DECISIONS.md").write_text(f"# Decisions - {task}\n\n{decisions}\n")
    results = f"**Status:** completed\n\n## What Was Done\n\n{said(80)}.\n\n## Next Steps\n\n- {said(6)}\n"
    (folder / "RESULTS.md").write_text(f"# Results - {task}\n\n{results}")
    state = (
        f'state:\n  task_claimed: "{task}"\n  task_status: "completed"\n  files_modified:\n    - "src/{words[0]}.py"\n'
    )
    loop = f'loop:\n  number: 7\n  agent: executor\n  timestamp_start: "{_time(stamp)}"\n'
    (folder / "metadata.yaml").write_text(f'{loop}{state}next_steps:\n  - "{said(6)}"\n')


def _time(stamp: str) -> str:
    day, clock = stamp.split("_")
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{clock[:2]}:{clock[2:4]}:{clock[4:]}Z"


if __name__ == "__main__":
    place = sys.argv.index("--folders") if "--folders" in sys.argv else len(sys.argv)
    sys.exit(main(TITLE, produce, [*sys.argv[1:place], *sys.argv[place + 2 :]]))
