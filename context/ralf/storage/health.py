"""The health of a store: what of its records and blobs is whole, and how its files are mended."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from ralf.errors import DamagedBlob, DamagedJournal
from ralf.storage import blob_files, files, journal, journal_file
from ralf.storage.files import content_of
from ralf.storage.filestore import FileStore, Stream
from ralf.storage.id_index import IdIndex
from ralf.storage.journal import Digest, Entry, has_blob
from ralf.storage.journal_file import Header, Part
from ralf.storage.seals import SealedStore
from ralf.text import cleaning

# ---- reading a journal with its damage: goes on at the next record whose checksum is right ----

ROUTES = "routes/"
"""Begins the names of the streams whose records are those of a route."""

_LAST = 1_000_000  # a revision beyond is not believed: it would make a gap that no one can fill

_HEAD = 200  # bytes of a record before its payload

_BEGINS = b'{"id":"'


class Piece(NamedTuple):
    """Some bytes of a journal's file or part.

    start   where in the file's lines
    raw     the bytes, a record's line break included
    entry   the record in them, None for bytes that are none
    record  the same as a route's, None in another stream
    wrong   what is wrong with them, "" for nothing

    A record whose frame alone is damaged is one, under an id of its own, and `wrong` says so.
    """

    start: int
    raw: bytes
    entry: Entry | None
    record: journal.Record | None
    wrong: str


@dataclass
class Lines:
    """The journal's file, or one part: its pieces in order, and what is wrong with it as a file, "" for nothing."""

    path: Path
    pieces: list[Piece] = field(default_factory=list)
    wrong: str = ""


@dataclass
class Scan:
    """A journal as it stands.

    header  as it is, or as the parts on the disk let it be told
    lines   of its parts and its file, oldest first
    torn    what follows the last whole line: it was never acknowledged, even where it is a whole record
    gaps    revisions that are missing, as first and last, where there are records after them
    long    too long to be held in memory: the pieces are without their bytes, and no repair can be made of them
    """

    stream: str
    header: Header = field(default_factory=Header)
    lines: list[Lines] = field(default_factory=list)
    torn: bytes = b""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    disordered: bool = False
    long: bool = False

    @property
    def damaged(self) -> bool:
        """Whether a reader would find fault with it."""
        wrong = any(lines.wrong or any(piece.wrong for piece in lines.pieces) for lines in self.lines)
        return wrong or bool(self.gaps) or self.disordered

    def whole(self) -> list[Piece]:
        """The records that can be read, oldest first, each once: a route's by revision, others as they stand."""
        found = [piece for lines in self.lines for piece in lines.pieces if piece.entry is not None]
        unique: dict[object, Piece] = {}
        for piece in found:
            key = piece.record.revision if piece.record is not None else piece.entry and piece.entry.id
            unique.setdefault(key, piece)
        pieces = list(unique.values())
        if self.stream.startswith(ROUTES):
            pieces.sort(key=lambda piece: piece.record.revision if piece.record is not None else 0)
        return pieces


def scan(stream: Stream, opened: Callable[[Entry], Entry]) -> Scan:
    """Read all of a stream; nothing is written. OSError where a file cannot be read.

    opened  says of an entry whether it is foreign (`ralf.storage.journal.SealedStore`)

    Without the stream held a part may be gone that the journal's file still named when it was read.
    """
    found = Scan(stream.name)
    try:
        content, wrong = _content(stream)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        return _scan_long(stream)
    end = 0
    if content:
        try:
            found.header = journal_file.header_in(stream.path, content)
            end = found.header.length
        except DamagedJournal as error:
            wrong = error.what
    if wrong or (not end and content and journal_file.record_at(content, 0) is None):
        found.header = _header_of_parts(stream.parts)
    base = found.header.begin
    for part in found.header.parts:
        found.lines.append(_part(stream, part, base))
        base += part.size
    own = Lines(stream.path, list(_pieces(stream, content[end:], base)), wrong)
    found.torn = _cut_torn(own.pieces)
    found.lines.append(own)
    found.lines[:0] = _unnamed(stream, found)
    if stream.name.startswith(ROUTES):
        _check_order(found)
        for lines in found.lines:
            lines.pieces = [_with_origin(piece, opened) for piece in lines.pieces]
    return found


def _scan_long(stream: Stream) -> Scan:
    """Read a stream whose file is too long to be held, up to the first damage. Of its records only those stay in memory
    that name blobs.
    """
    if stream.name.startswith(ROUTES):
        return replace(read_through(stream.name, stream.path, stream.read(None)), long=True)
    lines = Lines(stream.path)
    try:
        for entry in stream.read(None):
            kept = entry if b'"digests"' in entry.record else entry._replace(record=b"{}")
            lines.pieces.append(Piece(len(lines.pieces), b"", kept, None, ""))
    except DamagedJournal as error:
        lines.wrong = error.what
    return Scan(stream.name, lines=[lines], long=True)


def read_through(name: str, path: Path, entries: Iterator[Entry]) -> Scan:
    """The same of a store that shows no files, by what it reads.

    path  what findings about the stream are about
    """
    lines = Lines(path)
    found = Scan(name, lines=[lines])
    try:
        for entry in entries:
            record = journal.parsed(name.removeprefix(ROUTES), entry) if name.startswith(ROUTES) else None
            intact = record is None or journal.is_intact(record)
            wrong = "" if intact else "holds another payload than its digest says"
            lines.pieces.append(Piece(len(lines.pieces), entry.record, entry, record, wrong))
    except DamagedJournal as error:
        lines.wrong = error.what
    if name.startswith(ROUTES):
        _check_order(found)
    return found


def _with_origin(piece: Piece, opened: Callable[[Entry], Entry]) -> Piece:
    if piece.record is None or piece.entry is None:
        return piece
    return piece._replace(record=replace(piece.record, foreign=opened(piece.entry).foreign))


def _cut_torn(pieces: list[Piece]) -> bytes:
    """What follows the last line break of a journal's file. Where it is a whole record that one stays."""
    if not pieces or pieces[-1].raw.endswith(b"\n"):
        return b""
    last = pieces.pop()
    begin = last.raw.rfind(b"\n") + 1  # complete lines, if only empty ones, are lines to a reader
    if begin:
        pieces.append(last._replace(raw=last.raw[:begin]))
    elif last.entry is not None and journal_file.is_sound(last.raw):
        pieces.append(last._replace(wrong=""))
    return last.raw[begin:]


def _unnamed(stream: Stream, found: Scan) -> list[Lines]:
    """The parts that no header names and that hold what is nowhere else; others are copies that someone left."""
    stray = [path for path in journal_file.stray_parts(stream.parts, found.header.parts) if path.suffix == ".gz"]
    known = {piece.entry.id for lines in found.lines for piece in lines.pieces if piece.entry} if stray else set()
    unnamed = []
    for path in stray:
        if path.is_file() and not path.is_symlink() and not journal_file.holds_only(path, known):
            pieces = list(_pieces(stream, journal_file.unpacked_part(path.read_bytes(), journal_file.MOST), 0))
            unnamed.append(Lines(path, pieces, "is named by no journal, and holds records that are nowhere else"))
    return unnamed


def _check_order(found: Scan) -> None:
    expected = 1
    for piece in found.whole():
        if piece.record is not None and piece.record.revision != expected:
            found.gaps.append((expected, piece.record.revision - 1))
        expected = piece.record.revision + 1 if piece.record is not None else expected
    standing = [piece for lines in found.lines for piece in lines.pieces if piece.entry is not None]
    found.disordered = standing != found.whole()


def _pieces(stream: Stream, content: bytes, base: int) -> Iterator[Piece]:
    """Bytes that are not as they were written go up to the next record that is."""
    place = bad = 0
    while place < len(content):
        found = _record_at(stream, content, place, base)
        if found is None:
            following = content.find(_BEGINS, place + 1)
            place = following if following >= 0 else len(content)
            continue
        if bad < place:
            yield Piece(bad, content[bad:place], None, None, "is not what was written")
        yield found
        place = bad = place + len(found.raw)
    if bad < len(content):
        yield Piece(bad, content[bad:], None, None, "is not what was written")


def _record_at(stream: Stream, content: bytes, place: int, base: int) -> Piece | None:
    """The record that begins at a place, None where none does, or not as it was written."""
    framed = journal_file.record_at(content, place, base)
    if framed is None:
        return None
    raw, entry = framed
    wrong = "" if raw.endswith(b"\n") else "does not end with its line"
    wrong = wrong if journal_file.is_sound(raw) else "has an id, or a length, that is not what was written"
    record = None
    if stream.name.startswith(ROUTES):
        try:
            record = journal.parsed(stream.name.removeprefix(ROUTES), entry)
        except DamagedJournal as error:
            return Piece(place, raw, None, None, error.what)
        if not journal.is_intact(record):
            return Piece(place, raw, None, None, "holds another payload than its digest says")
        if not 0 < record.revision <= _LAST or b'"parent":%d,' % (record.revision - 1) not in entry.record[:_HEAD]:
            return Piece(place, raw, None, None, f"says that it is revision {record.revision} of another parent")
    return Piece(place, raw, entry, record, wrong)


def _part(stream: Stream, part: Part, base: int) -> Lines:
    path = stream.parts / part.file
    try:
        with journal_file.opened_part(path) as file:
            packed = file.read()
    except DamagedJournal as error:
        return Lines(path, wrong=error.what)
    content = journal_file.unpacked_part(packed, part.size)
    is_whole = hashlib.sha256(packed).hexdigest() == part.sha256 and len(content) == part.size
    return Lines(path, list(_pieces(stream, content, base)), "" if is_whole else "is not what was archived")


def _header_of_parts(folder: Path) -> Header:
    """The header that names the parts on the disk: of each number the longest."""
    found: dict[str, Part] = {}
    for path in journal_file.stray_parts(folder, ()):
        if path.name.endswith(".gz") and path.is_file() and not path.is_symlink():
            packed = path.read_bytes()
            part = Part(
                path.name,
                len(journal_file.unpacked_part(packed, journal_file.MOST)),
                hashlib.sha256(packed).hexdigest(),
            )
            if part.size and part.size > found.get(path.name[:6], Part("", 0, "")).size:
                found[path.name[:6]] = part
    parts = tuple(part for _, part in sorted(found.items()))
    return Header(sum(part.size for part in parts), parts=parts)


def _content(stream: Stream) -> tuple[bytes, str]:
    """The bytes of a journal's file, and what is wrong with it as a file, "" for nothing."""
    try:
        return content_of(stream.path), ""
    except FileNotFoundError:
        return b"", "is missing" if journal_file.stray_parts(stream.parts, ()) else ""
    except OSError:
        if stream.path.is_symlink():
            return b"", "is a symbolic link"
        if not stream.path.is_file():
            return b"", "is no regular file"
        raise


# ---- checking and mending: `Health` any store through the port, `FileHealth` the embedded one file by file ----

_TWICE = "is another record of a revision that is there"


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


class Mending(Protocol):
    """Does what a repair does to files, and notes it."""

    def note(self, path: Path, what: str) -> None:
        """Note what was done to a file."""

    def aside(self, path: Path) -> Path:
        """Move a file to `damaged/`; where it lies now."""

    def keep(self, path: Path, content: bytes, what: str) -> Path:
        """Keep damaged bytes of a file in `damaged/`; where they lie now."""


class Health:
    """Looks at the store of the context folder `folder` through its port: nothing that is read can be mended here."""

    def __init__(self, store: SealedStore, folder: Path) -> None:
        self.store = store
        self.folder = folder

    def streams(self, prefix: str) -> set[str]:
        """The streams that begin with a prefix, also those of which only a part is left."""
        return set(self.store.streams(prefix))

    def journal(self, stream: str) -> Path:
        """What a finding about a stream is about: its file, or its name below the folder where it has none."""
        return self.folder / stream

    def scan(self, stream: str) -> Scan:
        """All of a stream, each record told as this user's or foreign. OSError where a file cannot be read."""
        return read_through(stream, self.journal(stream), self.store.read(stream))

    def writing(self, stream: str) -> AbstractContextManager[None]:
        """Hold a stream, so that no one writes to it. UsageError on a file system that is refused, OSError, Busy."""
        return nullcontext()

    def left(self, scan: Scan) -> list[Path]:
        """The files that someone left who died while the stream moved to the archive."""
        return []

    def archives(self, streams: Iterable[str]) -> int:
        """How many files of the archive streams have."""
        return 0

    def ids(self, scan: Scan) -> Iterator[Finding]:
        """What is to be said of what the cache holds of a stream's ids."""
        yield from ()

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

    def missing(self, named: Mapping[Digest, Iterable[str]], held: Container[Digest]) -> Iterator[Finding]:
        """What is to be said of the evidence of checkpoints that is not there.

        named  the labels of the checkpoints by the digest of their evidence
        """
        for digest, labels in named.items():
            if not has_blob(self.store, digest):
                yield Finding(self.folder / digest, f"the evidence of {', '.join(labels)} is gone", damage=False)

    def sweep(self, stream: str) -> list[Path]:
        """Remove what dead writers of a stream left, for a caller that holds it; the files that went."""
        return []

    def mend_blobs(self, damaged: Container[Path], mending: Mending) -> None:
        """Take damaged blobs out of the way, and keep what can be read of archives."""

    def note_lost(self, named: Iterable[Digest]) -> list[Path]:
        """Note which blobs are lost, so that it is told once; where they lay."""
        return []

    def mend_stream(self, scan: Scan, made: Callable[[list[str]], Iterable[bytes]], mending: Mending) -> None:
        """Rewrite a stream, for a caller that holds it: `made` of the paths in `damaged/` with all that is lost."""


class FileHealth(Health):
    """The same of an embedded store, file by file."""

    def __init__(self, store: SealedStore, folder: Path) -> None:
        super().__init__(store, folder)
        self._blobs = blob_files.Blobs(folder)
        self._archive = folder / "archive" / "journal"

    def streams(self, prefix: str) -> set[str]:
        """Those with a journal, or a part of one in the archive; see `Health.streams`."""
        parts = (path.relative_to(self._archive).as_posix() for path in self._archive.glob("*/*") if path.is_dir())
        found = {name for name in parts if name.startswith(prefix) and all(map(cleaning.is_valid, name.split("/")))}
        return super().streams(prefix) | found

    def journal(self, stream: str) -> Path:
        """The file of a stream's newest records."""
        return self._stream(stream).path

    def scan(self, stream: str) -> Scan:
        """All that the files of a stream hold, whole or not; see `Health.scan`."""
        return scan(self._stream(stream), partial(self.store.opened, stream))

    def writing(self, stream: str) -> AbstractContextManager[None]:
        """Hold a stream; see `Health.writing`."""
        return self._stream(stream).writing()

    def left(self, scan: Scan) -> list[Path]:
        """The parts that the journal does not name; see `Health.left`."""
        stray = journal_file.stray_parts(self._stream(scan.stream).parts, scan.header.parts)
        return [path for path in stray if path.suffix == ".gz"]

    def archives(self, streams: Iterable[str]) -> int:
        """How many parts streams have."""
        return sum(len(self.left(Scan(stream))) for stream in streams)

    def ids(self, scan: Scan) -> Iterator[Finding]:
        """Whether the index of ids is of this journal; see `Health.ids`."""
        path = self.folder / "cache" / "ids" / f"{scan.stream}.idx"
        if os.path.lexists(path):
            entries = [piece.entry for piece in scan.whole() if piece.entry is not None]
            if not IdIndex(path).agrees([(one.id, int(one.token.partition("-")[0])) for one in entries]):
                yield Finding(path, "does not hold what the journal comes to", "remove it: it is made anew")

    # ---- blobs ----

    def blobs(self, only: Container[Digest] | None) -> tuple[set[Digest], list[Finding]]:
        """The digests of the blobs that are whole, and what is wrong with the others; see `Health.blobs`."""
        held: set[Digest] = set()
        found: list[Finding] = []
        for path in self._blobs.paths():
            if only is None or path.name in only:
                try:
                    blob_files.verified(path, path.name)
                    held.add(path.name)
                except FileNotFoundError:  # dropped or archived meanwhile
                    pass
                except (DamagedBlob, OSError) as error:
                    found.append(Finding(path, _what(error), "move it to damaged/; `why` says that it is gone"))
        held |= {digest for digest, _ in self._blobs.zipped() if only is None or digest in only}
        return held, found

    def missing(self, named: Mapping[Digest, Iterable[str]], held: Container[Digest]) -> Iterator[Finding]:
        """The evidence that was pruned, and the one that is lost; see `Health.missing`."""
        gone = self._blobs.gone()
        for digest, labels in named.items():
            path = self._blobs.path_of(digest)
            if digest not in held and not os.path.lexists(path):
                evidence = f"the evidence of {', '.join(labels)}"
                if digest in gone:
                    yield Finding(path, f"{evidence} is gone: pruned, or told as lost before", damage=False)
                else:
                    yield Finding(
                        path, f"{evidence} is lost: nobody has pruned it", "note that; `why` says that it is gone"
                    )

    def mend_blobs(self, damaged: Container[Path], mending: Mending) -> None:
        """Move damaged blobs aside."""
        for path in list(self._blobs.paths()):
            if path in damaged and os.path.lexists(path):
                mending.aside(path)

    def note_lost(self, named: Iterable[Digest]) -> list[Path]:
        """Note which blobs are lost; see `Health.note_lost`."""
        gone = self._blobs.gone()
        lost = sorted(digest for digest in set(named) - gone if not self._blobs.has(digest))
        self._blobs.note_gone(lost)
        return [self._blobs.path_of(digest) for digest in lost]

    # ---- streams ----

    def sweep(self, stream: str) -> list[Path]:
        """Remove what dead writers left; see `Health.sweep`."""
        return self._stream(stream).sweep()

    def mend_stream(self, scan: Scan, made: Callable[[list[str]], Iterable[bytes]], mending: Mending) -> None:
        """Write a journal anew. All that is damaged is kept in `damaged/` before the old files go."""
        stream, kept, whole = self._stream(scan.stream), list[Path](), scan.whole()
        lines_of_whole = {piece.raw for piece in whole if journal_file.is_sound(piece.raw)}
        for lines in scan.lines:
            kept += _kept(lines, lines_of_whole, mending, is_part=lines.path != stream.path)
        if scan.torn and scan.torn not in lines_of_whole:
            kept.append(mending.keep(stream.path, scan.torn, "its torn end was cut off"))
        read = {lines.path for lines in scan.lines}  # what is wrong with these is kept, and what is whole goes on
        for path in self.left(scan) if scan.damaged else ():
            if path not in read and path.is_file() and not path.is_symlink():
                mending.keep(path, path.read_bytes(), "is named by no journal")
        missing = sum(last - first + 1 for first, last in scan.gaps)
        new = made([path.relative_to(self.folder).as_posix() for path in kept])
        begin = scan.header.offset + sum(len(piece.raw) for piece in scan.lines[-1].pieces) + len(scan.torn) + 1
        files.make(stream.path.parent)
        stream.replace(Header(begin), new)
        mending.note(stream.path, f"written anew: {len(whole):,} records are whole, {missing:,} are lost")

    def _stream(self, stream: str) -> Stream:
        return Stream(self.folder, stream)


def health_of(store: SealedStore, folder: Path) -> Health:
    """What looks at a store: file by file at the embedded one, through the port at any other."""
    return (FileHealth if isinstance(store.properties.files, FileStore) else Health)(store, folder)


def _kept(lines: Lines, whole: Container[bytes], mending: Mending, *, is_part: bool) -> Iterator[Path]:
    """Keep what is wrong with one file of a stream; where it lies now."""
    regular = lines.path.is_file() and not lines.path.is_symlink()
    if is_part and lines.wrong and regular:
        yield mending.keep(lines.path, lines.path.read_bytes(), lines.wrong)
    elif lines.wrong and os.path.lexists(lines.path) and not regular:
        yield mending.aside(lines.path)
    if not (is_part and lines.wrong):  # then it is kept as a whole
        for piece in lines.pieces:
            if piece.raw not in whole:
                what = f"from byte {piece.start} on {piece.wrong or _TWICE}"
                yield mending.keep(lines.path, piece.raw, what)


def _what(error: Exception) -> str:
    if isinstance(error, DamagedBlob):
        return error.what
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
