"""The state of a loop's runs between processes: who runs each, its route, and up to where it was taken in.

A cache: losing it costs a second look at each folder, which finds nothing new.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ralf import names
from ralf.errors import RalfError
from ralf.files import atomic, folders
from ralf.files.opening import content_of
from ralf.project import Project
from ralf_integrations.hooks import processes

_MOST = 400  # files of a folder that are looked at


def begin(project: Project, folder: Path, route: str) -> None:
    """A run begins: its route, and its loop, by the leader of our process group. Said twice, the first one counts."""
    known = _read(project, folder)
    if "process" not in known:
        process = os.getpgrp()
        owner = {"process": process, "born": processes.born(process), "machine": processes.machine()}
        _write(project, folder, {**known, "route": route, **owner})


def end(project: Project, folder: Path) -> None:
    """A run is over, whoever started it."""
    _write(project, folder, {**_read(project, folder), "process": 0, "born": 0})


def lives(project: Project, folder: Path) -> bool:
    """Whether a run may go on: another loop than ours began it, and still runs. One loop has one run at a time."""
    known = _read(project, folder)
    process, born = known.get("process"), known.get("born")
    if not isinstance(process, int) or not isinstance(born, int) or known.get("machine") != processes.machine():
        return False
    return process != os.getpgrp() and processes.runs(process, born)


def route_of(project: Project, folder: Path) -> str:
    """The route that a run had when it began, "" where that is not known."""
    route = _read(project, folder).get("route", "")
    return route if isinstance(route, str) and names.is_valid(route) else ""


def state_of(folder: Path) -> str:
    """A hash of the names, sizes and times of a folder's files."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            stat = entry.stat(follow_symlinks=False)
            found.append((entry.name, stat.st_size, stat.st_mtime_ns))
    return hashlib.sha256(repr(sorted(found)[:_MOST]).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_taken(project: Project, folder: Path) -> bool:
    """Whether a run's folder was taken in as it is now."""
    return _read(project, folder).get("taken") == state_of(folder)


def taken(project: Project, folder: Path, state: str) -> None:
    """A run's folder was taken in as it was then."""
    _write(project, folder, {**_read(project, folder), "taken": state})


def _path(project: Project, folder: Path) -> Path:
    name = hashlib.sha256(os.path.realpath(folder).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return project.cache / "runs" / f"{name}.json"


def _read(project: Project, folder: Path) -> dict[str, Any]:
    try:
        tree = json.loads(content_of(_path(project, folder)))
    except (OSError, ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _write(project: Project, folder: Path, tree: dict[str, Any]) -> None:
    with suppress(OSError, RalfError):
        project.prepare()
        path = _path(project, folder)
        folders.make(path.parent)
        atomic.write(path, json.dumps({"run": str(folder), **tree}).encode())
