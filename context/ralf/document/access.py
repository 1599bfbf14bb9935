"""Reads and writes a document: what somebody saved into its file is absorbed, a record appended, the file put anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ralf.document import place as places
from ralf.document.family import Family
from ralf.document.index import Index, with_index
from ralf.document.judging import DAMAGED, EDITED, HALF, NEW, Judged, judge
from ralf.document.place import Place
from ralf.document.record import Record, Save, encoded, new_mark, now
from ralf.document.state import State, caught_up, digest_of
from ralf.errors import Conflict
from ralf.storage import durable, files
from ralf.storage.journal import Store

_MOST_TRIES = 8  # at a stream that somebody else rewrites, and at a file that is saved again and again

_KEPT = "the journal has what is recorded"

_LATER = "the next write shows what this one wrote"

Body = Mapping[str, Any]

T = TypeVar("T")

BY_FILE = "file"
"""Who makes a record that absorbs an edit, as far as anybody knows."""


class Document(NamedTuple):
    """One document: its schema, its journal, and its files."""

    family: Family
    store: Store
    stream: str
    place: Place


class Look(NamedTuple):
    """What a document is now.

    state     with what was saved into its file and no write has absorbed yet
    file      what the file is
    content   of the file; unread: why it cannot be read
    warnings  what is to be said of this reading
    """

    state: State
    file: Judged
    content: bytes
    unread: str
    warnings: tuple[str, ...]


def read(document: Document, work: Callable[[Look], T], *, fresh: bool = False) -> T:
    """What `work` says of a document. Takes no lock and records nothing. DamagedJournal.

    fresh  whether to fold the whole journal: the index may be what is wrong
    """

    def looked(index: Index | None) -> T:
        state = caught_up(document.family, document.store, document.stream, index)
        content, unread = _content(document.place)
        found = judge(document.place, state, document.store, document.stream, content)
        shown = state
        if found.status == EDITED and found.body:
            shown = state.above()
            shown.add(Record(state.revision, now(), found.body, BY_FILE, render=state.render))
        left = f"{document.place.file}: {unread}: the journal is read" if unread else found.what
        result = work(Look(shown, found, content, unread, (*warnings_of(document, state), *filter(None, [left]))))
        state.keep(document.stream, index)
        return result

    return with_index(None if fresh else document.place.index, looked)


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

    work    the body of the record, None for none; it may be asked more than once
    id      what was recorded under it already is not recorded again; "": made
    by      who makes the record
    accept  whether a file of which nobody knows whose it is is absorbed, too: the user has looked at it
    result  what to return of the state after the write and the warnings: what failed once the record was durable

    Durable when this returns. Busy, OSError, DamagedJournal, and what `work` raises: then nothing was recorded, but
    perhaps an edit.
    """
    name = id or f"write-{os.urandom(6).hex()}"
    with files.locked(document.place.lock, document.stream.rpartition("/")[2]):

        def written(index: Index | None) -> T:
            writer = _Writer(document, index, accept=accept)
            writer.write(work, name, by)
            found = result(writer.state, (*warnings_of(document, writer.state), *writer.warnings))
            writer.state.keep(document.stream, index)
            return found

        for attempt in range(_MOST_TRIES):
            try:
                return with_index(document.place.index, written)
            except Conflict:  # whoever rewrites the stream (forget) does not hold our lock
                if attempt == _MOST_TRIES - 1:
                    raise
        raise AssertionError("unreachable")


def warnings_of(document: Document, state: State) -> list[str]:
    """What is to be said of a document's records."""
    name, told = document.stream.rpartition("/")[2], []
    if state.foreign:
        told.append(f"{name}: {state.foreign:,} records were not written by your ralf: passed over")
    if state.later:
        what = f"{state.later:,} changes were written by a later version of ralf: kept, and passed over here"
        told.append(f"{name}: {what}")
    return told


def _content(place: Place) -> tuple[bytes, str]:
    """The file, and why it cannot be read."""
    try:
        return places.content(place.file, place.most), ""
    except OSError as error:
        return b"", str(error.strerror)


class _Writer:
    """One write to a document whose lock is held."""

    def __init__(self, document: Document, index: Index | None, *, accept: bool) -> None:
        self._document = document
        self._accept = accept
        self.state = caught_up(document.family, document.store, document.stream, index)
        self.warnings: list[str] = []
        self._is_left = False  # whether the file is to stay as it is
        self._has_secrets = False  # whether what was absorbed has

    def write(self, work: Callable[[State], Body | None], name: str, by: str) -> None:
        for content in places.displaced(self._document.place):
            if digest_of(content) != self.state.displaced:
                self._absorb(content, is_displaced=True)
        content = self._looked_at()
        if not self.state.has(name):
            body = work(self.state)
            if body is not None:
                self._append(body, name, by)
        for _ in range(_MOST_TRIES):
            if self._is_left or self._put(content):
                return
            content = self._looked_at()
        self._leave(f"{self._document.place.file}: changes faster than it can be written; {_LATER}")

    def _leave(self, what: str) -> None:
        self._is_left = True
        self.warnings.append(what)

    def _looked_at(self) -> bytes:
        """What lies in the file's place, absorbed."""
        place = self._document.place
        content, unread = _content(place)
        if left := f"{place.file}: {unread}: left as it is; {_KEPT}" if unread else place.left():
            self._leave(left)
            return b""
        self._absorb(content)
        return content

    def _absorb(self, content: bytes, *, is_displaced: bool = False) -> None:
        """Record what somebody changed in a file. What was displaced and is no edit of ours was ours, or is kept."""
        document = self._document
        accept = self._accept and not is_displaced
        found = judge(document.place, self.state, document.store, document.stream, content, accept=accept)
        if found.status == EDITED and found.body:
            text = document.family.redacted(content.decode("utf-8", "replace"))
            digest = document.store.put_blob([text.encode()])
            self._append(found.body, f"edit-{self.state.revision}-{digest}", BY_FILE, Save(digest, found.stamp))
            self._has_secrets = self._has_secrets or text.encode() != content
        elif found.status in (NEW, DAMAGED, HALF) and not is_displaced:
            self._leave(found.what)

    def _append(self, body: Body, name: str, by: str, save: Save | None = None) -> None:
        """Append a record; it is durable when this returns."""
        document, state = self._document, self.state
        made = Record(state.revision + 1, now(), body, by, "" if state.revision else new_mark(), save=save)
        then = state.above_with(made, name)
        line = encoded(made._replace(render=then.render))
        state.become(then, document.store.append(document.stream, line, id=name, after=state.token))

    def _put(self, known: bytes) -> bool:
        """Put the file; False where somebody has saved another one meanwhile, which lies at `prev` now."""
        place, shown = self._document.place, self.state.shown()
        if shown == known:
            return True
        try:
            places.put(place, shown)
            found = places.content(place.prev, place.most)
        except OSError as error:  # unwritable, full: the record is durable
            self._leave(f"{place.file}: {error.strerror}; {_LATER}")
            return True
        if found and found != known:
            self._absorb(found, is_displaced=True)
        self.state.has_displaced(digest_of(found))
        if self._has_secrets:
            durable.removed(places.all_displaced(place))
        return self.state.shown() == shown
