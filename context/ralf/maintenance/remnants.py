"""What files and the cache have of a route, under the name that it has and under those that it had: for a forget."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ralf.document import index
from ralf.document.place import all_displaced
from ralf.project import Project
from ralf.route.family import document_of
from ralf.storage import durable
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
    displaced = [path for path in all_displaced(document_of(project, route).place) if os.path.lexists(path)]
    found = (*project.routes.glob("*"), *project.archived_file(route).parent.glob("*"))
    yield from sorted([*displaced, *(path for path in found if ours.fullmatch(path.name))])


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
