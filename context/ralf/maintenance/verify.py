"""Checks the integrity of journals, documents and blobs. Reads only."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ralf import config, project as projects, routing
from ralf.agent import contents, records
from ralf.document import access
from ralf.document.access import Document, Look
from ralf.document.judging import DAMAGED as UNREADABLE, EDITED, HALF, NEW
from ralf.errors import Busy, Damaged, DamagedBlob, DamagedJournal, UnknownToken, UsageError
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
    is_whole = route is None and len(chosen) == len(routes)
    findings = [*_about(project, routes)] if is_whole else []
    count, named, runs = 0, dict[Digest, list[str]](), list[Scan]()
    for stream in streams_of(project, chosen, is_whole=is_whole):
        journal_, found = of_stream(project, stream)
        findings += found
        count += len(journal_.lines)
        for label, digest in evidence(journal_):
            named.setdefault(digest, []).append(f"{stream.removeprefix(ROUTES)} {label}")
        if stream.startswith((records.RUNS, records.SIGNALS, records.OUTPUT)):
            runs.append(journal_)
    blobs, found = _blobs(project, None if is_whole else named)
    findings += [*found, *_lost(project, named)]
    for journal_ in runs:
        for entry in (line.entry for line in journal_.lines):
            for digest in set(contents.blobs_in(entry.record)) - blobs:
                what = f"the record {entry.id} has a content whose blob {digest} is lost"
                findings.append(Finding(journal_.path, what))
    unique = tuple(dict.fromkeys(findings))
    return VerifyReport(tuple(chosen), count, len(blobs), unique, len(routes) - len(chosen))


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
    found = _looked(project, stream)
    if any(finding.damage for finding in found[1]):
        one, journal_ = kept(project, stream), Stream(project.folder, stream)
        lock = one.document.place.lock if one is not None else project.folder / "locks" / "forget.lock"
        # Where nobody can write, no lock can be had either, and none is needed.
        with suppress(OSError, UsageError), locks.locked(lock, stream), journal_.writing():
            found = _looked(project, stream)
    return found


def _looked(project: Project, stream: str) -> tuple[Scan, list[Finding]]:
    one = kept(project, stream)
    for _ in range(_MOST_TRIES):
        with suppress(UnknownToken, FileNotFoundError):  # somebody has rewritten the journal meanwhile
            found = scan(project.store, project.folder, stream)
            of_file = of_document(one) if one is not None and not found.is_damaged else []
            return found, [*_of_journal(found), *of_file]
    raise Busy(stream, "its journal is rewritten again and again", "try again")


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


def evidence(found: Scan) -> list[tuple[str, Digest]]:
    """The label of each checkpoint of a route, and the digest of its evidence."""
    made = list[tuple[str, Digest]]()
    with suppress(DamagedJournal):
        parsed = (journal.parsed(found.stream, line.entry) for line in found.lines)
        for label, record in history.with_labels(parsed) if found.stream.startswith(ROUTES) else ():
            if label and record.kind == "checkpoint" and record.payload.get("evidence"):
                made.append((label, str(record.payload["evidence"])))
    return made


def _blobs(project: Project, only: Container[Digest] | None) -> tuple[set[Digest], list[Finding]]:
    """The blobs that are whole, and what is wrong with others; None: of all of them."""
    held, found = set[Digest](), list[Finding]()
    for digest in _digests(project):
        if only is None or digest in only:
            try:
                project.store.open_blob(digest).close()
                held.add(digest)
            except DamagedBlob as error:
                repair = f"keep it as {digest}{DAMAGED}; `why` says that it is gone"
                found.append(Finding(Path(error.where), error.what, repair))
    return held, found


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
        path, what = project.folder / "blobs" / digest[:2] / digest, f"the evidence of {', '.join(labels)}"
        if os.path.lexists(path) or project.store.has_blob(digest):
            continue
        if digest in gone or not is_told:
            yield Finding(path, f"{what} is gone: dropped, or told as lost before", damage=False)
        else:
            yield Finding(path, f"{what} is lost: nobody has dropped it", "note that; `why` says that it is gone")


# ---- what lies about ----


def _about(project: Project, routes: Container[str]) -> Iterator[Finding]:
    """What is to be said of the settings, and of what lies about in the store."""
    try:
        config.load(project.config_file)
    except (Damaged, UsageError) as error:
        yield Finding(project.config_file, error.what)
    for path in links(project):
        yield Finding(path, "is a symbolic link: nothing is written through it", "remove it")
    for move in renaming.unfinished(project):
        what = f"is left of the rename of {move.old} to {move.new}"
        yield Finding(project.route_file(move.old), what, "absorb it", damage=False)
    for path in sorted(project.routes.glob("*.displaced-*")):
        yield Finding(path, "was set aside when somebody saved it: merge it by hand, then delete it", damage=False)
    for name in shared.read(project)[1]:
        yield Finding(project.folder / name, "is not what its name and folder claim: nobody reads it", damage=False)
    for path in leftovers(project):
        yield Finding(path, "is what somebody left who died, or has not finished", "remove it", damage=False)
    names = [path for path in sorted(project.routes.glob("*.md")) if path.stem in routes]
    for path in [*routing.strays(project), *names]:
        whose = _said_route(path, routes)
        if path.stem not in routes:
            what = f"is a copy of the file of the route {whose}" if whose else "has a name that no route can have"
            yield Finding(path, f"{what}: nobody reads it", damage=False)
        elif whose not in ("", path.stem) and project.store.head(stream_of(path.stem)) is None:
            what = f"is a copy of the file of the route {whose}, and a route of its own by its name alone"
            yield Finding(path, what, damage=False)


def _said_route(path: Path, routes: Container[str]) -> str:
    """The route of these that a file says it is of, "" for none of them."""
    with suppress(Damaged, OSError):
        said = parse(content_of(path, most=MAX_BYTES), path).route
        return said if said in routes else ""
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
