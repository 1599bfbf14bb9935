"""What files and the cache have of a route, under the name that it has and under those that it had: for a forget."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ralf import routing
from ralf.document import index
from ralf.project import Project
from ralf.route import state
from ralf.storage import durable, files
from ralf.storage.durable import hidden_beside
from ralf.storage.files import content_of


def remove(paths: Iterable[Path]) -> None:
    """Remove files, and folders with all that is in them, durably."""
    found = list(paths)
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
            durable.sync_folder(path.parent)
    durable.removed(path for path in found if not path.is_dir() or path.is_symlink())


def files_of(project: Project, route: str) -> Iterator[Path]:
    """The route's file, and what was set aside beside it, also under a hidden name."""
    ours = re.compile(rf"{re.escape(route)}\.(?:md|displaced-[0-9a-f]+)")
    hidden = hidden_beside(project.live_file(route))
    found = (*project.routes.glob("*"), *project.archived_file(route).parent.glob("*"))
    yield from sorted([*hidden, *(path for path in found if ours.fullmatch(path.name))])


def caches_of(project: Project, names: Iterable[str]) -> Iterator[Path]:
    """What the cache has of a route, by its names, the choices of it, the sessions that hooks have seen to work on it,
    and the index and the spends, which have all routes.
    """
    wanted = set(names)
    seen = [f'"route": {json.dumps(name)}'.encode() for name in wanted]
    named = {path for name in wanted for path in project.caches_named(name)}
    chosen = set(_choices(project, wanted))
    for top, folders, found in os.walk(project.cache):
        for path in (Path(top, name) for name in (*folders, *found)):
            content = path.read_bytes() if path.parent == project.cache / "hooks" and path.is_file() else b""
            if path in named or path in chosen or any(one in content for one in seen):
                chosen.discard(path)
                yield path
    yield from sorted(chosen)  # other users'
    yield from index.files_in(project.cache)
    yield from project.cache.glob("spend.json")


def _choices(project: Project, names: set[str]) -> Iterator[Path]:
    """The choices of sessions, whoever of the folder's users made them, that name a route."""
    wanted = {name.encode() for name in names}
    for path in (project.folder / "cache").glob("*/chosen/*"):
        with suppress(OSError):
            if content_of(path).partition(b"\n")[0].strip() in wanted:
                yield path


# ---- names that routes had: nobody writes their files any more, and so nobody sweeps what writers left ----


def former_names(project: Project) -> list[str]:
    """The names that routes had before, and that none has now."""
    return sorted({move.old for move in routing.moves_of(project) if routing.renamed(project, move.old) is not None})


def hidden_of_former(project: Project) -> list[Path]:
    """What writers left under a hidden name beside files of names that routes had."""
    return [path for name in former_names(project) for path in hidden_beside(project.route_file(name))]


def sweep_former(project: Project) -> None:
    """Remove what writers left beside files of names that routes had; what somebody saved there gets a visible name."""
    for name in former_names(project):
        path = project.route_file(name)
        if not hidden_beside(path):
            continue
        with files.locked(project.route_lock(name), name):
            for aside in durable.sweep(path, grace=0):
                aside.keep(path.with_suffix(f".displaced-{state.digest_of(aside.content)[:8]}"))
