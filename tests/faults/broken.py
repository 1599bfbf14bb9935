"""Deliberately broken write paths: each harness has to find the fault of those that it is there for.

Each is a design that is in use somewhere: what it lacks is what it is named after.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ralf.document import place as places
from ralf.document.place import Place
from ralf.errors import Busy
from ralf.storage import durable, locks, shared_files


@contextmanager
def _unlocked(path: Path, what: str, timeout: float = 0) -> Iterator[None]:
    yield


@contextmanager
def _locked_by_a_file(path: Path, what: str, timeout: float = 0.3) -> Iterator[None]:
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


def _renamed(place: Place, made: bytes) -> None:
    durable.write(place.file, made)


def _one_file(folder: Path, clone: str, tree: dict[str, object]) -> None:
    """All that clones decide in one file, as a layout that git cannot merge."""
    path = folder / clone / "000001-all.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    before = []
    with suppress(OSError, ValueError):  # none yet, or conflict markers
        before = json.loads(path.read_text())
    path.write_text(json.dumps([*before, tree], indent=1))


def _patched(*changes: tuple[object, str, Any]) -> AbstractContextManager[Any]:
    stack = ExitStack()
    for where, name, value in changes:
        stack.enter_context(patch.object(where, name, value))
    return stack


VARIANTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no lock": partial(_patched, (locks, "locked", _unlocked)),
    "no fsync": partial(_patched, (os, "fsync", lambda descriptor: None), (os, "fdatasync", lambda descriptor: None)),
    "lock by existence": partial(_patched, (locks, "locked", _locked_by_a_file)),
    "rename": partial(_patched, (places, "put", _renamed)),
    "one file a clone": partial(_patched, (shared_files, "write", _one_file)),
}
"""By name, what breaks the write path for a block."""
