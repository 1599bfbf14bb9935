"""Whether a task stalls: nothing of it changed over a number of rounds. Time counts for nothing.

What counts: commits, the content of changed files, decisions, steps that were completed, test runs and what they said,
the progress that its agent told, and the state of all tasks. A hand-over by itself is no change.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from ralf.errors import RalfError
from ralf.finding.reader import get_context
from ralf.project import Project
from ralf.tasks.model import TaskState
from ralf_integrations import environment

_MOST_FILES = 500  # changed files that are looked at
_WHOLE = 1 << 20  # bytes of a file that is read; a larger one counts by its size and time
_SECONDS = 20  # that git may take
_OURS = b".autonomous/"


def signature(project: Project, cwd: Path, state: TaskState | None) -> str:
    """What the work on a task has come to, as one short text."""
    found = hashlib.sha256(_of_git(cwd))
    if state is not None:
        found.update(repr((state.task.text, state.progress)).encode("utf-8", "surrogatepass"))
        found.update(_of_route(project, state.task.context_route))
    return found.hexdigest()[:32]


def _of_route(project: Project, route: str) -> bytes:
    with suppress(RalfError, OSError):
        context = get_context(route, root=project.root)
        decisions = [(one.id, one.status, one.decision) for one in context.decisions]
        steps = [one.description for one in context.active_work.completed_steps]
        tests = [(one.command, one.result) for one in context.facts.tests]
        return repr((decisions, steps, tests)).encode("utf-8", "surrogatepass")
    return b""


def _of_git(cwd: Path) -> bytes:
    """The newest commit and the content of what was changed since, in a working directory; b"" outside of git."""
    head = _git(cwd, "rev-parse", "HEAD")
    changed = [one for one in _git(cwd, "status", "--porcelain=v1", "-z", "--untracked-files=all").split(b"\0") if one]
    found = hashlib.sha256(head)
    for entry in changed[:_MOST_FILES]:
        name = entry[3:]
        if not name.startswith(_OURS):
            found.update(entry + b"\0" + _content(cwd / os.fsdecode(name)))
    found.update(str(len(changed)).encode() if len(changed) > _MOST_FILES else b"")
    return found.digest()


def _content(path: Path) -> bytes:
    with suppress(OSError, ValueError):
        seen = path.stat()
        if seen.st_size > _WHOLE:
            return f"{seen.st_size} {seen.st_mtime_ns}".encode()
        if path.is_file():
            return hashlib.sha256(path.read_bytes()).digest()
    return b""


def _git(cwd: Path, *words: str) -> bytes:
    variables = {name: value for name, value in environment.of_an_agent().items() if not name.startswith("GIT_")}
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", os.fspath(cwd), *words],  # noqa: S607
            capture_output=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            env=variables,
            check=False,
        )
        return done.stdout if not done.returncode else b""
    return b""
