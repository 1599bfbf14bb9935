"""One stream of the embedded store: its journal's file, and the parts of it that lie in the archive, as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from ralf.errors import Busy, Conflict, UnknownToken, UsageError
from ralf.files import filesystems, folders, locks
from ralf.files.placing import hidden_beside, placed, removed, sync_parents
from ralf.storage import journalline, journalparts
from ralf.storage.idindex import IdIndex
from ralf.storage.journalfile import Header, Journal, Part
from ralf.storage.journalparts import PartGone, Parts
from ralf.store import Entry, Token

_MAX_ID = 200
_MOST_TRIES = 20


class Stream:
    """The stream `name`, of checked parts, below `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        *above, last = name.split("/")
        self.name = name
        self.path = folder.joinpath("journal", *above, f"{last}.jsonl")
        self.parts = folder.joinpath("archive", "journal", *above, last)
        self._folder = folder
        self._lock = folder / "locks" / "streams" / f"{name}.journal.lock"
        self._ids = IdIndex(folder / "cache" / "ids" / f"{name}.idx")

    # ---- writing ----

    def append(self, record: bytes, id: str, after: Token | None) -> Token:  # noqa: A002
        """See `ralf.store.Store.append`."""
        from ralf.files import atomic  # here and below: only writers pay for what it imports

        if b"\n" in record or len(id) > _MAX_ID:
            raise UsageError(self.name, f"a record is one line, and its id has at most {_MAX_ID} characters")
        line = journalline.framed(id, record)
        with self.writing():
            folders.make(self.path.parent)
            with Journal(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as journal:
                if (
                    self.parts.exists() or not self._ids.exists
                ):  # somebody has put files in place here, and may have died
                    self._sweep(journal)
                end = journal.cut_torn_tail()
                head = self._last_token(journal, end)
                known = self._ids.find(
                    id, end, lambda at: self._known_at(journal, at), lambda at: self._all(journal, at)
                )
                if known is not None:
                    os.fsync(journal.descriptor)  # who appended it may have died before that
                    return journalline.token_at(known, self._line(journal, known))
                if head != after:
                    raise Conflict(self.name, head)
                if not end:  # the name first: whoever finds records here takes it for durable
                    sync_parents(self.path.parent, self._folder)
                with atomic.naming(self.path):
                    journal.write(line, end)
                    journal.sync(end)
                self._ids.add(id, end, end + len(line))
        return journalline.token_at(end, line)

    def rewrite(self, change: Callable[[Entry], bytes]) -> int:
        """See `ralf.store.Store.rewrite`. What is replaced is gone from the disk when this returns."""
        if not self.path.exists():
            return 0
        with self.writing(), Journal(self.path, os.O_RDWR) as journal:
            self._sweep(journal)
            journal.cut_torn_tail()
            parts: list[Part] = []
            changed = 0
            place = journal.header.begin
            for number, part in enumerate(journal.header.parts, start=1):
                lines, count = _changed(self.name, journalparts.lines_of(self.parts, part, place), change)
                parts.append(journalparts.put(self.parts, number, lines) if count else part)
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
        """See `ralf.store.Store.drop`. An empty journal first: one that names parts which are gone would be damaged."""
        if not self.path.exists() and not self.parts.exists():
            return
        from ralf.files import atomic

        with self.writing():
            if self.path.exists():
                atomic.sweep(self.path)
                placed(self.path, [])
            removed(journalparts.stray(self.parts, ()))
            with suppress(OSError):  # somebody keeps something there that is not ours
                self.parts.rmdir()
            self._ids.drop()
            self.path.unlink(missing_ok=True)
            if self.path.parent.exists():
                atomic.sync_folder(self.path.parent)

    def archive(self, upto: Token, *, wait: bool) -> int:
        """See `ralf.store.Store.archive`."""
        start = journalline.offset_of(upto)
        if not self.path.exists():
            raise UnknownToken(self.name, "no such place in this stream")
        with self.writing(locks.TIMEOUT if wait else 0.0), Journal(self.path, os.O_RDWR) as journal:
            self._sweep(journal)
            line = self._line(journal, start)
            if journalline.token_at(start, line) != upto:
                raise UnknownToken(self.name, "no such place in this stream")
            journal.cut_torn_tail()
            header, cut = journal.header, start + len(line)
            if cut <= header.offset:
                return 0
            parts = list(header.parts)
            if not parts:  # the folder's name first: whoever finds parts in it takes that for durable
                folders.make(self.parts)
                sync_parents(self.parts, self._folder)
            for batch in self._batches(journal, cut):
                journalparts.extend(self.parts, parts, batch)
            rest = (line for _, line in journal.lines(cut))
            self._switch(header, Header(cut, parts=tuple(parts), last=upto), rest)
        return cut - header.offset

    def archived(self) -> Token | None:
        """See `ralf.store.Store.archived`."""
        try:
            with Journal(self.path) as journal:
                return journal.header.last or None
        except FileNotFoundError:
            return None

    def unarchived(self) -> int:
        """See `ralf.store.Store.unarchived`."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def _batches(self, journal: Journal, cut: int) -> Iterator[list[bytes]]:
        """The lines of the journal's file up to a place, as many at a time as a part takes."""
        batch: list[bytes] = []
        size = 0
        for place, line in journal.lines(journal.header.offset):
            if place >= cut:
                break
            journalline.parsed(self.path, place, line)
            if batch and size + len(line) > journalparts.LARGEST:
                yield batch
                batch, size = [], 0
            batch.append(line)
            size += len(line)
        yield batch

    def replace(self, header: Header, lines: Iterable[bytes]) -> None:
        """Make the stream one of these lines alone, for who holds it and knows what is in all its parts."""
        self._switch(Header(), header, lines)
        removed(journalparts.stray(self.parts, header.parts))

    def may_have_left(self) -> bool:
        """Whether a dead writer may have left something."""
        with suppress(FileNotFoundError), Journal(self.path) as journal:
            return bool(hidden_beside(self.path) or journalparts.stray(self.parts, journal.header.parts))
        return False

    def sweep(self) -> list[Path]:
        """Remove what dead writers left, for who holds the stream; the files that went."""
        try:
            with Journal(self.path) as journal:
                return self._sweep(journal)
        except FileNotFoundError:
            return []

    def _switch(self, before: Header, header: Header, lines: Iterable[bytes]) -> None:
        """Make the journal's file one of this header and these lines, and drop the parts that it no longer names."""
        self._ids.drop()  # before: whoever is killed in between leaves none that is of another file
        placed(self.path, chain([header.line()], lines))
        named = {part.file for part in header.parts}
        removed(self.parts / part.file for part in before.parts if part.file not in named)

    def writing(self, timeout: float = locks.TIMEOUT) -> AbstractContextManager[None]:
        """Hold the stream: who writes to its files. UsageError where they lie on a file system that is refused."""
        filesystems.check(self._folder)
        return locks.held(self._lock, self.name, timeout)

    def _sweep(self, journal: Journal) -> list[Path]:
        left = hidden_beside(self.path)
        stray = journalparts.stray(self.parts, journal.header.parts)
        if stray:
            known = {id_ for id_, _, _ in self._all(journal, 0)}
            left += [path for path in stray if journalparts.holds_only(path, known)]
        removed(left)
        return left

    # ---- reading ----

    def read(self, after: Token | None) -> Iterator[Entry]:
        """See `ralf.store.Store.read`."""
        start = journalline.offset_of(after) if after is not None else 0
        try:
            with self._opened(start) as (journal, parts):
                lines = self._lines(journal, parts, start)
                if after and after == journal.header.last:  # all that follows lies in the file: no part is unpacked
                    lines = self._live(journal, start)
                elif after is not None:
                    _, place, line = next(lines, (self.path, -1, b""))
                    if journalline.token_at(place, line) != after:
                        raise UnknownToken(self.name, "no such place in this stream")
                for path, place, line in lines:
                    yield journalline.parsed(path, place, line)
        except FileNotFoundError:
            if after is not None:
                raise UnknownToken(self.name, "no such place in this stream") from None

    def entry(self, token: Token) -> Entry:
        """See `ralf.store.Store.entry`."""
        start = journalline.offset_of(token)
        try:
            with self._opened(start) as (journal, parts):
                path, place, line = next(self._lines(journal, parts, start), (self.path, -1, b""))
        except FileNotFoundError:
            place, line = -1, b""
        if journalline.token_at(place, line) != token:
            raise UnknownToken(self.name, "no such place in this stream")
        return journalline.parsed(path, place, line)

    def head(self) -> Token | None:
        """See `ralf.store.Store.head`."""
        try:
            with Journal(self.path) as journal:
                return self._last_token(journal, journal.end())
        except FileNotFoundError:
            return None

    @contextmanager
    def _opened(self, start: int) -> Iterator[tuple[Journal, Parts]]:
        """The journal and its parts from a place on, of one moment: whoever replaces them meanwhile is not seen."""
        with ExitStack() as stack:
            header = None
            for _ in range(_MOST_TRIES):
                with ExitStack() as attempt:
                    journal = attempt.enter_context(Journal(self.path))
                    try:
                        parts = attempt.enter_context(Parts(self.parts, journal.header, start))
                    except PartGone as gone:
                        if journal.header == header:
                            raise gone from None
                        header = journal.header
                        continue
                    stack.push(attempt.pop_all())
                    break
            else:
                raise Busy(self.name, "is rewritten again and again", "try again")
            yield journal, parts

    def _lines(self, journal: Journal, parts: Parts, start: int) -> Iterator[tuple[Path, int, bytes]]:
        return chain(parts.lines(), self._live(journal, start))

    def _live(self, journal: Journal, start: int) -> Iterator[tuple[Path, int, bytes]]:
        return ((self.path, place, line) for place, line in journal.lines(max(start, journal.header.offset)))

    def _all(self, journal: Journal, start: int) -> Iterator[tuple[str, int, int]]:
        """Id, start and end of every line from a place on, for who holds the stream."""
        with Parts(self.parts, journal.header, start) as parts:
            for _, place, line in self._lines(journal, parts, start):
                yield journalline.id_of(line) or "", place, place + len(line)

    def _line(self, journal: Journal, place: int) -> bytes:
        """The line at a place, b"" for none; for who holds the stream."""
        with Parts(self.parts, journal.header, place) as parts:
            found = next(self._lines(journal, parts, place), None)
        return found[2] if found is not None and found[1] == place else b""

    def _known_at(self, journal: Journal, place: int) -> tuple[str, int]:
        """The id of the line at a place, and where the line ends; for who holds the stream."""
        if place >= journal.header.offset:
            return journal.id_at(place) or "", journal.line_at(place).end
        line = self._line(journal, place)
        return journalline.id_of(line) or "", place + len(line)

    def _last_token(self, journal: Journal, end: int) -> Token | None:
        start = journal.last_line(end)
        if start is not None:
            return journal.line_at(start).token
        return journal.header.last or None

    def _last_archived(self, header: Header) -> Token:
        """The place of the last record in the parts that a header names."""
        token = ""
        if header.parts:
            size = header.parts[-1].size
            for _, place, line in journalparts.lines_of(self.parts, header.parts[-1], header.offset - size):
                token = journalline.token_at(place, line)
        return token


def _changed(
    stream: str, lines: Iterable[tuple[Path, int, bytes]], change: Callable[[Entry], bytes]
) -> tuple[list[bytes], int]:
    """Lines with the records that `change` makes of theirs, and how many are others now."""
    made, count = [], 0
    for path, place, line in lines:
        entry = journalline.parsed(path, place, line)
        record = change(entry)
        if b"\n" in record:
            raise UsageError(stream, "a record is one line")
        made.append(line if record == entry.record else journalline.framed(entry.id, record))
        count += record != entry.record
    return made, count
