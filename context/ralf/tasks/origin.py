"""Whose the bytes of a task's file are: this user's, or brought by git or an archive and never accepted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Container, Mapping
from functools import cache
from pathlib import Path

from ralf.project import Project
from ralf.storage import git_files, registry

_WRITTEN_HERE = 2.0  # seconds between the times of writing and of change of a file that was written where it lies

_COARSE = 0.01  # seconds by which a file system's clock may be behind the other one


def foreign_of(
    project: Project, files: Mapping[Path, bytes], edited: Container[Path], is_own: Callable[[bytes], bool]
) -> tuple[set[Path], set[Path]]:
    """Those of some files, with their bytes, that are not this user's, and those of them of which nobody can tell now.

    edited  files in whose place this user's lay before: they need not have opted in for an edit to be theirs
    is_own  whether bytes are known to be theirs

    Written here by this user since they opted in is theirs; an archive and a copy bring an older time of writing. What
    git has, or has checked out in its place, git has brought.
    """
    owner = project.owner
    asked = files
    if not owner.vouches:
        found = owner.registration
        since = found.since if found is not None else 0.0
        asked = {
            path: content
            for path, content in files.items()
            if (since or path in edited) and _is_written_here(path, 0.0 if path in edited else since)
        }
    brought, unsure = git_files.brought(asked, is_own)
    return (files.keys() - asked.keys()) | brought | unsure, unsure


def _is_written_here(path: Path, since: float) -> bool:
    """Whether a file was written where it lies, by this user, after a time."""
    try:
        told = path.lstat()
    except OSError:
        return False
    is_older, is_copy = told.st_mtime + _COARSE < since, abs(told.st_ctime - told.st_mtime) > _WRITTEN_HERE
    return not is_older and not is_copy and told.st_uid in registry.own_ids()


@cache
def boot() -> str:
    """What names this run of the machine; "" where the system does not say it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


@cache
def machine() -> str:
    """What names the numbers that processes have here: one run of one machine, and the container in it."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # no path, but the name of a namespace
    except OSError:
        space = ""
    name = f"{boot()} {space} {os.uname().nodename if not boot() else ''}"
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def born(process: int) -> int:
    """When a process started, by the machine's clock; 0 for none, for one that is dead, and where nobody can tell."""
    try:
        text = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        return 0 if text[0] in (b"Z", b"X") else int(text[19])
    except (OSError, ValueError, IndexError):
        return 0


def is_running(process: int, start: int, where: str) -> bool | None:
    """Whether a process runs; None where nobody here can tell.

    start  as `born` said it; where: as `machine` did
    """
    if not process or where != machine():
        return None
    if boot():
        return born(process) == start if start else None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return None
    return None  # it runs, or another one that has got its number
