"""The command `aqua` of aqua-coord, beside which ours are measured, and projects of its with tasks in them.

python3 -m venv /tmp/aqua && /tmp/aqua/bin/pip install aqua-coord==0.5.0
AQUA=/tmp/aqua/bin/aqua python benchmarks/tasks.py
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

NAMED = "AQUA"
"""The variable that names the command."""

DREW_TWICE = "UNIQUE constraint failed: tasks.id"
"""Says `aqua serialize` where it has drawn an id of 32 bits that is taken, and leaves half of its work."""

TITLE = "Carry over table {number:05} of the tide gauge"
TEXT = "Read the columns of table {number} first, and keep the old ones beside the new ones."
SUMMARY = "Table {number} is carried over; its old columns stand beside the new ones until the season ends."


def command() -> str:
    """The command. SystemExit, which says how to get it, where there is none."""
    found = os.environ.get(NAMED) or shutil.which("aqua")
    if found is None:
        raise SystemExit(f"aqua is not here: pip install aqua-coord==0.5.0, in an environment of its own; {NAMED}=PATH")
    return str(Path(found).absolute())


def run(aqua: str, root: Path, *words: str, agent: str = "", status: int | None = 0) -> str:
    """Run it in a project, as an agent; what it prints. AssertionError for another exit status than that."""
    known = {**os.environ, **({"AQUA_AGENT_ID": agent} if agent else {})}
    done = subprocess.run([aqua, *words], cwd=root, env=known, capture_output=True, text=True, check=False)
    assert status is None or done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout


def project(aqua: str, root: Path, count: int, after: Sequence[int | None] = ()) -> list[str]:
    """Make a project with so many tasks; their ids. `after`: the place of the task that each waits for.

    The rows are those of `aqua add`, which would take a quarter of an hour for ten thousand. Their ids are none that
    aqua draws for a checkpoint (see `DREW_TWICE`).
    """
    root.mkdir(parents=True)
    run(aqua, root, "init")
    begin = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=count)
    letters = str.maketrans("0123456789abcdef", "ghijklmnopqrstuv")
    ids = [f"{number * 2654435761 % 2**32:08x}".translate(letters) for number in range(1, count + 1)]
    rows = []
    for number, name in enumerate(ids):
        when = (begin + timedelta(seconds=number)).isoformat()
        waits = after[number] if after else None
        depends = json.dumps([ids[waits]] if waits is not None else [])
        rows.append((name, TITLE.format(number=number), TEXT.format(number=number), when, when, "[]", depends))
    with sqlite3.connect(root / ".aqua" / "aqua.db") as database:
        database.executemany(
            "INSERT INTO tasks (id, title, description, created_at, updated_at, tags, depends_on)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
    database.close()
    return ids


def keep(root: Path) -> Path:
    """Keep what a project has, for `lay_back`."""
    return Path(shutil.copytree(root / ".aqua", root.with_name(f"{root.name}-kept")))


def lay_back(root: Path, kept: Path) -> None:
    """Give a project what it had."""
    shutil.rmtree(root / ".aqua")
    shutil.copytree(kept, root / ".aqua")


def serialize(aqua: str, root: Path, every: int) -> None:
    """Put the tasks of a project into a sequence; once more where it draws an id twice."""
    kept = keep(root)
    try:
        run(aqua, root, "serialize", "--every", str(every))
    except AssertionError as error:
        if DREW_TWICE not in str(error):
            raise
        lay_back(root, kept)
        run(aqua, root, "serialize", "--every", str(every))


def join(aqua: str, root: Path, name: str) -> str:
    """Join as an agent; its id."""
    return str(json.loads(run(aqua, root, "join", "--name", name, "--json"))["id"])


def put_back(root: Path, agent: str) -> None:
    """Put every claimed task back, and tell that the agent lives: it counts as dead after five minutes."""
    now = datetime.now(UTC).replace(tzinfo=None).isoformat()
    with sqlite3.connect(root / ".aqua" / "aqua.db") as database:
        database.execute("UPDATE tasks SET status = 'pending', claimed_by = NULL WHERE status = 'claimed'")
        database.execute("UPDATE agents SET current_task_id = NULL, last_heartbeat_at = ? WHERE id = ?", (now, agent))
    database.close()


def holders(root: Path) -> list[str]:
    """Who holds a task, by what the database says."""
    with sqlite3.connect(root / ".aqua" / "aqua.db") as database:
        rows = database.execute("SELECT claimed_by FROM tasks WHERE status = 'claimed'").fetchall()
    database.close()
    return [str(row[0]) for row in rows]
