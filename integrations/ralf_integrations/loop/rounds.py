"""Whether a task stalls: nothing of it changed over a number of rounds. Time counts for nothing.

What counts: commits, the content of changed files, decisions, steps that were completed, test runs and what they said,
the progress that its agent told, and the text of its task. A hand-over by itself is no change.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from ralf.model import RouteContext
from ralf.storage.git_files import ask
from ralf.tasks.model import TaskState
from ralf_integrations import environment

_MOST_FILES = 500  # changed files that are looked at
_WHOLE = 1 << 20  # bytes of a file that is read; a larger one counts by its size and time
_OURS = b".autonomous/"


def signature(cwd: Path, state: TaskState, context: RouteContext | None) -> str:
    """What the work on a task has come to, as one short text.

    cwd      where its agent worked; context: of its route, None where it has none
    """
    known: list[object] = [state.task.text, state.progress, *_of_git(cwd)]
    if context is not None:
        known += [(one.id, one.status, one.decision) for one in context.decisions]
        known += [one.description for one in context.active_work.completed_steps]
        known += [(one.command, one.result) for one in context.facts.tests]
    return hashlib.sha256(repr(known).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _of_git(cwd: Path) -> list[object]:
    """The newest commit and the content of what was changed since; empty outside of git."""
    changed = _git(cwd, "status", "--porcelain=v1", "-z", "--untracked-files=all").split(b"\0")
    entries = [one for one in changed if one and not one[3:].startswith(_OURS)]
    contents = [(entry, _content(cwd / os.fsdecode(entry[3:]))) for entry in entries[:_MOST_FILES]]
    return [_git(cwd, "rev-parse", "HEAD"), len(entries), *contents]


def _content(path: Path) -> object:
    with suppress(OSError, ValueError):
        seen = path.stat()
        if seen.st_size > _WHOLE:
            return seen.st_size, seen.st_mtime_ns
        if path.is_file():
            return hashlib.sha256(path.read_bytes()).digest()
    return None


def _git(cwd: Path, *words: str) -> bytes:
    variables = {name: value for name, value in environment.of_an_agent().items() if not name.startswith("GIT_")}
    with suppress(subprocess.TimeoutExpired):
        done = ask(cwd, words, variables)
        return done.stdout if done is not None and not done.returncode else b""
    return b""
