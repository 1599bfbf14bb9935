"""Reads and writes a document: what somebody saved into its file is absorbed, a record appended, the file put anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ralf.document import place as places
from ralf.document.family import Family
from ralf.document.index import Index, using
from ralf.document.judging import DAMAGED, EDITED, HALF, NEW, OURS, Judged, judge
from ralf.document.place import Place
from ralf.document.record import Record, now
from ralf.document.state import State, caught_up, digest_of
from ralf.errors import DamagedJournal
from ralf.storage import durable, locks
from ralf.storage.journal import Save, Store
from ralf.text.frozen import NamedTuple

_MOST_TRIES = 8  # at a file that is saved again and again

_KEPT = "the journal has what is recorded"

_LATER = "the next write shows what this one wrote"

Body = Mapping[str, Any]

T = TypeVar("T")

BY_FILE, BY_AGENT = "file", "agent"
"""Who makes a record that absorbs an edit: nobody knows, and a person is most likely; or the agent, by the record of
its client.
"""


class Document(NamedTuple):
    """One document: its schema, its journal, and its files.

    author    who edited the file since the newest record, `BY_FILE` where nobody knows
    """

    family: Family
    store: Store
    stream: str
    place: Place
    author: Callable[[], str] = lambda: BY_FILE

    @property
    def name(self) -> str:
        """Its name for people."""
        return self.stream.rpartition("/")[2]


class Look(NamedTuple):
    """What a document is now.

    recorded  by its journal alone
    state     with what was saved into its file and no write has absorbed yet
    file      what the file is
    content   of the file; unread: why it cannot be read
    warnings  what is to be said of this reading
    """

    recorded: State
    state: State
    file: Judged
    content: bytes
    unread: str
    warnings: tuple[str, ...]


def read(document: Document, work: Callable[[Look], T], *, fresh: bool = False) -> T:
    """What `work` says of a document. Takes no lock and records nothing. DamagedJournal.

    fresh  whether to fold the whole journal: the index may be what is wrong
    """
    with using(None if fresh else document.place.index) as index:
        return look(document, index, work)


def look(document: Document, index: Index | None, work: Callable[[Look], T]) -> T:
    """As `read`, with an index that is open. DamagedJournal."""
    state = caught_up(document.family, document.store, document.stream, index)
    content, unread = _content(document.place)
    found = judge(document.place, state, document.store, document.stream, content)
    shown = state
    if found.status == EDITED and found.body:
        shown = state.with_record(Record(state.revision, now(), found.body, document.author(), render=state.render))
    left = f"{document.place.file}: {unread}: the journal is read" if unread else found.what
    warnings = (*warnings_of(document, state), *filter(None, [left]))
    result = work(Look(state, shown, found, content, unread, warnings))
    state.keep(document.stream, index)
    return result


def write(
    document: Document,
    work: Callable[[State], Body | None],
    *,
    id: str = "",  # noqa: A002
    by: str = "",
    accept: bool = False,
    result: Callable[[State, Sequence[str]], T],
) -> T:
    """Absorb what was saved into the file, append the record that `work` makes of the state, and put the file anew.

    work    the body of the record, None for none
    id      what was recorded under it already is not recorded again; "": made
    by      who makes the record
    accept  whether a file of which nobody knows whose it is is absorbed, too: the user has looked at it
    result  what to return of the state after the write and the warnings: what failed once the record was durable

    Durable when this returns. Busy, OSError, DamagedJournal, and what `work` raises: then nothing was recorded, but
    perhaps an edit.
    """
    name = id or f"write-{os.urandom(6).hex()}"
    with writing(document, accept=accept) as writer:
        writer.absorb()
        if not writer.state.has(name) and (body := work(writer.state)) is not None:
            writer.append(body, name, by)
        writer.put()
        return result(writer.state, (*warnings_of(document, writer.state), *writer.warnings))


@contextmanager
def writing(document: Document, *, accept: bool = False) -> Iterator[Writer]:
    """A writer for a block of several steps, which holds the document's lock. Busy, OSError, DamagedJournal.

    accept  as for `write`
    """
    with locks.locked(document.place.lock, document.name), using(document.place.index) as index:
        writer = Writer(document, index, accept=accept)
        try:
            yield writer
        finally:
            writer.keep()


def warnings_of(document: Document, state: State) -> list[str]:
    """What is to be said of a document's records."""
    name, told = document.name, []
    if state.later:
        what = f"{state.later:,} changes were written by a later version of ralf: kept, and passed over here"
        told.append(f"{name}: {what}")
    return told


def _mark_of(document: Document, first: Record) -> str:
    """The mark of a document whose first record this is: the same of the same record, so that the same input makes the
    same file, and unknown to whoever does not know that record.
    """
    return digest_of(document.family.encoded(first))[:8]


def _content(place: Place) -> tuple[bytes, str]:
    """The file, and why it cannot be read."""
    try:
        return places.content(place.file, place.most), ""
    except OSError as error:
        return b"", str(error.strerror)


class Writer:
    """One write to a document whose lock is held: `absorb`, any number of `append`, `put`, `keep`.

    file      what the file is, once it was looked at; content: its bytes, digest: their sha256, unread: why they cannot
              be read
    absorbed  the bodies of the records that absorbed edits, and whether an earlier save of the same version was
    warnings  what failed once a record was durable, and what is to be said of the file
    is_left   whether the file is to stay as it is
    """

    def __init__(self, document: Document, index: Index | None, *, accept: bool = False) -> None:
        self._document = document
        self._accept = accept
        self.warnings: list[str] = []
        self.state, self._index = self._caught_up(index), index
        self._displaced = self.state.displaced
        self.file = Judged(OURS)
        self.content, self.unread = b"", ""
        self._digest = ""  # of the content, once it is asked for
        self.absorbed: list[tuple[Body, bool]] = []
        self.is_left = False
        self._has_secrets = False  # whether what was absorbed has

    def _caught_up(self, index: Index | None) -> State:
        """The state by the journal, of which damaged lines are set aside. DamagedJournal where its file is damaged."""
        document = self._document
        try:
            return caught_up(document.family, document.store, document.stream, index)
        except DamagedJournal:
            from ralf.storage import check  # of few journals a line is damaged

            files = document.store.files
            kept = check.set_aside(files, document.stream) if files is not None else None
            if kept is None:
                raise
            what = "has the damaged lines of the journal, which goes on without them"
            self.warnings.append(f"{kept}: {what}; `ralf doctor` says what is missing")
            return caught_up(document.family, document.store, document.stream, None)

    def absorb(self) -> None:
        """Record what somebody saved into the file, or into one that a write displaced."""
        for path, content in places.displaced(self._document.place):
            if digest_of(content) != self._displaced:
                self._absorb(content, path)
        self._look()

    def append(self, body: Body, name: str, by: str = "", *, save: Save | None = None, is_shown: bool = True) -> bool:
        """Append a record; it is durable when this returns. False where another one has its id: nothing is changed.

        is_shown  whether a file is to show this revision
        """
        document, state = self._document, self.state
        if state.has(name):
            return False
        made = Record(state.revision + 1, now(), body, by, save=save)
        if not state.mark:
            made = made._replace(mark=_mark_of(document, made))
        then = state.with_record(made, name, is_shown=is_shown)
        line = document.family.encoded(made._replace(render=then.render))
        token = document.store.append(document.stream, line, id=name, after=state.token, is_new=True)
        state.become(then, token)
        return True

    def put(self) -> None:
        """Make the file show the state, whatever is saved into it meanwhile."""
        for _ in range(_MOST_TRIES):
            if self.is_left or self._put():
                return
            self._look()
        self._leave(f"{self._document.place.file}: changes faster than it can be written; {_LATER}")

    def keep(self) -> None:
        """Leave in the index what changed."""
        self.state.keep(self._document.stream, self._index)

    @property
    def digest(self) -> str:
        """See above."""
        if not self._digest:
            self._digest = digest_of(self.content)
        return self._digest

    def accept(self) -> None:
        """Know the file as one whose content the journal has: the user has looked at it."""
        self.is_left = False
        self.warnings = [one for one in self.warnings if one != self.file.what]
        self.file = Judged(OURS)

    def _leave(self, what: str) -> None:
        self.is_left = True
        self.warnings.append(what)

    def _look(self) -> None:
        """Absorb what lies in the file's place."""
        place = self._document.place
        self.content, self.unread = _content(place)
        self._digest = ""
        if self.unread:
            self._leave(f"{place.file}: {self.unread}: left as it is; {_KEPT}")
            return
        self.file = self._absorb(self.content)
        if not self.is_left and (left := place.left()):
            self._leave(left)

    def _absorb(self, content: bytes, displaced: Path | None = None) -> Judged:
        """Record what somebody changed in a file. What was displaced, and cannot be absorbed, is kept beside it."""
        document = self._document
        accept = self._accept and displaced is None
        if (self.digest if displaced is None else digest_of(content)) == self.state.render:
            return Judged(OURS)
        found = judge(
            document.place, self.state, document.store, document.stream, content, accept=accept, displaced=displaced
        )
        is_new = content and found.status in (OURS, EDITED)
        text = document.family.redacted(content.decode("utf-8", "replace")) if is_new else ""
        if found.status == EDITED and found.body:
            digest = document.store.put_blob([text.encode()])
            save, is_again = Save(digest, found.stamp), bool(self.state.save_of(found.stamp))
            if self.append(found.body, f"edit-{self.state.revision}-{digest}", document.author(), save=save):
                self.absorbed.append((found.body, is_again))
        elif found.status in (NEW, DAMAGED) and displaced is not None:
            kept = document.place.file.with_suffix(f".displaced-{digest_of(content)[:8]}")
            displaced.rename(kept)
            self.warnings.append(f"{kept}: was saved while the file was written: {found.what}")
        elif found.status in (NEW, DAMAGED, HALF):
            self._leave(found.what)
        self._has_secrets |= bool(is_new and text.encode() != content)
        return found

    def _put(self) -> bool:
        """Put the file; False where somebody has saved another one meanwhile, which lies at `prev` now."""
        place, shown, known, before = self._document.place, self.state.shown(), self.content, self.digest
        if shown == known:
            return True
        try:
            places.put(place, shown)
            found = places.content(place.prev, place.most)
        except OSError as error:  # unwritable, full: the record is durable
            self._leave(f"{place.file}: {error.strerror}; {_LATER}")
            return True
        self.content, self._digest = shown, ""
        judged = self._absorb(found, place.prev) if found and found != known else Judged(OURS)
        digest = before if found == known else digest_of(found)
        self.state.has_displaced(digest if found and judged.status != HALF else "")
        if self._has_secrets:
            durable.removed(places.all_displaced(place))
        return self.state.shown() == shown
