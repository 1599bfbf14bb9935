"""The store on NATS JetStream: journals and blobs of a project on one server, or on three that replace each other.

The contract is that of `ralf.storage.journal`. Its methods wait for a loop in another thread (`nats_link`), and each
has a time limit. One stream of the server holds all of a project: `RALF-NAME`, with the subjects

    ralf.NAME.s.STREAM   the records of a stream (`nats_records`)
    ralf.NAME.b.…        what names the chunks of a blob (`nats_blobs`)
    ralf.NAME.c.…        chunks (`nats_chunks`)

Another one, `RALF_LEASES-NAME`, holds its leases (`nats_leases`).

Records, their ids, blobs and the digests of blobs are encrypted (`encryption`): the servers know the names of streams,
sizes and times.
"""

# ruff: noqa: D102  # what a method does stands in the port

from __future__ import annotations

import hashlib
import io
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, TypeVar

from ralf.errors import UnknownToken, UsageError
from ralf.storage.journal import Blob, Digest, Entry, Token, Written
from ralf.text import cleaning
from ralf_integrations.stores import nats_chunks
from ralf_integrations.stores.encryption import Cipher
from ralf_integrations.stores.nats_blobs import Blobs
from ralf_integrations.stores.nats_leases import SECONDS, LeaseLog, NatsLeases
from ralf_integrations.stores.nats_link import Address, Link, link_to
from ralf_integrations.stores.nats_log import Log, Moved
from ralf_integrations.stores.nats_records import Records, View

T = TypeVar("T")

TIMEOUT = 20.0
"""Seconds that a call may take: a cluster whose leader has died needs up to ten to elect another one."""

_SLOWEST = 250_000  # bytes a second: what is longer has more time

_ERASING = 600.0  # seconds for what erases many messages

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)

_PROJECT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?", re.ASCII)

_LONGEST_ID = 200  # characters


class NatsStore:
    """Journals and blobs of a project on NATS servers. Nothing is made there before something is written.

    address   the servers
    project   the name under which they know the project
    key       the project's key, with which all that is kept is encrypted
    replicas  how many of them keep each record: 1 or 3 (5)
    timeout   seconds that a call may take, and more for what is large; then Fenced. An append may have landed all the
              same: repeated with the same id, it returns where
    lease     seconds that a lease lasts without renewal
    link      the connection; None for the one that all stores of this address and process share
    """

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
        self._address = address
        self._project = project
        self._cipher = Cipher(key)
        self._replicas = replicas
        self._timeout = timeout
        self._own_link = link
        self.leases = NatsLeases(self._run_leases, (address, project), lease)

    files = None

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None, is_new: bool = False) -> Token:  # noqa: A002
        _check_stream(stream)
        _check_record(stream, record)
        if not 0 < len(id) <= _LONGEST_ID:
            raise UsageError(stream, f"an id has 1 to {_LONGEST_ID} characters, this one {len(id)}")
        limit = self._timeout + len(record) / _SLOWEST
        return self._run(lambda log: self._records(log).append(stream, record, id=id, after=after), limit)

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        _check_stream(stream)
        view = self._whole(stream, after)
        yield from view.entries
        if view.damage is not None:
            raise view.damage

    def _whole(self, stream: str, after: Token | None = None) -> View:
        """All records after a place at one moment. What is read at once is limited, and so is its time: a slow line
        needs more calls, not a longer one.
        """
        while True:
            view = self._page(stream, after)
            entries, last = view.entries, view
            while not last.is_whole and last.damage is None:
                try:
                    last = self._page(stream, entries[-1].token)
                except UnknownToken:  # replaced, or dropped, meanwhile
                    break
                if last.base != view.base:
                    break
                entries += last.entries
            else:
                return View(last.head, last.base, entries, last.damage)

    def _page(self, stream: str, after: Token | None) -> View:
        return self._run(lambda log: self._records(log).view(stream, after))

    def head(self, stream: str) -> Token | None:
        _check_stream(stream)
        return self._run(lambda log: self._records(log).head(stream))

    def streams(self, prefix: str) -> Iterator[str]:
        yield from self._run(lambda log: self._records(log).streams(prefix))

    def entry(self, stream: str, token: Token) -> Entry:
        _check_stream(stream)
        return self._run(lambda log: self._records(log).entry(stream, token))

    def newest(self, stream: str) -> Entry | None:
        while (head := self.head(stream)) is not None:
            with suppress(UnknownToken):  # replaced in between
                return self.entry(stream, head)
        return None

    def written(self, folder: str) -> dict[str, Written]:
        names = (stream.removeprefix(f"{folder}/") for stream in self.streams(f"{folder}/"))
        return {name: Written(0, sys.maxsize) for name in names if "/" not in name}  # the server tells no times

    # ---- replacing ----

    def replace(self, stream: str, change: Callable[[Entry], bytes], *, wipe: bool = True) -> int:
        _check_stream(stream)
        changed: list[tuple[Entry, bytes]] = []
        wanted: list[tuple[str, bytes]] = []
        count = earlier = 0
        while True:
            view = self._whole(stream)
            if view.damage is not None:
                raise view.damage
            if wanted and [(entry.id, entry.record) for entry in view.entries[: len(wanted)]] == wanted:
                earlier += count  # it was done, and the answer was lost
            if [entry for entry, _ in changed] != view.entries[: len(changed)]:  # somebody else has replaced them
                changed = []
            for entry in view.entries[len(changed) :]:
                record = change(entry)
                _check_record(stream, record)
                changed.append((entry, record))
            count = sum(entry.record != record for entry, record in changed)
            wanted = [(entry.id, record) for entry, record in changed]
            if not count or self._restarted(stream, view.head, wanted):
                self._run(lambda log: self._records(log).clear(stream, wipe=wipe), _ERASING)
                return earlier + count

    def _restarted(self, stream: str, head: int, records: list[tuple[str, bytes]]) -> bool:
        try:
            limit = self._timeout + sum(len(record) for _, record in records) / _SLOWEST
            self._run(lambda log: self._records(log).restart(stream, head, records), limit)
        except Moved:
            return False
        return True

    def drop(self, stream: str, *, wipe: bool = True) -> None:
        _check_stream(stream)
        self._run(lambda log: self._records(log).drop(stream))
        self._run(lambda log: self._records(log).clear(stream, wipe=wipe), _ERASING)

    # ---- blobs ----

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        content = b"".join(chunks)
        digest = hashlib.sha256(content).hexdigest()
        self._run(lambda log: self._blobs(log).put(digest, content), self._timeout + len(content) / _SLOWEST)
        return digest

    def open_blob(self, digest: Digest) -> BinaryIO:
        _check_digest(digest)
        size = self._run(lambda log: self._blobs(log).size(digest))
        return io.BytesIO(self._run(lambda log: self._blobs(log).content(digest), self._timeout + size / _SLOWEST))

    def has_blob(self, digest: Digest) -> bool:
        _check_digest(digest)
        return self._run(lambda log: self._blobs(log).has(digest))

    def blobs(self) -> Iterator[Blob]:
        yield from self._run(lambda log: self._blobs(log).all())

    def drop_blob(self, digest: Digest) -> None:
        _check_digest(digest)
        self._run(lambda log: self._blobs(log).drop(digest), _ERASING)

    def sweep(self) -> int:
        async def swept(log: Log) -> int:
            return await self._records(log).sweep() + await self._blobs(log).sweep() + await nats_chunks.sweep(log)

        return self._run(swept, _ERASING)

    # ---- the loop ----

    def _records(self, log: Log) -> Records:
        return Records(log, self._cipher)

    def _blobs(self, log: Log) -> Blobs:
        return Blobs(log, self._cipher)

    def _run(self, work: Callable[[Log], Coroutine[Any, Any, T]], timeout: float = 0) -> T:
        link = self._own_link or link_to(self._address)

        async def run() -> T:
            kept = (self._project, self._replicas, self._cipher.id)
            if kept not in link.kept:
                name, root = f"RALF-{self._project}", f"ralf.{self._project}"
                link.kept[kept] = Log(link, name, root, self._replicas, self._cipher.id)
            return await work(link.kept[kept])

        return link.run(run, timeout or self._timeout)

    def _run_leases(self, work: Callable[[LeaseLog], Coroutine[Any, Any, T]]) -> T:
        link = self._own_link or link_to(self._address)

        async def run() -> T:
            kept = ("leases", self._project, self._replicas, self._cipher.id)
            if kept not in link.kept:
                link.kept[kept] = LeaseLog(link, self._project, self._replicas, self._cipher)
            return await work(link.kept[kept])

        return link.run(run, self._timeout)


def _check_stream(stream: str) -> None:
    if not all(map(cleaning.is_valid, stream.split("/"))):
        raise UsageError(ascii(stream), "refused as a stream name")


def _check_record(stream: str, record: bytes) -> None:
    if b"\n" in record:
        raise UsageError(stream, "a record is one line")


def _check_digest(digest: Digest) -> None:
    if not _DIGEST.fullmatch(digest):
        raise UsageError(ascii(digest), "not a digest")
