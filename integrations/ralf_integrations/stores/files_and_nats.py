"""The store of a machine that works on while NATS servers are away: `store: files+nats`.

Routes and the memories of agents lie in local files, which are the truth here; `exchange` delivers their records to the
servers and takes in those of other machines. What belongs to one machine (notices to its sessions) lies in its files
alone. All other streams say who may write (`runs/`, `signals/`, `tasks`): of these there is no local copy that could go
on by itself. They lie on the servers alone, and without these end as Fenced.

What the servers hold of a route that was dropped here is dropped by the next exchange: `dropped` names it until then.
"""

# ruff: noqa: D102  # what a method does stands in the port

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ralf.errors import Busy, Conflict, NotFound
from ralf.storage import journal
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Blob, Digest, Entry, Properties, Store, Token, Written, entry_at, required
from ralf.transcripts.events import digests_in

EXCHANGED = (journal.stream_of(""), "agents/")
"""What the names of the streams begin with that lie in local files and are exchanged: routes, and agents' memories."""

_OF_SESSIONS = "inbox/"
"""Of the streams that lie in local files alone: notices to the sessions of clients, which run on this machine."""

_OF_COMPACTIONS = "compactions/sessions/"
"""The same: compactions of the clients' sessions, which a hook counts."""

DROPPED = "dropped-streams"
"""The stream that says, in files and on the servers, which records were dropped with their streams."""

_ID_DIGITS = 32


class LocalFiles(FileStore):
    """The files of such a store."""

    def path(self, stream: str) -> Path:
        """A stream's journal; of one that lies on the servers, a file that is never there: one that the project has
        from before tells nothing of it.
        """
        return super().path(stream if is_local(stream) else f"on-servers/{stream}")


class FilesAndNats:
    """Contract: `ralf.storage.journal.Store`.

    local   the files
    engine  the servers
    """

    def __init__(self, local: FileStore, engine: Store) -> None:
        self.local = local
        self.engine = engine

    @property
    def properties(self) -> Properties:
        leases = self.engine.properties.leases
        return Properties(lookup=self, replace=self, heap=self, survey=self, files=self.local, leases=leases)

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        if is_local(stream):
            return self.local.append(stream, record, id=id, after=after)
        self.send_blobs(record)
        return self.engine.append(stream, record, id=id, after=after)

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        if is_local(stream):
            yield from self.local.read(stream, after=after)
            return
        yield from self.engine.read(stream, after=after)

    def head(self, stream: str) -> Token | None:
        if is_local(stream):
            return self.local.head(stream)
        return self.engine.head(stream)

    def streams(self, prefix: str) -> Iterator[str]:
        yield from (name for name in self.local.streams(prefix) if is_local(name) and name != DROPPED)
        if not is_local(prefix):
            names = list(self.engine.streams(prefix))
            yield from (name for name in names if not is_local(name) and name != DROPPED)

    def entry(self, stream: str, token: Token) -> Entry:
        if is_local(stream):
            return self.local.entry(stream, token)
        return entry_at(self.engine, stream, token)

    def marks(self, folder: str) -> Mapping[str, str]:
        return self.local.marks(folder) if is_local(f"{folder}/") else journal.marks(self.engine, folder)

    def written(self, folder: str) -> Mapping[str, Written]:
        if is_local(f"{folder}/"):
            return self.local.written(folder)
        return journal.written(self.engine, folder)

    # ---- replacing ----

    def replace(self, stream: str, change: Callable[[Entry], bytes], *, wipe: bool = True) -> int:
        if is_local(stream):
            return self.local.replace(stream, change, wipe=wipe)  # the next exchange has the servers do the same
        return required(self.engine.properties.replace, "replace records").replace(stream, change, wipe=wipe)

    def drop(self, stream: str, *, wipe: bool = True) -> None:
        if is_local(stream):
            if stream.startswith(EXCHANGED):
                self._note_dropped(stream)
            self.local.drop(stream, wipe=wipe)
            return
        required(self.engine.properties.replace, "drop streams").drop(stream, wipe=wipe)

    def _note_dropped(self, stream: str) -> None:
        """Say which records are dropped: those that are here. Who has them still is to drop them, and nothing else."""
        names = {hashed(entry.id) for entry in self.local.read(stream)} - self.dropped_of(stream)
        if names:
            record = json.dumps({"stream": stream, "ids": sorted(names)}, separators=(",", ":")).encode()
            append_last(self.local, DROPPED, record, id=uuid.uuid4().hex)

    def dropped_of(self, stream: str) -> set[str]:
        """The ids, `hashed`, of the records that were dropped with a stream, here or elsewhere."""
        trees = [json.loads(entry.record) for entry in self.local.read(DROPPED)]
        return {str(one) for tree in trees if tree.get("stream") == stream for one in tree.get("ids", ())}

    # ---- blobs ----

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        return self.local.put_blob(chunks)

    def open_blob(self, digest: Digest) -> BinaryIO:
        try:
            return self.local.open_blob(digest)
        except NotFound:
            return self.engine.open_blob(digest)

    def has_blob(self, digest: Digest) -> bool:
        if self.local.has_blob(digest):
            return True
        with suppress(Busy):
            return journal.has_blob(self.engine, digest)
        return False

    def blobs(self) -> Iterator[Blob]:
        # Not those that only the servers have: records that this machine has not taken in yet may name them.
        yield from self.local.blobs()

    def drop_blob(self, digest: Digest) -> None:
        self.local.drop_blob(digest)
        with suppress(Busy):  # of a record that is replaced, or dropped, the next exchange drops it
            required(self.engine.properties.heap, "drop blobs").drop_blob(digest)

    def sweep(self) -> int:
        swept = self.local.sweep()
        with suppress(Busy):
            swept += required(self.engine.properties.heap, "drop blobs").sweep()
        return swept

    def send_blobs(self, record: bytes) -> None:
        """Put the blobs that a record names, and that are here, where its readers find them. Errors: `put_blob`."""
        for digest in sorted(blobs_named(record)):
            with suppress(NotFound), self.local.open_blob(digest) as file:
                self.engine.put_blob([file.read()])  # also of one that is there: it is young again


def is_local(stream: str) -> bool:
    """Whether a stream lies in local files; of a prefix, whether all do whose names begin with it."""
    return stream.startswith((*EXCHANGED, _OF_SESSIONS, _OF_COMPACTIONS)) or stream == DROPPED


def hashed(id: str) -> str:  # noqa: A002
    """A record's id as the stream of dropped ones names it."""
    return hashlib.sha256(id.encode()).hexdigest()[:_ID_DIGITS]


def blobs_named(record: bytes) -> set[Digest]:
    """What may be digests of blobs in a record. Of a route's its own digest and that of the file that shows it are
    none: each machine renders the file itself.
    """
    with suppress(ValueError):
        tree = json.loads(record)
        if isinstance(tree, dict) and "payload" in tree:
            return digests_in(json.dumps(tree["payload"]).encode())
    return digests_in(record)


def append_last(store: Store, stream: str, record: bytes, *, id: str) -> None:  # noqa: A002
    """Append a record whatever others append meanwhile. Errors: `Store.append`, but for Conflict."""
    head = store.head(stream)
    while True:
        try:
            store.append(stream, record, id=id, after=head)
        except Conflict as error:
            head = error.head
        else:
            return
