"""Whether all that is kept of one route is whole: its journal, its file, and what the cache holds of it."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from pathlib import Path

from ralf import route as heart, sessions, snapshot, state as states
from ralf.context import RouteContext
from ralf.document import parse
from ralf.errors import Damaged, DamagedJournal, LaterRouteFile
from ralf.files.opening import content_of
from ralf.integrity.findings import Finding
from ralf.integrity.journalscan import Scan
from ralf.journal import Record
from ralf.ownership import routefiles
from ralf.past import history
from ralf.project import Project
from ralf.storage.idindex import IdIndex
from ralf.store import Token
from ralf.tree import outline

_ASIDE = "move what is damaged to damaged/, note it in the journal, and go on with what can be read"
_FOREIGN = "foreign: it came with the repository and was not written by your ralf (`ralf context trust ROUTE`)"
_ANEW = "remove it: it is made anew"
_TAKE_IN = "take in what the file shows of them"


def findings(project: Project, route: str, scan: Scan) -> Iterator[Finding]:
    """What is to be said of a route."""
    yield from of_journal(scan)
    if scan.damaged:
        yield from _file_alone(project, route)
        return
    pieces = scan.whole()
    records = [(piece.entry.token, piece.record) for piece in pieces if piece.entry and piece.record]
    kept = snapshot.load(project.cache, route)
    context, remembered = heart.empty(route), None
    try:
        for token, record in records:
            context = heart.apply(context, record)
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
    yield from of_ids(project, scan)


def evidence(scan: Scan) -> Iterator[tuple[str, str]]:
    """The label of each checkpoint of a route, and the digest of its evidence."""
    count = 0
    for piece in scan.whole():
        record = piece.record
        if record is not None and record.kind == "checkpoint" and not record.foreign:
            count += 1
            digest = record.payload.get("evidence")
            if isinstance(digest, str) and len(digest) == 64 and not set(digest) - set("0123456789abcdef"):
                yield f"cp-{count:03d}", digest
        elif record is not None:
            count = max([count, *history.numbers(record)])


def of_journal(scan: Scan) -> Iterator[Finding]:
    """What is to be said of a journal, of a route or of anything else."""
    for lines in scan.lines:
        if lines.wrong:
            yield Finding(lines.path, lines.wrong, _ASIDE)
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
    """What can be said of a route file without its journal."""
    try:
        content = states.read_file(project, route)
        if content:
            parse(content, project.route_file(route))
    except Damaged as error:
        yield Finding(project.route_file(route), error.what, "move it to damaged/, and write it anew")


def _lost_before(path: Path, records: list[tuple[Token, Record]]) -> Iterator[Finding]:
    """A note of each loss that a write has met: the journal was older than the route file, which was taken in."""
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
        content = states.read_file(project, route)
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
    if found.route not in (route, "") and records:
        yield Finding(path, f"is the file of the route {found.route}", "move it to damaged/, and write it anew")
    elif not records:
        own = routefiles.is_own(project, route, content)
        if own and found.revision and snapshot.load(project.cache, route) is not None:
            yield Finding(journal_path, f"has no record, and the route file shows revision {found.revision}", _TAKE_IN)
            return
        what = "has no journal: the next write takes it in as it stands" if own else f"is {_FOREIGN}"
        yield Finding(path, what, damage=False)
    else:
        shown = states.with_file(project, route, _recorded(context, records[-1][0], content), content)
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


def _recorded(context: RouteContext, head: Token, content: bytes) -> states.State:
    return states.State(context, context, head, content, "missing")


# ---- the cache ----


def _snapshot(
    project: Project, route: str, kept: snapshot.Snapshot | None, remembered: RouteContext | None
) -> Iterator[Finding]:
    path = snapshot.path_of(project.cache, route)
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
            if not number.isdecimal() or snapshot.shown_at(project.cache, route, int(number)) is None:
                yield Finding(path, "cannot be read: it counts for nothing", _ANEW, damage=False)


def _sessions(project: Project, route: str, places: Container[Token | None]) -> Iterator[Finding]:
    path = project.cache / "sessions" / f"{route}.jsonl"
    if not os.path.lexists(path):
        return
    expected = b"\n" + sessions.lines_since(project, route, None)
    try:
        content = content_of(path)
    except OSError:
        content = b""
    if sessions.place_of(content) not in places:  # a reader may be late: the journal was rewritten meanwhile
        yield Finding(path, "is of no record of the journal: it counts for nothing", _ANEW, damage=False)
    elif not expected.startswith(content):
        yield Finding(path, "does not hold what the journal comes to", _ANEW)


def of_ids(project: Project, scan: Scan) -> Iterator[Finding]:
    """What is to be said of what the cache holds of a journal's ids."""
    path = project.folder / "cache" / "ids" / f"{scan.stream}.idx"
    if not os.path.lexists(path):
        return
    entries = [piece.entry for piece in scan.whole() if piece.entry is not None]
    if not IdIndex(path).agrees([(one.id, int(one.token.partition("-")[0])) for one in entries]):
        yield Finding(path, "does not hold what the journal comes to", _ANEW)
