"""Repairs what `verify` finds, from the journal; never removes the only copy of anything."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from ralf import routing
from ralf.document import index
from ralf.errors import Damaged, RalfError
from ralf.maintenance import memories, renaming, verify
from ralf.maintenance.verify import VerifyReport
from ralf.model import RouteContext
from ralf.project import Project, find
from ralf.route import load, state
from ralf.route.family import stamp_of
from ralf.route.history import counted
from ralf.route.routefile import parse
from ralf.route.write import open_route
from ralf.storage import journal as journals, journal_file, locks
from ralf.storage.check import DAMAGED, ROUTES, Check, Scan, aside, check_of
from ralf.storage.durable import removed

_DEAD = 3_600
"""Seconds after which nobody is believed to be still at a temporary file, where no lock tells."""

_LEFT = "removed: somebody who died left it"

_AGAIN = "written anew from the journal"


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to a file."""

    path: Path
    what: str


@dataclass(frozen=True, slots=True)
class RepairReport:
    """The findings before the repair, the steps taken, and the findings after it."""

    before: VerifyReport
    done: tuple[Done, ...]
    after: VerifyReport


@dataclass
class _Repair:
    project: Project
    check: Check
    done: list[Done] = field(default_factory=list)

    def note(self, path: Path, what: str) -> None:
        self.done.append(Done(path, what))

    def aside(self, path: Path) -> None:
        """Keep a damaged file under another name."""
        self.note(path, f"moved to {aside(path)}")

    def remove_index(self) -> None:
        """Remove the indexes: they know of what is lost, and are made anew."""
        removed(index.files_in(self.project.cache))


def repair(route: str | None = None, *, root: str | os.PathLike[str] | None = None) -> RepairReport:
    """Repair a route, or the whole project. A second call does nothing.

    Raises RouteNotFound, UsageError, Busy, OSError; what was done until then stays done, and is safe.
    """
    project = find(root)
    before = verify.verify(route, root=root)
    mending = _Repair(project, check_of(project.store, project.folder))
    if before.findings:
        for path in list(verify.links(project)) if route is None else ():
            mending.note(path, f"removed: it led to {os.readlink(path)}")  # noqa: PTH115  # as it stands there
            path.unlink()
        for finding in before.findings:
            if finding.damage and project.folder / "blobs" in finding.path.parents and os.path.lexists(finding.path):
                mending.aside(finding.path)
        for name in before.routes:
            _route(mending, name)
        if route is None:
            for stream in verify.other_streams(project):
                _other(mending, stream)
            memories.repaired(project, mending.aside, mending.note)
            _rest(mending)
        scans = (mending.check.scan(journals.stream_of(name)) for name in before.routes)
        for path in mending.check.note_lost({digest for scan in scans for _, digest in verify.evidence(scan)}):
            mending.note(path, "noted as lost")  # so that it is reported once
    for move in renaming.unfinished(project) if route is None else ():
        renaming.finish(project, move)
        mending.note(project.route_file(move.old), f"absorbed: it was left of the rename to {move.new}")
    still = None
    with suppress(RalfError):
        still = routing.existing(project, route) if route is not None else None
    after = verify.verify(still, root=root) if mending.done else before
    return RepairReport(before, tuple(mending.done), after)


def _route(mending: _Repair, route: str) -> None:
    project, check = mending.project, mending.check
    stream, path, shown = journals.stream_of(route), project.route_file(route), None
    with locks.locked(project.route_lock(route), route):
        with check.writing(stream):
            scan = check.scan(stream)
            findings = list(verify.findings(project, route, scan))
            if scan.damaged or scan.torn:
                shown = _own_file(project, route, scan)  # before anything is forgotten that says so
                mending.remove_index()  # it knows of files that show what is lost
            _mend(mending, scan, shown)
        show = scan.damaged
        for finding in findings:
            if finding.path == path and finding.repair:
                show = True
                if finding.damage:
                    mending.aside(path)
        if scan.damaged and shown is None and _is_anothers(project, route):
            mending.aside(path)
    if show:  # what the file shows of lost records is absorbed
        _show(mending, route)


def _mend(mending: _Repair, scan: Scan, shown: RouteContext | None = None) -> None:
    """Write a damaged or torn stream anew, for who holds it; else remove what dead writers left.

    shown  what the route's own file shows, as far as anybody knows
    """
    if scan.damaged or scan.torn:
        missing = dict(_missing(mending.project, scan, shown)) if scan.stream.startswith(ROUTES) else {}
        mending.check.mend(scan, missing)
        bad = sum(1 for line in scan.lines if line.wrong)
        lost = sum(last - first + 1 for first, last in scan.gaps)
        what = f"written anew: {len(scan.whole()):,} records are whole"
        what += f", {bad:,} damaged lie in {scan.path.stem}{DAMAGED}" if bad else ""
        mending.note(scan.path, what + (f", {lost:,} lost" if lost else ""))
    else:
        for left in mending.check.left(scan.stream):
            left.unlink(missing_ok=True)
            mending.note(left, _LEFT)


def _missing(project: Project, scan: Scan, shown: RouteContext | None) -> Iterator[tuple[int, list[bytes]]]:
    """A record in the place of each that is missing, by the place of the line behind it, and one that says so.

    shown  what the route file shows: where the remains do not tell what is lost, the first ones were checkpoints, as
           many as it counts, so that those that follow are called what they were called
    """
    stamp = stamp_of(shown) if shown is not None else None
    mark, checkpoints = stamp.mark if stamp is not None else "", shown.checkpoint_count if shown is not None else 0
    records = [line.record for line in scan.whole() if line.record is not None]
    spare = checkpoints - reduce(counted, records, 0) - sum(line.tells for line in scan.lines)
    expected, count, told = 1, 0, 0
    lines = [*(line for line in scan.lines if line.wrong), *scan.whole()] if scan.disordered else scan.lines
    for line in lines:
        told += line.tells
        if line.wrong or line.record is None:
            continue
        made, lost = [], line.record.revision - expected
        more = max(0, min(spare, lost - told))
        spare, count = spare - more, count + told + more if lost else count
        for revision in range(expected, line.record.revision):
            payload: dict[str, object] = {"lost": True}
            if revision == line.record.revision - 1 and told + more:
                payload["changes"] = [{"at": ["context_checkpoint", "checkpoint_count"], "value": count}]
            made.append(_line(project, scan.stream, revision, payload, mark))
        yield line.start, made
        expected, count, told = line.record.revision + 1, counted(count, line.record), 0
    if scan.damaged:
        kept = scan.path.with_suffix(DAMAGED).relative_to(project.folder).as_posix()
        payload = {"damaged": [kept], "missing": [list(gap) for gap in scan.gaps]}
        yield -1, [_line(project, scan.stream, expected, payload, mark)]


def _line(project: Project, stream: str, revision: int, payload: dict[str, object], mark: str) -> bytes:
    """A line of a repair; the first one of a journal has the mark of the route."""
    record = {
        "v": journals.VERSION,
        "revision": revision,
        "parent": revision - 1,
        "kind": "repair",
        "digest": journals.digest_of(payload),
        "payload": payload,
        "render": "",
    } | ({"mark": mark} if mark and revision == 1 else {})
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    id_ = f"repair-{revision}-{hashlib.sha256(text).hexdigest()[:24]}"
    return journal_file.framed(id_, project.store.with_id(text))


# ---- the route file: what it still shows of records that are lost is taken in ----


def _own_file(project: Project, route: str, scan: Scan) -> RouteContext | None:
    """What the route file says, where it is this user's, as far as anybody knows. Another route's is none of this."""
    found = _file(project, route)
    if found is None or found[1].route not in (route, ""):
        return None
    content, context = found
    renders = {line.record.render for line in scan.whole() if line.record and not line.record.foreign}
    is_own = state.digest_of(content) in renders or load.is_own(project, route, content, context)
    return context if is_own else None


def _file(project: Project, route: str) -> tuple[bytes, RouteContext] | None:
    """The route file and what it says, None where there is none that can be read."""
    with suppress(Damaged):
        content = state.read_file(project, route)
        return (content, parse(content, project.route_file(route))) if content else None
    return None


def _is_anothers(project: Project, route: str) -> bool:
    """Whether the route file says that it is another route's."""
    found = _file(project, route)
    return found is not None and found[1].route not in (route, "")


def _show(mending: _Repair, route: str) -> None:
    """Make the route file show what the journal has, after what it has and the journal lost was absorbed."""
    project = mending.project
    before = project.store.head(journals.stream_of(route))
    if before is None:
        return
    with open_route(project, route) as writer:
        writer.absorb_edits()
        writer.render_file()
        is_absorbed, left = writer.token != before, writer.foreign
    if not left:
        mending.note(project.route_file(route), _AGAIN + (", what it had more was taken in" if is_absorbed else ""))


# ---- the rest ----


def _other(mending: _Repair, stream: str) -> None:
    """Mend a stream that is no route's: what can be read goes on."""
    with mending.check.writing(stream):
        _mend(mending, mending.check.scan(stream))


def _rest(mending: _Repair) -> None:
    project = mending.project
    left = list(verify.leftovers(project))
    heap = project.store.properties.heap
    if heap is not None:
        heap.sweep()
    for path in left:
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _DEAD:
                path.unlink()
        if not path.exists():
            mending.note(path, _LEFT)
