"""Reading a journal with an eye for damage: what is whole of it, what is not, and what lies between.

A reader stops at the first byte that is wrong; this one goes on at the next record whose checksum is right.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ralf import journal as journals
from ralf.errors import DamagedJournal
from ralf.files.opening import content_of
from ralf.journal import Record
from ralf.storage import journalfile, journalline, journalparts
from ralf.storage.journalfile import Header, Part
from ralf.storage.journalstream import Stream
from ralf.store import Entry

ROUTES = "routes/"
"""Begins the names of the streams whose records are those of a route."""

_LAST = 1_000_000  # a revision beyond is not believed: it would make a gap that nobody can fill
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
    record: Record | None
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
    """

    stream: str
    header: Header = field(default_factory=Header)
    lines: list[Lines] = field(default_factory=list)
    torn: bytes = b""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    disordered: bool = False

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

    opened  says of an entry whether it is foreign (`ralf.storage.sealed`)

    Without the stream held a part may be gone that the journal's file still named when it was read.
    """
    found = Scan(stream.name)
    content, wrong = _content(stream)
    end = 0
    if content:
        try:
            found.header = journalfile.header_in(stream.path, content)
            end = found.header.length
        except DamagedJournal as error:
            wrong = error.what
    if wrong or (not end and not _is_first(content)):
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
    elif last.entry is not None and journalline.is_sound(last.raw):
        pieces.append(last._replace(wrong=""))
    return last.raw[begin:]


def _unnamed(stream: Stream, found: Scan) -> list[Lines]:
    """The parts that no header names and that hold what is nowhere else; others are copies that somebody left."""
    stray = [path for path in journalparts.stray(stream.parts, found.header.parts) if path.suffix == ".gz"]
    known = {piece.entry.id for lines in found.lines for piece in lines.pieces if piece.entry} if stray else set()
    unnamed = []
    for path in stray:
        if path.is_file() and not path.is_symlink() and not journalparts.holds_only(path, known):
            lines = Lines(path, list(_pieces(stream, journalparts.unpacked(path.read_bytes(), journalfile.MOST), 0)))
            lines.wrong = "is named by no journal, and holds records that are nowhere else"
            unnamed.append(lines)
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
    framed = journalline.record_at(content, place, base)
    if framed is None:
        return None
    raw, entry = framed
    wrong = "" if raw.endswith(b"\n") else "does not end with its line"
    wrong = wrong if journalline.is_sound(raw) else "has an id, or a length, that is not what was written"
    record = None
    if stream.name.startswith(ROUTES):
        try:
            record = journals.parsed(stream.name.removeprefix(ROUTES), entry)
        except DamagedJournal as error:
            return Piece(place, raw, None, None, error.what)
        if not journals.is_intact(record):
            return Piece(place, raw, None, None, "holds another payload than its digest says")
        if not 0 < record.revision <= _LAST or b'"parent":%d,' % (record.revision - 1) not in entry.record[:_HEAD]:
            return Piece(place, raw, None, None, f"says that it is revision {record.revision} of another parent")
    return Piece(place, raw, entry, record, wrong)


def _part(stream: Stream, part: Part, base: int) -> Lines:
    path = stream.parts / part.file
    try:
        descriptor = journalparts.opened(path)
    except DamagedJournal as error:
        return Lines(path, wrong=error.what)
    with os.fdopen(descriptor, "rb") as file:
        packed = file.read()
    content = journalparts.unpacked(packed, part.size)
    lines = Lines(path, list(_pieces(stream, content, base)))
    if hashlib.sha256(packed).hexdigest() != part.sha256 or len(content) != part.size:
        lines.wrong = "is not what was archived"
    return lines


def _header_of_parts(folder: Path) -> Header:
    """The header that names the parts on the disk: of each number the longest."""
    found: dict[str, Part] = {}
    for path in journalparts.stray(folder, ()):
        if path.name.endswith(".gz") and path.is_file() and not path.is_symlink():
            packed = path.read_bytes()
            part = Part(
                path.name, len(journalparts.unpacked(packed, journalfile.MOST)), hashlib.sha256(packed).hexdigest()
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
        return b"", "is missing" if journalparts.stray(stream.parts, ()) else ""
    except OSError:
        if stream.path.is_symlink():
            return b"", "is a symbolic link"
        if not stream.path.is_file():
            return b"", "is no regular file"
        raise


def _is_first(content: bytes) -> bool:
    """Whether a file without a header begins as one that never had one."""
    framed = journalline.record_at(content, 0)
    return framed is not None or not content
