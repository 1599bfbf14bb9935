"""Makes the project of an earlier version that `tests/test_earlier_project.py` reads: `tests/stores/harbour-4f05e28`.

    git worktree add OLD 4f05e28 && python3 -m venv OLD/.venv && OLD/.venv/bin/pip install OLD
    OLD/.venv/bin/python tests/earlier_project.py [FOLDER]

The interpreter is the one of the earlier version: only its commands write here, and this file imports nothing else of
the tests. Clock, identifiers and random bytes are counted, and the project lies in a folder of a fixed name, so that
the same version writes the same bytes each time (where zlib compresses alike). What is not of the project is left out:
locks, the search index, what tells the next hook whether it may end at once, the list of ignored files, files displaced
a moment ago, most of the last renders, and the process of a client.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import os
import shutil
import sys
import time
import uuid
from contextlib import redirect_stderr, redirect_stdout
from itertools import count
from pathlib import Path
from typing import Any

PLACE = Path("/tmp/harbour")  # a fixed name: it stands in the logs of the sessions
FOLDER = Path(__file__).parent / "stores" / "harbour-4f05e28"
BEGAN = datetime.datetime(2026, 6, 1, 12, tzinfo=datetime.timezone.utc)  # noqa: UP017  # any Python
OLD_SESSION = "5f0c1d2e-0000-4000-8000-0000000000a1"
PARKED = "5f0c1d2e-0000-4000-8000-0000000000b2"
LEFT_OUT = ("locks", "hooks.log", ".gitignore", "index.db", "index.db-wal", "index.db-shm")


# ---- time and chance ----


def count_time_and_chance() -> None:
    """Replace clock, identifiers and random bytes by counted ones; to be called before ralf is imported."""
    seconds, numbers = count(), count()

    class Clock(datetime.datetime):
        """A clock that goes on by a second each time that it is looked at."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            return (BEGAN + datetime.timedelta(seconds=next(seconds))).astimezone(tz)

    def chance(size: int) -> bytes:
        return hashlib.shake_128(f"harbour {next(numbers)}".encode()).digest(size)

    datetime.datetime = Clock  # type: ignore[misc]
    os.urandom = chance
    uuid.uuid4 = lambda: uuid.UUID(bytes=chance(16), version=4)
    time.time = lambda: BEGAN.timestamp()


def settle_times(top: Path) -> None:
    """Set the times of all files back to the beginning: some of them are written down."""
    for path in sorted(top.rglob("*")):
        if path.is_file():
            os.utime(path, (BEGAN.timestamp(), BEGAN.timestamp()))


# ---- what the earlier version is given ----


def record(session: str, number: int, kind: str, content: object, **more: object) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content, **more}
    if kind == "assistant":
        message |= {"model": "m", "id": f"msg_{number}"}
    return {
        "type": kind,
        "sessionId": session,
        "uuid": f"{session}-{number}",
        "cwd": str(PLACE / "project"),
        "isSidechain": False,
        "timestamp": f"2026-03-01T08:{number // 60:02d}:{number % 60:02d}.000Z",
        "message": message,
    }


def turns(session: str, *wanted: tuple[str, Any], first: int = 0) -> str:
    """Lines of a log of Claude Code: ("user", text), ("says", text), ("bash", (command, output, failed)), ("edit",
    path), ("todos", [(text, status)]).
    """
    lines = []
    for number, (kind, what) in enumerate(wanted, start=first):
        if kind == "user":
            lines.append(record(session, 2 * number, "user", what))
            continue
        if kind == "says":
            lines.append(record(session, 2 * number, "assistant", [{"type": "text", "text": what}]))
            continue
        out, failed = "ok", False
        if kind == "bash":
            name, given = "Bash", {"command": what[0]}
            out, failed = what[1], what[2]
        elif kind == "edit":
            name, given = "Edit", {"file_path": str(PLACE / "project" / what), "old_string": "a", "new_string": "b"}
        else:
            name = "TodoWrite"
            given = {"todos": [{"content": text, "status": status, "activeForm": text} for text, status in what]}
        call = {"type": "tool_use", "id": f"call_{number}", "name": name, "input": given}
        result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": out, "is_error": failed}
        lines.append(record(session, 2 * number, "assistant", [call]))
        lines.append(record(session, 2 * number + 1, "user", [result]))
    return "".join(json.dumps(line) + "\n" for line in lines)


FIRST = (
    ("user", "Move the tide table from CSV to SQLite in four steps. Never write to deploy/prod.env."),
    ("says", "I use SQLite instead of Postgres, because one file needs no server."),
    ("todos", [("Read the harbours", "completed"), ("Write the schema", "in_progress"), ("Drop the CSV", "pending")]),
    ("edit", "src/tides.py"),
    ("bash", ("cat src/harbours.csv", "Exit code 1\ncat: src/harbours.csv: No such file or directory", True)),
    ("says", "The harbours come from `stations.json`, since the CSV file is gone."),
    ("bash", ("pytest -q tests/test_tides.py", "12 passed in 0.31s\n" + "level 407 cm at station 9\n" * 40, False)),
    ("says", "Step 1 of 4 is done: the harbours are read. The harbour master's cottage is at gauge 7."),
)
SECOND = (
    ("user", "Carry on with step 2, and keep the names of the columns."),
    ("says", "I decided to name the column `gauge_id`, because the logger prints that name."),
    ("edit", "src/schema.py"),
    ("bash", ("git commit -qm 'Add the schema' && git log -1", "commit 0a1b2c3d Add the schema", False)),
    ("todos", [("Read the harbours", "completed"), ("Write the schema", "completed"), ("Drop the CSV", "in_progress")]),
    ("says", "Step 2 of 4 is done. Next: drop the CSV reader."),
)
MOON = (
    ("user", "Compute the phases of the moon for the almanac, and never round before the last step."),
    ("says", "I use the tables of Meeus instead of an ephemeris service, because they work offline."),
    ("edit", "src/moon.py"),
    ("bash", ("python -m moon --check", "Exit code 2\nmoon: epoch 2451550 is out of range", True)),
    ("says", "The epoch has to be a Julian day. Next: convert it in `src/moon.py`."),
)
MOON_LATER = (
    ("user", "Round the illuminated part to two places."),
    ("says", "I round in `almanac.py` alone, because every other program wants all the digits."),
    ("edit", "src/almanac.py"),
)
"""What the parked session did after its checkpoint: no version has taken it in."""

RUN = {
    "THOUGHTS.md": "# Thoughts - TASK-7\n\n**Task:** TASK-7 - Print the almanac\n\n## Approach\n\n"
    "The printer wants one page for each month.\n",
    "DECISIONS.md": "# Decisions - TASK-7\n\n## D-9: Paper\n\n**Decision:** Print on A5\n\n"
    "**Rationale:** It fits the pocket of an oilskin\n\n**Alternatives Considered:**\n- A4: too large\n",
    "RESULTS.md": "# Results - TASK-7\n\n**Status:** partial\n\n## Summary\n\nJanuary is printed.\n\n"
    "## Next Steps\n\n1. Print February\n",
    "metadata.yaml": "run_id: run-0018\ntask_id: TASK-7\nstatus: partial\n",
}


# ---- how it is made ----


class Earlier:
    """The commands of the version that runs this file, on the project."""

    def __init__(self) -> None:
        self.root = PLACE / "project"
        self.store = self.root / ".autonomous" / "context"

    def __call__(self, *args: str, given: str = "", status: int = 0) -> str:
        """Run `ralf`; what it printed."""
        from ralf_cli.main import run

        settle_times(PLACE)
        sys.argv, sys.stdin = ["ralf", "--root", str(self.root), *args], io.TextIOWrapper(io.BytesIO(given.encode()))
        printed = io.StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(printed):
                run()
        except SystemExit as ended:
            if ended.code != status:
                raise AssertionError(f"ralf {' '.join(args)}: {ended.code}\n{printed.getvalue()}") from None
        return printed.getvalue()

    def hook(self, event: str, session: str, **more: object) -> None:
        """Answer a hook in this process."""
        from ralf_integrations.hooks import entry

        log = log_of(session)
        tree = {"session_id": session, "transcript_path": str(log), "cwd": str(self.root), "hook_event_name": event}
        settle_times(PLACE)
        entry.run("claude-code", event, json.dumps({**tree, **more}).encode(), lambda said: None)  # type: ignore

    def edit(self, route: str, before: str, after: str) -> None:
        """Change a route file as an editor does that saves in place."""
        path = self.store / "routes" / f"{route}.md"
        text = path.read_text(encoding="utf-8")
        if text.count(before) != 1:
            raise AssertionError(f"{path}: {before!r} does not stand there once\n{text}")
        path.write_text(text.replace(before, after), encoding="utf-8")


def log_of(session: str) -> Path:
    slug = str(PLACE / "project").replace("/", "-")
    path = PLACE / "home" / ".claude" / "projects" / slug / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def make() -> None:
    """Work on the project as a user, two sessions and a run of a loop do."""
    ralf = Earlier()
    for name in ("tides", "schema", "moon", "almanac"):
        path = ralf.root / "src" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""The {name} of the harbour."""\n')
    run = ralf.root / "runs" / "executor" / "run-0018"
    run.mkdir(parents=True)
    for name, text in RUN.items():
        (run / name).write_text(text)
    log, parked = log_of(OLD_SESSION), log_of(PARKED)
    ralf("init", "--yes")

    # tide: two checkpoints, decisions of every fate, an edit that was taken in, words that were forgotten
    log.write_text(turns(OLD_SESSION, *FIRST))
    ralf("context", "checkpoint", "tide", "--transcript", str(log))
    ralf("context", "decide", "tide", "Keep the levels in centimetres", "--because", "as the logbook does",
         "--instead-of", "metres: three more characters in each cell")  # fmt: skip
    ralf("context", "decide", "tide", "Keep a backup of the CSV on the pier", "--because", "the pier is dry")
    ralf("context", "drop", "tide", label(ralf, "tide", "backup of the CSV"), "--because", "the pier is not dry")
    ralf("context", "decide", "tide", "Never delete a reading", "--rule")
    ralf("context", "decide", "tide", "Store the levels in millimetres", "--because", "the new gauge measures them",
         "--supersedes", label(ralf, "tide", "levels in centimetres"))  # fmt: skip
    ralf.edit("tide", "the new gauge measures them", "the new gauge measures them; said the harbour office")
    ralf("context", "decide", "tide", "Ask the keeper Ingeborg Halvorsen for the keys of gauge 7")
    log.write_text(turns(OLD_SESSION, *FIRST, *SECOND))
    ralf("context", "checkpoint", "tide", "--transcript", str(log))
    ralf("context", "forget", "tide", "--text", "harbour master's cottage", "--yes")
    ralf("context", "forget", "tide", label(ralf, "tide", "Ingeborg"), "--yes")
    for number in range(22):
        ralf("context", "decide", "tide", f"The tolerance of gauge {number} is {number + 3} mm")
    ralf("context", "archive", "tide", "--older-than", "30d")

    # almanac: the run of a loop; moon: a session that hooks have seen, parked in the middle, and an edit not taken in
    ralf("context", "checkpoint", "almanac", "--transcript", str(run))
    parked.write_text(turns(PARKED, *MOON))
    ralf.hook("SessionStart", PARKED, source="startup")
    ralf.hook("UserPromptSubmit", PARKED, prompt=MOON[0][1])
    os.environ["CLAUDE_CODE_SESSION_ID"] = PARKED
    ralf("route", "use", "moon")
    del os.environ["CLAUDE_CODE_SESSION_ID"]
    ralf("context", "checkpoint", "moon", "--transcript", str(parked))
    ralf("context", "decide", "moon", "Call the new moon phase 0", "--because", "the almanac counts from there")
    ralf("context", "decide", "moon", "Call the full moon phase 4")
    ralf("context", "revert", "moon", "cp-001")
    ralf("context", "decide", "moon", "Call the full moon phase 2", "--because", "there are four of them")
    with parked.open("a") as file:
        file.write(turns(PARKED, *MOON_LATER, first=len(MOON)))
    ralf.hook("PostToolBatch", PARKED)
    ralf("nudge", "The tide table is at step 3: take the almanac's epoch from it.", "--session", PARKED)
    ralf("orchestrator", "pm", given='{"queue": ["almanac"], "tokens": 141000, "window": 200000}')
    ralf("context", "verify")
    ralf.edit("moon", "there are four of them", "there are four of them, says the harbour office")


def label(ralf: Earlier, route: str, words: str) -> str:
    """The label of the decision with these words."""
    found = json.loads(ralf("context", "show", route, "--json"))["decisions"]
    (one,) = [each["id"] for each in found if words in each["decision"]]
    return str(one)


def keep(folder: Path) -> None:
    """Lay what was made into a folder of the tests, in place of what was there."""
    shutil.rmtree(folder, ignore_errors=True)
    left_out = shutil.ignore_patterns(*LEFT_OUT, ".*.seen", "*.lock", "*.next")
    shutil.copytree(PLACE / "project" / ".autonomous" / "context", folder / "store", ignore=left_out)
    for render in sorted((folder / "store" / "cache" / "renders" / "tide").iterdir())[:-2]:
        render.unlink()  # a cache, and the largest part
    known = folder / "store" / "cache" / "hooks" / f"{PARKED}.json"
    gone = {"pid": 0, "born": 0, "machine": ""}  # the client's process was one of this machine
    known.write_text(json.dumps(json.loads(known.read_text()) | gone))
    shutil.copytree(PLACE / "project", folder / "project", ignore=shutil.ignore_patterns(".autonomous"))
    shutil.copytree(log_of(PARKED).parent, folder / "logs")


def main() -> None:
    """Make it, and keep it in the folder that is named, else in the one of the tests."""
    if PLACE.exists():
        raise SystemExit(f"{PLACE} is there: this project is made nowhere else, and from nothing")
    home, folder = PLACE / "home", Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else FOLDER
    (PLACE / "project").mkdir(parents=True)
    try:
        os.environ.clear()
        os.environ.update(
            {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "PATH": os.defpath, "TZ": "UTC"}
        )
        os.chdir(PLACE / "project")
        count_time_and_chance()
        make()
        keep(folder)
    finally:
        shutil.rmtree(PLACE)


if __name__ == "__main__":
    main()
