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
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, wraps
from itertools import islice
from operator import itemgetter
from typing import Any, cast

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
from ralf.document.index import close_idle
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.document.state import State
from ralf.errors import Conflict, UsageError
from ralf.storage.journal import Token
from ralf_integrations.doors.entries import (
    Body,
    EntryStream,
    Made,
    delete,
    fields_of,
    name_of,
    packed,
    stamp,
    unpacked,
)

STREAMS = "graphs/"

_FORKS = ("update", "fork")  # sources of checkpoints that somebody asked for beside those that continue a thread

_FIRST_STEP = -1  # of the checkpoint with which LangGraph begins a thread

_MOST_RECENT = 8  # records that are kept in memory: the next call asks for them

_BETWEEN = "\x1f"  # the parts of a row's key

_LOOK = "look at graph.get_state(config) first: it shows what the other writer did"


class Thread(EntryStream):
    """The stream of a thread: its checkpoints, and the writes that wait at them. Rows, by namespace and id:

    checkpoint  id, namespace and place of a checkpoint
    newest      the id of the newest checkpoint of a namespace
    child       the id of the first checkpoint that continues another one and is no fork
    write       of a waiting write: path, task, number among those of the task, its record's place, which entry it is
    """

    def fold(self, rows: Rows, record: Record) -> None:
        """See `EntryStream.fold`."""
        body = record.body
        if body["kind"] == "checkpoint":
            ns, id_, place = body["ns"], body["id"], body["place"]
            rows.put(_key("checkpoint", ns, id_), [id_, ns, place])
            rows.put(_key("newest", ns), max(id_, rows.one(_key("newest", ns)) or ""))
            child = _key("child", ns, body["parent"])
            if body["metadata"].get("source") not in _FORKS and rows.one(child) is None:
                rows.put(child, id_)
        elif body["kind"] == "writes":
            for at, number in enumerate(body["numbers"]):
                key = _key("write", body["ns"], body["id"], body["task"], str(number))
                if body["replaces"] or rows.one(key) is None:
                    rows.put(key, [body["path"], body["task"], number, body["place"], at])


def _awaited(method: Callable[..., Any]) -> Any:
    """The awaited form of a method of a saver: LangGraph looks which arguments that takes."""

    @wraps(method)
    async def awaited(self: RalfSaver, *given: Any, **named: Any) -> Any:
        return await asyncio.to_thread(method, self, *given, **named)

    return awaited


class RalfSaver(BaseCheckpointSaver[int]):
    """A saver of checkpoints; threads may share one, and processes, forked ones too.

    root  the project directory; see `ralf.project.find`

    Contents are kept as they are, unredacted: a graph must get back its own bytes. They lie in files of this user's
    alone, and are never searched or shown. Methods raise what the store does: Conflict, Busy, Damaged, UsageError,
    OSError.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._project = projects.find(root)
        self._store = self._project.store
        self._visited: set[tuple[str, str, str]] = set()
        self._recent = lru_cache(maxsize=_MOST_RECENT)(self._record)

    def close(self) -> None:
        """Close the index; a later call opens it again."""
        close_idle()

    # ---- reading ----

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a configuration names, or the newest one of its thread; None where there is none."""
        thread, ns, id_ = _place_of(config)

        def found(state: State) -> CheckpointTuple | None:
            newest = state.rows.one(_key("newest", ns))
            if id_ and id_ != newest:
                self._visited.add((thread, ns, id_))  # time travel: what comes of it may fork the thread
            return self._tuple(stream, state.rows, ns, id_ or newest)

        stream = self._thread(thread)
        return stream.read(found)

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
        until = before["configurable"].get("checkpoint_id") if before else None
        streams = [self._thread(named["thread_id"])] if named.get("thread_id") else self._own_threads()
        listed = [
            (id_, ns, stream)
            for stream in streams
            for id_, ns, _ in stream.read(_checkpoints)
            if id_ == (named.get("checkpoint_id") or id_) and ns == named.get("checkpoint_ns", ns)
            if until is None or id_ < until
        ]
        found = (self._found(stream, ns, id_) for id_, ns, stream in sorted(listed, key=itemgetter(0), reverse=True))
        wanted = (filter or {}).items()
        return islice((one for one in found if one is not None and wanted <= one.metadata.items()), limit)

    def _found(self, stream: EntryStream, ns: str, id_: str) -> CheckpointTuple | None:
        return stream.read(lambda state: self._tuple(stream, state.rows, ns, id_))

    def _tuple(self, stream: EntryStream, rows: Rows, ns: str, id_: str | None) -> CheckpointTuple | None:
        row = rows.one(_key("checkpoint", ns, id_)) if id_ else None
        if row is None or id_ is None:
            return None
        body = self._recent(stream.name, row[2])
        writes = []
        for _, task, _, place, at in sorted(row for _, row in rows.under(_key("write", ns, id_, ""))):
            _, channel, *value = stream.entries(self._recent(stream.name, place))[at]
            writes.append((task, channel, self._value(value)))
        return CheckpointTuple(
            _config(body["thread"], ns, id_),
            self._checkpoint(stream, body),
            cast(CheckpointMetadata, dict(body["metadata"])),
            _config(body["thread"], ns, body["parent"]) if body["parent"] else None,
            writes,
        )

    def _record(self, stream: str, place: Token) -> Body:
        return Thread(self._project, stream).record(place)

    def _checkpoint(self, stream: EntryStream, body: Body) -> Checkpoint:
        return cast(Checkpoint, self._value(stream.entries(body)[0]))

    def _value(self, value: Sequence[Any]) -> Any:
        type_, tree = value
        return self.serde.loads_typed((type_, unpacked(tree)))

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
        thread, ns, parent = _place_of(config)
        id_, parent = checkpoint["id"], parent or ""
        is_fork = metadata.get("source") in _FORKS or (thread, ns, parent) in self._visited
        begins_elsewhere = not parent and metadata.get("step") != _FIRST_STEP
        fields = {
            "kind": "checkpoint",
            "thread": thread,
            "ns": ns,
            "id": id_,
            "parent": parent,
            "at": stamp(),
            "metadata": dict(get_serializable_checkpoint_metadata(config, metadata)),
        }
        entries = [self._typed(checkpoint)]

        def made(state: State) -> Made:
            child = state.rows.one(_key("child", ns, parent))
            # A subgraph's chain hangs on its thread's, whose next checkpoint is refused.
            if not (ns or is_fork or begins_elsewhere) and child not in (None, id_):
                what = f"{f'checkpoint {parent}' if parent else 'the empty thread'} was continued by another writer"
                raise Conflict(f"thread {thread}", state.token, what, _LOOK)
            return fields, entries

        self._thread(thread).append(made)
        return _config(thread, ns, id_)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote while its step is not done. What the same task wrote before in the same place stays,
        but for errors, interrupts and their answers, of which the last one counts.
        """
        thread, ns, id_ = _place_of(config)
        if not id_:
            raise UsageError(f"thread {thread}", "writes belong to a checkpoint")
        numbers = [WRITES_IDX_MAP.get(channel, number) for number, (channel, _) in enumerate(writes)]
        fields = {
            "kind": "writes",
            "thread": thread,
            "ns": ns,
            "id": id_,
            "task": task_id,
            "path": task_path,
            "replaces": all(channel in WRITES_IDX_MAP for channel, _ in writes),
            "numbers": numbers,
            "at": stamp(),
        }
        entries = [
            [number, channel, *self._typed(value)] for number, (channel, value) in zip(numbers, writes, strict=True)
        ]
        self._thread(thread).append(lambda _: (fields, entries))

    def _typed(self, value: Any) -> tuple[str, Body]:
        type_, data = self.serde.dumps_typed(value)
        return type_, packed(data)

    def _thread(self, thread: object) -> Thread:
        return Thread(self._project, STREAMS + name_of(str(thread)))

    # ---- deleting ----

    def delete_thread(self, thread_id: str) -> None:
        """Delete all of a thread; nothing of it is left."""
        delete(self._project, [self._thread(thread_id)])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs have made, with what waits at them."""
        runs = set(run_ids)
        for thread in self._own_threads():
            made = _checkpoints_of(thread)
            self._remove(thread, {at for at, body in made.items() if body["metadata"].get("run_id") in runs})

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the newest checkpoint of each namespace of threads, or with "delete" all of them.

        Older ones that the newest one needs to make up a channel of differences stay. UsageError for another strategy.
        """
        if strategy not in ("keep_latest", "delete"):
            raise UsageError(strategy, "no such strategy; choose one of: keep_latest, delete")
        for id_ in thread_ids:
            if strategy == "delete":
                self.delete_thread(id_)
            else:
                thread = self._thread(id_)
                known = _checkpoints_of(thread)
                self._remove(thread, known.keys() - self._needed(thread, known))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another one; what that had stays."""
        source, target = self._thread(source_thread_id), self._thread(target_thread_id)
        for body in [*source.records()]:
            if "id" in body:
                made = {**fields_of(body), "thread": target_thread_id}, source.entries(body)
                target.append(lambda _, made=made: made)  # type: ignore[misc]

    def _needed(self, thread: Thread, known: Mapping[tuple[str, str], Body]) -> set[tuple[str, str]]:
        """The newest checkpoint of each namespace, and those before it from which its channels of differences come."""
        kept = set()
        for ns in {ns for ns, _ in known}:
            at = ns, max(id_ for other, id_ in known if other == ns)
            wanted = set(known[at]["metadata"].get("counters_since_delta_snapshot") or ())
            while at in known:
                kept.add(at)
                if wanted:
                    wanted -= self._checkpoint(thread, known[at])["channel_values"].keys()
                at = ns, known[at]["parent"] if wanted else ""
        return kept

    def _own_threads(self) -> Iterator[Thread]:
        """All threads but foreign ones, which name themselves where they are asked for."""
        for name in self._store.streams(STREAMS):
            thread = Thread(self._project, name)
            with suppress(UsageError):
                thread.newest()
                yield thread

    def _remove(self, thread: Thread, going: Collection[tuple[str, str]]) -> None:
        """Delete checkpoints, each by namespace and id, with what waits at them; nothing of them is left."""
        if going:
            thread.remove(lambda body: (body.get("ns"), body.get("id")) in going)

    # ---- the same, awaited ----

    aget_tuple: Any = _awaited(get_tuple)
    aput: Any = _awaited(put)
    aput_writes: Any = _awaited(put_writes)
    adelete_thread: Any = _awaited(delete_thread)
    adelete_for_runs: Any = _awaited(delete_for_runs)
    acopy_thread: Any = _awaited(copy_thread)
    aprune: Any = _awaited(prune)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See `list`."""
        found = await asyncio.to_thread(self.list, config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one


def _key(kind: str, *parts: str) -> str:
    return f"{kind}/{_BETWEEN.join(parts)}"


def _checkpoints(state: State) -> list[tuple[str, str, Token]]:
    """Id, namespace and place of each checkpoint of a thread."""
    return [value for _, value in state.rows.under(_key("checkpoint", ""))]


def _checkpoints_of(thread: Thread) -> dict[tuple[str, str], Body]:
    """The checkpoints of a thread by namespace and id."""
    return {(body["ns"], body["id"]): body for body in thread.records() if body["kind"] == "checkpoint"}


def _place_of(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Thread, namespace and checkpoint that a configuration names."""
    named = config["configurable"]
    return str(named["thread_id"]), str(named.get("checkpoint_ns", "")), named.get("checkpoint_id")


def _config(thread: str, ns: str, id_: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id_}}
