"""Forgetting a whole route: its journal and archive, its file, its caches, the evidence that no other route needs, and
what a repair kept of all that.

The journal goes last, and leaves a route that may be forgotten again until it is gone: what a kill leaves verifies.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from ralf import evidence, journal, project as projects, routing
from ralf.files import atomic, locks
from ralf.files.placing import hidden_beside, removed, sync_below
from ralf.forgetting import loosefiles
from ralf.forgetting.forget import Forgotten, alone
from ralf.project import Project

_ENDINGS = (".md", ".json", ".jsonl", ".idx", "")


def forget_route(route: str, *, dry_run: bool = False, root: str | os.PathLike[str] | None = None) -> Forgotten:
    """Remove all that the store has of a route; other routes keep what they have.

    What others of the store say of it stays, and so does the client's transcript: a checkpoint takes it in anew. Raises
    RouteNotFound, UsageError (a refused name), Busy, OSError, DamagedJournal (it is not known what other routes need).
    """
    project = projects.find(root)
    project.check_links()
    found = routing.existing(project, route)
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
    kept = loosefiles.kept(project, route)
    lost = loosefiles.digests_in(kept) - named.keys()  # of records that were damaged
    own = lost | {digest for digest, streams in named.items() if streams == {stream}}
    blobs = [blob.digest for blob in project.store.blobs() if blob.digest in own]
    kept_blobs = loosefiles.kept_blobs(project, own)
    count = sum(1 for _ in project.store.read(stream))
    files, caches = list(_files(project, route)), list(_caches(project, route))
    if not dry_run:
        atomic.sweep(project.route_file(route), grace=0)
        removed(files)
        for digest in blobs:
            project.store.drop_blob(digest)
        for path in kept_blobs:
            loosefiles.drop_blobs(path, own)
        removed(kept)  # now that nothing is needed any more that these name
        _remove(caches)
        project.store.drop(stream)
        project.store.sweep()
        _remove(_caches(project, route))  # a search may have come in between
        sync_below(project.folder)
    left = []
    if not dry_run:
        left = [*_files(project, route), *_caches(project, route), *loosefiles.kept_blobs(project, own)]
    return Forgotten(
        route=route,
        ids=(),
        done=not dry_run,
        whole=True,
        records={route: count} if count else {},
        files=tuple(project.name_of(path) for path in [*files, *kept, *kept_blobs]),
        blobs=len(blobs),
        caches=tuple(project.name_of(path) for path in caches),
        left=tuple(project.name_of(path) for path in left),
    )


def _files(project: Project, route: str) -> Iterator[Path]:
    """The route's file, and what was set aside beside it, also under a hidden name."""
    ours = re.compile(rf"{re.escape(route)}\.(?:md|displaced-[0-9a-f]+)")
    hidden = hidden_beside(project.route_file(route))
    yield from sorted([*hidden, *(path for path in project.routes.glob("*") if ours.fullmatch(path.name))])


def _caches(project: Project, route: str) -> Iterator[Path]:
    """What the cache has of the route, by name, the choices of it, the sessions that hooks have seen to work on it, and
    the search index and the spends, which have all routes.
    """
    seen = f'"route": {json.dumps(route)}'.encode()
    for top, folders, files in os.walk(project.cache):
        for name in [*folders, *files]:
            path = Path(top, name)
            ours = path.parent != project.cache and name in {f"{route}{ending}" for ending in _ENDINGS}
            chosen = path.parent in _choices(project) and path.is_file() and path.read_bytes().strip() == route.encode()
            worked = path.parent == project.cache / "hooks" and path.is_file() and seen in path.read_bytes()
            if ours or chosen or worked:
                yield path
    yield from project.cache.glob("search*")
    yield from project.cache.glob("spend.json")


def _choices(project: Project) -> tuple[Path, Path]:
    return project.cache / "chosen", project.cache / "named" / "sessions"


def _remove(paths: Iterable[Path]) -> None:
    found = list(paths)
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
            atomic.sync_folder(path.parent)
    removed(path for path in found if not path.is_dir() or path.is_symlink())
