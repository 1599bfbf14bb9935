"""Repairs what `verify` finds, from the journal; never removes the only copy of anything."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ralf import routing
from ralf.document import index, place as places
from ralf.document.access import Document
from ralf.document.record import Record, now
from ralf.document.state import digest_of
from ralf.errors import Damaged
from ralf.maintenance import renaming, verify
from ralf.maintenance.documents import Kept, kept
from ralf.maintenance.verify import VerifyReport
from ralf.project import Project, find
from ralf.storage import locks
from ralf.storage.blob_files import Blobs
from ralf.storage.check import DAMAGED, Finding, Scan, aside, mend, scan
from ralf.storage.durable import removed
from ralf.storage.filestore import Stream

_DEAD = 3_600
"""Seconds after which nobody is believed to be still at a temporary file, where no lock tells."""

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


def repair(route: str | None = None, *, root: str | os.PathLike[str] | None = None) -> RepairReport:
    """Repair a route, or the whole project. A second call does nothing.

    Raises RouteNotFound, UsageError, Busy, OSError; what was done until then stays done, and is safe.
    """
    project = find(root)
    before = verify.verify(route, root=root)
    mending = _Repair(project)
    if before.findings:
        mending.run(before, is_whole=route is None)
    if not mending.done:
        return RepairReport(before, (), before)
    is_left = route is not None and routing.known(project, route) is not None
    return RepairReport(before, tuple(mending.done), verify.verify(route if is_left else None, root=root))


@dataclass
class _Repair:
    """The steps of a repair, and what was done."""

    project: Project
    done: list[Done] = field(default_factory=list)

    def note(self, path: Path, what: str) -> None:
        self.done.append(Done(path, what))

    def aside(self, path: Path) -> None:
        """Keep a damaged file under another name."""
        self.note(path, f"moved to {aside(path)}")

    def run(self, before: VerifyReport, *, is_whole: bool) -> None:
        """Repair what was found."""
        project = self.project
        for path in verify.links(project) if is_whole else ():
            self.note(path, f"removed: it led to {os.readlink(path)}")  # noqa: PTH115  # as it stands there
            path.unlink()
        blobs, named = Blobs(project.folder), set[str]()
        for finding in before.findings:
            if finding.damage and project.folder / "blobs" in finding.path.parents and os.path.lexists(finding.path):
                self.aside(finding.path)
        for stream in verify.streams_of(project, list(before.routes), is_whole=is_whole):
            named |= {digest for _, digest in verify.named_in(self._stream(stream))}
        is_file = project.store.files is not None
        lost = sorted(digest for digest in named - blobs.gone() if not blobs.has_blob(digest)) if is_file else []
        blobs.note_gone(lost)  # so that it is reported once
        for digest in lost:
            self.note(blobs.path_of(digest), "noted as lost")
        if is_whole:
            self._rest()

    def _stream(self, stream: str) -> Scan:
        """Mend a journal, and the file of the document that it is of; the journal as it was."""
        project, one, findings = self.project, kept(self.project, stream), list[Finding]()
        with nullcontext() if one is None else locks.locked(one.document.place.lock, one.document.name):
            with Stream(project.folder, stream).writing():
                found = self._journal(stream)
            if one is not None and found.is_damaged:
                removed(index.files_in(project.cache))  # they tell of what is lost
                self._tell(one.document, found)
            if one is not None:
                findings = [finding for finding in verify.of_document(one) if finding.repair]
            for path in {finding.path for finding in findings if finding.damage and os.path.lexists(finding.path)}:
                self.aside(path)
        if one is not None and (found.is_damaged or findings):
            self._show(one)
        return found

    def _journal(self, stream: str) -> Scan:
        """Write a damaged or torn journal anew, for who holds it; else remove what dead writers left."""
        found = scan(self.project.store, self.project.folder, stream)
        if self.project.store.files is None:
            return found
        for path in mend(self.project.folder, found):
            self.note(path, _LEFT)
        if found.is_damaged or found.torn:
            bad = f", {len(found.damaged):,} damaged lie in {found.path.stem}{DAMAGED}" if found.damaged else ""
            self.note(found.path, f"written anew: {len(found.lines):,} records are whole{bad}")
        return found

    def _tell(self, document: Document, found: Scan) -> None:
        """Record what was lost. The file is compared with what is left then, and what it shows beyond that is absorbed.

        The mark of a document whose first record is lost is the one in its file, where a record names that as its own.
        """
        last = max((line.number for line in found.lines), default=0)
        if not last:
            return
        mark = ""
        with suppress(Damaged, OSError):
            content = places.content(document.place.file, document.place.most)
            stamp = document.family.parse(content, document.place.file).stamp
            is_own = any(digest_of(content).encode() in line.content for line in found.lines)
            mark = stamp.mark if stamp is not None and is_own and found.lines[0].number > 1 else ""
        damaged = [f"{Stream(self.project.folder, found.stream).path.stem}{DAMAGED}"] if found.damaged else []
        payload = {"damaged": damaged, "missing": [list(gap) for gap in found.missing]}
        line = document.family.encoded(Record(last + 1, now(), {"kind": "repair", "payload": payload}, mark=mark))
        store = self.project.store
        store.append(found.stream, line, id=f"repair-{last + 1}", after=store.head(found.stream))

    def _show(self, one: Kept) -> None:
        """Make a file show what its journal has, after what it has and the journal lost was absorbed."""
        store, stream = self.project.store, one.document.stream
        before = store.head(stream)
        if before is not None:
            one.settle()
            more = ", what it had more was absorbed" if store.head(stream) != before else ""
            self.note(one.document.place.file, f"written anew from the journal{more}")

    def _rest(self) -> None:
        project = self.project
        for move in renaming.unfinished(project):
            renaming.finish(project, move)
            self.note(project.route_file(move.old), f"absorbed: it was left of the rename to {move.new}")
        left = verify.leftovers(project)
        project.store.sweep()
        old = [path for path in left if path.exists() and time.time() - path.stat().st_mtime > _DEAD]
        removed(old)
        for path in left:
            if not path.exists():
                self.note(path, _LEFT)
