"""Deliberately broken write paths: each harness has to find the fault of those that it is there for.

Each is a design that is in use somewhere: what it lacks is what it is named after.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ralf import state as states
from ralf.errors import Busy
from ralf.files import atomic, leases, locks
from ralf.ownership import gitview


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


def _written_in_place(path: Path, content: bytes, known: str) -> None:
    with path.open("wb", buffering=1 << 12) as file:
        for start in range(0, len(content), 1 << 12):
            file.write(content[start : start + (1 << 12)])


def _written_under_one_name(path: Path, content: bytes, known: str) -> None:
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def _renamed(path: Path, content: bytes, known: str) -> None:
    atomic.write(path, content)


def _read(path: str | Path, most: int = sys.maxsize, end: bytes = b"") -> leases.Read:
    return leases.Read(Path(path).read_bytes()[:most], True, leases.version_of(os.stat(path)))


def _patched(*changes: tuple[object, str, Any]) -> AbstractContextManager[Any]:
    from contextlib import ExitStack

    stack = ExitStack()
    for where, name, value in changes:
        stack.enter_context(patch.object(where, name, value))
    return stack


def _believed(project: Any, route: str, kept: Any, head: str, recorded: Any = states._recorded) -> Any:
    return recorded(project, route, kept, head)[0], True


VARIANTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no lock": partial(_patched, (locks, "held", _unlocked)),
    "no fsync": partial(_patched, (os, "fsync", lambda descriptor: None)),
    "one temporary name": partial(_patched, (locks, "held", _unlocked), (atomic, "exchange", _written_under_one_name)),
    "lock by existence": partial(_patched, (locks, "held", _locked_by_a_file)),
    "plain write": partial(_patched, (atomic, "exchange", _written_in_place)),
    "rename": partial(_patched, (atomic, "exchange", _renamed)),
    "a store that git sees": partial(
        _patched, (gitview, "IGNORE_ALL", "#\n"), (gitview, "check_untracked", lambda project, path: None)
    ),
    "no second look": partial(_patched, (atomic.Aside, "drop", atomic.Aside.remove)),
    "a cache of another journal": partial(_patched, (states, "_recorded", _believed)),
    "histories that nobody joins": partial(_patched, (states, "_taken_in_by", lambda project, route, found: None)),
    "no look at open files": partial(_patched, (leases, "read", _read)),
}
"""By name, what breaks the write path for a block."""

LACKING: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "exchange": partial(_patched, (atomic, "_renameat2", lambda: None)),
    "leases": partial(_patched, (leases, "_lease", lambda descriptor: None)),
}
"""By name, what a system may lack: macOS both, some file systems the one or the other. Nothing is lost there either."""
