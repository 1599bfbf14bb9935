"""Streams of entries: JSON values that a framework stores and gets back equal, whatever they hold.

Entries are opaque: they are neither redacted nor indexed, and no other command prints them. A record holds the entries
of one call and the fields that its door adds; entries of more than `INLINE` bytes go into a blob that the record names.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

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

INLINE = 256 << 10
"""Bytes of entries that a record holds itself."""

_VERSION = 1
_KEPT = 40  # characters of a name that stay readable
_MOST_TRIES = 1_000  # each means that another writer has appended
_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_COMING = 60  # seconds after a blob was put in which its record may still be appended


class Record(NamedTuple):
    """A record of a stream: its place, what its door says of it, and its entries."""

    token: Token
    fields: Mapping[str, Any]
    entries: list[Any]


def name_of(text: str) -> str:
    """A part of a stream's name for any text: readable, and different for different texts, whatever their case."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    kept = re.sub(r"[^a-z0-9]+", "-", text.lower())[-_KEPT:].strip("-")  # the end of a path tells more
    made = f"{kept}-{digest}"
    return made if kept and cleaning.is_valid(made) else f"s-{digest}"


def encoded(value: Any) -> bytes:
    """A JSON value as one line of UTF-8. TypeError and ValueError for what JSON cannot hold."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a surrogate pair: JSON has an escape for it, UTF-8 nothing
        return json.dumps(value, separators=(",", ":")).encode()


def stamp(before: Mapping[str, Any] | None = None) -> str:
    """The time for a record's field `at`: now, but after that of the record before. ISO 8601 with milliseconds."""
    at = datetime.now(UTC)
    if before is not None:
        at = max(at, datetime.fromisoformat(before["at"]) + _MILLISECOND)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(at: str) -> int:
    """The milliseconds since 1970 of a record's field `at`."""
    return (datetime.fromisoformat(at) - _EPOCH) // _MILLISECOND


class EntryStream:
    """One stream of entries of a project.

    Errors of all methods: Busy (other writers are faster), DamagedJournal, DamagedBlob, UsageError (records that came
    with a repository or from another user; no folder for this user's keys), OSError. They name the stream, never what
    an entry says.
    """

    def __init__(self, project: Project, name: str) -> None:
        self.name = name
        self._project = project
        self._store = project.store
        self._newest: tuple[Token, Mapping[str, Any]] | None = None

    # ---- writing ----

    def append(
        self,
        entries: Sequence[Any],
        fields: Callable[[Mapping[str, Any] | None], Mapping[str, Any]],
        *,
        id: str = "",  # noqa: A002
    ) -> bool:
        """Append one record, durable when this returns; False if a record of this id was there before.

        fields  told the fields of the newest record, None for an empty stream; returns those of this one. Called again
                if another writer appends first, so reading, deriving and writing are one step
        id      a record lands once per id, across processes; "": a new one
        """
        for _ in range(_MOST_TRIES):
            head, before = self.newest()
            try:
                return self.append_after(head, entries, fields(before), id=id)
            except Conflict:
                continue
        raise Busy(self.name, "other writers append faster", "try again")

    def append_after(
        self,
        head: Token | None,
        entries: Sequence[Any],
        fields: Mapping[str, Any],
        *,
        id: str = "",  # noqa: A002
    ) -> bool:
        """Append one record after the head that the caller saw; Conflict if another writer was first. See `append`."""
        prepare(self._project)
        is_new, id = not id, id or f"entries-{uuid.uuid4().hex}"  # noqa: A001
        record, body = {"v": _VERSION, **fields}, encoded(entries)
        if len(body) > INLINE:
            # The first line makes the blob this record's own: no other record names it, so it can go with the record.
            own = {"stream": self.name, "id": id}
            digest = self._store.put_blob(encoded(value) + b"\n" for value in (own, *entries))
            line = encoded({**record, "blob": digest, "size": len(body)})
        else:
            line = b'%s,"entries":%s}' % (encoded(record)[:-1], body)
        token = self._store.append(self.name, line, id=id, after=head, is_new=is_new)
        if token == head or not self._is_ours(token, line):
            return False
        self._newest = token, record
        return True

    def _is_ours(self, token: Token, line: bytes) -> bool:
        """Whether the record at a place, which is not the head that was seen, is the one that was just appended."""
        if self._store.head(self.name) == token:  # an older record is not the newest
            return True
        try:
            return self._store.entry(self.name, token).record == line
        except UnknownToken:  # rewritten or dropped since
            return True

    def drop(self) -> None:
        """Delete the stream and the blobs that it names: see `delete`."""
        token: Token | None = None
        while (head := self._store.head(self.name)) not in (None, token):  # entries may arrive meanwhile
            for entry in self._store.read(self.name):
                token = entry.token
                if (digest := _tree(self.name, entry).get("blob")) is not None:
                    self._store.drop_blob(str(digest))  # first: a deletion that breaks off finds it by the record
        if head is not None:
            self._store.drop(self.name)
        self._newest = None

    # ---- reading ----

    def newest(self) -> tuple[Token | None, Mapping[str, Any] | None]:
        """The place of the newest record and its fields; None for an empty stream. Its cost does not grow."""
        for _ in range(_MOST_TRIES):
            head = self._store.head(self.name)
            if head is None:
                return None, None
            known = self._newest  # another thread may change it
            if known is None or known[0] != head:
                try:
                    known = head, self._parsed(self._store.entry(self.name, head))
                except UnknownToken:  # rewritten or dropped since
                    continue
                self._newest = known
            return known
        raise Busy(self.name, "is rewritten again and again", "try again")

    def read(self, *, after: Token | None = None) -> Iterator[Record]:
        """The records after a place, or all, oldest first. UnknownToken if the place is gone."""
        for entry in self._store.read(self.name, after=after):
            fields = self._parsed(entry)
            yield Record(entry.token, fields, self._entries(fields))

    def _entries(self, fields: Mapping[str, Any]) -> list[Any]:
        digest = fields.get("blob")
        if digest is None:
            return list(fields.get("entries", ()))
        try:
            with self._store.open_blob(str(digest)) as file:
                lines = file.read().split(b"\n")[1:-1]
        except BlobNotFound as error:
            raise DamagedBlob(self.name, f"the entries of a record are gone: {error.what}", MEND_JOURNAL) from error
        return [json.loads(line) for line in lines]

    def _parsed(self, entry: Entry) -> Mapping[str, Any]:
        tree = _tree(self.name, entry)
        if tree["v"] > _VERSION:
            raise UsageError(self.name, "holds entries of a later version of ralf", "update ralf")
        return tree


class Worker:
    """One thread, in which work is done in the order in which it comes. A forked process has one of its own: the thread
    of the process before is not there.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._threads = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._process = os.getpid()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have some work done; what it returns."""
        if self._process != os.getpid():
            self._threads, self._process = ThreadPoolExecutor(1, thread_name_prefix=self._name), os.getpid()
        return self._threads.submit(work)


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


def prepare(project: Project) -> None:
    """Prepare the project's store for writing, once for this object. UsageError, OSError."""
    project.once(_prepared)


def _prepared(project: Project) -> bool:
    project.prepare()
    return True


def _tree(stream: str, entry: Entry) -> dict[str, Any]:
    try:
        tree = dict(json.loads(entry.record))
        tree["v"] = int(tree["v"])
    except MALFORMED as error:
        what = f"a record does not hold entries: {type(error).__name__}"
        raise DamagedJournal(stream, what, MEND_JOURNAL) from None
    return tree
