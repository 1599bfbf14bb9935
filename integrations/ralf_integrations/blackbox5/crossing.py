"""Whether a mark is crossed: once for each time that a figure rises above it, whichever process sees it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ralf.errors import Busy
from ralf.files import atomic, folders, locks
from ralf.files.opening import content_of
from ralf.project import Project

FALLEN = 10.0
"""Points below the highest one seen since, at which a figure that is still above the mark is another session's."""


def at(project: Project, key: str, percent: float, mark: float, act: Callable[[], object]) -> bool:
    """Do something once per crossing; whether it was done now.

    key      what the figure is of: a run's folder, or a session
    percent  the figure, `mark` what it has to reach
    act      what is done; what it raises is passed on, and the next call tries again

    A figure below the mark, or far below the highest one since, means that it can be crossed again. What is remembered
    is a cache: losing it costs one call more. Of several processes at once one acts. OSError where nothing can be
    remembered.
    """
    name = hashlib.sha256(os.path.realpath(key).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    path = project.cache / "budgets" / f"{name}.json"
    if percent < mark:
        if path.exists():
            path.unlink(missing_ok=True)
        return False
    with suppress(Busy):
        project.prepare()
        path = project.cache / "budgets" / f"{name}.json"  # a project that is new has another one now
        with locks.held(project.folder / "locks" / "budgets" / f"{name}.lock", key, timeout=0):
            highest = _highest(path)
            if highest - FALLEN < percent <= highest:
                return False
            if not highest or percent <= highest - FALLEN:
                act()
                acted = True
            else:
                acted = False
            folders.make(path.parent)
            atomic.write(path, json.dumps({"of": key, "highest": percent}).encode())
            return acted
    return False


def _highest(path: Path) -> float:
    """The highest figure since the last crossing, 0 for none."""
    try:
        return float(json.loads(content_of(path))["highest"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return 0.0
