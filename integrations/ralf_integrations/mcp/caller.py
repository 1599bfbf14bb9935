"""Which session has called a process that is not a hook, such as the MCP server: by the client that started it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from ralf import environment as of_core
from ralf.project import Project
from ralf_integrations import environment
from ralf_integrations.hooks import session_registry

_MOST_PARENTS = 6  # a launcher or a shell may stand between


def session(project: Project) -> str:
    """The id of the session that runs in the client which started this process; "" where none is known.

    What hooks have seen comes first: a client goes on with another session, and what it told at the start stays.
    """
    parents = set(_parents())
    ours = [
        one
        for one in session_registry.all_sessions(project)
        if one.pid in parents and not one.ended and one.born in (0, session_registry.process_start(one.pid))
    ]
    if ours:
        return max(ours, key=lambda one: one.seen).session
    return of_core.session()


def _parents() -> Iterator[int]:
    pid = os.getppid()
    for _ in range(_MOST_PARENTS):
        if pid <= 1:
            return
        yield pid
        pid = session_registry.process_parent(pid)


def go_to_project() -> None:
    """Make the client's project the current directory, where it names one: a client starts its servers anywhere."""
    folder = environment.claude_folder()
    if folder is not None:
        with suppress(OSError):  # then it is where we are
            os.chdir(folder)
