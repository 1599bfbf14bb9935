"""Deliberately broken write paths: each harness has to find the fault of those that it is there for.

Each is a design that is in use somewhere: what it lacks is what it is named after.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ralf import project
from ralf.errors import Busy
from ralf.route import load
from ralf.storage import durable, files, shared_files


@contextmanager
def _unlocked(path: Path, what: str, timeout: float = 0, *, seen: bool = False) -> Iterator[None]:
    yield


@contextmanager
def _locked_by_a_file(path: Path, what: str, timeout: float = 0.3, *, seen: bool = False) -> Iterator[None]:
    """The lock is that a file exists: whoever is killed leaves it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held, deadline = path.with_suffix(".held"), time.monotonic() + timeout
    while True:
        try:
            os.close(os.open(held, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise Busy(what, "locked by another process") from None
            time.sleep(0.001)
    try:
        yield
    finally:
        held.unlink()


def _written_in_place(path: Path, content: bytes, known: str, *, mode: int | None = None) -> None:
    with path.open("wb", buffering=1 << 12) as file:
        for start in range(0, len(content), 1 << 12):
            file.write(content[start : start + (1 << 12)])


def _written_under_one_name(path: Path, content: bytes, known: str) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def _renamed(path: Path, content: bytes, known: str, *, mode: int | None = None) -> None:
    durable.write(path, content)


def _read(path: str | Path, most: int = sys.maxsize, end: bytes = b"") -> files.Read:
    return files.Read(Path(path).read_bytes()[:most], True, files.version_of(os.stat(path)))


def _one_file(folder: Path, clone: str, tree: dict[str, object]) -> None:
    """All that clones decide in one file, as a layout that git cannot merge."""
    path = folder / clone / "000001-all.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    before = []
    with suppress(OSError, ValueError):  # none yet, or conflict markers
        before = json.loads(path.read_text())
    path.write_text(json.dumps([*before, tree], indent=1))


def _patched(*changes: tuple[object, str, Any]) -> AbstractContextManager[Any]:
    from contextlib import ExitStack

    stack = ExitStack()
    for where, name, value in changes:
        stack.enter_context(patch.object(where, name, value))
    return stack


def _believed(project: Any, route: str, kept: Any, head: str, recorded: Any = load._recorded) -> Any:
    return recorded(project, route, kept, head)[0], True


VARIANTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no lock": partial(_patched, (files, "locked", _unlocked)),
    "no fsync": partial(_patched, (os, "fsync", lambda descriptor: None)),
    "one temporary name": partial(
        _patched, (files, "locked", _unlocked), (durable, "exchange", _written_under_one_name)
    ),
    "lock by existence": partial(_patched, (files, "locked", _locked_by_a_file)),
    "plain write": partial(_patched, (durable, "exchange", _written_in_place)),
    "rename": partial(_patched, (durable, "exchange", _renamed)),
    "a store that git sees": partial(
        _patched, (project, "IGNORE_ALL", "#\n"), (project.GitView, "check_untracked", lambda view, path: None)
    ),
    "no second look": partial(_patched, (durable.DisplacedFile, "drop", durable.DisplacedFile.remove)),
    "a cache of another journal": partial(_patched, (load, "_recorded", _believed)),
    "one file a clone": partial(_patched, (shared_files, "write", _one_file)),
    "no look at open files": partial(_patched, (files, "read", _read)),
}
"""By name, what breaks the write path for a block."""

LACKING: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "exchange": partial(_patched, (durable, "_renameat2", lambda: None)),
    "leases": partial(_patched, (files, "_lease", lambda descriptor: None)),
}
"""By name, what a system may lack: macOS both, some file systems the one or the other. Nothing is lost there either."""
