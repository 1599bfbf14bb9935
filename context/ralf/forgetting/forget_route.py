"""Forgetting a whole route: its journal and archive, its file, its caches, and the evidence that no other route needs.

The journal goes last, and leaves a route that may be forgotten again until it is gone: what a kill leaves verifies.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from ralf import evidence, journal, project as projects
from ralf.files import atomic, locks
from ralf.forgetting.forget import Forgotten, alone
from ralf.past import history
from ralf.project import Project

_ENDINGS = (".md", ".json", ".jsonl", ".idx", "")


def forget_route(route: str, *, dry_run: bool = False, root: str | os.PathLike[str] | None = None) -> Forgotten:
    """Remove all that the store has of a route; other routes keep what they have.

    What others of the store say of it stays, and so does the client's transcript: a checkpoint takes it in anew. Raises
    RouteNotFound, UsageError (a refused name), Busy, OSError, DamagedJournal (it is not known what other routes need).
    """
    project = projects.find(root)
    project.check_links()
    found = history.existing(project, route)
    if dry_run:
        return _gone(project, found, dry_run=True)
    with (
        alone(project),
        locks.held(project.worker_lock(found), f"{found}: the model's work"),
        locks.held(project.route_lock(found), found),
    ):
        return _gone(project, found, dry_run=False)


def _gone(project: Project, route: str, *, dry_run: bool) -> Forgotten:
    stream = journal.stream_of(route)
    named = evidence.named(project.store)
    blobs = [blob.digest for blob in project.store.blobs() if named.get(blob.digest) == {stream}]
    count = sum(1 for _ in project.store.read(stream))
    files, caches = list(_files(project, route)), list(_caches(project, route))
    if not dry_run:
        atomic.sweep(project.route_file(route))
        for path in files:
            path.unlink(missing_ok=True)
        if project.routes.exists():
            atomic.sync_folder(project.routes)
        for digest in blobs:
            project.store.drop_blob(digest)
        _remove(caches)
        project.store.drop(stream)
        _remove(_caches(project, route))  # a search may have come in between
    left = [] if dry_run else [*_files(project, route), *_caches(project, route)]
    return Forgotten(
        route=route,
        ids=(),
        done=not dry_run,
        whole=True,
        records={route: count} if count else {},
        files=tuple(path.relative_to(project.folder).as_posix() for path in files),
        blobs=len(blobs),
        caches=tuple(path.relative_to(project.folder).as_posix() for path in caches),
        left=tuple(path.relative_to(project.folder).as_posix() for path in left),
    )


def _files(project: Project, route: str) -> Iterator[Path]:
    """The route's file, and what was set aside beside it, also under a hidden name."""
    for path in sorted(project.routes.glob("*")):
        if path.name == f"{route}.md" or path.name.startswith((f"{route}.displaced-", f".ralf-{route}.md-")):
            yield path


def _caches(project: Project, route: str) -> Iterator[Path]:
    """What the cache has of the route, by name, the choices of it, and the search index, which has all routes."""
    for top, folders, files in os.walk(project.cache):
        for name in [*folders, *files]:
            path = Path(top, name)
            ours = path.parent != project.cache and name in {f"{route}{ending}" for ending in _ENDINGS}
            chosen = path.parent.name == "chosen" and path.is_file() and path.read_bytes().strip() == route.encode()
            if ours or chosen:
                yield path
    yield from project.cache.glob("search*")


def _remove(paths: Iterable[Path]) -> None:
    for path in list(paths):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
