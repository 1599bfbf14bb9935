"""Mending what `ralf.integrity.verify` finds, from the journal, without ever removing the only copy of anything.

What cannot be read is moved to `damaged/`, under its own path; what can be made anew is removed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ralf import journal as journals, route as heart, routing, state as states
from ralf.document import parse
from ralf.errors import Damaged, DamagedBlob, RalfError
from ralf.files import atomic, folders, locks, opening, placing
from ralf.integrity import verify as verifying, verifyroute
from ralf.integrity.journalmend import chained
from ralf.integrity.journalscan import Scan
from ralf.integrity.verify import VerifyReport
from ralf.ownership import routefiles
from ralf.project import Project, find
from ralf.storage import blobfiles, blobzip, journalline, journalparts
from ralf.storage.blobfiles import Blobs
from ralf.storage.journalfile import Header
from ralf.storage.journalstream import Stream
from ralf.writer import writing

_DEAD = 3_600
"""Seconds after which nobody is believed to be still at a temporary file, where no lock tells."""

_ANEW = "removed: it is made anew"
_TWICE = "is another record of a revision that is there"
_LEFT = "removed: somebody who died left it"


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to a file."""

    path: Path
    what: str


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was found, what was done about it, and what is found now."""

    before: VerifyReport
    done: tuple[Done, ...]
    after: VerifyReport


@dataclass
class _Repair:
    project: Project
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
            placing.placed(target, [content])
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
        folders.make(folder)
        return folder

    def _free(self, path: Path) -> Path:
        folder, number = self._folder(path), 0
        while os.path.lexists(target := folder / (f"{path.name}.{number}" if number else path.name)):
            number += 1
        return target


def repair(route: str | None = None, *, root: str | os.PathLike[str] | None = None) -> RepairReport:
    """Mend a route, or the project, and say what was done. Done again it does nothing.

    Raises RouteNotFound, UsageError, Busy, OSError; what was done until then stays done, and is safe.
    """
    before = verifying.verify(route, root=root)
    mending = _Repair(find(root))
    project = mending.project
    if before.findings:
        if route is None:
            for path in list(verifying.links(project)):
                mending.aside(path)
        _blobs(mending, {finding.path for finding in before.findings if finding.damage})
        for name in before.routes:
            _route(mending, name)
        if route is None:
            for stream in verifying.other_streams(project):
                _other(mending, stream)
            _rest(mending, before)
        _lost(mending, before.routes)
    after = verifying.verify(_still(project, route), root=root) if mending.done else before
    return RepairReport(before, tuple(mending.done), after)


def _still(project: Project, route: str | None) -> str | None:
    with suppress(RalfError):
        return routing.existing(project, route) if route is not None else None
    return None


# ---- blobs ----


def _blobs(mending: _Repair, damaged: set[Path]) -> None:
    blobs = Blobs(mending.project.folder)
    for path in damaged:
        if path.parent.parent.name == "blobs" and os.path.lexists(path):
            mending.aside(path)
    for path in blobs.zip_files():
        if path in damaged:
            with blobs.archiving():
                members = _readable(path)
                if not members:
                    mending.aside(path)
                    continue
                # A copy, and the new one by one rename: whoever dies in between leaves all that can be read in place.
                mending.keep(path, path.read_bytes(), "is damaged")
                blobzip.write(path, members)
                mending.note(path, f"written anew with the {len(members)} members that can be read")


def _lost(mending: _Repair, routes: Iterable[str]) -> None:
    """Note which evidence is lost, so that it is told once."""
    blobs, project = Blobs(mending.project.folder), mending.project
    scans = (verifying.scanned(project, verifying.stream_of(project, name)) for name in routes)
    named = {digest for scan in scans for _, digest in verifyroute.evidence(scan)}
    lost = sorted(digest for digest in named - blobs.gone() if not blobs.has(digest))
    blobs.note_gone(lost)
    for digest in lost:
        mending.note(blobs.path_of(digest), "noted as lost")


def _readable(path: Path) -> list[blobzip.Member]:
    """The members of a damaged zip file that are whole."""
    members, listed = {}, list[blobzip.Member]()
    with suppress(DamagedBlob):
        listed = [blobzip.member(path, info) for info in blobzip.listed(path)]
    for member in (*blobzip.remains(path.read_bytes()), *listed):
        with suppress(DamagedBlob):
            for _ in blobfiles.verified_bytes(path, member):
                pass
            members[member.digest] = member
    return list(members.values())


# ---- a route ----


def _route(mending: _Repair, route: str) -> None:
    project = mending.project
    stream, path, own = verifying.stream_of(project, route), project.route_file(route), False
    with locks.held(project.route_lock(route), route):
        with stream.writing():
            scan = verifying.scanned(project, stream)
            findings = list(verifyroute.findings(project, route, scan))
        lost = not scan.damaged and any(found.path == stream.path and found.damage for found in findings)
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
            with stream.writing():
                again = verifying.scanned(project, stream)
                _journal(mending, stream, again, _checkpoints_shown(project, route) if own else 0)
        elif os.path.lexists(stream.path):
            with stream.writing():
                for left in stream.sweep():
                    mending.note(left, _LEFT)
        beside = [one for one in placing.hidden_beside(path) if one.suffix != atomic.SEEN_SUFFIX]
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
        content = states.read_file(project, route)
        if content and (
            _is_shown(scan, states.digest_of(content))
            or routefiles.is_own(project, route, content)
            or routefiles.is_edit(project, route, content, parse(content, project.route_file(route)))
        ):
            routefiles.remember(project, route, content)
            return True
    return False


def _is_anothers(project: Project, route: str) -> bool:
    """Whether the route file says that it is another route's."""
    with suppress(Damaged):
        content = states.read_file(project, route)
        return content is not None and parse(content, project.route_file(route)).route not in (route, "")
    return False


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
    content = states.read_file(project, route)
    try:
        shown = parse(content, project.route_file(route)) if content else None
    except Damaged:
        return False
    head, context = None, heart.empty(route)
    for token, record in journals.read(project.store, route):
        head, context = token, heart.apply(context, record)
    if shown is None or shown.route != route:
        return False
    changes = [states.redacted(project, one) for one in heart.changes_of_foreign(context, shown, same=True)]
    if changes:
        record = journals.Record(context.revision + 1, "edit", {"changes": changes})
        id_ = f"repair-edit-{record.revision}-{states.digest_of(content or b'')}"
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
    with writing(project, route, leave=False) as writer:
        writer.show()
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
    for path in cache.glob("search*"):
        mending.remove(path, _ANEW)


def _checkpoints_shown(project: Project, route: str) -> int:
    """How many checkpoints the route file says that there were, 0 where it cannot be read."""
    with suppress(Damaged):
        content = states.read_file(project, route)
        header = parse(content, project.route_file(route)).context_checkpoint if content else None
        if header is not None and header.route == route:
            return header.checkpoint_count
    return 0


def _journal(mending: _Repair, stream: Stream, scan: Scan, shown: int) -> None:
    """Write a journal anew: the records that can be read, in their order, and records that say what is lost.

    All that is damaged is kept in `damaged/` before the old files go.

    shown  how many checkpoints there were, as far as anybody knows
    """
    kept = []
    whole = scan.whole()
    lines_of_whole = {piece.raw for piece in whole if journalline.is_sound(piece.raw)}
    for lines in scan.lines:
        regular = lines.path.is_file() and not lines.path.is_symlink()
        if lines.path != stream.path and lines.wrong and regular:
            kept.append(mending.keep(lines.path, lines.path.read_bytes(), lines.wrong))
        elif lines.wrong and os.path.lexists(lines.path) and not regular:
            kept.append(mending.aside(lines.path))
        part = lines.path != stream.path and bool(lines.wrong)  # kept as a whole
        lost = [piece for piece in lines.pieces if piece.raw not in lines_of_whole and not part]
        kept += [mending.keep(lines.path, one.raw, f"from byte {one.start} on {one.wrong or _TWICE}") for one in lost]
    if scan.torn and scan.torn not in lines_of_whole:
        kept.append(mending.keep(stream.path, scan.torn, "its torn end was cut off"))
    stray = journalparts.stray(stream.parts, scan.header.parts)
    read = {lines.path for lines in scan.lines}  # what is wrong with these is kept, and what is whole goes on
    for path in stray if scan.damaged else ():
        if path.suffix == ".gz" and path not in read and path.is_file() and not path.is_symlink():
            mending.keep(path, path.read_bytes(), "is named by no journal")
    missing = sum(last - first + 1 for first, last in scan.gaps)
    sealed = partial(mending.project.store.sealed, stream.name)
    made = chained(scan, [path.relative_to(mending.project.folder).as_posix() for path in kept], shown, sealed)
    begin = scan.header.offset + sum(len(piece.raw) for piece in scan.lines[-1].pieces) + len(scan.torn) + 1
    folders.make(stream.path.parent)
    stream.replace(Header(begin), made)
    mending.note(stream.path, f"written anew: {len(whole):,} records are whole, {missing:,} are lost")


# ---- the rest ----


def _other(mending: _Repair, stream: Stream) -> None:
    """Mend a stream that is no route's: what can be read goes on."""
    with stream.writing():
        scan = verifying.scanned(mending.project, stream)
        ids = mending.project.folder / "cache" / "ids" / f"{stream.name}.idx"
        if os.path.lexists(ids) and list(verifyroute.of_ids(mending.project, scan)):
            mending.remove(ids, _ANEW)
        if scan.damaged or scan.torn:
            _journal(mending, stream, scan, 0)


def _rest(mending: _Repair, before: VerifyReport) -> None:
    project = mending.project
    for finding in before.findings:
        if finding.path.parent == project.cache and finding.damage and finding.path.exists():
            mending.remove(finding.path, _ANEW)
    left = list(verifying.leftovers(project))
    project.store.sweep()
    for path in left:
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _DEAD:
                path.unlink()
        if not path.exists():
            mending.note(path, _LEFT)
    for path in list(verifying.too_open(project)):
        with suppress(OSError):  # a second name is somebody's whom it is not taken from
            opening.make_private(path)
            mending.note(path, "is yours alone now")
