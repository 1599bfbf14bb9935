"""Trying an installed hook: in a project of its own that is thrown away, with a payload that means nothing."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ralf import environment, optin
from ralf.ownership import registry
from ralf.project import Project

_SESSION = "0d0c7082-0000-4000-8000-000000000000"
_SECONDS = 30


class Trial(NamedTuple):
    """How it went: what is wrong, "" for nothing, and the seconds that a call took with nothing due."""

    problem: str
    seconds: float


def of(command: Callable[[str], Sequence[str]], first: str, then: str) -> Trial:
    """Call a hook as a client does, for the beginning of a session and after a tool was used.

    command      what a client starts for an event
    first, then  its names of these events
    """
    with tempfile.TemporaryDirectory(prefix="ralf-doctor-") as name:
        project = Project(Path(name).resolve())
        optin.init(project, share=False)
        try:
            return _tried(project, command, [first, then, then])
        finally:
            registry.remove(project.root)


def _tried(project: Project, command: Callable[[str], Sequence[str]], events: Sequence[str]) -> Trial:
    seconds = 0.0
    for event in events:
        began = time.monotonic()
        if problem := _called(command(event), event, project.root):
            return Trial(problem, 0.0)
        seconds = time.monotonic() - began
    if not any((project.cache / "hooks").glob("*.json")):
        return Trial("it was called, and nothing of it is known: another ralf answers, or none", seconds)
    return Trial("", seconds)


def _called(command: Sequence[str], event: str, root: Path) -> str:
    payload = {
        "session_id": _SESSION,
        "transcript_path": str(root / "session.jsonl"),
        "cwd": str(root),
        "hook_event_name": event,
        "source": "startup",
    }
    inside = {"CLAUDE_PROJECT_DIR": str(root), "GEMINI_PROJECT_DIR": str(root)}
    try:
        done = subprocess.run(
            command,
            input=json.dumps(payload).encode(),
            cwd=root,
            env={**environment.of_a_model(), **inside},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except OSError as error:
        return f"cannot be started: {error.strerror or error}"
    except subprocess.TimeoutExpired:
        return f"does not answer within {_SECONDS} seconds"
    said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1][:200]
    if done.returncode != 0 or said:
        return f"ends with status {done.returncode}" + (f": {said}" if said else "")
    try:
        json.loads(done.stdout or b"{}")
    except ValueError:
        return "answers something else than JSON"
    return ""
