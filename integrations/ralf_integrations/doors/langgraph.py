"""Keeps the checkpoints of LangGraph's graphs in ralf's store: `RalfSaver`, a `BaseCheckpointSaver`.

    from ralf_integrations.doors.langgraph import RalfSaver

    graph = builder.compile(checkpointer=RalfSaver())

A thread is a stream of the store (`graphs/…`), a checkpoint one durable record. Of two writers that continue the same
checkpoint of a thread the second one is refused (`Conflict`): a thread never forks unasked. Time travel and
`update_state` fork it on purpose, as LangGraph means them to.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from ralf import project as projects
from ralf.agent import contents
from ralf.errors import Conflict, UsageError
from ralf.storage.journal import Entry, Token
from ralf.transcripts.events import named_digests
from ralf_integrations.doors.entries import name_of, prepare, stamp
from ralf_integrations.doors.graph_index import GraphIndex, Pending
from ralf_integrations.doors.graph_records import (
    GONE,
    CheckpointRecord,
    GraphRecord,
    Typed,
    Write,
    WritesRecord,
    bytes_of_record,
    record_of,
)

STREAMS = "graphs/"

_FIRST_STEP = -1  # of the checkpoint with which LangGraph begins a thread

_MOST_RECENT = 8  # records, of at most INLINE bytes a value, that are kept in memory: the next call asks for them

_TRIES = 1_000  # appends beside other writers of the same thread

T = TypeVar("T")


class RalfSaver(BaseCheckpointSaver[int]):
    """A saver of checkpoints; threads may share one, processes each have their own.

    root  the project directory; see `ralf.project.find`

    Contents are kept as they are, unredacted: a graph must get back its own bytes. They lie in files of this user's
    alone, and are never searched or shown. Methods raise what the store does: Conflict, Busy, Damaged, OSError.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._project = projects.find(root)
        self._store = self._project.store
        self._index = GraphIndex(self._store, self._project.cache / "graphs" / "index.sqlite")
        self._visited: set[tuple[str, str, str]] = set()
        self._recent: dict[tuple[str, Token], GraphRecord | None] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the index; a later call opens it again."""
        self._index.close()

    # ---- reading ----

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a configuration names, or the newest one of its thread; None where there is none."""
        stream, ns, id_ = _place_of(config)
        with self._index.of(stream) as view:
            found = view.checkpoint(stream, ns, id_)
            if found is None:
                return None
            if id_ and view.checkpoint(stream, ns) != found:
                self._visited.add((stream, ns, id_))  # time travel: what comes of it may fork the thread
            pending = view.pending(found)
        record = self._record(stream, found.token)
        if not isinstance(record, CheckpointRecord):
            return None  # deleted meanwhile
        return self._tuple(stream, record, pending)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, or of all, the newest first.

        filter  what their metadata have to hold
        before  only checkpoints before that one; limit: how many at most
        """
        named = config["configurable"] if config is not None else {}
        streams = [_stream_of(named["thread_id"])] if named.get("thread_id") else [*self._own_streams()]
        until = before["configurable"].get("checkpoint_id") if before else None
        count = 0
        with self._index.of(*streams) as view:
            listed = view.listed(streams, named.get("checkpoint_ns"), named.get("checkpoint_id"), until)
        for found in listed:
            if limit is not None and count >= limit:
                return
            record = self._record(found.stream, found.token)
            if isinstance(record, CheckpointRecord) and _fits(record.metadata, filter):
                count += 1
                with self._index.of(found.stream) as view:
                    pending = view.pending(found)
                yield self._tuple(found.stream, record, pending)

    def _tuple(self, stream: str, record: CheckpointRecord, waiting: Sequence[Pending]) -> CheckpointTuple:
        pending = []
        for one in waiting:
            if isinstance(writes := self._record(stream, one.token), WritesRecord):
                write = writes.writes[one.place]
                pending.append((one.task, write.channel, self._value(write.value)))
        return CheckpointTuple(
            _config(record.thread, record.ns, record.id),
            self._value(record.value),
            cast(CheckpointMetadata, dict(record.metadata)),
            _config(record.thread, record.ns, record.parent) if record.parent else None,
            pending,
        )

    def _record(self, stream: str, token: Token) -> GraphRecord | None:
        found = self._recent.get((stream, token))
        if found is None:
            found = record_of(stream, self._store.entry(stream, token))
            self._remember(stream, token, found)
        return found

    def _remember(self, stream: str, token: Token, record: GraphRecord | None) -> None:
        with self._lock:
            self._recent[stream, token] = record
            while len(self._recent) > _MOST_RECENT:
                del self._recent[next(iter(self._recent))]

    def _value(self, value: Typed) -> Any:
        return self.serde.loads_typed((value.type, contents.unpack(self._store, value.tree, STREAMS)))

    # ---- writing ----

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint that continues the one that the configuration names, and return its own configuration.

        Conflict where another checkpoint continues that one already, and neither is a fork that somebody asked for: by
        `update_state`, or by going back to an older checkpoint.
        """
        stream, ns, parent = _place_of(config)
        thread = str(config["configurable"]["thread_id"])
        record = CheckpointRecord(
            thread=thread,
            ns=ns,
            id=checkpoint["id"],
            parent=parent or "",
            value=self._typed(checkpoint),
            metadata=dict(get_serializable_checkpoint_metadata(config, metadata)),
            at=stamp(),
        )

        def check(head: Token | None) -> None:
            if ns or record.is_fork or (stream, ns, record.parent) in self._visited:
                return  # a subgraph's chain hangs on its thread's, whose next checkpoint is refused
            if not record.parent and metadata.get("step") != _FIRST_STEP:
                return
            with self._index.of(stream) as view:
                is_continued = view.has_child(stream, ns, record.parent, record.id)
            if is_continued:
                continued = f"checkpoint {record.parent}" if record.parent else "the empty thread"
                what = f"{continued} was continued by another writer"
                raise Conflict(f"thread {thread}", head, what, "invoke the graph again: it goes on from the newest one")

        self._append(stream, record, check)
        return _config(thread, ns, record.id)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote while its step is not done. What the same task wrote before in the same place stays,
        but for errors, interrupts and their answers, of which the last one counts.
        """
        stream, ns, id_ = _place_of(config)
        if not id_:
            raise UsageError(f"thread {config['configurable']['thread_id']}", "writes belong to a checkpoint")
        made = tuple(
            Write(WRITES_IDX_MAP.get(channel, index), channel, self._typed(value))
            for index, (channel, value) in enumerate(writes)
        )
        replaces = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        thread = str(config["configurable"]["thread_id"])
        self._append(stream, WritesRecord(thread, ns, id_, task_id, task_path, replaces, made, stamp()), lambda _: None)

    def _typed(self, value: Any) -> Typed:
        type_, content = self.serde.dumps_typed(value)
        return Typed(type_, contents.pack(self._store, content, STREAMS))

    def _append(self, stream: str, record: GraphRecord, check: Callable[[Token | None], None]) -> None:
        """Append a record that `check` lets pass, as things are when it lands."""
        prepare(self._project)
        content = bytes_of_record(record)
        id_ = os.urandom(12).hex()
        head = self._index.known_head(stream)
        for attempt in range(_TRIES):
            check(head)
            try:
                token = self._store.append(stream, content, id=id_, after=head, is_new=True)
            except Conflict as error:
                if type(error) is not Conflict or attempt == _TRIES - 1:
                    raise
                head = error.head
            else:
                self._index.added(stream, record, token, head)
                self._remember(stream, token, record)
                return

    # ---- deleting ----

    def delete_thread(self, thread_id: str) -> None:
        """Delete all of a thread; nothing of it is left."""
        stream = _stream_of(thread_id)
        blobs = {blob for record in self._records(stream) for blob in _blobs(record)}
        self._store.drop(stream)
        self._forget(stream)
        self._drop(blobs)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs have made, with what waits at them."""
        runs = set(run_ids)
        for stream in [*self._own_streams()]:
            made = {
                (record.ns, record.id)
                for record in self._records(stream)
                if isinstance(record, CheckpointRecord) and record.metadata.get("run_id") in runs
            }
            self._remove(stream, lambda record, made=made: (record.ns, record.id) in made)  # type: ignore[misc]

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of each namespace of threads, or with "delete" all of them.

        Older ones that the newest one needs to make up a channel of differences stay. UsageError for another strategy.
        """
        if strategy not in ("keep_latest", "delete"):
            raise UsageError(strategy, "no such strategy; choose one of: keep_latest, delete")
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            stream = _stream_of(thread)
            kept = self._needed(stream)
            self._remove(stream, lambda record, kept=kept: (record.ns, record.id) not in kept)  # type: ignore[misc]

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another one; what that had stays."""
        stream = _stream_of(target_thread_id)
        for record in [*self._records(_stream_of(source_thread_id))]:
            values = {name: getattr(record, name) for name in type(record).__slots__}
            self._append(stream, type(record)(**{**values, "thread": target_thread_id}), lambda _: None)

    def _needed(self, stream: str) -> set[tuple[str, str]]:
        """The newest checkpoint of each namespace, and those before it from which its channels of differences come."""
        known = {
            (record.ns, record.id): record for record in self._records(stream) if isinstance(record, CheckpointRecord)
        }
        kept: set[tuple[str, str]] = set()
        for ns in {ns for ns, _ in known}:
            at = (ns, max(id_ for other, id_ in known if other == ns))
            kept.add(at)
            wanted = set(known[at].metadata.get("counters_since_delta_snapshot") or ())
            wanted -= set(self._value(known[at].value)["channel_values"]) if wanted else set()
            while wanted and (at := (ns, known[at].parent)) in known:
                kept.add(at)
                wanted -= set(self._value(known[at].value)["channel_values"])
        return kept

    def _own_streams(self) -> Iterator[str]:
        """The streams of all threads but foreign ones, which name themselves where they are asked for."""
        for stream in self._store.streams(STREAMS):
            with suppress(UsageError), self._index.of(stream):
                yield stream

    def _records(self, stream: str) -> Iterator[GraphRecord]:
        return (record for entry in self._store.read(stream) if (record := record_of(stream, entry)) is not None)

    def _remove(self, stream: str, is_meant: Callable[[GraphRecord], bool]) -> None:
        """Delete records; nothing of them is left."""
        blobs: set[str] = set()

        def changed(entry: Entry) -> bytes:
            record = record_of(stream, entry)
            if record is None or not is_meant(record):
                return entry.record
            blobs.update(_blobs(record))
            return GONE

        if any(is_meant(record) for record in self._records(stream)):
            self._store.replace(stream, changed)
            self._forget(stream)
            self._drop(blobs)

    def _forget(self, stream: str) -> None:
        self._index.forget(stream)
        with self._lock:
            for key in [key for key in self._recent if key[0] == stream]:
                del self._recent[key]

    def _drop(self, blobs: Collection[str]) -> None:
        if blobs:
            for blob in set(blobs) - named_digests(self._store).keys():
                self._store.drop_blob(blob)

    # ---- the same, awaited ----

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See `get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See `list`."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See `put`."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See `put_writes`."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """See `delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See `delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See `copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See `prune`."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))


def _stream_of(thread: object) -> str:
    """The stream of a thread, whose name may be any text."""
    return STREAMS + name_of(str(thread))


def _place_of(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Stream, namespace and checkpoint that a configuration names."""
    named = config["configurable"]
    return _stream_of(named["thread_id"]), str(named.get("checkpoint_ns", "")), named.get("checkpoint_id")


def _config(thread: str, ns: str, id_: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id_}}


def _fits(metadata: Any, wanted: dict[str, Any] | None) -> bool:
    return all(metadata.get(key) == value for key, value in (wanted or {}).items())


def _blobs(record: GraphRecord) -> list[str]:
    return [*contents.blobs_of(record.tree())]
