"""Reports changes since a route's last checkpoint: open files that changed or are gone, and uncovered work.

Computed at each read and not stored in the route file, whose content depends on the transcript alone. The cache holds
the state of open files at the checkpoint; without it, nothing is reported about a file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from ralf.errors import RalfError
from ralf.model import RouteContext, Since
from ralf.project import Project
from ralf.route import offsets
from ralf.storage.files import content_of, open_regular, replace_undurably
from ralf.text.patterns import regex
from ralf.transcripts.events import session_of_log
from ralf.transcripts.reader import estimate_since, newest_logs, open_transcript

CHANGED, GONE = "changed since the checkpoint", "gone since the checkpoint"

_LONGEST_NAME = 4_096  # characters of a path: no system knows longer ones, and each folder in one is looked up

_LONGEST = 4 << 20  # bytes of a file that are compared

_READ = 1 << 20  # bytes of a transcript that are read; what is beyond is estimated

_SESSIONS = 4  # of the newest transcripts are looked at

_TAIL = 64 << 10

_MARK = ("size", "time", "hash")

_TIME = regex(rb'"timestamp":\s*"([^"]{10,40})"')


def look(project: Project, context: RouteContext) -> Since:
    """Return the changes since a route's last checkpoint; never fails, whatever the tree and the cache hold."""
    return Since(_stale(project, context), *_uncovered(project, context))


# ---- open files ----


def remember(project: Project, context: RouteContext) -> None:
    """Store the state of the open files at a checkpoint. The caller holds the route's lock.

    A cache that cannot be written costs knowledge, not data.
    """
    marks = {file.path: _marked(project.root, file.path, None) for file in context.active_work.open_files}
    path = _cached(project, context.route)
    temporary = path.with_name(f".{path.name}.tmp")  # one name: who holds the route's lock removes a dead writer's
    with suppress(OSError):
        replace_undurably(path, json.dumps(marks).encode(), temporary)


def _stale(project: Project, context: RouteContext) -> dict[str, str]:
    if not context.active_work.open_files:
        return {}
    try:
        marks = json.loads(content_of(_cached(project, context.route)))
    except (OSError, ValueError, RecursionError):
        return {}
    stale = {}
    for file in context.active_work.open_files:
        before = marks.get(file.path) if isinstance(marks, dict) else None
        if isinstance(before, list) and len(before) == len(_MARK):
            now = _marked(project.root, file.path, before)
            if now is None or now[-1] != before[-1]:
                stale[file.path] = GONE if now is None else CHANGED
    return stale


def _marked(root: Path, name: str, before: Sequence[Any] | None) -> list[Any] | None:
    """Size, time and hash of a project's file, None where there is none; what size and time say is the same is not
    read again. A path that leads out of the project is not followed.
    """
    if not _within(name):
        return None
    try:
        if not Path(os.path.realpath(root / name)).is_relative_to(os.path.realpath(root)):
            return None
        with open_regular(root / name, follow=True) as file:
            found = os.fstat(file.fileno())
            known = [found.st_size, found.st_mtime_ns]
            if before is not None and list(before[:2]) == known:
                return list(before)
            return [*known, hashlib.blake2b(file.read(_LONGEST), digest_size=16).hexdigest()]
    except (OSError, ValueError):
        return None


def _within(name: str) -> bool:
    if len(name) > _LONGEST_NAME:
        return False
    path = PurePosixPath(name)
    return not (path.is_absolute() or ".." in path.parts or name.startswith("~") or "\0" in name)


def _cached(project: Project, route: str) -> Path:
    return project.cache / "open" / f"{route}.json"


# ---- work that no checkpoint covers ----


def _uncovered(project: Project, context: RouteContext) -> tuple[int, int | None]:
    if not any(entry.session for entry in context.checkpoint_history):
        return 0, None
    try:
        found = newest_logs(project)[:_SESSIONS]
    except OSError:
        return 0, None
    for path in found:
        with suppress(OSError, RalfError):
            position = offsets.ingest_offset(project, context.route, session_of_log(path)).position
            size = path.stat().st_size
            if 0 < position.byte < size:
                tokens = estimate_since(open_transcript(path), position, most=_READ)
                return tokens, _minutes(path, size, context.last_checkpoint)
    return 0, None


def _minutes(path: Path, size: int, last: str) -> int | None:
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL))
        times = _TIME.findall(file.read(_TAIL))
    try:
        gone = datetime.fromisoformat(times[-1].decode()) - datetime.fromisoformat(last)
        return max(0, round(gone.total_seconds() / 60))
    except (IndexError, ValueError, TypeError):
        return None
