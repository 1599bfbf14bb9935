"""When a route is closed: its task is done, somebody has closed it, or nothing was recorded for 30 days. The next
record opens it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ralf.errors import Damaged
from ralf.project import Project
from ralf.storage import journal
from ralf.storage.journal import Written

CLOSED = "closed"
"""The status of a route's work that somebody has closed."""

IDLE_DAYS = 30

KEEPS_CLOSED = frozenset(("forget", "repair", "merge"))
"""Kinds of records that are about earlier ones: they open no route."""

_OF_THE_END = frozenset(("checkpoint", "attempt", *KEEPS_CLOSED))

_END = 3_600.0
"""Seconds within which the session that has done a task records its end."""


def why_closed(
    project: Project,
    route: str,
    status: str,
    task: str,
    last: Written | None = None,
    ended: Collection[str] | None = None,
) -> str:
    """Why a route is closed: `closed`, `task done` or `30 days`; "" for one that is open.

    status, task  of its work
    last          when its journal was written; None: it is looked up
    ended         the tasks that have ended, as `ended_tasks` lists them; None: this one's files are looked for
    """
    if status == CLOSED:
        return CLOSED
    if last is None:
        last = project.store.written("routes").get(route)
    seconds = last.written / 1e9 if last is not None and last.written > 0 else 0.0
    tasks = (one for one in (task, route) if one and (ended is None or one in ended))
    done = next(filter(None, (_done(project, one) for one in tasks)), 0.0)
    if done and not _is_opened(project, route, done, seconds):
        return "task done"
    return f"{IDLE_DAYS} days" if seconds and _is_over(round((seconds + IDLE_DAYS * 86_400) * 1e9)) else ""


_to_come: set[int] = set()  # moments that were not over yet, in nanoseconds


def _is_over(moment: int) -> bool:
    if (found := moment < time.time_ns()) is False:
        _to_come.add(moment)
    return found


def holds_until() -> int:
    """The time, in nanoseconds, until which every answer of this process holds: no route closes before by itself."""
    return min(_to_come, default=sys.maxsize)


def ended_tasks(project: Project) -> Collection[str]:
    """The tasks that are done or cancelled, for who asks of many routes: each folder is looked at once."""
    found = set[str]()
    for folder in _folders_of_ended(project):
        with suppress(OSError):
            found.update(name.removesuffix(".md") for name in os.listdir(folder))  # noqa: PTH208  # names are enough
    return found


def _done(project: Project, task: str) -> float:
    """When a task was done or cancelled, which the folder of its file says; 0.0 where it is not."""
    for folder in _folders_of_ended(project):
        with suppress(OSError, ValueError):
            return (folder / f"{task}.md").stat().st_mtime
    return 0.0


def _folders_of_ended(project: Project) -> list[Path]:
    return [project.folder.parent / "tasks" / status for status in ("completed", "cancelled")]


def _is_opened(project: Project, route: str, done: float, last: float) -> bool:
    """Whether something was recorded after a task was done that is not the end of the work at it."""
    newest = None
    if done < last <= done + _END:
        with suppress(Damaged, OSError):
            newest = journal.newest(project.store, route)
    return last > done + _END or (newest is not None and newest.kind not in _OF_THE_END)
