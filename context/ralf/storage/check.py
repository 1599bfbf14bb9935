"""The check of a store: which lines of journals and which blobs are what was written, and what is damaged put aside."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ralf.errors import DamagedBlob, DamagedJournal
from ralf.storage import blob_files, durable, earlier, files, journal, journal_file
from ralf.storage.filestore import FileStore, Stream
from ralf.storage.journal import Digest, Entry, has_blob
from ralf.storage.own import OwnStore

ROUTES = "routes/"
"""Begins the names of the streams whose records are those of a route."""

DAMAGED = ".damaged"
"""The ending of the file, beside a journal, a route file or a blob, in which what is damaged of it is kept."""

_LAST = 1_000_000  # a revision beyond is not believed: it would make a gap that no one can fill

_OF_A_CHECKPOINT = (b'{"id":"checkpoint-', b'"kind":"checkpoint"')


class Line(NamedTuple):
    """A line of a journal.

    start   where in the journal it begins; size: its bytes
    entry   the record in it, without its bytes where those name no blob; None for what is not as it was written
    record  the same as a route's, None in another stream
    wrong   what is wrong with it, "" for nothing
    tells   whether what is wrong was a checkpoint's record, as far as that can be seen
    """

    start: int
    size: int
    entry: Entry | None
    record: journal.Record | None = None
    wrong: str = ""
    tells: bool = False


@dataclass
class Scan:
    """A journal as it stands.

    path   what findings about it are about
    wrong  what is wrong with it as a file, "" for nothing
    torn   bytes behind its last line: never acknowledged
    """

    stream: str
    path: Path
    lines: list[Line] = field(default_factory=list)
    wrong: str = ""
    torn: int = 0
    _seen: set[int] = field(default_factory=set)

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The revisions of a route that are missing, as first and last of each gap."""
        found = [0, *(line.record.revision for line in self.whole() if line.record is not None)]
        return [(before + 1, after - 1) for before, after in pairwise(found) if after > before + 1]

    @property
    def disordered(self) -> bool:
        """Whether a route's records stand in another order than that of their revisions."""
        return [line for line in self.lines if not line.wrong] != self.whole()

    @property
    def damaged(self) -> bool:
        """Whether a reader would find fault with it."""
        return bool(self.wrong or self.gaps or self.disordered) or any(line.wrong for line in self.lines)

    def whole(self) -> list[Line]:
        """The lines that are as they were written, those of a route by revision."""
        found = [line for line in self.lines if not line.wrong]
        return sorted(found, key=lambda line: line.record.revision if line.record is not None else 0)

    def add(self, store: OwnStore, start: int, line: bytes, entry: Entry | None) -> None:
        """Add a line; None for the entry of one that is not as it was written."""
        record, wrong = None, "" if entry is not None else "is not what was written"
        if entry is not None and self.stream.startswith(ROUTES):
            record, wrong = self._record(store.without_id(entry))
        if entry is not None and b'"digests"' not in entry.record:
            entry = entry._replace(record=b"{}")
        tells = bool(wrong) and any(mark in line for mark in _OF_A_CHECKPOINT)
        self.lines.append(Line(start, len(line), entry, record, wrong, tells))

    def _record(self, entry: Entry) -> tuple[journal.Record | None, str]:
        try:
            record = journal.parsed(self.stream.removeprefix(ROUTES), entry)
        except DamagedJournal as error:
            return None, error.what
        if not journal.is_intact(record):
            return None, "holds another payload than its digest says"
        if not 0 < record.revision <= _LAST or record.revision in self._seen:
            return None, f"says that it is revision {record.revision}, which there is already, or cannot be"
        self._seen.add(record.revision)
        return record, ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was left, or worth a word.

    path    the file that it is about
    what    what is wrong with it, or to be known of it
    repair  what a repair would do, "" for nothing
    damage  whether it is damage; else all is fine with it as it stands
    """

    path: Path
    what: str
    repair: str = ""
    damage: bool = True


def aside(path: Path) -> Path:
    """Move a file, or whatever lies in its place, to a free name that says that it is damaged; where it lies now."""
    number, target = 0, path.with_name(f"{path.name}{DAMAGED}")
    while os.path.lexists(target):
        number += 1
        target = path.with_name(f"{path.name}.{number}{DAMAGED}")
    path.rename(target)  # a link itself, not what it names
    return target


class Check:
    """Looks at the store of the context folder `folder` through its port: nothing that is read can be mended here."""

    def __init__(self, store: OwnStore, folder: Path) -> None:
        self.store = store
        self.folder = folder

    def journal(self, stream: str) -> Path:
        """What a finding about a stream is about: its file, or its name below the folder where it has none."""
        return self.folder / stream

    def scan(self, stream: str) -> Scan:
        """All of a stream, each record told as this user's or foreign. OSError where a file cannot be read."""
        found = Scan(stream, self.journal(stream))
        try:
            for entry in self.store.inner.read(stream):
                found.add(self.store, len(found.lines), entry.record, entry)
        except DamagedJournal as error:
            found.wrong = error.what
        return found

    def writing(self, stream: str) -> AbstractContextManager[None]:
        """Hold a stream, so that no one writes to it. UsageError on a file system that is refused, OSError, Busy."""
        return nullcontext()

    def left(self, stream: str) -> list[Path]:
        """The files that dead writers of a stream left."""
        return []

    def blobs(self, only: Container[Digest] | None) -> tuple[set[Digest], list[Finding]]:
        """The digests of the blobs that are whole, and what is wrong with the others; None: of all of them."""
        heap, held, found = self.store.properties.heap, set[Digest](), list[Finding]()
        for blob in heap.blobs() if heap is not None else ():
            if only is None or blob.digest in only:
                try:
                    self.store.open_blob(blob.digest).close()
                    held.add(blob.digest)
                except DamagedBlob as error:
                    found.append(Finding(self.folder / blob.digest, error.what))
        return held, found

    def missing(self, named: Mapping[Digest, Iterable[str]]) -> Iterator[Finding]:
        """What is to be said of the evidence of checkpoints that is not there.

        named  the labels of the checkpoints by the digest of their evidence
        """
        for digest, labels in named.items():
            if not has_blob(self.store, digest):
                yield Finding(self.folder / digest, f"the evidence of {', '.join(labels)} is gone", damage=False)

    def note_lost(self, named: Iterable[Digest]) -> list[Path]:
        """Note which blobs are lost, so that it is told once; where they lay."""
        return []

    def mend(self, scan: Scan, missing: Mapping[int, Iterable[bytes]]) -> None:
        """Write a stream anew without what is damaged, for a caller that holds it.

        missing  lines to be put before the one that begins at a place; -1: at the end
        """


class FileCheck(Check):
    """The same of an embedded store, file by file."""

    def __init__(self, store: OwnStore, folder: Path) -> None:
        super().__init__(store, folder)
        self._blobs = blob_files.Blobs(folder)

    def journal(self, stream: str) -> Path:
        """The file of a stream."""
        found = Stream(self.folder, stream)
        return found.packed if not os.path.lexists(found.path) and found.packed.exists() else found.path

    def scan(self, stream: str) -> Scan:
        """All that the file of a stream holds, whole or not; see `Check.scan`."""
        found = Scan(stream, self.journal(stream))
        for start, line in self._lines(found):
            if not line.endswith(b"\n"):
                found.torn = len(line)
                continue
            entry = None
            with suppress(DamagedJournal):
                entry = journal_file.parsed(found.path, start, line)
            found.add(self.store, start, line, entry)
        return found

    def _lines(self, scan: Scan) -> Iterator[tuple[int, bytes]]:
        """Start and bytes of each line of a journal that can be read; a torn one has no line break. Says in the scan
        what is wrong with the file.
        """
        stream, start = Stream(self.folder, scan.stream), 0
        try:
            with stream.opened() as opened:
                yield from opened.lines(opened.header.offset, torn=True)
        except FileNotFoundError:
            pass
        except DamagedJournal as error:
            scan.wrong = error.what
            if scan.path.is_file() and not scan.path.is_symlink():
                content = files.content_of(scan.path)
                for line in (journal_file.unpacked(content) if scan.path == stream.packed else content).split(b"\n"):
                    if line:
                        yield start, line + b"\n"  # the last one, too: what an archive holds was acknowledged
                    start += len(line) + 1

    def writing(self, stream: str) -> AbstractContextManager[None]:
        """Hold a stream; see `Check.writing`."""
        return Stream(self.folder, stream).writing()

    def left(self, stream: str) -> list[Path]:
        """The files that dead writers of a stream left."""
        with suppress(DamagedJournal):
            return Stream(self.folder, stream).left()
        return []

    def blobs(self, only: Container[Digest] | None) -> tuple[set[Digest], list[Finding]]:
        """The digests of the blobs that are whole, and what is wrong with the others; see `Check.blobs`."""
        held, found = set[Digest](), list[Finding]()
        for path in self._blobs.paths():
            if only is None or path.name in only:
                try:
                    blob_files.verified(path, path.name)
                    held.add(path.name)
                except FileNotFoundError:  # dropped meanwhile
                    pass
                except (DamagedBlob, OSError) as error:
                    what = error.what if isinstance(error, DamagedBlob) else str(error.strerror)
                    found.append(Finding(path, what, f"keep it as {path.name}{DAMAGED}; `why` says that it is gone"))
        return held, found

    def missing(self, named: Mapping[Digest, Iterable[str]]) -> Iterator[Finding]:
        """The evidence that was dropped, and the one that is lost; see `Check.missing`."""
        gone = self._blobs.gone()
        for digest, labels in named.items():
            path, evidence = self._blobs.path_of(digest), f"the evidence of {', '.join(labels)}"
            if os.path.lexists(path) or self._blobs.has(digest):
                continue
            if digest in gone:
                yield Finding(path, f"{evidence} is gone: dropped, or told as lost before", damage=False)
            else:
                what, repair = f"{evidence} is lost: nobody has dropped it", "note that; `why` says that it is gone"
                yield Finding(path, what, repair)

    def note_lost(self, named: Iterable[Digest]) -> list[Path]:
        """Note which blobs are lost; see `Check.note_lost`."""
        gone = self._blobs.gone()
        lost = sorted(digest for digest in set(named) - gone if not self._blobs.has(digest))
        self._blobs.note_gone(lost)
        return [self._blobs.path_of(digest) for digest in lost]

    def mend(self, scan: Scan, missing: Mapping[int, Iterable[bytes]]) -> None:
        """Write a journal anew; each damaged line is kept in its file of damaged ones first. See `Check.mend`."""
        stream, wrong = Stream(self.folder, scan.stream), {line.start for line in scan.lines if line.wrong}
        raw, made, bad, end = dict[int, bytes](), list[bytes](), list[bytes](), 0
        for start, line in self._lines(scan):
            if start in wrong or not line.endswith(b"\n"):
                bad.append(line.rstrip(b"\n") + b"\n")
            else:
                raw[start] = line
            end = start + len(line)
        for one in scan.whole():
            made += [*missing.get(one.start, ()), raw[one.start]]
        if scan.wrong:
            aside(scan.path)
        elif bad:
            kept = stream.path.with_suffix(DAMAGED)
            durable.replace_durably(kept, [*([kept.read_bytes()] if kept.exists() else []), *bad])
        stream.put(end + 1, [*made, *missing.get(-1, ())])
        earlier.sweep(stream.path)


def check_of(store: OwnStore, folder: Path) -> Check:
    """What looks at a store: file by file at the embedded one, through the port at any other."""
    return (FileCheck if isinstance(store.properties.files, FileStore) else Check)(store, folder)
