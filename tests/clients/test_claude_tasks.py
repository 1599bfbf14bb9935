"""The task list of the real Claude Code: in its files, and in the logs of two sessions that share it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from offline import CLIENTS, KIT, plain, why_not

from factskit import extract
from ralf.transcripts.reader import open_transcript
from ralf_migrations.task_lists import read_lists

pytestmark = [pytest.mark.release, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

_MODEL = "claude-opus-4-7"  # to later ones the client gives no task tools

_ROUNDS = 14  # without a task tool: after ten the client reminds its agent of the list


def step(tool: str, **arguments: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 11_000, "output_tokens": 60}
    return {"text": "next", "tool": {"name": tool, "input": arguments}, "usage": usage}


def ran(folder: Path, *steps: dict[str, Any]) -> None:
    """One session of Claude Code with the list `keel`."""
    folder.mkdir(exist_ok=True)
    (script := folder / "steps.json").write_text(json.dumps({"main": steps, "default_text": "Done."}))
    environment = {
        **os.environ,
        "CLIENTS": str(plain(folder.parent, Path(CLIENTS))),
        "EXTRA_ENV": "CLAUDE_CODE_ENABLE_TASKS=1 CLAUDE_CODE_TASK_LIST_ID=keel",
    }
    given = ("-p", "please go on", "--output-format", "json", "--dangerously-skip-permissions", "--model", _MODEL)
    subprocess.run(
        [str(KIT / "claude.sh"), str(folder), str(script), "--", *given],
        env=environment,
        check=True,
        capture_output=True,
        timeout=600,
    )


def test_a_list_that_two_sessions_share_is_read_whole_from_its_files_and_from_each_log(tmp_path: Path) -> None:
    echo = [step("Bash", command=f"echo {number}", description="count") for number in range(_ROUNDS)]
    run = plain(tmp_path, tmp_path) / "run"
    ran(
        run,
        step("TaskCreate", subject="Lay the keel", description="Of oak."),
        step("TaskCreate", subject="Plank it", description="Two strakes."),
        step("TaskUpdate", taskId="2", addBlockedBy=["1"]),
        step("TaskUpdate", taskId="1", status="in_progress", owner="kim"),
        step("TaskList"),
        step("TaskUpdate", taskId="1", status="completed"),
    )
    ran(run, *echo, step("TaskCreate", subject="Rig it", description="With hemp."))
    (found,), _ = read_lists(run / "home" / ".claude" / "tasks" / "keel")
    listed = [(one.key, one.task) for one in found.found.values()]
    assert [(key, task.title, task.text, task.status, task.after) for key, task in listed] == [
        ("claude:keel/1", "Lay the keel", "Of oak.", "completed", ()),
        ("claude:keel/2", "Plank it", "Two strakes.", "pending", ("keel/1",)),
        ("claude:keel/3", "Rig it", "With hemp.", "pending", ()),
    ]
    logs = (run / "home" / ".claude" / "projects").glob("*/*.jsonl")
    told = []
    for log in sorted(logs, key=lambda path: path.stat().st_mtime):
        work = extract(list(open_transcript(log).events()), base="/tmp/run/proj").work
        told.append([(todo.content, todo.status) for todo in work.todos])
    first = [("Lay the keel", "completed"), ("Plank it", "pending")]
    assert told == [first, [*first, ("Rig it", "pending")]]
