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
from ralf.format.routefile import parse
from ralf.maintenance import memories, remnants, renaming, verify
from ralf.maintenance.verify import VerifyReport
from ralf.model import RouteContext
from ralf.project import Project, find
from ralf.route import edits, fold, foreign, state
from ralf.route.history import counted
from ralf.route.write import open_route
from ralf.storage import durable, files, journal as journals, journal_file
from ralf.storage.check import DAMAGED, ROUTES, Check, Scan, aside, check_of

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

    def remove_index(self, route: str) -> None:
        """Remove what the cache has of a route, and the indexes: they know of what is lost, and are made anew."""
        cache = self.project.cache
        names = (f"routes/{route}.json", f"sessions/{route}.jsonl", f"renders/{route}")
        remnants.remove([*(path for name in names for path in cache.glob(name)), *index.files_in(cache)])


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
    for move, what in renaming.complete_moves(project) if route is None else ():
        mending.note(project.route_file(move.new), what)
    still = None
    with suppress(RalfError):
        still = routing.existing(project, route) if route is not None else None
    after = verify.verify(still, root=root) if mending.done else before
    return RepairReport(before, tuple(mending.done), after)


def _route(mending: _Repair, route: str) -> None:
    project, check = mending.project, mending.check
    stream, path, own = journals.stream_of(route), project.route_file(route), False
    with files.locked(project.route_lock(route), route):
        with check.writing(stream):
            scan = check.scan(stream)
            findings = list(verify.findings(project, route, scan))
            lost = not scan.damaged and any(one.path == scan.path and one.damage for one in findings)
            if scan.damaged or scan.torn or lost:
                own = _keep_own(project, route, scan)  # first of all: a repair that is broken off is done again
                mending.remove_index(route)  # it knows of files that show what is lost
            found = _file(project, route) if own else None
            _mend(mending, scan, found[1].checkpoint_count if found and found[1].route == route else 0)
        # What a writer displaced, and a file that is behind, is the next write's.
        show = scan.damaged or lost or any(one.suffix != durable.SEEN_SUFFIX for one in durable.hidden_beside(path))
        for finding in findings:
            if finding.path == path and finding.repair:
                show = True
                if finding.damage:
                    mending.aside(path)
        if scan.damaged and not own and _is_anothers(project, route):
            mending.aside(path)
        taken = scan.damaged and own and _take_in(project, route)
    if show:
        _show(mending, route, taken=taken, begin=lost)


def _mend(mending: _Repair, scan: Scan, shown: int = 0) -> None:
    """Write a damaged or torn stream anew, for who holds it; else remove what dead writers left."""
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


def _missing(project: Project, scan: Scan, shown: int) -> Iterator[tuple[int, list[bytes]]]:
    """A record in the place of each that is missing, by the place of the line behind it, and one that says so.

    shown  how many checkpoints the route file says that there were: where the remains do not tell what is lost, the
           first ones were checkpoints, so that those that follow are called what they were called
    """
    records = [line.record for line in scan.whole() if line.record is not None]
    spare = shown - reduce(counted, records, 0) - sum(line.tells for line in scan.lines)
    expected, count, told = 1, 0, 0
    for line in scan.lines:
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
            made.append(_line(project, scan.stream, revision, payload))
        yield line.start, made
        expected, count, told = line.record.revision + 1, counted(count, line.record), 0
    if scan.damaged:
        kept = scan.path.with_suffix(DAMAGED).relative_to(project.folder).as_posix()
        payload = {"damaged": [kept], "missing": [list(gap) for gap in scan.gaps]}
        yield -1, [_line(project, scan.stream, expected, payload)]


def _line(project: Project, stream: str, revision: int, payload: dict[str, object]) -> bytes:
    record = {
        "v": journals.VERSION,
        "revision": revision,
        "parent": revision - 1,
        "kind": "repair",
        "digest": journals.digest_of(payload),
        "payload": payload,
        "render": "",
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    id_ = f"repair-{revision}-{hashlib.sha256(text).hexdigest()[:24]}"
    return journal_file.framed(id_, project.store.sealed(stream, text))


# ---- the route file: what it still shows of records that are lost is taken in ----


def _keep_own(project: Project, route: str, scan: Scan) -> bool:
    """Whether the route file is this user's, as far as anybody knows; then that is known when cache and journal have
    lost it, too. Another route's file is none of this one.
    """
    if _is_anothers(project, route):
        return False
    with suppress(Damaged):
        content = state.read_file(project, route)
        renders = {line.record.render for line in scan.whole() if line.record and not line.record.foreign}
        if content and (
            state.digest_of(content) in renders
            or foreign.is_own(project, route, content)
            or foreign.is_edit(project, route, content, parse(content, project.route_file(route)))
        ):
            foreign.remember(project, route, [state.digest_of(content)])
            return True
    return False


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


def _take_in(project: Project, route: str) -> bool:
    """Take in what the route file still shows and the journal has lost, under the labels that it had; whether there is
    any. What a person has edited comes in with it.
    """
    found = _file(project, route)
    if found is None or found[1].route != route:
        return False
    content, shown = found
    head, context = None, fold.empty(route)
    for token, record in journals.read(project.store, route):
        head, context = token, fold.apply(context, record)
    changes = [state.redacted(project, one) for one in edits.changes_of_foreign(context, shown, same=True)]
    if changes:
        record = journals.Record(context.revision + 1, "edit", {"changes": changes})
        id_ = f"repair-edit-{record.revision}-{state.digest_of(content)}"
        journals.append(project.store, route, record, id=id_, after=head)
    return bool(changes)


def _show(mending: _Repair, route: str, *, taken: bool, begin: bool = False) -> None:
    """Make the route file show what the journal has, after what it has and the journal lost was taken in.

    begin  whether a route without any record is to have its journal begun anew
    """
    project = mending.project
    before = project.store.head(journals.stream_of(route))
    if before is None and not begin:
        return
    with open_route(project, route, leave=False) as writer:
        writer.absorb_edits()
        writer.render_file()
        taken, left = taken or writer.token != before, writer.foreign
    if not left:
        mending.note(project.route_file(route), _AGAIN + (", what it had more was taken in" if taken else ""))


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
