"""The embedded store: journals as JSON lines and blobs as compressed files in one folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ralf.errors import Busy, Conflict, UnknownToken, UsageError
from ralf.storage import durable, files, journal_file
from ralf.storage.id_index import IdIndex
from ralf.storage.journal import Blob, Digest, Entry, Properties, Token, Written
from ralf.storage.journal_file import (
    LARGEST,
    Header,
    Journal,
    Line,
    Part,
    PartGone,
    Seen,
    extend_part,
    holds_only,
    lines_of_part,
    opened_parts,
    put_part,
    stray_parts,
)
from ralf.text import cleaning

if TYPE_CHECKING:
    from ralf.storage.blob_files import Blobs

_MAX_ID = 200

_MOST_TRIES = 20


class Stream:
    """The stream `name`, of checked parts, below `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.path = folder / f"journal/{name}.jsonl"
        self._folder = folder
        self._left: Seen | None = None  # the journal as our last append has left it

    @cached_property
    def parts(self) -> Path:
        """The folder of its parts in the archive."""
        return self._folder / f"archive/journal/{self.name}"

    @cached_property
    def _lock(self) -> Path:
        return self._folder / f"locks/streams/{self.name}.journal.lock"

    @cached_property
    def _ids(self) -> IdIndex:
        return IdIndex(self._folder / f"cache/ids/{self.name}.idx")

    # ---- writing ----

    def append(self, record: bytes, id: str, after: Token | None) -> Token:  # noqa: A002
        """See `ralf.storage.journal.Store.append`."""
        if b"\n" in record or len(id) > _MAX_ID:
            raise UsageError(self.name, f"a record is one line, and its id has at most {_MAX_ID} characters")
        line = journal_file.framed(id, record)
        with self.writing(), self._made() as journal:
            is_as_left = journal.is_as_seen
            end, head, known = self._find_left(journal, id) or self._find(journal, id)
            if known is not None:
                os.fsync(journal.descriptor)  # the writer that appended it may have died before its fsync
                return journal_file.token_at(known, self._line(journal, known))
            if head != after:
                raise Conflict(self.name, head)
            if not end:  # the name first: a reader that finds records here takes them for durable
                durable.sync_parents(self.path.parent, self._folder)
            self._left = None
            with durable.naming(self.path):
                journal.append(line, end)
            self._ids.add(id, end, end + len(line), later=is_as_left)
            token = journal_file.token_at(end, line)
            self._left = journal.seen(end + len(line), token)
        return token

    def _made(self) -> Journal:
        """The journal, open to append to; made where there is none."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        try:
            return Journal(self.path, flags, self._left)
        except FileNotFoundError:
            files.make(self.path.parent)
            return Journal(self.path, flags)

    def _find_left(self, journal: Journal, id: str) -> tuple[int, Token | None, int | None] | None:  # noqa: A002
        """The same as `_find`, for a file that is as we left it: nothing is read. None where it is not."""
        left = self._left
        if left is None or not journal.is_as_seen or not self._ids.reaches(left.end):
            return None
        return left.end, left.head, self._ids.find_kept(id, lambda at: self._known_at(journal, at))

    def _find(self, journal: Journal, id: str) -> tuple[int, Token | None, int | None]:  # noqa: A002
        """Where the journal ends, its head, and where the record of an id is, None for none."""
        if self.parts.exists() or not self._ids.path.exists():  # a writer that replaced files may have died
            self._sweep(journal)
        end = journal.cut_torn_tail()
        head = self._last_token(journal, end)
        known = self._ids.find(id, end, lambda at: self._known_at(journal, at), lambda at: self._all(journal, at))
        return end, head, known

    def rewrite(self, change: Callable[[Entry], bytes]) -> int:
        """See `ralf.storage.journal.Replace.replace`. What is replaced is gone from the disk when this returns."""
        if not self.path.exists():
            return 0
        with self.writing(), Journal(self.path, os.O_RDWR) as journal:
            self._sweep(journal)
            journal.cut_torn_tail()
            parts: list[Part] = []
            changed = 0
            place = journal.header.begin
            for number, part in enumerate(journal.header.parts, start=1):
                lines, count = _changed(self.name, lines_of_part(self.parts, part, place), change)
                parts.append(put_part(self.parts, number, lines) if count else part)
                place += part.size
                changed += count
            live = ((self.path, *line) for line in journal.lines(journal.header.offset))
            lines, count = _changed(self.name, live, change)
            changed += count
            if changed:
                begin = journal.end() + 1  # no place of before is one from now on
                header = Header(begin + sum(part.size for part in parts), parts=tuple(parts))
                self._switch(journal.header, replace(header, last=self._last_archived(header)), lines)
        return changed

    def drop(self) -> None:
        """See `ralf.storage.journal.Replace.drop`. An empty journal first: naming lost parts would be damage."""
        if not self.path.exists() and not self.parts.exists():
            return
        with self.writing():
            self._ids.drop()  # as in `_switch`
            if self.path.exists():
                durable.sweep(self.path)
                durable.replace_durably(self.path, [])
            durable.removed(stray_parts(self.parts, ()))
            with suppress(OSError):  # someone keeps something there that is not ours
                self.parts.rmdir()
            self.path.unlink(missing_ok=True)
            if self.path.parent.exists():
                durable.sync_folder(self.path.parent)

    def archive(self, upto: Token, *, wait: bool) -> int:
        """See `ralf.storage.journal.Archive.archive`."""
        start = journal_file.offset_of(upto)
        if not self.path.exists():
            raise self._unknown_token()
        with self.writing(files.LOCK_TIMEOUT if wait else 0.0), Journal(self.path, os.O_RDWR) as journal:
            self._sweep(journal)
            line = self._line(journal, start)
            if journal_file.token_at(start, line) != upto:
                raise self._unknown_token()
            journal.cut_torn_tail()
            header, cut = journal.header, start + len(line)
            if cut <= header.offset:
                return 0
            parts = list(header.parts)
            if not parts:  # the folder's name first: a reader that finds parts in it takes them for durable
                files.make(self.parts)
                durable.sync_parents(self.parts, self._folder)
            for batch in self._batches(journal, cut):
                extend_part(self.parts, parts, batch)
            rest = (line for _, line in journal.lines(cut))
            self._switch(header, Header(cut, parts=tuple(parts), last=upto), rest)
        return cut - header.offset

    def archived(self) -> Token | None:
        """See `ralf.storage.journal.Archive.archived`."""
        with suppress(FileNotFoundError), Journal(self.path) as journal:
            return journal.header.last or None
        return None

    def unarchived(self) -> int:
        """See `ralf.storage.journal.Archive.unarchived`."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def _batches(self, journal: Journal, cut: int) -> Iterator[list[bytes]]:
        """The lines of the journal's file up to a place, in batches that fit into a part."""
        batch: list[bytes] = []
        size = 0
        for place, line in journal.lines(journal.header.offset):
            if place >= cut:
                break
            journal_file.parsed(self.path, place, line)
            if batch and size + len(line) > LARGEST:
                yield batch
                batch, size = [], 0
            batch.append(line)
            size += len(line)
        yield batch

    def replace(self, header: Header, lines: Iterable[bytes]) -> None:
        """Replace the whole stream by these lines, for a caller that holds it and has read all its parts."""
        self._switch(Header(), header, lines)
        durable.removed(stray_parts(self.parts, header.parts))

    def write_anew(self, records: Iterable[tuple[str, bytes]], head: Token | None) -> None:
        """See `FileStore.write_anew`."""
        with self.writing():
            files.make(self.path.parent)
            with Journal(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as journal:
                self._sweep(journal)
                found = self._last_token(journal, journal.cut_torn_tail())
                if found != head:
                    raise Conflict(self.name, found)
                durable.sync_parents(self.path.parent, self._folder)
                lines = [journal_file.framed(id_, record) for id_, record in records]
                self._switch(journal.header, Header(journal.end() + 1), lines)

    def may_have_left(self) -> bool:
        """Whether a writer that died may have left files."""
        with suppress(FileNotFoundError), Journal(self.path) as journal:
            return bool(durable.hidden_beside(self.path) or stray_parts(self.parts, journal.header.parts))
        return False

    def sweep(self) -> list[Path]:
        """Remove the files that dead writers left, for a caller that holds the stream; returns them."""
        try:
            with Journal(self.path) as journal:
                return self._sweep(journal)
        except FileNotFoundError:
            return []

    def _switch(self, before: Header, header: Header, lines: Iterable[bytes]) -> None:
        """Replace the journal's file by this header and these lines, and remove the parts that it no longer names."""
        self._ids.drop()  # first: a process killed in between must not leave the index of another file
        durable.replace_durably(self.path, chain([header.line()], lines))
        named = {part.file for part in header.parts}
        durable.removed(self.parts / part.file for part in before.parts if part.file not in named)

    def writing(self, timeout: float = files.LOCK_TIMEOUT) -> AbstractContextManager[None]:
        """Hold the stream in order to write to its files. UsageError on a file system that is refused."""
        files.check(self._folder)
        return files.locked(self._lock, self.name, timeout)

    def _sweep(self, journal: Journal) -> list[Path]:
        left = durable.hidden_beside(self.path)
        stray = stray_parts(self.parts, journal.header.parts)
        if stray:
            known = {id_ for id_, _, _ in self._all(journal, 0)}
            left += [path for path in stray if holds_only(path, known)]
        durable.removed(left)
        return left

    # ---- reading ----

    def read(self, after: Token | None) -> Iterator[Entry]:
        """See `ralf.storage.journal.Store.read`."""
        start = journal_file.offset_of(after) if after is not None else 0
        try:
            with self._opened(start) as (journal, archived):
                lines: Iterator[Line] = chain(archived, self._live(journal, start))
                if after and after == journal.header.last:  # all that follows lies in the file: no part is unpacked
                    lines = self._live(journal, start)
                elif after is not None:
                    self._line_of(after, lines)
                for path, place, line in lines:
                    yield journal_file.parsed(path, place, line)
        except FileNotFoundError:
            if after is not None:
                raise self._unknown_token() from None

    def entry(self, token: Token) -> Entry:
        """See `ralf.storage.journal.Lookup.entry`."""
        start = journal_file.offset_of(token)
        try:
            with self._opened(start) as (journal, archived):
                return journal_file.parsed(*self._line_of(token, chain(archived, self._live(journal, start))))
        except FileNotFoundError:
            raise self._unknown_token() from None

    def _line_of(self, token: Token, lines: Iterator[Line]) -> Line:
        """The first of the lines, which is to be that of a token."""
        found = next(lines, (self.path, -1, b""))
        if journal_file.token_at(*found[1:]) != token:
            raise self._unknown_token()
        return found

    def _unknown_token(self) -> UnknownToken:
        return UnknownToken(self.name, "no such place in this stream")

    def head(self) -> Token | None:
        """See `ralf.storage.journal.Store.head`."""
        left = self._left
        with suppress(FileNotFoundError), Journal(self.path, seen=left) as journal:
            return left.head if left is not None and journal.is_as_seen else self._last_token(journal, journal.end())
        return None

    def newest(self) -> Entry | None:
        """See `ralf.storage.journal.Tail.newest`."""
        last = ""
        with suppress(FileNotFoundError), Journal(self.path) as journal:
            place, line = journal.newest_line()
            if line:
                return journal_file.parsed(self.path, place, line)
            last = journal.header.last
        return self.entry(last) if last else None

    @contextmanager
    def _opened(self, start: int) -> Iterator[tuple[Journal, Iterator[Line]]]:
        """The journal and the lines of its parts from a place on, as of the same moment."""
        header = None
        for _ in range(_MOST_TRIES):
            with Journal(self.path) as journal:
                try:
                    with opened_parts(self.parts, journal.header, start) as lines:
                        yield journal, lines
                        return
                except PartGone:
                    if journal.header == header:
                        raise
                    header = journal.header  # rewritten since: it names other parts now
        raise Busy(self.name, "is rewritten again and again", "try again")

    def _live(self, journal: Journal, start: int) -> Iterator[Line]:
        """The lines of the journal's own file from a place on."""
        return ((self.path, place, line) for place, line in journal.lines(max(start, journal.header.offset)))

    def _all(self, journal: Journal, start: int) -> Iterator[tuple[str, int, int]]:
        """Id, start and end of every line from a place on, for a caller that holds the stream."""
        with opened_parts(self.parts, journal.header, start) as archived:
            for _, place, line in chain(archived, self._live(journal, start)):
                yield journal_file.id_of(line) or "", place, place + len(line)

    def _line(self, journal: Journal, place: int) -> bytes:
        """The line at a place, b"" for none; for a caller that holds the stream."""
        with opened_parts(self.parts, journal.header, place) as archived:
            _, found, line = next(chain(archived, self._live(journal, place)), (self.path, -1, b""))
        return line if found == place else b""

    def _known_at(self, journal: Journal, place: int) -> tuple[str, int]:
        """The id of the line at a place, and where the line ends; for a caller that holds the stream."""
        if place >= journal.header.offset:
            begin = journal.frame(place)
            return journal_file.id_of(begin) or "", place + journal_file.length_of(begin)
        line = self._line(journal, place)
        return journal_file.id_of(line) or "", place + len(line)

    def _last_token(self, journal: Journal, end: int) -> Token | None:
        start = journal.last_line(end)
        if start is not None:
            return journal_file.token_at(start, journal.frame(start))
        return journal.header.last or None

    def _last_archived(self, header: Header) -> Token:
        """The place of the last record in the parts that a header names."""
        token = ""
        if header.parts:
            size = header.parts[-1].size
            for _, place, line in lines_of_part(self.parts, header.parts[-1], header.offset - size):
                token = journal_file.token_at(place, line)
        return token


def _changed(stream: str, lines: Iterable[Line], change: Callable[[Entry], bytes]) -> tuple[list[bytes], int]:
    """The lines with their records changed by `change`, and how many differ."""
    made, count = [], 0
    for path, place, line in lines:
        entry = journal_file.parsed(path, place, line)
        record = change(entry)
        if b"\n" in record:
            raise UsageError(stream, "a record is one line")
        made.append(line if record == entry.record else journal_file.framed(entry.id, record))
        count += record != entry.record
    return made, count


# ---- the store ----

_JOURNAL = ".jsonl"

_SETTLED = 2_000_000_000
"""Nanoseconds after which every change of a file also changes its times: no file system has a coarser clock."""


class FileStore:
    """Keeps streams and blobs below `folder`, which need not exist yet. Contract: `ralf.storage.journal.Store`.

    check  called with the path of a file before records or blobs are written to it; its errors are passed on
    """

    def __init__(self, folder: Path, *, check: Callable[[Path], None] = lambda _: None) -> None:
        self._folder = folder
        self._check = check
        self._streams: dict[str, Stream] = {}

    @cached_property
    def _blobs(self) -> Blobs:
        from ralf.storage.blob_files import Blobs  # not loaded to read a route

        return Blobs(self._folder, self._check)

    @property
    def properties(self) -> Properties:
        """Everything that a store can do; see `ralf.storage.journal.Store.properties`."""
        return Properties(lookup=self, replace=self, archive=self, heap=self, survey=self, files=self, tail=self)

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        """Append one record; see `ralf.storage.journal.Store.append`."""
        found = self._stream(stream)
        self._check(found.path)
        return found.append(record, id, after)

    def replace(self, stream: str, change: Callable[[Entry], bytes], *, wipe: bool = True) -> int:
        """Replace the bytes of records; see `ralf.storage.journal.Replace.replace`."""
        return self._stream(stream).rewrite(change)

    def write_anew(self, stream: str, records: Iterable[tuple[str, bytes]], *, head: Token | None) -> None:
        """Have these ids and records stand for all of a stream, archived ones too: for a stream that follows another
        store's. Conflict where `head` is not its newest place. Whole or not at all; every token of it is void after.
        """
        self._stream(stream).write_anew(records, head)

    def drop(self, stream: str, *, wipe: bool = True) -> None:
        """Forget a stream; see `ralf.storage.journal.Replace.drop`."""
        self._stream(stream).drop()

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place; see `ralf.storage.journal.Store.read`."""
        return self._stream(stream).read(after)

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place; see `ralf.storage.journal.Lookup.entry`."""
        return self._stream(stream).entry(token)

    def newest(self, stream: str) -> Entry | None:
        """The newest record; see `ralf.storage.journal.Tail.newest`."""
        return self._stream(stream).newest()

    def head(self, stream: str) -> Token | None:
        """The place of the newest record; see `ralf.storage.journal.Store.head`."""
        return self._stream(stream).head()

    def marks(self, folder: str) -> dict[str, str]:
        """By stream what stays the same only while it does; see `ralf.storage.journal.Survey.marks`."""
        settled = time.time_ns() - _SETTLED
        return {
            name: f"{one.st_ino}:{one.st_size}:{one.st_mtime_ns}:{one.st_ctime_ns}"
            for name, one in self._stats(folder)
            if max(one.st_mtime_ns, one.st_ctime_ns) < settled
        }

    def written(self, folder: str) -> dict[str, Written]:
        """When streams were written last; see `ralf.storage.journal.Survey.written`."""
        return {
            name: Written(one.st_mtime_ns, max(one.st_mtime_ns, one.st_ctime_ns)) for name, one in self._stats(folder)
        }

    def _stats(self, folder: str) -> Iterator[tuple[str, os.stat_result]]:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self._folder / "journal" / folder) as entries:
            for entry in entries:
                if entry.name.endswith(_JOURNAL):
                    with suppress(OSError):
                        yield entry.name.removesuffix(_JOURNAL), entry.stat(follow_symlinks=False)

    def streams(self, prefix: str) -> Iterator[str]:
        """The names of the streams that begin with `prefix`; see `ralf.storage.journal.Store.streams`."""
        top = self._folder / "journal"
        for folder, inner, names in os.walk(top.joinpath(*prefix.split("/")[:-1]), onerror=_unreadable):
            above = folder[len(os.fspath(top)) + 1 :]
            if all(map(cleaning.is_valid, filter(None, above.split("/")))):
                above = above and f"{above}/"
                entries = (*names, *inner)  # a folder in the place of a journal is damage, not a route that is gone
                found = filter(
                    cleaning.is_valid, (name[: -len(_JOURNAL)] for name in entries if name.endswith(_JOURNAL))
                )
                yield from (above + last for last in found if (above + last).startswith(prefix))

    def path(self, stream: str) -> Path:
        """A stream's journal; see `ralf.storage.journal.Files.path`."""
        return self._stream(stream).path

    def size(self) -> int:
        """The bytes of journals and blobs; see `ralf.storage.journal.Files.size`."""
        return sum(path.stat().st_size for name in ("journal", "blobs") for path in (self._folder / name).rglob("*"))

    def _stream(self, stream: str) -> Stream:
        if stream not in self._streams:
            if not all(cleaning.is_valid(part) for part in stream.split("/")):
                raise UsageError(ascii(stream), "refused as a stream name")
            self._streams[stream] = Stream(self._folder, stream)
        return self._streams[stream]

    def archive(self, stream: str, upto: Token, *, wait: bool = True) -> int:
        """Move a stream's oldest records to the archive; see `ralf.storage.journal.Archive.archive`."""
        return self._stream(stream).archive(upto, wait=wait)

    def archived(self, stream: str) -> Token | None:
        """The place of the newest record in the archive; see `ralf.storage.journal.Archive.archived`."""
        return self._stream(stream).archived()

    def unarchived(self, stream: str) -> int:
        """The bytes of the journal's own file; see `ralf.storage.journal.Archive.unarchived`."""
        return self._stream(stream).unarchived()

    # ---- blobs ----

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        """Keep the chunks' joined bytes; see `ralf.storage.journal.Store.put_blob`."""
        return self._blobs.put(chunks)

    def open_blob(self, digest: Digest) -> BinaryIO:
        """A blob's bytes; see `ralf.storage.journal.Store.open_blob`."""
        return self._blobs.open(digest)

    def has_blob(self, digest: Digest) -> bool:
        """Whether a blob of this digest is kept."""
        return self._blobs.has(digest)

    def blobs(self) -> Iterator[Blob]:
        """Every blob that is kept."""
        return self._blobs.all()

    def drop_blob(self, digest: Digest) -> None:
        """Forget a blob."""
        self._blobs.drop(digest)

    def archive_blobs(self, digests: Iterable[Digest], *, wait: bool = True) -> int:
        """Move blobs to the archive; see `ralf.storage.journal.Archive.archive_blobs`."""
        return self._blobs.archive(digests, wait=wait)

    # ---- both ----

    def sweep(self) -> int:
        """Remove the files that dead writers left; see `ralf.storage.journal.Heap.sweep`."""
        swept = self._blobs.sweep()
        for name in self.streams(""):
            stream = self._stream(name)
            if stream.may_have_left():
                with stream.writing():
                    swept += len(stream.sweep())
        return swept


def _unreadable(error: OSError) -> None:
    """Raise the error of listing a folder of streams, unless the folder is missing."""
    if not isinstance(error, FileNotFoundError):
        raise error
