"""Routes that nobody writes to any more: the next hook or write archives them, and the next record brings one back.

The journal of an archived route is one compressed file, and its route file lies in `routes/archive/`. `list` leaves it
out; everything else reads it as before. The journal is compressed first, and brought back last: who is killed in
between leaves a route that reads as before, and that the next look completes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ralf import config, environment, project as projects, routing
from ralf.errors import RalfError
from ralf.project import Project
from ralf.storage import durable, files, locks
from ralf.storage.journal import stream_of

_DAY = 86_400.0

_SECONDS = 2.0  # that a write has for it: some hundred routes

_LEFT = ("edited", "foreign", "damaged")  # files that are not what a journal of this user's makes


def when_due(project: Project, *, but: str = "") -> None:
    """Archive the routes that have had no record for `archive_days`, where nobody has looked for a day.

    but  a route that was just written to, whatever the clock says

    Never fails, and waits for nobody: what cannot be done now is done another day.
    """
    end = time.monotonic() + _SECONDS
    with suppress(RalfError, OSError):
        for route in (found := _due(project)):
            with suppress(RalfError, OSError):
                if route != but:
                    archive(project, route)
            if time.monotonic() > end:
                return
        if found:
            _has_looked(project)


def later(project: Project) -> None:
    """Do the same in a process of its own. RalfError, OSError, NotImplementedError: none was started."""
    if _due(project):
        environment.start_detached(__name__, __file__, [str(project.root)])


def main(arguments: Sequence[str]) -> None:
    """What that process does."""
    when_due(projects.find(arguments[0]))


def _due(project: Project) -> list[str]:
    """The routes that are to be archived, [] where somebody has looked within a day."""
    with suppress(FileNotFoundError):
        if 0 <= time.time() - _stamp(project).stat().st_mtime < _DAY:
            return []
    days, archived = config.of(project).archive_days, routing.archived(project)
    limit = (time.time() - days * _DAY) * 1e9 if days else 0.0
    old = {name for name, last in project.store.written("routes").items() if last.written < limit}
    found = [name for name in sorted(old) if name not in archived or os.path.lexists(project.live_file(name))]
    if not found:
        _has_looked(project)
    return found


def _stamp(project: Project) -> Path:
    return project.cache / "archived"


def _has_looked(project: Project) -> None:
    files.make(_stamp(project).parent)
    files.touch(_stamp(project))
    os.utime(_stamp(project), (time.time(),) * 2)


def archive(project: Project, route: str) -> bool:
    """Archive a route; whether that is done. One stays whose file somebody has changed, that holds what this user's
    ralf did not write, or whose file git tracks. DamagedJournal, Busy, OSError.
    """
    from ralf.route.load import load_state  # few hooks and writes archive anything

    archiving, live = project.store.files, project.live_file(route)
    with locks.locked(project.route_lock(route), route, 0):
        state = load_state(project, route)
        if archiving is None or state is None or state.token is None or state.status in _LEFT:
            return False
        if project.git.would_commit(live) or not archiving.archive(stream_of(route), state.token):
            return False
        if os.path.lexists(live):
            files.make(project.archived_file(route).parent)
            durable.rename_free(live, project.archived_file(route))
            durable.sync_folder(project.archived_file(route).parent)
        return True


def bring_back(project: Project, route: str) -> None:
    """Have the file of a route lie where it is written, for who holds the route's lock; its journal follows with the
    next record. OSError.
    """
    kept, live = project.archived_file(route), project.live_file(route)
    if os.path.lexists(kept):
        try:
            durable.rename_free(kept, live)
        except FileExistsError:  # somebody has saved an old buffer there: that is the file, and this one is set aside
            durable.rename_free(kept, live.with_suffix(f".displaced-{os.urandom(4).hex()}"))
