"""Streams of entries: JSON values that a framework stores and gets back equal, whatever they hold.

A stream is a document that has no file: a journal, and rows of the index, which hold ids and places alone. Entries are
opaque: they are neither redacted nor indexed, and no other command prints them. A record holds the entries of one call
and the fields that its door adds; entries of more than `INLINE` bytes go into a blob that the record names.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar, cast

from ralf.document.family import Family
from ralf.document.index import NAME, Index, Unusable, using
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.document.state import State, caught_up
from ralf.errors import (
    MEND_JOURNAL,
    BlobNotFound,
    Busy,
    Conflict,
    Damaged,
    DamagedBlob,
    DamagedJournal,
    NotFound,
    UnknownToken,
    UsageError,
)
from ralf.project import Project
from ralf.storage.journal import MALFORMED, Entry, Token
from ralf.text import cleaning

T = TypeVar("T")

Body = Mapping[str, Any]
"""What a record says: the fields that its door has added, `place` (its own in the stream), and its entries."""

Made = tuple[Mapping[str, Any], Sequence[Any]]
"""The fields and the entries of a record that is to be appended."""

INLINE = 64 << 10
"""Bytes of entries that a record holds itself."""

_VERSION = 1
_KEPT = 40  # characters of a name that stay readable
_MOST_TRIES = 1_000  # each means that another writer has appended
_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_COMING = 60  # seconds after a blob was put in which its record may still be appended
_GONE = b'{"kind":"gone"}'  # stands in the place of a record that was removed
_WRITTEN = ("v", "place", "entries", "blob", "size")  # in a body, and not of its door


@lru_cache(maxsize=1_000)
def name_of(text: str) -> str:
    """A part of a stream's name for any text: readable, and different for different texts, whatever their case."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    kept = re.sub(r"[^a-z0-9]+", "-", text.lower())[-_KEPT:].strip("-")  # the end of a path tells more
    made = f"{kept}-{digest}"
    return made if kept and cleaning.is_valid(made) else f"s-{digest}"


def encoded(value: Any) -> bytes:
    """A JSON value as one line of UTF-8. TypeError and ValueError for what JSON cannot hold."""
    # Half of a surrogate pair, for which UTF-8 has nothing, becomes its escape in JSON.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def packed(data: bytes) -> dict[str, Any]:
    """Bytes as a JSON value: as text, in which a forget finds words, unless that takes more than twice the room."""
    text = data.decode("utf-8", "surrogateescape")
    if len(text.encode("utf-8", "backslashreplace")) <= 2 * len(data):
        return {"text": text, "size": len(data)}
    return {"base64": base64.b64encode(data).decode(), "size": len(data)}


def unpacked(value: Mapping[str, Any]) -> bytes:
    """The bytes of such a value."""
    if "text" in value:
        return str(value["text"]).encode("utf-8", "surrogateescape")
    return base64.b64decode(value["base64"])


def stamp(before: Mapping[str, Any] | None = None) -> str:
    """The time for a record's field `at`: now, but after that of the record before. ISO 8601 with milliseconds."""
    at = datetime.now(UTC)
    if before is not None:
        at = max(at, datetime.fromisoformat(before["at"]) + _MILLISECOND)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(at: str) -> int:
    """The milliseconds since 1970 of a record's field `at`."""
    return (datetime.fromisoformat(at) - _EPOCH) // _MILLISECOND


def fields_of(body: Body) -> dict[str, Any]:
    """The fields that a door has added to a record."""
    return {name: value for name, value in body.items() if name not in _WRITTEN}


class EntryStream:
    """One stream of entries of a project; a family of documents whose rows are those of `fold`.

    Errors of all methods: Busy (other writers are faster), DamagedJournal, DamagedBlob, UsageError (records that came
    with a repository or from another user; no folder for this user's keys), OSError. They name the stream, never what
    an entry says.
    """

    layout = 0  # it has no file

    def __init__(self, project: Project, name: str) -> None:
        self.name = name
        self._project = project
        self._store = project.store

    # ---- reading ----

    def read(self, work: Callable[[State], T]) -> T:
        """What `work` says of the state of the stream; asked again where the stream is rewritten meanwhile."""
        for _ in range(_MOST_TRIES):
            with suppress(UnknownToken), using(self._project.room_for(NAME)) as index:
                state = self._state(index)
                found = work(state)
                state.keep(self.name, index)
                return found
        raise Busy(self.name, "is rewritten again and again", "try again")

    def records(self) -> Iterator[Body]:
        """All records, oldest first."""
        self._check()
        return (self.body(entry) for entry in self._store.read(self.name))

    def record(self, place: Token) -> Body:
        """The record at a place. UnknownToken where it is gone."""
        return self.body(self._store.entry(self.name, place))

    def newest(self) -> Body | None:
        """The newest record, None for an empty stream. Its cost does not grow."""
        entry = self._store.newest(self.name)
        if entry is None:
            self._check()
        return self.body(entry) if entry is not None else None

    def entries(self, body: Body) -> list[Any]:
        """The entries of a record, wherever they lie."""
        digest = body.get("blob")
        if digest is None:
            return list(body.get("entries", ()))
        try:
            with self._store.open_blob(str(digest)) as file:
                lines = file.read().split(b"\n")[1:-1]
        except BlobNotFound as error:
            raise DamagedBlob(self.name, f"the entries of a record are gone: {error.what}", MEND_JOURNAL) from error
        return [json.loads(line) for line in lines]

    def body(self, entry: Entry) -> Body:
        """What the record in an entry says."""
        try:
            tree = dict(json.loads(entry.record))
            version = int(tree.get("v", _VERSION))
        except MALFORMED as error:
            what = f"a record does not hold entries: {type(error).__name__}"
            raise DamagedJournal(self.name, what, MEND_JOURNAL) from None
        if version > _VERSION:
            raise UsageError(self.name, "holds entries of a later version of ralf", "update ralf")
        return tree | {"place": entry.token}

    def decoded(self, _: str, entry: Entry) -> Record:
        """See `Family.decoded`."""
        body = self.body(entry)
        return Record(0, str(body.get("at", "")), body)

    def fold(self, rows: Rows, record: Record) -> None:
        """See `Family.fold`. Rows hold ids and places, and none of the entries."""

    def _state(self, index: Index | None) -> State:
        state = caught_up(cast("Family", self), self._store, self.name, index)
        if state.token is None:
            self._check()
        return state

    def _check(self) -> None:
        """UsageError where the records are not this user's: a store reads such a stream as empty."""
        if self._store.is_foreign(self.name):
            raise UsageError(self.name, "your ralf did not write its records: they are not read", "ralf trust")

    # ---- writing ----

    def append(self, make: Callable[[State], Made | None]) -> None:
        """Append the record that `make` makes of the state, None for none; durable when this returns. Made anew where
        another writer appends first: reading, deriving and writing are one step.
        """
        self._project.once(Project.prepare)
        id_ = f"entries-{os.urandom(16).hex()}"
        with using(self._project.room_for(NAME)) as index:
            for _ in range(_MOST_TRIES):
                state = self._state(index)
                made = make(state)
                if made is None:
                    return
                line = self._line(id_, *made)
                try:
                    token = self._store.append(self.name, line, id=id_, after=state.token, is_new=True)
                except Conflict:
                    continue
                state.take(self.name, Entry(token, "", encoded(made[0])))  # the rows have none of the entries
                state.keep(self.name, index)
                return
        raise Busy(self.name, "other writers append faster", "try again")

    def _line(self, id_: str, fields: Mapping[str, Any], entries: Sequence[Any]) -> bytes:
        begin, body = encoded({"v": _VERSION, **fields})[:-1], encoded(entries)
        if len(body) <= INLINE:
            return b'%s,"entries":%s}' % (begin, body)
        # The first line makes the blob this record's own: no other record names it, so it can go with the record.
        own = {"stream": self.name, "id": id_}
        digest = self._store.put_blob(encoded(value) + b"\n" for value in (own, *entries))
        return b'%s,"blob":"%s","size":%d}' % (begin, digest.encode(), len(body))

    def remove(self, is_meant: Callable[[Body], bool]) -> None:
        """Remove records; nothing of them is left on the disk."""
        removed = []

        def changed(entry: Entry) -> bytes:
            body = self.body(entry)
            if not is_meant(body):
                return entry.record
            removed.append(body)
            return _GONE

        self._store.replace(self.name, changed)
        self._drop_blobs(removed)

    def drop(self) -> None:
        """Delete the stream and the blobs that it names: see `delete`."""
        self._drop_blobs(self.records())  # first: a deletion that breaks off finds them by their records
        self._store.drop(self.name)
        with suppress(Unusable), using(self._project.room_for(NAME)) as index:
            if index is not None:
                index.ask("delete from row where name = ?", self.name)

    def _drop_blobs(self, bodies: Iterable[Body]) -> None:
        for body in bodies:
            if "blob" in body:
                self._store.drop_blob(str(body["blob"]))


class Worker:
    """One thread, in which work is done in the order in which it comes. A forked process has one of its own: the thread
    of the process before is not there.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._threads: dict[int, ThreadPoolExecutor] = {}

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have some work done; what it returns."""
        idle = ThreadPoolExecutor(1, thread_name_prefix=self._name)  # begins its thread with its first work
        return self._threads.setdefault(os.getpid(), idle).submit(work)


def delete(project: Project, streams: Sequence[EntryStream]) -> None:
    """Delete streams, the last one last; nothing of them is left on the disk. Completes a deletion that broke off.

    DamagedJournal, Busy, OSError.
    """
    for stream in streams:
        stream.drop()
    begins = tuple(encoded({"stream": stream.name})[:-1] for stream in streams)
    for blob in list(project.store.blobs()):  # those of writers that died before their record was appended
        if time.time() - blob.put > _COMING:
            with suppress(Damaged, NotFound), project.store.open_blob(blob.digest) as file:
                if file.read(max(map(len, begins))).startswith(begins):
                    project.store.drop_blob(blob.digest)
