"""The embedded store: journals as JSON lines and blobs as compressed files in one folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path

from ralf.errors import Conflict, DamagedJournal, UnknownToken
from ralf.storage import durable, earlier, files, journal_file, locks
from ralf.storage.blob_files import Blobs
from ralf.storage.journal import Entry, Token, Written, check_record, check_stream
from ralf.storage.journal_file import Header, Journal
from ralf.text import cleaning

_APPENDING = os.O_RDWR | os.O_APPEND


class Stream:
    """The files of a stream, of checked parts, below `folder`.

    path     its journal
    packed   that while it is archived
    damaged  what was damaged of it
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.path = folder / f"journal/{name}.jsonl"
        self._folder = folder
        self._lock = folder / f"locks/streams/{name}.journal.lock"

    @property
    def packed(self) -> Path:
        """See above."""
        return journal_file.packed(self.path)

    @property
    def damaged(self) -> Path:
        """See above."""
        return self.path.with_suffix(".damaged")

    def exists(self) -> bool:
        """Whether there is a journal, archived or not."""
        return os.path.lexists(self.path) or os.path.lexists(self.packed)

    def opened(self, flags: int = os.O_RDONLY) -> Journal:
        """The journal, with what an earlier version archived of it. FileNotFoundError, DamagedJournal."""
        journal = Journal(self.path, flags)
        try:
            if journal.header.parts:
                earlier.join(journal)
        except BaseException:
            journal.close()
            raise
        return journal

    # ---- for a caller that holds it ----

    def writing(self, timeout: float = locks.WAIT) -> AbstractContextManager[None]:
        """Hold the stream in order to write to its files. UsageError on a file system that is refused."""
        files.check(self._folder)
        return locks.locked(self._lock, self.name, timeout)

    def opened_to_write(self) -> Journal:
        """The journal, made where there is none; a plain file from here on, whatever it was."""
        try:
            journal = self.opened(_APPENDING)
        except FileNotFoundError:
            files.make(self.path.parent)
            return Journal(self.path, _APPENDING | os.O_CREAT)
        if journal.copy is None:
            return journal
        with journal:
            durable.replace_durably(self.path, [journal.copy])
        self.sweep()
        return Journal(self.path, _APPENDING)

    def put(self, begin: int, lines: Iterable[bytes]) -> None:
        """Have these lines stand for all of the stream.

        begin  the place of the first; where it lies behind all that there were, none of those is one any more
        """
        durable.replace_durably(self.path, chain([Header(begin).line()], lines))
        self.sweep()

    def sweep(self) -> list[Path]:
        """Remove what dead writers left; returns the files."""
        found = self.left()
        durable.removed(found)
        earlier.remove_folders(self.path)
        return found

    def left(self) -> list[Path]:
        """What dead writers left: temporary files, and what the journal's file has replaced."""
        found = durable.temporaries_of(self.path, self.packed, self.damaged)
        with suppress(FileNotFoundError):
            if self.path.lstat().st_size and (parts := earlier.parts(self.path)):
                with Journal(self.path) as journal:
                    found += [] if journal.header.parts else parts
            found += [self.packed] if os.path.lexists(self.packed) else []
        return found


# ---- the store ----


@lru_cache(maxsize=256)
def _stream(folder: Path, name: str) -> Stream:
    """A stream below a folder; UsageError for a name that is none."""
    check_stream(name)
    return Stream(folder, name)


_JOURNAL, _GZ = ".jsonl", ".gz"

_SETTLED = 2_000_000_000
"""Nanoseconds after which every change of a file also changes its times: no file system has a coarser clock."""


class FileStore(Blobs):
    """Keeps streams and blobs below `folder`, which need not exist yet. Contract: `ralf.storage.journal.Store`.

    check  called with the path of a file before records or blobs are written to it; its errors are passed on
    """

    leases = None

    @property
    def files(self) -> FileStore:
        """See `ralf.storage.journal.Store.files`."""
        return self

    def _stream(self, stream: str) -> Stream:
        return _stream(self.folder, stream)

    # ---- writing ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None, is_new: bool = False) -> Token:  # noqa: A002
        """See `ralf.storage.journal.Store.append`."""
        check_record(stream, record, id)
        found, line = self._stream(stream), journal_file.framed(id, record)
        self._check(found.path)
        with found.writing(), found.opened_to_write() as journal:
            place, newest = journal.cut_torn_tail()
            head, end = journal_file.head_at(place, newest), place + len(newest)
            if not (is_new and head == after) and (landed := journal.line_of(id)) is not None:
                os.fsync(journal.descriptor)  # the writer that appended it may have died before its fsync
                return journal_file.token_at(*landed)
            if head != after:
                raise Conflict(stream, head)
            if not end:  # the name first: a reader that finds records here takes them for durable
                durable.sync_parents(found.path.parent, self.folder)
            journal.append(line, end)
        return journal_file.token_at(end, line)

    def replace(self, stream: str, change: Callable[[Entry], bytes], *, wipe: bool = True) -> int:
        """See `ralf.storage.journal.Store.replace`. What is replaced is gone from the disk when this returns."""
        found = self._stream(stream)
        if not found.exists():
            return 0
        with found.writing(), found.opened_to_write() as journal:
            place, newest = journal.cut_torn_tail()
            made, changed = [], 0
            for start, line in journal.lines():
                entry = journal_file.parsed(found.path, start, line)
                record = change(entry)
                check_record(stream, record)
                made.append(line if record == entry.record else journal_file.framed(entry.id, record))
                changed += record != entry.record
            if changed:
                found.put(place + len(newest) + 1, made)
            else:
                found.sweep()  # what an earlier call left that broke off
        return changed

    def rename(self, stream: str, name: str) -> None:
        """Give a stream another name, at once and durably. FileExistsError where a stream has it."""
        found, to = self._stream(stream), self._stream(name)
        with found.writing(), to.writing():
            found.sweep()
            files.make(to.path.parent)
            for source, target in ((found.path, to.path), (found.packed, to.packed)):
                if os.path.lexists(source):
                    durable.rename_free(source, target)
            durable.sync_folder(to.path.parent)
            durable.sync_folder(found.path.parent)

    def drop(self, stream: str, *, wipe: bool = True) -> None:
        """See `ralf.storage.journal.Store.drop`."""
        found = self._stream(stream)
        if found.exists():
            with found.writing():
                durable.replace_durably(found.path, [])  # what lies beside it counts for nothing from here on
                found.sweep()
                earlier.sweep(found.path)
                durable.removed([found.path])

    def archive(self, stream: str, head: Token) -> bool:
        """See `ralf.storage.journal.Files.archive`."""
        found = self._stream(stream)
        with suppress(FileNotFoundError), found.writing(0.0), found.opened(_APPENDING) as journal:
            if not found.path.exists():
                return True
            found.sweep()
            place, newest = journal.cut_torn_tail()
            if (now := journal_file.head_at(place, newest)) != head:
                raise Conflict(stream, now)
            for start, line in journal.lines():
                journal_file.parsed(found.path, start, line)
            content = journal.content(0, journal.size)
            if len(content) > journal_file.MOST:
                return False
            written = found.path.stat()
            durable.replace_durably(found.packed, [journal_file.compressed(content)])
            os.utime(found.packed, ns=(written.st_atime_ns, written.st_mtime_ns))
            if journal_file.unpack(found.packed.read_bytes()) != (content, True):
                raise DamagedJournal(found.packed, "is not what was archived")
            found.path.unlink()  # where a loss of power brings it back, it is archived once more
            earlier.sweep(found.path)
            return True
        return False

    # ---- reading ----

    def _lines(self, stream: Stream, token: Token | None) -> Iterator[tuple[int, bytes]]:
        """Place and bytes of the lines of a stream from that of a token on, None: all. UnknownToken."""
        is_known, start = token is None, journal_file.offset_of(token) if token is not None else 0
        with suppress(FileNotFoundError), stream.opened() as journal:
            for place, line in journal.lines(start):
                if not is_known and journal_file.token_at(place, line) != token:
                    break
                is_known = True
                yield place, line
        if not is_known:
            raise UnknownToken(stream.name, "no such place in this stream")

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """See `ralf.storage.journal.Store.read`."""
        found = self._stream(stream)
        lines = self._lines(found, after)
        if after is not None:
            next(lines)
        for place, line in lines:
            yield journal_file.parsed(found.path, place, line)

    def entry(self, stream: str, token: Token) -> Entry:
        """See `ralf.storage.journal.Store.entry`."""
        found = self._stream(stream)
        return journal_file.parsed(found.path, *next(self._lines(found, token)))

    def _newest(self, stream: str) -> tuple[int, bytes]:
        with suppress(FileNotFoundError), self._stream(stream).opened() as journal:
            return journal.newest_line()
        return 0, b""

    def newest(self, stream: str) -> Entry | None:
        """See `ralf.storage.journal.Store.newest`."""
        place, line = self._newest(stream)
        return journal_file.parsed(self._stream(stream).path, place, line) if line else None

    def head(self, stream: str) -> Token | None:
        """See `ralf.storage.journal.Store.head`."""
        return journal_file.head_at(*self._newest(stream))

    # ---- many streams ----

    def streams(self, prefix: str) -> Iterator[str]:
        """See `ralf.storage.journal.Store.streams`."""
        top = self.folder / "journal"
        for folder, inner, names in os.walk(top.joinpath(*prefix.split("/")[:-1]), onerror=_unreadable):
            above = folder[len(os.fspath(top)) + 1 :]
            if all(map(cleaning.is_valid, filter(None, above.split("/")))):
                above = above and f"{above}/"
                # A folder in the place of a journal is damage, not a route that is gone.
                found = filter(cleaning.is_valid, {_name_of(name) for name in (*names, *inner)})
                yield from (above + last for last in found if (above + last).startswith(prefix))

    def _files(self, folder: str) -> dict[str, os.DirEntry[str]]:
        """The files of the streams right below a folder; of two of a stream the plain one."""
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.folder / "journal" / folder) as entries:
            found = sorted(entries, key=lambda one: one.name, reverse=True)
            return {_name_of(one.name): one for one in found if cleaning.is_valid(_name_of(one.name))}
        return {}

    def _stats(self, folder: str) -> Iterator[tuple[str, os.stat_result]]:
        for name, one in self._files(folder).items():
            with suppress(OSError):
                yield name, one.stat(follow_symlinks=False)

    def marks(self, folder: str) -> dict[str, str]:
        """See `ralf.storage.journal.Files.marks`."""
        settled = time.time_ns() - _SETTLED
        return {
            name: f"{one.st_ino}:{one.st_size}:{one.st_mtime_ns}:{one.st_ctime_ns}"
            for name, one in self._stats(folder)
            if max(one.st_mtime_ns, one.st_ctime_ns) < settled
        }

    def written(self, folder: str) -> dict[str, Written]:
        """See `ralf.storage.journal.Store.written`."""
        return {
            name: Written(one.st_mtime_ns, max(one.st_mtime_ns, one.st_ctime_ns)) for name, one in self._stats(folder)
        }

    def archived(self, folder: str) -> frozenset[str]:
        """See `ralf.storage.journal.Files.archived`."""
        return frozenset(name for name, one in self._files(folder).items() if one.name.endswith(_GZ))

    # ---- files ----

    def path(self, stream: str) -> Path:
        """See `ralf.storage.journal.Files.path`."""
        found = self._stream(stream)
        return found.packed if not os.path.lexists(found.path) and os.path.lexists(found.packed) else found.path

    def size(self) -> int:
        """See `ralf.storage.journal.Files.size`."""
        return sum(path.stat().st_size for name in ("journal", "blobs") for path in (self.folder / name).rglob("*"))

    def sweep(self) -> int:
        """See `ralf.storage.journal.Store.sweep`."""
        swept = self.sweep_blobs()
        for stream in map(self._stream, self.streams("")):
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
