"""What a forget purges that no journal makes: files that somebody brought or that were set aside, and the caches."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ralf import evidence, names, state as states
from ralf.context import RouteContext
from ralf.document import parse, render
from ralf.errors import DamagedRouteFile
from ralf.files import placing
from ralf.files.opening import content_of
from ralf.forgetting.purge import Purge, purged_evidence
from ralf.forgetting.remains import holds, remains, text_of, unpacked
from ralf.forgetting.wording import Wording
from ralf.ownership import routefiles
from ralf.project import Project
from ralf.storage import blobzip
from ralf.store import Digest
from ralf.tree import from_tree, to_tree

_MADE_ANEW = ("routes", "renders", "sessions", "open")  # folders of the cache
_OF_ROUTE = re.compile(r"\.ralf-(.+)\.md-[0-9a-f]{12}\.tmp")


def files(project: Project) -> Iterator[Path]:
    """Route files, what was set aside beside them, what a repair kept because it could not be read, and the accounts of
    migrations. What a writer is about to put in place, or has displaced, is its own: the route's next writer sweeps it.
    """
    accounts = (project.folder / "migrations").glob("*")
    for path in sorted([*project.routes.glob("*"), *(project.folder / "damaged").rglob("*"), *accounts]):
        if path.is_file() and not path.is_symlink() and not placing.is_hidden(path.name):
            yield path


def route_of(path: Path, project: Project) -> str:
    """The route whose file this is, "" for none."""
    route = path.name.removesuffix(".md") if path.parent == project.routes and path.suffix == ".md" else ""
    return route if names.is_valid(route) else ""


def is_apart(project: Project, route: str) -> bool:
    """Whether a route's file is not made from its journal: somebody brought it, or it cannot be read."""
    try:
        state = states.load(project, route)
    except DamagedRouteFile:
        return True
    return state is not None and state.status in ("own", "foreign", "damaged")


def purge(project: Project, path: Path, purge: Purge) -> bool:
    """Purge a file that is not made from a journal: brought, damaged, or set aside; whether it had to be."""
    wording, route = purge.wording, route_of(path, project)
    if not holds(path, wording) or (route and not is_apart(project, route)):
        return False
    from ralf.files import atomic

    try:
        content = path.read_bytes()
    except FileNotFoundError:  # what a writer set aside, and has taken in by now
        return False
    try:
        if packed := list(unpacked(content)):  # of what is damaged the words cannot be taken out as it is
            content = b"".join(packed)
        purged = render(from_tree(RouteContext, purge.purged(to_tree(parse(content, path))))).encode()
    except DamagedRouteFile:
        plain = wording.without(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        purged = purged_evidence(content, wording) if packed else plain
    if route:
        _keep_whose_it_is(project, route, purged)  # first: what is left of it would count by when it was written
    atomic.write(path, purged)
    return True


def _keep_whose_it_is(project: Project, route: str, purged: bytes) -> None:
    """Have a route file without a journal stay this user's, or foreign, though it is about to be another."""
    owner, path = project.owner, project.route_file(route)
    if routefiles.is_own(project, route, content_of(path)):
        routefiles.remember(project, route, purged)
    elif owner.registration is not None:
        digest = hashlib.sha256(purged).hexdigest()
        owner.update(unaccepted={**owner.registration.unaccepted, path.name: digest})


def kept(project: Project, route: str) -> list[Path]:
    """What a repair kept of a route because it could not be read: its file, and of its journal."""
    folder = project.folder / "damaged"
    ours = re.compile(rf"{re.escape(route)}\.(?:md|jsonl)(?:\.[0-9a-f]+)?")
    found = [path for name in ("routes", "journal/routes") for path in (folder / name).glob("*")]
    parts = [
        path for path in (folder / "archive/journal/routes" / route).glob("*") if not placing.is_temporary(path.name)
    ]
    return sorted([*(path for path in found if ours.fullmatch(path.name)), *parts])


def digests_in(paths: Iterable[Path]) -> set[Digest]:
    """The digests that are named in files, as far as they can be read."""
    found = set()
    for path in paths:
        with suppress(OSError):
            content = content_of(path)
            found |= {digest for part in (content, *unpacked(content)) for digest in evidence.digests_in(part)}
    return found


def kept_blobs(project: Project, digests: Container[Digest]) -> list[Path]:
    """The files that a repair kept and in which some of these blobs lie."""
    folder = project.folder / "damaged"
    alone = [path for path in (folder / "blobs").glob("??/*") if path.name.partition(".")[0] in digests]
    zips = [path for path in (folder / "archive/blobs").glob("*") if path.is_file() and not path.is_symlink()]
    return sorted([*alone, *(path for path in zips if any(one.digest in digests for one in _members(path)))])


def drop_blobs(path: Path, digests: Container[Digest]) -> None:
    """Drop these blobs out of such a file. Of what is damaged nothing can be taken out as it is: the others' text, as
    far as it can be had, takes its place.
    """
    others = [one for one in _members(path) if one.digest not in digests] if path.parent.name == "blobs" else []
    if others:
        from ralf.files import atomic

        atomic.write(path, b"".join(map(text_of, others)))
    else:
        placing.removed([path])


def _members(path: Path) -> list[blobzip.Member]:
    return list(blobzip.remains(content_of(path)))


def sweep(project: Project) -> None:
    """Remove what a forget left that died while it purged a file which only a forget writes, for who is alone at it."""
    left = [path for path in project.routes.glob(".ralf-*") if placing.is_temporary(path.name)]
    of_routes = {path for path in left if (found := _OF_ROUTE.fullmatch(path.name)) and names.is_valid(found[1])}
    placing.removed(path for path in left if path not in of_routes)


def caches(project: Project, wording: Wording) -> list[Path]:
    """The files of the cache that hold the words, and the search index, which does in its own way."""
    return sorted({*remains(project.cache, wording), *project.cache.glob("search*")})


def made_anew(project: Project) -> list[Path]:
    """The files of the cache that hold what routes say, all of them."""
    return [path for name in _MADE_ANEW for path in (project.cache / name).rglob("*") if path.is_file()]
