"""The store on NATS JetStream: journals and blobs of a project on one server, or on three that replace each other.

The contract is that of `ralf.storage.journal`. One stream of the server holds all of a project: `RALF-NAME`, with the
subjects

    ralf.NAME.s.STREAM   the records of a stream
    ralf.NAME.b.…        a blob: the newest message names its chunks
    ralf.NAME.c.…        chunks (`nats_log`)

Another one, `RALF_LEASES-NAME`, holds its leases (`nats_leases`).

Records, their ids, blobs and the digests of blobs are encrypted (`encryption`): the servers know the names of streams,
sizes and times. Nobody who knows a content can find out whether it is kept.

A message's bytes are its records with their ids, encrypted for the stream and the headers that say what they are, so
that none can stand in the place of another. The header with the id has what stands for it. Each message has its number,
which grows by one: a reader notices one that is missing.

A message that *restarts* a stream stands for all records before it: it has those of a replacement, or none after a
drop, and is appended by compare-and-swap like any other. So nobody appends between the records that were read and the
ones that replace them, and readers see either. Each later message names it. What came before it is erased afterwards;
until then nobody looks at it.
"""

# ruff: noqa: D102  # what a method does stands in the port

from __future__ import annotations

import hashlib
import io
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, NamedTuple
from urllib.parse import quote, unquote
from uuid import uuid4

from ralf.errors import BlobNotFound, Conflict, Damaged, DamagedBlob, DamagedJournal, UnknownToken, UsageError
from ralf.storage.journal import (
    Blob,
    Digest,
    Entry,
    Token,
    Written,
    check_digest,
    check_record,
    check_stream,
    is_stream,
)
from ralf_integrations.stores.encryption import Cipher
from ralf_integrations.stores.nats_leases import SECONDS, NatsLeases
from ralf_integrations.stores.nats_link import Address, Link, call, link_to
from ralf_integrations.stores.nats_log import CHUNKS, ID, Gone, Log, Message, Moved

TIMEOUT = 16.0
"""Seconds that a call may take: a cluster whose leader has died needs up to ten to elect another one."""

_NUMBER, _BASE, _RESTART = "Ralf-Number", "Ralf-Base", "Ralf-Restart"

_SIZE = "Ralf-Size"  # of a blob

_PROJECT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?", re.ASCII)

_TOKEN = re.compile(r"([1-9][0-9]{0,18})\.([1-9][0-9]{0,18})", re.ASCII)

_NAME = 32  # hexadecimal digits of what stands for an id on the server

_PAUSE = 0.01  # seconds until an append is tried again that another one was in the way of

_NO_PLACE = "no such place in this stream"

_RESTORE = "restore the stream from a backup: docs/team.md#agents-on-several-machines"


class _Head(NamedTuple):
    """The newest message of a stream: its sequence, the number of its last record, the message that restarted it."""

    seq: int = 0
    number: int = 0
    base: int = 0

    @property
    def token(self) -> Token | None:
        return f"{self.seq}.{self.number}" if self.number else None


class NatsStore:
    """Journals and blobs of a project on NATS servers. Nothing is made there before something is written.

    address   the servers
    project   the name under which they know the project
    key       the project's key, with which all that is kept is encrypted
    replicas  how many of them keep each record: 1 or 3 (5)
    timeout   seconds that a call may take, and more while megabytes come and go; then Fenced. An append may have landed
              all the same: repeated with the same id, it returns where
    lease     seconds that a lease lasts without renewal
    link      the connection; None for the one that all stores of this address and process share
    """

    files = None

    def __init__(
        self,
        address: Address,
        project: str,
        *,
        key: bytes,
        replicas: int = 3,
        timeout: float = TIMEOUT,
        lease: int = SECONDS,
        link: Link | None = None,
    ) -> None:
        if not _PROJECT.fullmatch(project):
            what = "refused as the name of a project: letters, digits, '_' and '-' only, at most 64"
            raise UsageError(ascii(project), what, "nats_project: my-project")
        self.address = address
        self.timeout = timeout
        self._project = project
        self._cipher = Cipher(key)
        self._replicas = replicas
        self._own_link = link
        self.leases = NatsLeases(address, project, lease, timeout, self._cipher, self._lease_log)

    @property
    def log(self) -> Log:
        """The stream with records and blobs, for who calls it now."""
        return self._opened(f"RALF-{self._project}", f"ralf.{self._project}")

    def _lease_log(self) -> Log:
        # No project's name has an underscore behind `RALF`, nor a subject a hyphen behind `ralf`.
        return self._opened(f"RALF_LEASES-{self._project}", f"ralf-leases.{self._project}", ends=True)

    def _opened(self, name: str, root: str, *, ends: bool = False) -> Log:
        link, key = self._own_link or link_to(self.address), self._cipher.id
        found: Log = link.kept.setdefault(
            (name, self._replicas, key), Log(link, name, root, self._replicas, key, ends=ends)
        )
        return found

    # ---- streams ----

    @call
    def append(self, stream: str, record: bytes, *, id: str, after: Token | None, is_new: bool = False) -> Token:  # noqa: A002
        log, subject = self.log, self._subject(stream)
        check_record(stream, record, id)
        head: _Head = log.kept.get(subject, _Head())
        while True:
            if head.token != after:
                head = self._head(stream)
            if head.token != after or not is_new:
                landed = self._landed(stream, id, after if is_new else None)
                if landed is not None:
                    return landed
                if head.token != after:
                    raise Conflict(stream, head.token)
            headers = {_NUMBER: str(head.number + 1), **({_BASE: str(head.base)} if head.base else {})}
            try:
                seq = self._put(
                    stream, [(id, record)], headers, name=self._cipher.name(subject, id)[:_NAME], expected=head.seq
                )
            except Moved:  # if the head is the same yet, what was in the way has not landed
                time.sleep(_PAUSE)
                head = self._head(stream)
                continue
            log.kept[subject] = _Head(seq, head.number + 1, head.base)
            return f"{seq}.{head.number + 1}"

    def _landed(self, stream: str, id: str, after: Token | None) -> Token | None:  # noqa: A002
        """Where a record has landed after a place, if the stream has that; None for nowhere. What a search from the
        beginning has seen is known to the next one.
        """
        key = f"ids {self._subject(stream)}"
        ids: dict[str, Token]
        until, ids = (after, {}) if after is not None else self.log.kept.get(key, (None, {}))
        try:
            _, entries, damage = self._view(stream, until)
        except UnknownToken:
            ids = {}
            _, entries, damage = self._view(stream)
        if damage is not None:
            raise damage
        ids |= {entry.id: entry.token for entry in entries}
        if after is None and entries:
            self.log.kept[key] = entries[-1].token, ids
        return ids.get(id)

    def _put(
        self, stream: str, entries: Sequence[tuple[str, bytes]], headers: Mapping[str, str], *, name: str, expected: int
    ) -> int:
        """Append a message with records; return its sequence. Moved."""
        lines = b"".join(b"%s %s\n" % (quote(id_, safe="").encode(), record) for id_, record in entries)
        subject = self._subject(stream)
        content = self._cipher.encrypt(lines, subject, name, *_meaning(headers))
        return self.log.put(subject, content, headers, id=name, expected=expected)

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        _, entries, damage = self._view(stream, after)
        yield from entries
        if damage is not None:
            raise damage

    @call
    def _view(self, stream: str, after: Token | None = None) -> tuple[int, list[Entry], DamagedJournal | None]:
        """The sequence of the newest message of a stream, 0 for none, the records after a place at that moment, and
        what keeps the ones after them from being read.
        """
        log, subject = self.log, self._subject(stream)
        seq, number = _place(stream, after) if after is not None else (0, 0)
        while True:
            newest, entries, damage = log.last(subject), list[Entry](), None
            base = _base(newest)
            if after is not None and not max(base, 1) <= seq <= newest.seq:
                raise UnknownToken(stream, _NO_PLACE)
            expected = 0 if after is not None else 1
            try:
                for message in log.span(subject, seq or max(base, 1), newest.seq):
                    entries += self._entries(stream, message, base, expected)
                    expected = _number(stream, message) + 1
            except Gone:  # replaced, or dropped, meanwhile
                continue
            except DamagedJournal as error:
                damage = error
                if _base(log.last(subject)) != base:
                    continue
            if after is not None:
                if all(entry.token != after for entry in entries):
                    raise UnknownToken(stream, _NO_PLACE)
                entries = [entry for entry in entries if _place(stream, entry.token) > (seq, number)]
            return newest.seq, entries, damage

    def _entries(self, stream: str, message: Message, base: int, expected: int = 0) -> list[Entry]:
        """The records of a message. DamagedJournal, Gone.

        base      of the stream: a message with another one was replaced, whoever has put it there again
        expected  the number that it has where it does not begin the stream, 0 for any
        """
        number, id_ = _number(stream, message), message.headers.get(ID, "")
        if _base(message) != base:
            raise DamagedJournal(stream, f"the record {number} belongs to what was replaced", _RESTORE)
        if expected not in (0, number) and message.seq != base:
            raise DamagedJournal(stream, f"the record {expected} is missing", _RESTORE)
        try:
            content = self.log.content(message)
            lines = self._cipher.decrypt(content, self._subject(stream), id_, *_meaning(message.headers)).split(b"\n")
        except Damaged as error:
            raise DamagedJournal(stream, f"the record {number} {error.what}", _RESTORE) from None
        found: list[Entry] = []
        for place, line in enumerate(lines[:-1], start=number + 2 - len(lines)):
            name, _, record = line.partition(b" ")
            found.append(Entry(f"{message.seq}.{place}", unquote(name.decode()), record))
        return found

    def head(self, stream: str) -> Token | None:
        return self._head(stream).token

    @call
    def _head(self, stream: str) -> _Head:
        newest = self.log.last(self._subject(stream))
        return _Head(newest.seq, _number(stream, newest), _base(newest)) if newest.seq else _Head()

    @call
    def streams(self, prefix: str) -> Iterator[str]:
        log, folder = self.log, prefix.rpartition("/")[0]
        if not log.is_there():
            return iter(())
        subjects = log.subjects(f"{log.subject('s', folder)}.>" if folder else f"{log.root}.s.>")
        names = [log.name_of("s", subject) for subject in subjects]
        return iter([name for name in names if name.startswith(prefix) and is_stream(name)])

    @call
    def entry(self, stream: str, token: Token) -> Entry:
        log, subject = self.log, self._subject(stream)
        seq, _ = _place(stream, token)
        base, message = _base(log.last(subject)), log.at(subject, seq)
        if message.seq >= max(base, 1):
            with suppress(Gone):  # replaced in between
                for entry in self._entries(stream, message, base):
                    if entry.token == token:
                        return entry
        raise UnknownToken(stream, _NO_PLACE)

    @call
    def newest(self, stream: str) -> Entry | None:
        while (message := self.log.last(self._subject(stream))).seq:
            with suppress(Gone):  # replaced in between
                return next(reversed(self._entries(stream, message, _base(message))), None)
        return None

    def written(self, folder: str) -> dict[str, Written]:
        names = (stream.removeprefix(f"{folder}/") for stream in self.streams(f"{folder}/"))
        return {name: Written(0, sys.maxsize) for name in names if "/" not in name}  # the server tells no times

    # ---- replacing and dropping ----

    def replace(self, stream: str, change: Callable[[Entry], bytes], *, wipe: bool = True) -> int:
        wanted: list[tuple[str, bytes]] = []
        while True:
            head, entries, damage = self._view(stream)
            if damage is not None:
                raise damage
            found = [(entry.id, entry.record) for entry in entries]
            if not wanted or found[: len(wanted)] != wanted:  # else it was done, and the answer was lost
                wanted = [(entry.id, change(entry)) for entry in entries]
                for _, record in wanted:
                    check_record(stream, record)
                count = sum(new != old for new, old in zip(wanted, found, strict=True))
                if count and not self._restarted(stream, head, wanted):
                    continue
            self._clear(self._subject(stream), wipe=wipe)
            return count

    @call
    def _restarted(self, stream: str, head: int, entries: Sequence[tuple[str, bytes]]) -> bool:
        """Have records stand for all up to the message with the sequence `head`; whether it was the newest one."""
        try:
            headers = {_NUMBER: str(len(entries)), _RESTART: "1"}
            self._put(stream, entries, headers, name=f"restart-{uuid4()}", expected=head)
        except Moved:
            return False
        return True

    def drop(self, stream: str, *, wipe: bool = True) -> None:
        head = self._head(stream)
        while head.number and not self._restarted(stream, head.seq, ()):
            head = self._head(stream)
        self._clear(self._subject(stream), wipe=wipe)

    @call
    def _clear(self, subject: str, *, wipe: bool = True) -> bool:
        """Erase what came before the message that restarted a stream, and that message if it has no record. Whether
        there was anything to erase. `wipe`: see `Log.erase`.
        """
        log = self.log
        base, oldest = _base(log.last(subject)), log.following(subject, 0)
        log.erase(subject, base - 1, wipe=wipe)
        if base and log.at(subject, base).headers.get(_NUMBER) == "0":
            log.delete(base)  # last: it is what keeps the others from counting
            return True
        return 0 < oldest.seq < base

    @call
    def sweep(self) -> int:
        log = self.log
        return sum([self._clear(subject) for subject in log.subjects(f"{log.root}.s.>")]) + log.sweep()

    # ---- blobs ----

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        content = b"".join(chunks)
        digest = hashlib.sha256(content).hexdigest()
        while not self._has_put(digest, content):
            pass
        return digest

    @call
    def _has_put(self, digest: Digest, content: bytes) -> bool:
        """Keep a blob in the place of what is kept of it; False where another one was faster."""
        log, subject = self.log, self._blob_subject(digest)
        newest = log.last(subject)
        named = log.put_chunks(subject, self._cipher.encrypt(content, subject, digest))
        data, headers = self._cipher.encrypt(digest.encode(), subject), {CHUNKS: named, _SIZE: str(len(content))}
        try:
            seq = log.append(subject, data, headers, id=uuid4().hex, expected=newest.seq)
        except Moved:
            log.erase_chunks(named)
            return False
        log.erase(subject, seq - 1)
        return True

    @call
    def open_blob(self, digest: Digest) -> BinaryIO:
        subject = self._blob_subject(digest)
        while (newest := self._blob(digest)) is not None:
            try:
                return io.BytesIO(self._cipher.decrypt(self.log.content(newest), subject, digest))
            except (Gone, Damaged):  # by a drop or a put meanwhile, or for good
                if self._blob(digest) == newest:
                    raise DamagedBlob(digest, "is not what was put", "put it again, or restore it") from None
        raise BlobNotFound(digest, "no such blob")

    @call
    def has_blob(self, digest: Digest) -> bool:
        return self._blob(digest) is not None

    @call
    def blobs(self) -> Iterator[Blob]:
        log, found, blobs = self.log, dict[str, Message](), list[Blob]()
        pattern = f"{log.root}.b.*"
        while last := log.last(pattern).seq:
            with suppress(Gone):
                found = {message.subject: message for message in log.span(pattern, 1, last)}
                break
        for subject, message in found.items():
            with suppress(Damaged):
                digest = self._cipher.decrypt(message.data, subject).decode()
                blobs.append(Blob(digest, int(message.headers[_SIZE]), message.time))
        return iter(blobs)

    @call
    def drop_blob(self, digest: Digest) -> None:
        newest = self._blob(digest)
        if newest is not None:
            self.log.erase(newest.subject, newest.seq)

    def _blob(self, digest: Digest) -> Message | None:
        """The newest message of a blob, None where it is not kept."""
        newest = self.log.last(self._blob_subject(digest))
        return newest if CHUNKS in newest.headers else None

    # ---- subjects ----

    def _blob_subject(self, digest: Digest) -> str:
        check_digest(digest)
        return f"{self.log.root}.b.{self._cipher.name('blob', digest)}"

    def _subject(self, stream: str) -> str:
        check_stream(stream)
        return self.log.subject("s", stream)


def _base(message: Message) -> int:
    """The sequence of the message that restarted the stream last, 0 for none."""
    return message.seq if _RESTART in message.headers else int(message.headers.get(_BASE, 0))


def _number(stream: str, message: Message) -> int:
    """How many records the stream has had with this message."""
    number = message.headers.get(_NUMBER, "")
    if not number.isdecimal() or ID not in message.headers:
        what = f"the message {message.seq} was not written by ralf"
        raise DamagedJournal(stream, what, "look at it: nats stream get")
    return int(number)


def _place(stream: str, token: Token) -> tuple[int, int]:
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise UnknownToken(stream, _NO_PLACE)
    return int(found[1]), int(found[2])


def _meaning(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The headers that say what a message's records are."""
    return tuple(headers.get(name, "") for name in (_NUMBER, _BASE, _RESTART))
