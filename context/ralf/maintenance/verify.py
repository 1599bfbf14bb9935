"""Checks the integrity of records, route files, caches, blobs and archives. Reads only."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ralf import config, project as projects, routing
from ralf.agent import contents
from ralf.brief.wording import told_unresolved
from ralf.errors import Busy, Damaged, DamagedJournal, LaterRouteFile, UnknownToken, UsageError
from ralf.format.codec import outline
from ralf.format.routefile import parse
from ralf.maintenance import memories, opaque, renaming
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route import fold, foreign, history, load, offsets, state
from ralf.storage import durable, files
from ralf.storage.files import content_of
from ralf.storage.health import ROUTES, Finding, Health, Scan, health_of
from ralf.storage.journal import Record, Token, stream_of, written
from ralf.text import cleaning

# --------------------
# One route: its journal, its file and its caches.


_ASIDE = "move what is damaged to damaged/, note it in the journal, and go on with what can be read"

_FOREIGN = "foreign: it came with the repository and was not written by your ralf (`ralf context trust ROUTE`)"

_ANEW = "remove it: it is made anew"

_TAKE_IN = "take in what the file shows of them"


def findings(project: Project, route: str, scan: Scan, health: Health) -> Iterator[Finding]:
    """Yield the findings about a route."""
    yield from of_journal(scan)
    if scan.damaged:
        yield from _file_alone(project, route)
        return
    pieces = scan.whole()
    records = [(piece.entry.token, piece.record) for piece in pieces if piece.entry and piece.record]
    kept = state.load_snapshot(project.cache, route)
    context, remembered = fold.empty(route), None
    try:
        for token, record in records:
            context = fold.apply(context, record)
            if kept is not None and token == kept.token:
                remembered = context
    except DamagedJournal as error:
        yield Finding(scan.lines[-1].path, f"its records make no route: {error}")
        return
    foreign = context.context_checkpoint.foreign_records
    if foreign:
        which = "1 of its records is" if foreign == 1 else f"{foreign:,} of its records are"
        yield Finding(scan.lines[-1].path, f"{which} {_FOREIGN}", damage=False)
    if later := context.context_checkpoint.later_records:
        which = "1 of its records was" if later == 1 else f"{later:,} of its records were"
        yield Finding(scan.lines[-1].path, f"{which} written by a later version of ralf: passed over", damage=False)
    yield from _lost_before(scan.lines[-1].path, records)
    yield from _file(project, route, scan.lines[-1].path, context, records)
    yield from _snapshot(project, route, kept, remembered)
    yield from _shown(project, route)
    yield from _sessions(project, route, {token for token, _ in records})
    yield from health.ids(scan)


def evidence(scan: Scan) -> Iterator[tuple[str, str]]:
    """The label of each checkpoint of a route, and the digest of its evidence."""
    for label, record in history.with_labels(piece.record for piece in scan.whole() if piece.record is not None):
        digest = record.payload.get("evidence") if label and record.kind == "checkpoint" else None
        if isinstance(digest, str) and len(digest) == 64 and not set(digest) - set("0123456789abcdef"):
            yield label, digest


def of_journal(scan: Scan) -> Iterator[Finding]:
    """Yield the findings about a journal, of a route or any other stream."""
    for lines in scan.lines:
        if lines.wrong:
            yield Finding(lines.path, lines.wrong, "" if scan.long else _ASIDE)
        for piece in lines.pieces:
            if piece.wrong:
                where = f"the record at byte {piece.start}" if piece.entry or piece.wrong else ""
                yield Finding(lines.path, f"{where}, {len(piece.raw):,} bytes, {piece.wrong}", _ASIDE)
    path = scan.lines[-1].path
    for first, last in scan.gaps:
        revisions = f"revision {first} is" if first == last else f"revisions {first} to {last} are"
        yield Finding(path, f"{revisions} missing", _ASIDE)
    if scan.disordered:
        yield Finding(path, "its records stand in another order, or twice", "put them in their order")
    if scan.torn:
        what = f"its last {len(scan.torn):,} bytes are no whole record: never acknowledged"
        yield Finding(path, what, "move them to damaged/", damage=False)


# ---- the route file ----


def _file_alone(project: Project, route: str) -> Iterator[Finding]:
    """Check a route file whose journal is damaged."""
    try:
        content = state.read_file(project, route)
        if content:
            parse(content, project.route_file(route))
    except Damaged as error:
        yield Finding(project.route_file(route), error.what, "move it to damaged/, and write it anew")


def _lost_before(path: Path, records: list[tuple[Token, Record]]) -> Iterator[Finding]:
    """Yield a note for each earlier loss: a write found the journal older than the route file, and merged the file."""
    for _, record in records:
        lost = record.payload.get("lost")
        if record.kind in ("edit", "import") and not record.foreign and isinstance(lost, list) and len(lost) == 2:
            what = f"its revisions {lost[0]} to {lost[1]} were lost once; revision {record.revision} is what the file "
            yield Finding(path, f"{what}still showed of them", damage=False)


def _file(
    project: Project, route: str, journal_path: Path, context: RouteContext, records: list[tuple[Token, Record]]
) -> Iterator[Finding]:
    path = project.route_file(route)
    try:
        content = state.read_file(project, route)
        found = parse(content, path) if content else None
    except Damaged as error:
        theirs = "conflict" in error.what or isinstance(error, LaterRouteFile)
        repair = "" if theirs else "move it to damaged/" + (", and write it anew from the journal" if records else "")
        yield Finding(path, error.what, repair)
        return
    if found is None or not content:
        if records:
            yield Finding(path, "is missing", "write it anew from the journal", damage=False)
        return
    for line in told_unresolved(found):
        yield Finding(path, f"two values: {line}; to settle it: ralf context edit {route}", damage=False)
    move = routing.move_of(project, found.route) if cleaning.is_valid(found.route) else None
    if move is not None and move.new == route:
        yield Finding(
            path, f"shows the route when it was called {found.route}", "write it anew from the journal", damage=False
        )
    elif found.route not in (route, "") and records:
        yield Finding(path, f"is the file of the route {found.route}", "move it to damaged/, and write it anew")
    elif not records:
        own = foreign.is_own(project, route, content)
        if own and found.revision and state.load_snapshot(project.cache, route) is not None:
            yield Finding(journal_path, f"has no record, and the route file shows revision {found.revision}", _TAKE_IN)
            return
        what = "has no journal: the next write takes it in as it stands" if own else f"is {_FOREIGN}"
        yield Finding(path, what, damage=False)
    else:
        recorded = state.State(context, context, records[-1][0], content, "missing")
        shown = load.with_file(project, route, recorded, content)
        if shown.lost:
            what = f"ends at revision {context.revision}, and the route file shows {shown.lost}: records are lost"
            yield Finding(journal_path, what, _TAKE_IN)
        elif shown.status == "stale":
            what = f"shows revision {found.revision} of {context.revision}"
            yield Finding(path, what, "write it anew from the journal", damage=False)
        elif shown.status == "foreign":
            yield Finding(path, f"is {_FOREIGN}", damage=False)
        elif shown.changes:
            yield Finding(path, "was edited: the next write takes it in", damage=False)


# ---- the cache ----


def _snapshot(
    project: Project, route: str, kept: state.Snapshot | None, remembered: RouteContext | None
) -> Iterator[Finding]:
    path = state.path_of(project.cache, route)
    if not os.path.lexists(path):
        return
    if kept is None:
        yield Finding(path, "cannot be read: it counts for nothing", _ANEW, damage=False)
    elif remembered is None:
        what = f"is of no record of the journal, but of one of revision {kept.context.revision}: it counts for nothing"
        yield Finding(path, what, _ANEW, damage=False)
    elif outline(kept.context) != outline(remembered):
        yield Finding(path, "does not hold what the journal comes to", _ANEW)


def _shown(project: Project, route: str) -> Iterator[Finding]:
    folder = project.cache / "renders" / route
    if folder.is_dir() and not folder.is_symlink():
        for path in sorted(folder.iterdir()):
            number = path.name.partition(".")[0]
            if not number.isdecimal() or state.shown_at(project.cache, route, int(number)) is None:
                yield Finding(path, "cannot be read: it counts for nothing", _ANEW, damage=False)


def _sessions(project: Project, route: str, places: Container[Token | None]) -> Iterator[Finding]:
    path = project.cache / "sessions" / f"{route}.jsonl"
    if not os.path.lexists(path):
        return
    expected = b"\n" + offsets.lines_since(project, route, None)
    try:
        content = content_of(path)
    except OSError:
        content = b""
    if offsets.place_of(content) not in places:  # a reader may be late: the journal was rewritten meanwhile
        yield Finding(path, "is of no record of the journal: it counts for nothing", _ANEW, damage=False)
    elif not expected.startswith(content):
        yield Finding(path, "does not hold what the journal comes to", _ANEW)


# --------------------
# The whole project.


_KEPT = ("journal", "archive", "blobs", "cache", "locks", "routes", "memory")

_APPENDED = ("journal", "locks")  # in whose folders lie files that are opened for writing again and again

_DEEP = 2  # folders below the store's own that are asked whether they can be written

_PRIVATE = ("journal", "archive", "blobs", "memory")  # what others on this machine have no business with

_MOST_TRIES = 20


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The findings, and the number of checked records, blobs (archived ones too) and archives.

    passed_over  routes that were skipped because only the newest were asked for
    """

    routes: tuple[str, ...]
    records: int
    blobs: int
    archives: int
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
    routes = [routing.existing(project, route)] if route is not None else route_names(project)
    chosen = routes if newest is None else _written_last(project, routes)[:newest]
    whole, passed_over, routes = route is None and len(chosen) == len(routes), len(routes) - len(chosen), chosen
    findings: list[Finding] = []
    records = 0
    named: dict[str, list[str]] = {}
    if whole:
        findings += _configuration(project)
        what = "is a symbolic link: nothing is written through it"
        findings += (Finding(path, what, "move it to damaged/") for path in links(project))
    health = health_of(project.store, project.folder)
    for name in routes:
        scan, found = _route(project, health, name)
        records += len(scan.whole())
        findings += found
        for label, digest in evidence(scan):
            named.setdefault(digest, []).append(f"{name} {label}")
    held, found = health.blobs(None if whole else named)
    findings += found
    findings += health.missing(named, held)
    if whole:
        findings += [
            *_moves(project),
            *_vanished(project, routes),
            *_copies(project, routes),
            *memories.findings(project),
            *map(_left, leftovers(project)),
        ]
        what = "can be read or written by others on this machine"
        findings += (Finding(path, what, "make it yours alone", damage=False) for path in too_open(project))
    others = other_streams(health) if whole else []
    for stream in others:
        scan = _other(health, stream)
        records += len(scan.whole())
        findings += of_journal(scan)
        findings += () if scan.damaged else health.ids(scan)
        findings += _lost_contents(scan, held)
    archives = health.archives([*map(stream_of, routes), *others])
    return VerifyReport(tuple(routes), records, len(held), archives, tuple(findings), passed_over)


def _written_last(project: Project, routes: list[str]) -> list[str]:
    """Routes, the one whose journal was written last first; those without one at the end."""
    times = written(project.store, "routes")
    return sorted(routes, key=lambda name: -times[name].written if name in times else 0)


def _route(project: Project, health: Health, route: str) -> tuple[Scan, list[Finding]]:
    """Scan a route's journal and check the route; if damage shows, again under the lock, while no one writes."""
    scan, found = _looked(project, health, route)
    if any(finding.damage for finding in found):
        # Where nobody can write, no lock can be had either, and none is needed.
        with suppress(OSError, UsageError), files.locked(project.route_lock(route), route), health.writing(scan.stream):
            scan, found = _looked(project, health, route)
    if not scan.damaged:
        found += map(_left, health.left(scan))
    return scan, found


def _looked(project: Project, health: Health, route: str) -> tuple[Scan, list[Finding]]:
    for _ in range(_MOST_TRIES):
        with suppress(UnknownToken, FileNotFoundError):  # somebody has rewritten the journal meanwhile
            scan = health.scan(stream_of(route))
            return scan, list(findings(project, route, scan, health))
    raise Busy(route, "its journal is rewritten again and again", "try again")


def route_names(project: Project) -> list[str]:
    """All routes that have a file, a journal, or an archived part of one."""
    streams = health_of(project.store, project.folder).streams(ROUTES)
    names = {*routing.names_of(project), *(stream.removeprefix(ROUTES) for stream in streams)}
    return sorted(names)


def other_streams(health: Health) -> list[str]:
    """Streams that are not routes, such as inboxes, with a journal or an archived part."""
    return sorted(stream for stream in health.streams("") if not stream.startswith(ROUTES))


def _other(health: Health, stream: str) -> Scan:
    """Scan a stream that is not a route's; if damage shows, again while no one writes."""
    scan = health.scan(stream)
    if scan.damaged:
        with suppress(OSError, UsageError), health.writing(stream):
            scan = health.scan(stream)
    return scan


def _lost_contents(scan: Scan, held: Container[str]) -> Iterator[Finding]:
    """Yield the large contents of a run that are gone though its records still name them."""
    if not opaque.is_opaque([scan.stream]):
        return
    for piece in scan.whole():
        for digest in contents.blobs_in(piece.entry.record) if piece.entry else ():
            if digest not in held:
                what = f"the record {piece.entry.id} has a content whose blob {digest} is lost" if piece.entry else ""
                yield Finding(scan.lines[-1].path, what)


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
    for move in renaming.pending_moves(project):
        what = f"the {move.kind} of {move.old} to {move.new} has not ended"
        yield Finding(project.route_file(move.old), what, "complete it", damage=False)
    for path in sorted(project.routes.glob("*.displaced-*")):
        yield Finding(path, "was set aside when somebody saved it: merge it by hand, then delete it", damage=False)


def _vanished(project: Project, routes: Container[str]) -> Iterator[Finding]:
    """Yield the routes that the cache still knows and that no longer exist; no other check finds them."""
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
        said = parse(content_of(path, most=state.MAX_BYTES), path).route
        return said if said in routes else ""
    return ""


def _left(path: Path) -> Finding:
    return Finding(path, "is what somebody left who died, or has not finished", "remove it", damage=False)


def leftovers(project: Project) -> Iterator[Path]:
    """The temporary files of writers that died or have not finished."""
    return (path for path in _files(project, (*_KEPT, "damaged")) if _is_left(path.name))


def _files(project: Project, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        for folder, _, found in os.walk(project.folder / name):
            yield from (Path(folder, one) for one in sorted(found))


def _is_left(name: str) -> bool:
    return durable.is_temporary(name) or (name.endswith(".tmp") and ".json." in name)  # of a cache


def too_open(project: Project) -> Iterator[Path]:
    """Yield private files that others can read or write."""
    for path in _files(project, _PRIVATE):
        with suppress(FileNotFoundError):
            if not path.is_symlink() and not _is_left(path.name) and path.stat().st_mode & 0o077:
                yield path


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
