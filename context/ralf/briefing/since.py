"""What has happened since a route's last checkpoint: open files that changed or went, and work that none covers.

Told at a read and kept out of the route file, whose checkpoints depend on nothing but the transcript. What an open
file was at the checkpoint is remembered in the cache; where that is missing nothing is said of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from ralf import sessions
from ralf.context import RouteContext, Since
from ralf.errors import RalfError
from ralf.files import folders
from ralf.files.opening import content_of, ours_alone, without_waiting
from ralf.model import OpenFile
from ralf.project import Project
from ralf.transcripts import clientlogs, ofproject
from ralf.transcripts.events import Position

CHANGED, GONE = "changed since the checkpoint", "gone since the checkpoint"
_LONGEST_NAME = 4_096  # characters of a path: no system knows longer ones, and each folder in one is looked up
_LONGEST = 4 << 20  # bytes of a file that are compared
_READ = 1 << 20  # bytes of a transcript that are read; what is beyond is estimated
_SESSIONS = 4  # of the newest transcripts are looked at
_TAIL = 64 << 10
_MARK = ("size", "time", "hash")
_TIME = re.compile(rb'"timestamp":\s*"([^"]{10,40})"')


def look(project: Project, context: RouteContext) -> Since:
    """What has happened since the last checkpoint of a route; never an error, whatever the tree and the cache hold."""
    tokens, minutes = _uncovered(project, context)
    return Since(_stale(project, context), tokens, minutes)


# ---- open files ----


def remember(project: Project, context: RouteContext) -> None:
    """Note what the open files are now, at a checkpoint; only for who holds the route's lock.

    A cache that cannot be written costs knowledge, not data.
    """
    marks = {file.path: _marked(project.root, file.path, None) for file in context.active_work.open_files}
    path = _cached(project, context.route)
    temporary = path.with_name(f".{path.name}.tmp")  # one name: who holds the route's lock removes a dead writer's
    with suppress(OSError):
        folders.make(path.parent)
        try:
            temporary.unlink(missing_ok=True)
            with open(temporary, "x", opener=ours_alone, encoding="utf-8") as file:
                file.write(json.dumps(marks))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _stale(project: Project, context: RouteContext) -> dict[str, str]:
    if not context.active_work.open_files:
        return {}
    try:
        marks = json.loads(content_of(_cached(project, context.route)))
    except (OSError, ValueError, RecursionError):
        return {}
    return dict(_differing(project.root, context.active_work.open_files, marks))


def _differing(root: Path, files: Iterable[OpenFile], marks: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for file in files:
        before = marks.get(file.path) if isinstance(marks, dict) else None
        if isinstance(before, list) and len(before) == len(_MARK):
            now = _marked(root, file.path, before)
            if now is None:
                yield file.path, GONE
            elif now[-1] != before[-1]:
                yield file.path, CHANGED


def _marked(root: Path, name: str, before: Sequence[Any] | None) -> list[Any] | None:
    """Size, time and hash of a project's file, None where there is none; what size and time say is the same is not
    read again. A path that leads out of the project is not followed.
    """
    if not _within(name):
        return None
    try:
        if not Path(os.path.realpath(root / name)).is_relative_to(os.path.realpath(root)):
            return None
        with open(root / name, "rb", opener=without_waiting) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return None
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
        found = ofproject.newest_first(project)[:_SESSIONS]
    except OSError:
        return 0, None
    for path in found:
        with suppress(OSError, RalfError):
            position = sessions.standing(project, context.route, clientlogs.session_of(path)).position
            size = path.stat().st_size
            if 0 < position.byte < size:
                return _tokens(path, position, size), _minutes(path, size, context.last_checkpoint)
    return 0, None


def _tokens(path: Path, after: Position, size: int) -> int:
    from ralf import tokens
    from ralf.transcripts import open_transcript

    counted, end = 0, after.byte
    for event in open_transcript(path).events(after):
        if event.kind != "compaction":
            counted += tokens.estimate(event.text)
        end = event.end.byte
        if end - after.byte > _READ:
            break
    else:
        return counted
    return round(counted * (size - after.byte) / (end - after.byte))


def _minutes(path: Path, size: int, last: str) -> int | None:
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL))
        times = _TIME.findall(file.read(_TAIL))
    try:
        gone = datetime.fromisoformat(times[-1].decode()) - datetime.fromisoformat(last)
        return max(0, round(gone.total_seconds() / 60))
    except (IndexError, ValueError, TypeError):
        return None
