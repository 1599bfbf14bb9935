"""The embedded store: journals as JSON lines and blobs as compressed files in one folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ralf.errors import Conflict, DamagedJournal, UnknownToken, UsageError
from ralf.storage import durable, earlier, files, journal_file, locks
from ralf.storage.journal import Blob, Digest, Entry, Token, Written
from ralf.storage.journal_file import Header, Journal, Seen
from ralf.text import cleaning

if TYPE_CHECKING:
    from ralf.storage.blob_files import Blobs

_MAX_ID = 200

DAMAGED = ".damaged"
"""The ending of the file, beside a journal, a route file or a blob, in which what is damaged of it is kept."""

_APPENDING = os.O_RDWR | os.O_APPEND


class Stream:
    """The stream `name`, of checked parts, below `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.path = folder / f"journal/{name}.jsonl"
        self._folder = folder
        self._left: Seen | None = None  # the journal as our last append has left it
        self._ids: dict[bytes, int] | None = None  # where the record of each id is in that, once they are asked for

    @cached_property
    def packed(self) -> Path:
        """Its file while it is archived."""
        return journal_file.packed(self.path)

    @cached_property
    def _lock(self) -> Path:
        return self._folder / f"locks/streams/{self.name}.journal.lock"

    # ---- writing ----

    def append(self, record: bytes, id: str, after: Token | None) -> Token:  # noqa: A002
        """See `ralf.storage.journal.Store.append`."""
        if b"\n" in record or len(id) > _MAX_ID:
            raise UsageError(self.name, f"a record is one line, and its id has at most {_MAX_ID} characters")
        line = journal_file.framed(id, record)
        with self.writing(), self._to_write(is_made=True) as journal:
            end, head, known = self._find_left(journal, id) or self._find(journal, id)
            if known is not None:
                os.fsync(journal.descriptor)  # the writer that appended it may have died before its fsync
                return journal_file.token_at(known, journal.frame(known))
            if head != after:
                raise Conflict(self.name, head)
            if not end:  # the name first: a reader that finds records here takes them for durable
                durable.sync_parents(self.path.parent, self._folder)
            ids, self._left, self._ids = self._ids, None, None
            with durable.naming(self.path):
                journal.append(line, end)
            token = journal_file.token_at(end, line)
            self._left = journal.seen(end + len(line), token)
            if ids is not None:
                self._ids = ids
                ids[journal_file.quoted(line)] = end
        return token

    def _to_write(self, *, is_made: bool = False) -> Journal:
        """The journal, open to write, for a caller that holds the stream; a plain file from here on, whatever it was.

        is_made  whether it is made where there is none; else FileNotFoundError
        """
        try:
            journal = self.opened(_APPENDING)
        except FileNotFoundError:
            if not is_made:
                raise
            files.make(self.path.parent)
            return Journal(self.path, _APPENDING | os.O_CREAT)
        if journal.is_plain:
            return journal
        with journal:
            durable.replace_durably(self.path, journal.content())
        self.sweep()
        return Journal(self.path, _APPENDING)

    def _find_left(self, journal: Journal, id: str) -> tuple[int, Token | None, int | None] | None:  # noqa: A002
        """The same as `_find`, for a file that is as we left it: few lines are read. None where it is not."""
        left = self._left
        if left is None or not journal.is_as_seen:
            return None
        if self._ids is None:
            self._ids = {}
            for place, line in journal.lines(journal.header.offset):
                self._ids.setdefault(journal_file.quoted(line), place)
        return left.end, left.head, self._ids.get(journal_file.quoted(journal_file.framed(id, b"")))

    def _find(self, journal: Journal, id: str) -> tuple[int, Token | None, int | None]:  # noqa: A002
        """Where the journal ends, its head, and where the record of an id is, None for none."""
        self._ids = None
        place, line = journal.cut_torn_tail()
        return place + len(line), _token_at(place, line), journal.place_of(id)

    def rewrite(self, change: Callable[[Entry], bytes]) -> int:
        """See `ralf.storage.journal.Store.replace`. What is replaced is gone from the disk when this returns."""
        if not self._exists():
            return 0
        with self.writing(), self._to_write() as journal:
            self.sweep()
            journal.cut_torn_tail()
            made, changed, end = [], 0, journal.header.offset
            for place, line in journal.lines(journal.header.offset):
                entry = journal_file.parsed(self.path, place, line)
                record = change(entry)
                if b"\n" in record:
                    raise UsageError(self.name, "a record is one line")
                made.append(line if record == entry.record else journal_file.framed(entry.id, record))
                changed += record != entry.record
                end = place + len(line)
            if changed:
                self.put(end + 1, made)
        return changed

    def rename(self, to: Stream) -> None:
        """See `FileStore.rename`."""
        with self.writing(), to.writing():
            self.sweep()
            files.make(to.path.parent)
            for source, target in ((self.path, to.path), (self.packed, to.packed)):
                if os.path.lexists(source):
                    durable.rename_free(source, target)
            durable.sync_folder(to.path.parent)
            durable.sync_folder(self.path.parent)

    def set_aside(self) -> list[Path]:
        """See `ralf.storage.journal.Store.set_aside`."""
        whole, damaged, end = [], [], 0
        with self.writing(), self._to_write() as journal:
            journal.cut_torn_tail()
            for place, line in journal.lines(journal.header.offset):
                end = place + len(line)
                try:
                    journal_file.parsed(self.path, place, line)
                except DamagedJournal:
                    damaged.append(line)
                else:
                    whole.append(line)
            if not damaged:
                return []
            kept = self.path.with_suffix(DAMAGED)
            durable.replace_durably(kept, [*([kept.read_bytes()] if kept.exists() else []), *damaged])
            self.put(end + 1, whole)
        return [kept]

    def put(self, begin: int, lines: Iterable[bytes]) -> None:
        """Have these lines stand for all of the stream, for a caller that holds it.

        begin  the place of the first; where it lies behind all that there were, none of those is one any more
        """
        durable.replace_durably(self.path, chain([Header(begin).line()], lines))
        self.sweep()

    def drop(self) -> None:
        """See `ralf.storage.journal.Store.drop`."""
        if not self._exists():
            return
        with self.writing():
            durable.replace_durably(self.path, [])  # what lies beside it counts for nothing from here on
            self.sweep()
            durable.removed([self.path])

    def archive(self, head: Token) -> bool:
        """See `ralf.storage.journal.Store.archive`."""
        with suppress(FileNotFoundError), self.writing(0.0), self.opened(_APPENDING) as journal:
            if not journal.is_plain and not self.path.exists():
                return True
            self.sweep()
            found = _token_at(*(journal.cut_torn_tail() if journal.is_plain else journal.newest_line()))
            if found != head:
                raise Conflict(self.name, found)
            for place, line in journal.lines(journal.header.offset):
                journal_file.parsed(self.path, place, line)
            written, content = self.path.stat(), b"".join(journal.content())
            if len(content) > journal_file.MOST:
                return False
            durable.replace_durably(self.packed, [journal_file.compressed(content)])
            os.utime(self.packed, ns=(written.st_atime_ns, written.st_mtime_ns))
            if journal_file.unpacked(self.packed.read_bytes()) != content:
                raise DamagedJournal(self.packed, "is not what was archived")
            self.path.unlink()  # where a loss of power brings it back, it is archived once more
            earlier.sweep(self.path)
            return True
        return False

    def _exists(self) -> bool:
        return os.path.lexists(self.path) or os.path.lexists(self.packed)

    def writing(self, timeout: float = locks.WAIT) -> AbstractContextManager[None]:
        """Hold the stream in order to write to its files. UsageError on a file system that is refused."""
        files.check(self._folder)
        return locks.locked(self._lock, self.name, timeout)

    def sweep(self) -> list[Path]:
        """Remove what dead writers left, for a caller that holds the stream; returns the files."""
        found = self.left()
        if found:
            durable.removed(found)
            earlier.remove_folders(self.path)
        return found

    def left(self) -> list[Path]:
        """What dead writers left: temporary files, and what the journal's file has replaced."""
        names = (self.path, self.packed, self.path.with_suffix(DAMAGED))
        found = [path for name in names for path in durable.temporaries_of(name)]
        with suppress(FileNotFoundError):
            if self.path.lstat().st_size and (parts := earlier.parts(self.path)):
                with Journal(self.path) as journal:
                    found += [] if journal.header.parts else parts
            found += [self.packed] if os.path.lexists(self.packed) else []
        return found

    # ---- reading ----

    def read(self, after: Token | None) -> Iterator[Entry]:
        """See `ralf.storage.journal.Store.read`."""
        start = journal_file.offset_of(after) if after is not None else 0
        try:
            with self.opened() as journal:
                lines = journal.lines(max(start, journal.header.offset))
                if after is not None:
                    self._line_of(after, lines)
                for place, line in lines:
                    yield journal_file.parsed(self.path, place, line)
        except FileNotFoundError:
            if after is not None:
                raise self._unknown_token() from None

    def entry(self, token: Token) -> Entry:
        """See `ralf.storage.journal.Store.entry`."""
        start = journal_file.offset_of(token)
        try:
            with self.opened() as journal:
                lines = journal.lines(max(start, journal.header.offset))
                return journal_file.parsed(self.path, *self._line_of(token, lines))
        except FileNotFoundError:
            raise self._unknown_token() from None

    def _line_of(self, token: Token, lines: Iterator[tuple[int, bytes]]) -> tuple[int, bytes]:
        """The first of the lines, which is to be that of a token."""
        found = next(lines, (-1, b""))
        if journal_file.token_at(*found) != token:
            raise self._unknown_token()
        return found

    def _unknown_token(self) -> UnknownToken:
        return UnknownToken(self.name, "no such place in this stream")

    def head(self) -> Token | None:
        """See `ralf.storage.journal.Store.head`."""
        left = self._left
        with suppress(FileNotFoundError), self.opened() as journal:
            return left.head if left is not None and journal.is_as_seen else _token_at(*journal.newest_line())
        return None

    def newest(self) -> Entry | None:
        """See `ralf.storage.journal.Store.newest`."""
        with suppress(FileNotFoundError), self.opened() as journal:
            place, line = journal.newest_line()
            return journal_file.parsed(self.path, place, line) if line else None
        return None

    def opened(self, flags: int = os.O_RDONLY) -> Journal:
        """The journal, with what an earlier version archived of it. FileNotFoundError, DamagedJournal."""
        for is_last in (False, True):
            journal = Journal(self.path, flags, self._left)
            try:
                if journal.header.parts:
                    earlier.joined(journal)
            except BaseException as error:
                journal.close()
                if is_last or not isinstance(error, DamagedJournal):  # else somebody has rewritten it meanwhile
                    raise
            else:
                return journal
        raise AssertionError("unreachable")


def _token_at(place: int, line: bytes) -> Token | None:
    """The token of a stream's last line, None for a stream that has none."""
    return journal_file.token_at(place, line) if line else None


# ---- the store ----

_JOURNAL, _GZ = ".jsonl", ".gz"

_PACKED = _JOURNAL + _GZ

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

    leases = None

    @property
    def files(self) -> FileStore:
        """See `ralf.storage.journal.Store`."""
        return self

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        """Append one record; see `ralf.storage.journal.Store.append`."""
        found = self._stream(stream)
        self._check(found.path)
        return found.append(record, id, after)

    def replace(self, stream: str, change: Callable[[Entry], bytes], *, wipe: bool = True) -> int:
        """Replace the bytes of records; see `ralf.storage.journal.Store.replace`."""
        return self._stream(stream).rewrite(change)

    def rename(self, stream: str, name: str) -> None:
        """Give a stream another name, at once and durably. FileExistsError where a stream has it."""
        self._stream(stream).rename(self._stream(name))

    def drop(self, stream: str, *, wipe: bool = True) -> None:
        """Forget a stream; see `ralf.storage.journal.Store.drop`."""
        self._stream(stream).drop()

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place; see `ralf.storage.journal.Store.read`."""
        return self._stream(stream).read(after)

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place; see `ralf.storage.journal.Store.entry`."""
        return self._stream(stream).entry(token)

    def newest(self, stream: str) -> Entry | None:
        """The newest record; see `ralf.storage.journal.Store.newest`."""
        return self._stream(stream).newest()

    def head(self, stream: str) -> Token | None:
        """The place of the newest record; see `ralf.storage.journal.Store.head`."""
        return self._stream(stream).head()

    def marks(self, folder: str) -> dict[str, str]:
        """By stream what stays the same only while it does; see `ralf.storage.journal.Store.marks`."""
        settled = time.time_ns() - _SETTLED
        return {
            name: f"{one.st_ino}:{one.st_size}:{one.st_mtime_ns}:{one.st_ctime_ns}"
            for name, one in self._stats(folder)
            if max(one.st_mtime_ns, one.st_ctime_ns) < settled
        }

    def written(self, folder: str) -> dict[str, Written]:
        """When streams were written last; see `ralf.storage.journal.Store.written`."""
        return {
            name: Written(one.st_mtime_ns, max(one.st_mtime_ns, one.st_ctime_ns)) for name, one in self._stats(folder)
        }

    def _stats(self, folder: str) -> Iterator[tuple[str, os.stat_result]]:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self._folder / "journal" / folder) as entries:
            found = [entry for entry in entries if _name_of(entry.name)]
            for entry in sorted(found, key=lambda one: one.name, reverse=True):  # of two of a name the plain one counts
                with suppress(OSError):
                    yield _name_of(entry.name), entry.stat(follow_symlinks=False)

    def streams(self, prefix: str) -> Iterator[str]:
        """The names of the streams that begin with `prefix`; see `ralf.storage.journal.Store.streams`."""
        top = self._folder / "journal"
        for folder, inner, names in os.walk(top.joinpath(*prefix.split("/")[:-1]), onerror=_unreadable):
            above = folder[len(os.fspath(top)) + 1 :]
            if all(map(cleaning.is_valid, filter(None, above.split("/")))):
                above = above and f"{above}/"
                # A folder in the place of a journal is damage, not a route that is gone.
                found = filter(cleaning.is_valid, {_name_of(name) for name in (*names, *inner)})
                yield from (above + last for last in found if (above + last).startswith(prefix))

    def archived(self, folder: str) -> frozenset[str]:
        """The streams that are archived; see `ralf.storage.journal.Store.archived`."""
        names: set[str] = set()
        with suppress(FileNotFoundError, NotADirectoryError):
            names = set(os.listdir(self._folder / "journal" / folder))  # noqa: PTH208  # names alone, in one call
        packed = (name for name in names if name.endswith(_PACKED) and name.removesuffix(_GZ) not in names)
        return frozenset(filter(cleaning.is_valid, map(_name_of, packed)))

    def path(self, stream: str) -> Path:
        """A stream's journal; see `ralf.storage.journal.Store.path`."""
        found = self._stream(stream)
        return found.packed if not os.path.lexists(found.path) and os.path.lexists(found.packed) else found.path

    def size(self) -> int:
        """The bytes of journals and blobs; see `ralf.storage.journal.Store.size`."""
        return sum(path.stat().st_size for name in ("journal", "blobs") for path in (self._folder / name).rglob("*"))

    def set_aside(self, stream: str) -> list[Path]:
        """Keep damaged lines beside a stream; see `ralf.storage.journal.Store.set_aside`."""
        return self._stream(stream).set_aside()

    def _stream(self, stream: str) -> Stream:
        if stream not in self._streams:
            if not all(cleaning.is_valid(part) for part in stream.split("/")):
                raise UsageError(ascii(stream), "refused as a stream name")
            self._streams[stream] = Stream(self._folder, stream)
        return self._streams[stream]

    def archive(self, stream: str, head: Token) -> bool:
        """Compress a stream; see `ralf.storage.journal.Store.archive`."""
        return self._stream(stream).archive(head)

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

    # ---- both ----

    def sweep(self) -> int:
        """Remove the files that dead writers left; see `ralf.storage.journal.Store.sweep`."""
        swept = self._blobs.sweep()
        for name in self.streams(""):
            stream = self._stream(name)
            if stream.left():
                with stream.writing():
                    swept += len(stream.sweep())
        return swept


def _unreadable(error: OSError) -> None:
    """Raise the error of listing a folder of streams, unless the folder is missing."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _name_of(file: str) -> str:
    """The last part of the name of the stream that a file holds, "" for none."""
    plain = file.removesuffix(_GZ)
    return plain.removesuffix(_JOURNAL) if plain.endswith(_JOURNAL) else ""
