"""Checks the integrity of records, files and blobs. Reads only."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ralf import config, project as projects, routing
from ralf.agent import contents, records
from ralf.document import access
from ralf.document.access import Look
from ralf.document.judging import EDITED, HALF, NEW
from ralf.document.state import digest_of
from ralf.errors import Busy, Damaged, DamagedJournal, LaterRouteFile, UnknownToken, UsageError
from ralf.maintenance import memories, renaming
from ralf.project import Project
from ralf.route import fold, history, state
from ralf.route.family import document_of
from ralf.route.routefile import parse
from ralf.route.state import MAX_BYTES
from ralf.storage import durable, locks
from ralf.storage.check import DAMAGED, ROUTES, Check, Finding, Scan, check_of
from ralf.storage.files import content_of
from ralf.storage.journal import stream_of, written
from ralf.text import cleaning

# ---- one route: its journal and its file ----

_ASIDE = "keep what is damaged in a file of its own, note it in the journal, and go on with what can be read"

_AGAIN = "write it anew from the journal"

_FOREIGN = "foreign: it came with the repository and was not written by your ralf (`ralf context trust ROUTE`)"


def findings(project: Project, route: str, scan: Scan) -> Iterator[Finding]:
    """Yield the findings about a route."""
    yield from of_journal(scan)
    if scan.damaged:
        yield from _file_alone(project, route)
        return
    try:
        context = fold.fold((line.record for line in scan.whole() if line.record is not None), fold.empty(route))
    except DamagedJournal as error:
        yield Finding(scan.path, f"its records make no route: {error}")
        return
    if foreign := context.context_checkpoint.foreign_records:
        which = "1 of its records is" if foreign == 1 else f"{foreign:,} of its records are"
        yield Finding(scan.path, f"{which} {_FOREIGN}", damage=False)
    if later := context.context_checkpoint.later_records:
        which = "1 of its records was" if later == 1 else f"{later:,} of its records were"
        yield Finding(scan.path, f"{which} written by a later version of ralf: passed over", damage=False)
    yield from _file(project, route, bool(scan.lines))


def evidence(scan: Scan) -> Iterator[tuple[str, str]]:
    """The label of each checkpoint of a route, and the digest of its evidence."""
    for label, record in history.with_labels(line.record for line in scan.whole() if line.record is not None):
        digest = record.payload.get("evidence") if label and record.kind == "checkpoint" else None
        if isinstance(digest, str) and len(digest) == 64 and not set(digest) - set("0123456789abcdef"):
            yield label, digest


def of_journal(scan: Scan) -> Iterator[Finding]:
    """Yield the findings about a journal, of a route or any other stream."""
    if scan.wrong:
        yield Finding(scan.path, scan.wrong, _ASIDE)
    for line in scan.lines:
        if line.wrong:
            yield Finding(scan.path, f"the record at byte {line.start}, {line.size:,} bytes, {line.wrong}", _ASIDE)
    for first, last in scan.gaps:
        revisions = f"revision {first} is" if first == last else f"revisions {first} to {last} are"
        yield Finding(scan.path, f"{revisions} missing", _ASIDE)
    if scan.disordered:
        yield Finding(scan.path, "its records stand in another order", "put them in their order")
    if scan.torn:
        what = f"its last {scan.torn:,} bytes are no whole record: never acknowledged"
        yield Finding(scan.path, what, f"keep them as {scan.path.stem}{DAMAGED}", damage=False)


def _file_alone(project: Project, route: str) -> Iterator[Finding]:
    """Check a route file whose journal is damaged."""
    path = project.route_file(route)
    try:
        content = state.read_file(project, route)
        if content:
            parse(content, path)
    except Damaged as error:
        yield Finding(path, error.what, f"keep it as {path.name}{DAMAGED}, and {_AGAIN}")


def _file(project: Project, route: str, has_records: bool) -> Iterator[Finding]:
    path = project.route_file(route)
    try:
        content = state.read_file(project, route)
        found = parse(content, path) if content else None
    except Damaged as error:
        theirs = "conflict" in error.what or isinstance(error, LaterRouteFile)
        repair = "" if theirs else f"keep it as {path.name}{DAMAGED}" + (f", and {_AGAIN}" if has_records else "")
        yield Finding(path, error.what, repair)
        return
    if found is None or not content:
        if has_records:
            yield Finding(path, "is missing", _AGAIN, damage=False)
        return
    move = routing.move_of(project, found.route) if cleaning.is_valid(found.route) else None
    if move is not None and move.new == route:
        yield Finding(path, f"shows the route when it was called {found.route}", _AGAIN, damage=False)
    elif found.route not in (route, "") and has_records:
        what, repair = f"is the file of the route {found.route}", f"keep it as {path.name}{DAMAGED}, and {_AGAIN}"
        yield Finding(path, what, repair)
    else:
        yield from access.read(document_of(project, route), partial(_judged, path), fresh=True)


def _judged(path: Path, look: Look) -> list[Finding]:
    if look.file.status == NEW:
        return [Finding(path, f"is {_FOREIGN}", damage=False)]
    if look.file.status == HALF:
        return [Finding(path, look.file.what.removeprefix(f"{path}: "), damage=False)]
    if look.file.status == EDITED:
        return [Finding(path, "was edited: the next write takes it in", damage=False)]
    if look.content and digest_of(look.content) != look.recorded.render and look.content != look.recorded.shown():
        return [Finding(path, f"does not show revision {look.recorded.revision}", _AGAIN, damage=False)]
    return []


# --------------------
# The whole project.


_KEPT = ("journal", "blobs", "cache", "locks", "routes", "memory")

_APPENDED = ("journal", "locks")  # in whose folders lie files that are opened for writing again and again

_DEEP = 2  # folders below the store's own that are asked whether they can be written

_MOST_TRIES = 20


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The findings, and the number of checked records and blobs.

    passed_over  routes that were skipped because only the newest were asked for
    """

    routes: tuple[str, ...]
    records: int
    blobs: int
    findings: tuple[Finding, ...]
    passed_over: int = 0

    @property
    def damaged(self) -> bool:
        """Whether any finding is damage; a note is not."""
        return any(finding.damage for finding in self.findings)


def verify(
    route: str | None = None, *, newest: int | None = None, root: str | os.PathLike[str] | None = None
) -> VerifyReport:
    """Check everything of a route, or of the whole project; changes nothing.

    newest  check only so many routes, the last written, with their evidence, and nothing that routes share

    Raises RouteNotFound, UsageError, Busy, OSError.
    """
    project = projects.find(root)
    routes = [routing.existing(project, route)] if route is not None else routing.names_of(project)
    chosen = routes if newest is None else _written_last(project, routes)[:newest]
    whole, passed_over, routes = route is None and len(chosen) == len(routes), len(routes) - len(chosen), chosen
    findings: list[Finding] = []
    count = 0
    named: dict[str, list[str]] = {}
    if whole:
        findings += _configuration(project)
        what = "is a symbolic link: nothing is written through it"
        findings += (Finding(path, what, "remove it") for path in links(project))
    check = check_of(project.store, project.folder)
    for name in routes:
        scan, found = _route(project, check, name)
        count += len(scan.whole())
        findings += found
        for label, digest in evidence(scan):
            named.setdefault(digest, []).append(f"{name} {label}")
    held, found = check.blobs(None if whole else named)
    findings += found
    findings += check.missing(named)
    if whole:
        findings += [
            *_moves(project),
            *_copies(project, routes),
            *memories.findings(project),
            *map(_left, leftovers(project)),
        ]
    for stream in other_streams(project) if whole else ():
        scan = _other(check, stream)
        count += len(scan.whole())
        findings += of_journal(scan)
        findings += map(_left, check.left(stream))
        findings += _lost_contents(scan, held)
    return VerifyReport(tuple(routes), count, len(held), tuple(dict.fromkeys(findings)), passed_over)


def _written_last(project: Project, routes: list[str]) -> list[str]:
    """Routes, the one whose journal was written last first; those without one at the end."""
    times = written(project.store, "routes")
    return sorted(routes, key=lambda name: -times[name].written if name in times else 0)


def _route(project: Project, check: Check, route: str) -> tuple[Scan, list[Finding]]:
    """Scan a route's journal and check the route; if damage shows, again under the lock, while no one writes."""
    scan, found = _looked(project, check, route)
    if any(finding.damage for finding in found):
        # Where nobody can write, no lock can be had either, and none is needed.
        with suppress(OSError, UsageError), locks.locked(project.route_lock(route), route), check.writing(scan.stream):
            scan, found = _looked(project, check, route)
    return scan, [*found, *map(_left, check.left(scan.stream))]


def _looked(project: Project, check: Check, route: str) -> tuple[Scan, list[Finding]]:
    for _ in range(_MOST_TRIES):
        with suppress(UnknownToken, FileNotFoundError):  # somebody has rewritten the journal meanwhile
            scan = check.scan(stream_of(route))
            return scan, list(findings(project, route, scan))
    raise Busy(route, "its journal is rewritten again and again", "try again")


def other_streams(project: Project) -> list[str]:
    """Streams that are not routes, such as inboxes."""
    return sorted(stream for stream in project.store.streams("") if not stream.startswith(ROUTES))


def _other(check: Check, stream: str) -> Scan:
    """Scan a stream that is not a route's; if damage shows, again while no one writes."""
    scan = check.scan(stream)
    if scan.damaged:
        with suppress(OSError, UsageError), check.writing(stream):
            scan = check.scan(stream)
    return scan


def _lost_contents(scan: Scan, held: Container[str]) -> Iterator[Finding]:
    """Yield the large contents of a run that are gone though its records still name them."""
    if not scan.stream.startswith((records.RUNS, records.SIGNALS, records.OUTPUT)):
        return
    for entry in (line.entry for line in scan.whole() if line.entry is not None):
        for digest in contents.blobs_in(entry.record):
            if digest not in held:
                yield Finding(scan.path, f"the record {entry.id} has a content whose blob {digest} is lost")


def links(project: Project) -> Iterator[Path]:
    """The symbolic links in the store's folders, whose own name may be one, too."""
    for name in _KEPT:
        top = project.folder / name
        if top.is_symlink():
            yield top
            continue
        for folder, folders, names in os.walk(top):
            for one in (*folders, *names):
                path = Path(folder, one)
                if path.is_symlink():
                    yield path


def _configuration(project: Project) -> Iterator[Finding]:
    try:
        config.load(project.config_file)
    except (Damaged, UsageError) as error:
        yield Finding(project.config_file, error.what)


# ---- what lies about ----


def _moves(project: Project) -> Iterator[Finding]:
    """Yield the renames and merges of routes whose process was killed, or is at it, and what was saved into the file of
    a name that a route had.
    """
    for move in renaming.unfinished(project):
        what = f"is left of the rename of {move.old} to {move.new}"
        yield Finding(project.route_file(move.old), what, "complete it", damage=False)
    for path in sorted(project.routes.glob("*.displaced-*")):
        yield Finding(path, "was set aside when somebody saved it: merge it by hand, then delete it", damage=False)


def _copies(project: Project, routes: Container[str]) -> Iterator[Finding]:
    """The files that say that they are of a route whose file has another name, and those that are nobody's."""
    for path in routing.strays(project):
        whose = _said_route(path, routes)
        of = f"is a copy of the file of the route {whose}" if whose else "has a name that no route can have"
        yield Finding(path, f"{of}: nobody reads it", damage=False)
    streams = set(project.store.streams(ROUTES))
    for path in sorted(project.routes.glob("*.md")):
        name = path.stem
        if cleaning.is_valid(name) and stream_of(name) not in streams:
            whose = _said_route(path, routes)
            if whose not in ("", name):
                what = f"is a copy of the file of the route {whose}, and a route of its own by its name alone"
                yield Finding(path, what, damage=False)


def _said_route(path: Path, routes: Container[str]) -> str:
    """The route of these that a file says it is of, "" for none of them."""
    with suppress(Damaged, OSError):
        said = parse(content_of(path, most=MAX_BYTES), path).route
        return said if said in routes else ""
    return ""


def _left(path: Path) -> Finding:
    return Finding(path, "is what somebody left who died, or has not finished", "remove it", damage=False)


def leftovers(project: Project) -> Iterator[Path]:
    """The temporary files of writers that died or have not finished."""
    for name in _KEPT:
        for folder, _, found in os.walk(project.folder / name):
            yield from (Path(folder, one) for one in sorted(found) if _is_left(one))


def _is_left(name: str) -> bool:
    return durable.is_temporary(name) or (name.endswith(".tmp") and ".json." in name)  # of a cache


def unwritable(project: Project) -> list[Path]:
    """The folders and files of the store into which this user may not write; asked of the system, and nothing is
    written.
    """
    effective = os.access in os.supports_effective_ids
    refused = []
    folders = [(project.folder, 0)] if project.folder.is_dir() else []
    while folders:
        folder, depth = folders.pop()
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK, effective_ids=effective):
            refused.append(folder)
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    if folder.parent.name in _APPENDED and not os.access(entry.path, os.W_OK, effective_ids=effective):
                        refused.append(Path(entry.path))
                elif depth < _DEEP:
                    folders.append((Path(entry.path), depth + 1))
    return refused
