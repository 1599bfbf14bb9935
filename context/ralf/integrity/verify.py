"""Whether all that is kept is whole: every record, route file, cache, blob and archive of a project. Only looks."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Container, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ralf import config, names, project as projects, routing, state as states
from ralf.document import parse
from ralf.errors import Busy, Damaged, DamagedBlob, UnknownToken, UsageError
from ralf.files import locks, placing
from ralf.files.opening import content_of
from ralf.integrity import journalscan, verifyroute
from ralf.integrity.findings import Finding
from ralf.integrity.journalscan import Scan
from ralf.project import Project
from ralf.storage import blobfiles, blobzip, journalparts
from ralf.storage.blobfiles import Blobs
from ralf.storage.journalstream import Stream

_KEPT = ("journal", "archive", "blobs", "cache", "locks", "routes")
_PRIVATE = ("journal", "archive", "blobs")  # what others on this machine have no business with

_MOST_TRIES = 20
_IS_WRITTEN = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY)  # who only looks rolls nothing back


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was looked at, and what was found: records of all streams, blobs (archived ones included), files of the
    archive.

    passed_over  routes that were not looked at, because only the newest were asked for
    """

    routes: tuple[str, ...]
    records: int
    blobs: int
    archives: int
    findings: tuple[Finding, ...]
    passed_over: int = 0

    @property
    def damaged(self) -> bool:
        """Whether anything is damaged; what is only worth a word is not."""
        return any(finding.damage for finding in self.findings)


def verify(
    route: str | None = None, *, newest: int | None = None, root: str | os.PathLike[str] | None = None
) -> VerifyReport:
    """Look at everything of a route, or of the whole project; nothing is changed.

    newest  look at so many routes only, those written last, with their evidence, and not at what all of them share

    Raises RouteNotFound, UsageError, Busy, OSError.
    """
    project = projects.find(root)
    routes = [routing.existing(project, route)] if route is not None else route_names(project)
    chosen = routes if newest is None else _written_last(project, routes)[:newest]
    whole, passed_over, routes = route is None and len(chosen) == len(routes), len(routes) - len(chosen), chosen
    findings: list[Finding] = []
    records = 0
    named: dict[str, list[str]] = {}
    if whole:
        findings += [*_configuration(project), *_links(project)]
    for name in routes:
        scan, found = _route(project, name)
        records += len(scan.whole())
        findings += found
        for label, digest in verifyroute.evidence(scan):
            named.setdefault(digest, []).append(f"{name} {label}")
    blobs = Blobs(project.folder)
    held, found = _blobs(blobs, None if whole else set(named))
    findings += found
    findings += _gone(project, named, held)
    if whole:
        findings += [
            *_vanished(project, routes),
            *_copies(project, routes),
            *_search(project),
            *map(_left, leftovers(project)),
            *_modes(project),
        ]
    archives = len(blobs.zip_files()) + sum(len(_parts(stream_of(project, name))) for name in routes)
    if whole:
        for stream in other_streams(project):
            scan = _other(project, stream)
            records += len(scan.whole())
            findings += verifyroute.of_journal(scan)
            findings += () if scan.damaged else verifyroute.of_ids(project, scan)
            archives += len(_parts(stream))
    return VerifyReport(tuple(routes), records, len(held), archives, tuple(findings), passed_over)


def _written_last(project: Project, routes: list[str]) -> list[str]:
    """Routes, the one whose journal was written last first; those without one at the end."""
    times: dict[str, int] = {}
    with suppress(FileNotFoundError), os.scandir(project.folder / "journal" / "routes") as entries:
        for entry in entries:
            with suppress(OSError):
                times[entry.name.removesuffix(".jsonl")] = entry.stat(follow_symlinks=False).st_mtime_ns
    return sorted(routes, key=lambda name: -times.get(name, 0))


def _route(project: Project, route: str) -> tuple[Scan, list[Finding]]:
    """A route's journal, and what is to be said of it; what looks damaged is looked at again while nobody writes."""
    stream = stream_of(project, route)
    scan, found = _looked(project, route)
    if any(finding.damage for finding in found):
        # Where nobody can write, no lock can be had either, and none is needed.
        with suppress(OSError, UsageError), locks.held(project.route_lock(route), route), stream.writing():
            scan, found = _looked(project, route)
    if not scan.damaged:
        stray = journalparts.stray(stream.parts, scan.header.parts)
        found += [_left(path) for path in stray if path.suffix == ".gz"]
    return scan, found


def _looked(project: Project, route: str) -> tuple[Scan, list[Finding]]:
    for _ in range(_MOST_TRIES):
        with suppress(UnknownToken, FileNotFoundError):  # somebody has rewritten the journal meanwhile
            scan = scanned(project, stream_of(project, route))
            return scan, list(verifyroute.findings(project, route, scan))
    raise Busy(route, "its journal is rewritten again and again", "try again")


def route_names(project: Project) -> list[str]:
    """All routes that have a file, a journal, or a part of one in the archive."""
    found = set(routing.names_of(project))
    with suppress(FileNotFoundError, NotADirectoryError):
        folders = [path.name for path in (project.folder / "archive/journal/routes").iterdir() if path.is_dir()]
        found |= {name for name in folders if names.is_valid(name)}
    return sorted(found)


def stream_of(project: Project, route: str) -> Stream:
    """A route's stream, as the embedded store keeps it."""
    return Stream(project.folder, f"{journalscan.ROUTES}{route}")


def scanned(project: Project, stream: Stream) -> Scan:
    """All of a stream, each record told as this user's or foreign. OSError where a file cannot be read."""
    return journalscan.scan(stream, partial(project.store.opened, stream.name))


def other_streams(project: Project) -> list[Stream]:
    """The streams that are no route's, such as inboxes: those with a journal, or a part of one in the archive."""
    top = project.folder / "archive/journal"
    found = set(project.store.streams(""))
    found |= {folder.relative_to(top).as_posix() for folder in top.glob("*/*") if folder.is_dir()}
    mine = (name for name in sorted(found) if not name.startswith(journalscan.ROUTES))
    return [Stream(project.folder, name) for name in mine if all(map(names.is_valid, name.split("/")))]


def _other(project: Project, stream: Stream) -> Scan:
    """A stream that is no route's; what looks damaged is looked at again while nobody writes."""
    scan = scanned(project, stream)
    if scan.damaged:
        with suppress(OSError, UsageError), stream.writing():
            scan = scanned(project, stream)
    return scan


def _parts(stream: Stream) -> list[Path]:
    return [path for path in journalparts.stray(stream.parts, ()) if path.suffix == ".gz"]


def _links(project: Project) -> Iterator[Finding]:
    for path in links(project):
        yield Finding(path, "is a symbolic link: nothing is written through it", "move it to damaged/")


def links(project: Project) -> Iterator[Path]:
    """The symbolic links in the store's folders, whose own name may be one, too."""
    for name in _KEPT:
        top = project.folder / name
        if top.is_symlink():
            yield top
            continue
        for folder, folders, files in os.walk(top):
            for one in (*folders, *files):
                path = Path(folder, one)
                if path.is_symlink():
                    yield path


def _configuration(project: Project) -> Iterator[Finding]:
    try:
        config.load(project.config_file)
    except (Damaged, UsageError) as error:
        yield Finding(project.config_file, error.what)


# ---- blobs ----


def _blobs(blobs: Blobs, only: set[str] | None) -> tuple[set[str], list[Finding]]:
    """The digests of the blobs that are whole, and what is wrong with the others."""
    held: set[str] = set()
    found: list[Finding] = []
    for path in blobs.files():
        if only is None or path.name in only:
            try:
                for _ in blobfiles.verified(path, path.name):
                    pass
                held.add(path.name)
            except FileNotFoundError:  # dropped or archived meanwhile
                pass
            except (DamagedBlob, OSError) as error:
                found.append(Finding(path, _what(error), "move it to damaged/; `why` says that it is gone"))
    archived, damaged = _archived(blobs, only)
    if damaged:
        with suppress(OSError), blobs.archiving():  # again, while nobody writes a zip file anew
            archived, damaged = _archived(blobs, only)
    return held | archived, found + damaged


def _archived(blobs: Blobs, only: set[str] | None) -> tuple[set[str], list[Finding]]:
    """The same of the archive."""
    held: set[str] = set()
    found: list[Finding] = []
    for path in blobs.zip_files():
        try:
            infos = blobzip.listed(path)
        except (DamagedBlob, OSError) as error:
            found.append(Finding(path, _what(error), "move it to damaged/, and keep what can be read of it"))
            continue
        before = len(found)
        for info in infos:
            if only is None or info.digest in only:
                try:
                    for _ in blobfiles.verified_member(path, info):
                        pass
                    held.add(info.digest)
                except (DamagedBlob, OSError):
                    what = f"its member {info.digest[:12]} is not what was put"
                    found.append(Finding(path, what, "move it to damaged/, and keep what can be read of it"))
        if len(found) == before and not blobzip.is_as_written(path, infos):
            found.append(Finding(path, "is not as it was written", "keep a copy in damaged/, and write it anew"))
    return held, found


def _gone(project: Project, named: dict[str, list[str]], held: set[str]) -> Iterator[Finding]:
    blobs = Blobs(project.folder)
    gone = blobs.gone()
    for digest, labels in named.items():
        path = blobs.path_of(digest)
        if digest not in held and not os.path.lexists(path):
            evidence = f"the evidence of {', '.join(labels)}"
            if digest in gone:
                yield Finding(path, f"{evidence} is gone: pruned, or told as lost before", damage=False)
            else:
                yield Finding(
                    path, f"{evidence} is lost: nobody has pruned it", "note that; `why` says that it is gone"
                )


def _what(error: Exception) -> str:
    if isinstance(error, DamagedBlob):
        return error.what
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


# ---- the search index ----


def _search(project: Project) -> Iterator[Finding]:
    from ralf.index.searchindex import VERSION

    path = project.cache / "search.sqlite"
    if not path.is_file() or path.is_symlink():
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            said = [row[0] for row in database.execute("pragma integrity_check(1)")]
            version = database.execute("pragma user_version").fetchone()[0]
    except sqlite3.Error as error:
        if not path.exists():  # removed meanwhile, as a forget does
            return
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _IS_WRITTEN:
            yield Finding(
                path, "is being written, or was by somebody who died: the next search sees to it", damage=False
            )
            return
        yield Finding(path, f"is no index that can be read: {error}", "remove it: the next search makes it anew")
        return
    if said != ["ok"]:
        yield Finding(path, f"is damaged: {said[0]}", "remove it: the next search makes it anew")
    elif version != VERSION:
        yield Finding(path, "is of another version: the next search makes it anew", damage=False)


# ---- what lies about ----


def _vanished(project: Project, routes: Container[str]) -> Iterator[Finding]:
    """What the cache knows of routes that are there no more: whoever removed them, nobody else says it."""
    for path in sorted((project.cache / "routes").glob("*.json")):
        if path.stem not in routes:
            what = f"the route {path.stem} has neither a journal nor a file any more: removed, or lost"
            yield Finding(path, what, damage=False)


def _copies(project: Project, routes: Container[str]) -> Iterator[Finding]:
    """The files that say that they are of a route whose file has another name, and those that are nobody's."""
    for path in routing.strays(project):
        whose = _said_route(path, routes)
        of = f"is a copy of the file of the route {whose}" if whose else "has a name that no route can have"
        yield Finding(path, f"{of}: nobody reads it", damage=False)
    for path in sorted(project.routes.glob("*.md")):
        name = path.stem
        if names.is_valid(name) and not os.path.lexists(stream_of(project, name).path):
            whose = _said_route(path, routes)
            if whose not in ("", name):
                what = f"is a copy of the file of the route {whose}, and a route of its own by its name alone"
                yield Finding(path, what, damage=False)


def _said_route(path: Path, routes: Container[str]) -> str:
    """The route of these that a file says it is of, "" for none of them."""
    with suppress(Damaged, OSError):
        said = parse(content_of(path, most=states.MAX_BYTES), path).route
        return said if said in routes else ""
    return ""


def _left(path: Path) -> Finding:
    return Finding(path, "is what somebody left who died, or has not finished", "remove it", damage=False)


def leftovers(project: Project) -> Iterator[Path]:
    """The temporary files of those who died, or have not finished."""
    for name in (*_KEPT, "damaged"):
        for folder, _, files in os.walk(project.folder / name):
            yield from (Path(folder, one) for one in sorted(files) if _is_left(one))


def _is_left(name: str) -> bool:
    return placing.is_temporary(name) or (name.endswith(".tmp") and ".json." in name)  # of a cache


def _modes(project: Project) -> Iterator[Finding]:
    for path in too_open(project):
        yield Finding(path, "can be read or written by others on this machine", "make it yours alone", damage=False)


def too_open(project: Project) -> Iterator[Path]:
    """The files that are for their owner only and are not."""
    for name in _PRIVATE:
        for folder, _, files in os.walk(project.folder / name):
            for one in sorted(files):
                path = Path(folder, one)
                with suppress(FileNotFoundError):
                    if not path.is_symlink() and not _is_left(one) and path.stat().st_mode & 0o077:
                        yield path
