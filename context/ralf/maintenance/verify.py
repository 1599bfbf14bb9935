"""Checks the integrity of journals, documents and blobs. Reads only."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from ralf import config, project as projects, routing
from ralf.agent import contents, records
from ralf.document import access
from ralf.document.access import Document, Look
from ralf.document.judging import DAMAGED as UNREADABLE, EDITED, HALF, NEW
from ralf.errors import Damaged, DamagedBlob, DamagedJournal, RalfError, UnknownToken, UsageError
from ralf.maintenance import renaming
from ralf.maintenance.documents import ROUTES, Kept, kept
from ralf.memory import writing as memories
from ralf.memory.family import stream_of as stream_of_memory
from ralf.project import Project
from ralf.route import history, shared
from ralf.route.family import MAX_BYTES
from ralf.route.routefile import parse
from ralf.storage import blob_files, durable, journal, locks
from ralf.storage.check import DAMAGED, Finding, Scan, scan
from ralf.storage.files import content_of
from ralf.storage.filestore import Stream
from ralf.storage.journal import Digest, stream_of

_ASIDE = "keep what is damaged in a file of its own, note it in the journal, and go on with what can be read"

_AGAIN = "write it anew from the journal"

_KEPT = ("journal", "blobs", "cache", "locks", "routes", "memory")

_APPENDED = ("journal", "locks")  # in whose folders lie files that are opened for writing again and again


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
    is_whole = route is None and len(chosen) == len(routes)
    findings = [*_about(project)] if is_whole else []
    count, named = 0, dict[Digest, list[str]]()
    for stream in streams_of(project, chosen, is_whole=is_whole):
        journal_, found = of_stream(project, stream)
        findings += found
        count += len(journal_.lines)
        for whose, digest in named_in(journal_):
            named.setdefault(digest, []).append(whose)
    blobs, found = _blobs(project, None if is_whole else named)
    unique = tuple(dict.fromkeys([*findings, *found, *_lost(project, named)]))
    return VerifyReport(tuple(chosen), count, blobs, unique, len(routes) - len(chosen))


def _written_last(project: Project, routes: list[str]) -> list[str]:
    """Routes, the one whose journal was written last first; those without one at the end."""
    times = project.store.written("routes")
    return sorted(routes, key=lambda name: -times[name].written if name in times else 0)


def streams_of(project: Project, routes: list[str], *, is_whole: bool) -> list[str]:
    """The streams of routes, whether or not they have a record; of the whole project all others, too."""
    others = set(project.store.streams("")) | {stream_of_memory(agent) for agent in memories.agents(project)}
    others = {stream for stream in others if not stream.startswith(ROUTES)} if is_whole else set()
    return [*map(stream_of, routes), *sorted(others)]


# ---- one stream, and the document whose journal it is ----


def of_stream(project: Project, stream: str) -> tuple[Scan, list[Finding]]:
    """Check a journal and, where it is a document's, the file; if damage shows, again while no one writes."""
    one = kept(project, stream)
    with suppress(UnknownToken, FileNotFoundError):  # somebody has rewritten the journal meanwhile
        found = _looked(project, stream, one)
        if not any(finding.damage for finding in found[1]):
            return found
    with ExitStack() as stack:
        # Where nobody can write, no lock can be had either, and none is needed.
        with suppress(OSError, UsageError):
            if one is not None:
                stack.enter_context(locks.locked(one.document.place.lock, stream))
            stack.enter_context(Stream(project.folder, stream).writing())
        return _looked(project, stream, one)


def _looked(project: Project, stream: str, one: Kept | None) -> tuple[Scan, list[Finding]]:
    found = scan(project.store, project.folder, stream)
    of_file = of_document(one) if one is not None and not found.is_damaged else []
    return found, [*_of_journal(found), *of_file]


def _of_journal(found: Scan) -> Iterator[Finding]:
    if found.wrong:
        yield Finding(found.path, found.wrong, _ASIDE)
    for start, line in found.damaged:
        what = f"the record at byte {start}, {len(line):,} bytes, is not what was written"
        yield Finding(found.path, what, _ASIDE)
    for first, last in found.missing:
        revisions = f"revision {first} is" if first == last else f"revisions {first} to {last} are"
        yield Finding(found.path, f"{revisions} missing", _ASIDE)
    if not found.is_ordered:
        yield Finding(found.path, "its records stand in another order", "put them in their order")
    if found.torn:
        what = f"its last {len(found.torn):,} bytes are no whole record: never acknowledged"
        yield Finding(found.path, what, f"keep them as {found.path.stem}{DAMAGED}", damage=False)


def of_document(one: Kept) -> list[Finding]:
    """What is to be said of a document's records, and of its file against them."""
    document, looked = one.document, list[Finding]()
    try:
        access.read(document, lambda look: looked.extend(_of_file(one.document, look)), fresh=True)
    except DamagedJournal as error:
        looked.append(Finding(one.files[0], f"its records make no document: {error.what}"))
    return looked


def _of_file(document: Document, look: Look) -> Iterator[Finding]:
    state, file = look.recorded, look.file
    path, name = document.place.file, document.name
    what = file.what.removeprefix(f"{path}: ")
    for line in access.warnings_of(document, state):
        yield Finding(path, line.removeprefix(f"{name}: "), damage=False)
    anew = f"keep it as {path.name}{DAMAGED}" + (f", and {_AGAIN}" if state.revision else "")
    if look.unread:
        yield Finding(path, f"cannot be read: {look.unread}", anew)
    elif file.status == UNREADABLE:
        is_theirs = "conflict" in what or "later version" in what
        yield Finding(path, what, "" if is_theirs else anew)
    elif file.status in (NEW, HALF):
        yield Finding(path, what, damage=False)
    elif file.status == EDITED:
        yield Finding(path, "was edited: the next write absorbs it", damage=False)
    elif not look.content and state.revision:
        yield Finding(path, "is missing", _AGAIN, damage=False)
    elif look.content and look.content != state.shown():
        yield Finding(path, f"does not show revision {state.revision}", _AGAIN, damage=False)


# ---- blobs ----


def named_in(found: Scan) -> list[tuple[str, Digest]]:
    """The blobs that the records of a journal cannot be read without, each with whose it is: the evidence of a route's
    checkpoints, the contents of a run.
    """
    made = list[tuple[str, Digest]]()
    if found.stream.startswith((records.RUNS, records.SIGNALS, records.OUTPUT)):
        for line in found.lines:
            made += [(f"{found.stream} {line.entry.id}", digest) for digest in contents.blobs_in(line.entry.record)]
    elif found.stream.startswith(ROUTES):
        with suppress(DamagedJournal):
            parsed = (journal.parsed(found.stream, line.entry) for line in found.lines)
            for label, record in history.with_labels(parsed):
                if label and record.kind == "checkpoint" and record.payload.get("evidence"):
                    made.append((f"{found.stream.removeprefix(ROUTES)} {label}", str(record.payload["evidence"])))
    return made


def _blobs(project: Project, only: Container[Digest] | None) -> tuple[int, list[Finding]]:
    """How many blobs are whole, and what is wrong with others; None: of all of them."""
    whole, found = 0, list[Finding]()
    for digest in _digests(project):
        if only is None or digest in only:
            try:
                project.store.open_blob(digest).close()
                whole += 1
            except DamagedBlob as error:
                repair = f"keep it as {digest}{DAMAGED}; what needs it says that it is gone"
                found.append(Finding(Path(error.where), error.what, repair))
    return whole, found


def _digests(project: Project) -> list[Digest]:
    """The blobs of a store, of which nothing is rewritten for that."""
    if project.store.files is not None:
        return [path.name for path in blob_files.Blobs(project.folder).paths()]
    return [blob.digest for blob in project.store.blobs()]


def _lost(project: Project, named: Mapping[Digest, list[str]]) -> Iterator[Finding]:
    """The evidence that is not there: dropped, or lost."""
    blobs = blob_files.Blobs(project.folder)
    gone, is_told = blobs.gone(), project.store.files is not None
    for digest, labels in named.items():
        path, what = project.folder / "blobs" / digest[:2] / digest, f"what {', '.join(labels)} refers to"
        if os.path.lexists(path) or project.store.has_blob(digest):
            continue
        if digest in gone or not is_told:
            yield Finding(path, f"{what} is gone: dropped, or told as lost before", damage=False)
        else:
            yield Finding(path, f"{what} is lost: nobody has dropped it", "note that; `why` says that it is gone")


# ---- what lies about ----


def _about(project: Project) -> Iterator[Finding]:
    """What is to be said of the settings, and of what lies about in the store."""
    try:
        config.load(project.config_file)
    except (Damaged, UsageError) as error:
        yield Finding(project.config_file, error.what)
    for path in links(project):
        yield Finding(path, "is a symbolic link: nothing is written through it", "remove it")
    notes = [
        (project.route_file(move.old), f"is left of the rename of {move.old} to {move.new}", "absorb it")
        for move in renaming.unfinished(project)
    ]
    aside = "was set aside, since it could not be merged: merge it by hand, then delete it"
    notes += [(path, aside, "") for path in sorted(project.routes.glob("*.displaced-*"))]
    left = "is what somebody left who died, or has not finished"
    notes += [(path, left, "remove it") for path in leftovers(project)]
    strays = list(routing.strays(project))
    notes += [(path, "has a name that no route can have: nobody reads it", "") for path in strays]
    claimed = "is not what its name and folder claim: nobody reads it"
    notes += [(project.folder / name, claimed, "") for name in shared.read(project)[1]]
    for path in sorted(set(project.routes.glob("*.md")) - set(strays)):
        if whose := _renamed_from(project, path):
            notes.append((path, f"is a copy of the file of the route {whose}, and a route by its name alone", ""))
    for path, what, repair in notes:
        yield Finding(path, what, repair, damage=False)


def _renamed_from(project: Project, path: Path) -> str:
    """The route of which a file is a copy that somebody has named after another; "" for none."""
    with suppress(RalfError, OSError):
        if project.store.head(stream_of(path.stem)) is None:
            said = parse(content_of(path, most=MAX_BYTES), path).route
            return said if project.store.head(stream_of(said)) is not None else ""
    return ""


def links(project: Project) -> list[Path]:
    """The symbolic links in the store's folders, whose own name may be one, too."""
    return [path for path in _all(project) if path.is_symlink()]


def leftovers(project: Project) -> list[Path]:
    """The temporary files of writers that died or have not finished."""
    return [path for path in _all(project) if durable.is_temporary(path.name)]


def _all(project: Project) -> Iterator[Path]:
    """Every file and folder in the store's folders, and these; links are not followed."""
    for top in (project.folder / name for name in _KEPT):
        yield top
        for folder, folders, names in os.walk(top) if not top.is_symlink() else ():
            yield from (Path(folder, one) for one in sorted((*folders, *names)))


def unwritable(project: Project) -> list[Path]:
    """The folders of the store, and its journals and locks, into which this user may not write, or the folder in which
    the store would be made; asked of the system, and nothing is written.
    """
    effective = os.access in os.supports_effective_ids
    found = [next(path for path in (project.folder, *project.folder.parents) if path.exists())]
    for folder, folders, names in os.walk(project.folder):
        appended = names if Path(folder).parent.name in _APPENDED else ()
        found += [Path(folder, name) for name in (*folders, *appended)]
    writable = os.R_OK | os.W_OK
    modes = ((path, writable | os.X_OK if path.is_dir() else writable) for path in found if os.path.lexists(path))
    return [path for path, mode in modes if not os.access(path, mode, effective_ids=effective)]
