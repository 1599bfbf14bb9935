"""Repairs what `verify` finds, from the journal; never removes the only copy of anything."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ralf import routing
from ralf.document import index
from ralf.errors import Damaged, RalfError
from ralf.format.routefile import parse
from ralf.maintenance import memories, renaming, verify
from ralf.maintenance.verify import VerifyReport
from ralf.model import RouteContext
from ralf.project import Project, find
from ralf.route import edits, fold, foreign, state
from ralf.route.history import counted
from ralf.route.write import open_route
from ralf.storage import durable, files, journal as journals, journal_file
from ralf.storage.health import ROUTES, Health, Scan, health_of

# --------------------
# The lines of a damaged journal: whole records in order, and a record in place of each lost one.


def chained(scan: Scan, damaged: Sequence[str], shown: int, sealed: Callable[[bytes], bytes]) -> list[bytes]:
    """The whole records' lines, with a record in the place of each that is missing, and a last one that says so.

    damaged  where the bytes lie now that could not be read
    shown    how many checkpoints there were, as far as anybody knows
    sealed   puts this user's seal on a record
    """
    made: list[bytes] = []
    expected, count = 1, 0
    lost_checkpoints = _lost_checkpoints(scan, shown)
    for piece in scan.whole():
        record = piece.record
        if record is not None:
            for revision in range(expected, record.revision):
                payload: dict[str, object] = {"lost": True}
                number = lost_checkpoints.get(record.revision, 0) if revision == record.revision - 1 else 0
                if number:
                    count += number  # those that follow are called what they were called
                    at = ["context_checkpoint", "checkpoint_count"]
                    payload["changes"] = [{"at": at, "value": count}]
                made.append(_repair_line(revision, payload, sealed))
            expected = record.revision + 1
            count = counted(count, record)
        made.append(piece.raw.rstrip(b"\n") + b"\n")
        if piece.entry is not None and not journal_file.is_sound(piece.raw):
            made[-1] = journal_file.framed(piece.entry.id, piece.entry.record)
    if scan.damaged and scan.stream.startswith(ROUTES):
        missing = [list(gap) for gap in scan.gaps]
        made.append(_repair_line(expected, {"damaged": list(damaged), "missing": missing}, sealed))
    return made


def _lost_checkpoints(scan: Scan, shown: int) -> dict[int, int]:
    """How many of the records that are lost before a revision were checkpoints, as far as their remains tell, and else
    as many of the first ones as the route file shows more.
    """
    gaps = {last + 1: last - first + 1 for first, last in scan.gaps}
    found: dict[int, int] = {}
    remains, count = b"", 0
    for piece in (piece for lines in scan.lines for piece in lines.pieces):
        if piece.record is None:
            remains += piece.raw
            continue
        marks = max(remains.count(mark) for mark in (b'{"id":"checkpoint-', b'"kind":"checkpoint"'))
        found[piece.record.revision] = min(gaps.get(piece.record.revision, 0), marks)
        count = counted(count, piece.record)
        remains = b""
    missing = shown - count - sum(found.values())
    for revision, size in sorted(gaps.items()):
        more = max(0, min(missing, size - found.get(revision, 0)))
        found[revision] = found.get(revision, 0) + more
        missing -= more
    return found


def _repair_line(revision: int, payload: dict[str, object], sealed: Callable[[bytes], bytes]) -> bytes:
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
    return journal_file.framed(f"repair-{revision}-{hashlib.sha256(text).hexdigest()[:24]}", sealed(text))


# --------------------
# Repairs what `verify` finds. Unreadable files move to `damaged/`, under their own path; derived files are removed.


_DEAD = 3_600
"""Seconds after which nobody is believed to be still at a temporary file, where no lock tells."""

_ANEW = "removed: it is made anew"

_LEFT = "removed: somebody who died left it"


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
    health: Health
    done: list[Done] = field(default_factory=list)

    def note(self, path: Path, what: str) -> None:
        self.done.append(Done(path, what))

    def aside(self, path: Path) -> Path:
        """Move a file, or whatever lies in its place, to `damaged/`; where it lies now."""
        target = self._free(path)
        os.replace(path, target)  # noqa: PTH105  # a link itself, not what it names
        self.note(path, f"moved to {target}")
        return target

    def keep(self, path: Path, content: bytes, what: str) -> Path:
        """Keep damaged bytes of a file in `damaged/`, once."""
        target = self._folder(path) / f"{path.name}.{hashlib.sha256(content).hexdigest()[:12]}"
        if not target.exists():
            durable.replace_durably(target, [content])
        self.note(path, f"{what}: {len(content):,} bytes, kept in {target}")
        return target

    def remove(self, path: Path, what: str) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        self.note(path, what)

    def _folder(self, path: Path) -> Path:
        folder = self.project.folder / "damaged" / path.relative_to(self.project.folder).parent
        files.make(folder)
        return folder

    def _free(self, path: Path) -> Path:
        folder, number = self._folder(path), 0
        while os.path.lexists(target := folder / (f"{path.name}.{number}" if number else path.name)):
            number += 1
        return target


def repair(route: str | None = None, *, root: str | os.PathLike[str] | None = None) -> RepairReport:
    """Repair a route, or the whole project. A second call does nothing.

    Raises RouteNotFound, UsageError, Busy, OSError; what was done until then stays done, and is safe.
    """
    project = find(root)
    before = verify.verify(route, root=root)
    health = health_of(project.store, project.folder)
    mending = _Repair(project, health)
    if before.findings:
        if route is None:
            for path in list(verify.links(project)):
                mending.aside(path)
        health.mend_blobs({finding.path for finding in before.findings if finding.damage}, mending)
        for name in before.routes:
            _route(mending, name)
        if route is None:
            for stream in verify.other_streams(health):
                _other(mending, stream)
            memories.repaired(project, mending.aside, mending.note)
            _rest(mending, before)
        scans = (health.scan(journals.stream_of(name)) for name in before.routes)
        for path in health.note_lost({digest for scan in scans for _, digest in verify.evidence(scan)}):
            mending.note(path, "noted as lost")  # so that it is reported once
    for move, what in renaming.complete_moves(project) if route is None else ():
        mending.note(project.route_file(move.new), what)
    after = verify.verify(_still(project, route), root=root) if mending.done else before
    return RepairReport(before, tuple(mending.done), after)


def _still(project: Project, route: str | None) -> str | None:
    with suppress(RalfError):
        return routing.existing(project, route) if route is not None else None
    return None


# ---- a route ----


def _route(mending: _Repair, route: str) -> None:
    project, health = mending.project, mending.health
    stream, path, own = journals.stream_of(route), project.route_file(route), False
    journal = health.journal(stream)
    with files.locked(project.route_lock(route), route):
        with health.writing(stream):
            scan = health.scan(stream)
            findings = list(verify.findings(project, route, scan, health))
        lost = not scan.damaged and any(found.path == journal and found.damage for found in findings)
        if scan.damaged or scan.torn or lost:
            own = _keep_own(project, route, scan)  # first of all: a repair that is broken off is done again
        for found in findings:
            if project.folder / "cache" in found.path.parents and os.path.lexists(found.path):
                mending.remove(found.path, _ANEW)
        for pattern in (f"{route}.json.*.tmp", f".{route}.json.tmp"):
            for left in (project.cache / "routes").glob(pattern):
                mending.remove(left, _LEFT)
        if scan.damaged or scan.torn:
            _forget_cache(mending, route)  # first: it knows of files that show what is lost
            with health.writing(stream):
                _journal(mending, health.scan(stream), _checkpoints_shown(project, route) if own else 0)
        elif os.path.lexists(journal):
            with health.writing(stream):
                for left in health.sweep(stream):
                    mending.note(left, _LEFT)
        beside = [one for one in durable.hidden_beside(path) if one.suffix != durable.SEEN_SUFFIX]
        show = scan.damaged or bool(beside)  # a save that a writer displaced is taken in
        for found in findings:
            if found.path == path and found.repair:
                show = True
                if found.damage:
                    mending.aside(path)
        if scan.damaged and not own and _is_anothers(project, route):
            mending.aside(path)
        taken = scan.damaged and own and _take_in(project, route)
    if show or lost:  # what the file shows of lost records is taken in, also where none is left
        _show(mending, route, taken=taken, begin=lost)


def _keep_own(project: Project, route: str, scan: Scan) -> bool:
    """Whether the route file is this user's, as far as anybody knows; then that is known when cache and journal have
    lost it, too. Another route's file is none of this one.
    """
    if _is_anothers(project, route):
        return False
    with suppress(Damaged):
        content = state.read_file(project, route)
        if content and (
            _is_shown(scan, state.digest_of(content))
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


def _is_shown(scan: Scan, digest: str) -> bool:
    """Whether a record of this user's that is still whole says that it was shown by just this file."""
    return any(
        piece.record is not None and not piece.record.foreign and piece.record.render == digest
        for piece in scan.whole()
    )


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
    if project.store.head(journals.stream_of(route)) is None and not begin:
        return
    path = project.route_file(route)
    before = project.store.head(journals.stream_of(route))
    with open_route(project, route, leave=False) as writer:
        writer.absorb_edits()
        writer.render_file()
        taken, left = taken or writer.token != before, writer.foreign
    if left:
        return
    mending.note(path, "written anew from the journal" + (", what it had more was taken in" if taken else ""))


def _forget_cache(mending: _Repair, route: str) -> None:
    cache = mending.project.cache
    names = (f"routes/{route}.json", f"sessions/{route}.jsonl", f"ids/routes/{route}.idx", f"renders/{route}")
    for path in (cache / name for name in names):
        if os.path.lexists(path):
            mending.remove(path, _ANEW)
    for path in index.files_in(cache):
        mending.remove(path, _ANEW)


def _checkpoints_shown(project: Project, route: str) -> int:
    """How many checkpoints the route file says that there were, 0 where it cannot be read."""
    found = _file(project, route)
    return found[1].checkpoint_count if found is not None and found[1].context_checkpoint.route == route else 0


def _journal(mending: _Repair, scan: Scan, shown: int) -> None:
    """Write a journal anew: the records that can be read, in their order, and records that say what is lost.

    shown  how many checkpoints there were, as far as anybody knows

    One that is too long to be held stays as it is: nothing of it may be left out.
    """
    if scan.long:
        return
    sealed = partial(mending.project.store.sealed, scan.stream)
    mending.health.mend_stream(scan, lambda kept: chained(scan, kept, shown, sealed), mending)


# ---- the rest ----


def _other(mending: _Repair, stream: str) -> None:
    """Mend a stream that is no route's: what can be read goes on."""
    health = mending.health
    with health.writing(stream):
        scan = health.scan(stream)
        for finding in health.ids(scan):
            mending.remove(finding.path, _ANEW)
        if scan.damaged or scan.torn:
            _journal(mending, scan, 0)


def _rest(mending: _Repair, before: VerifyReport) -> None:
    project = mending.project
    for finding in before.findings:
        if finding.path.parent == project.cache and finding.damage and finding.path.exists():
            mending.remove(finding.path, _ANEW)
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
    for path in list(verify.too_open(project)):
        with suppress(OSError):  # a second name is somebody's whom it is not taken from
            files.make_private(path)
            mending.note(path, "is yours alone now")
