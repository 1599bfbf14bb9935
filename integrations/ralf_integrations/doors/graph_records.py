"""The records of a graph's thread: checkpoints, and the writes that wait at them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from ralf.agent import contents
from ralf.errors import MEND_JOURNAL, DamagedJournal
from ralf.storage.journal import MALFORMED, Entry
from ralf.text.frozen import dataclass

FORKS = ("update", "fork")
"""Sources of checkpoints that somebody asked for beside those that continue a thread."""

GONE = b'{"kind":"gone"}'
"""What stands in the place of a record that was deleted."""

Tree = Mapping[str, Any]


class Typed(NamedTuple):
    """A value as a serialiser has made it: its type, and its bytes as a record holds them (`ralf.agent.contents`)."""

    type: str
    tree: Tree


class Write(NamedTuple):
    """A write to a channel: its number among those of its task, the channel, the value."""

    number: int
    channel: str
    value: Typed


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A checkpoint of a thread.

    parent   the checkpoint that it continues, "" for a thread's first one
    at       when it was kept, as ISO 8601 in UTC
    is_fork  whether somebody asked for it beside those that continue the thread
    """

    kind: ClassVar[str] = "checkpoint"
    thread: str
    ns: str
    id: str
    parent: str
    value: Typed
    metadata: Tree
    at: str = ""

    @property
    def is_fork(self) -> bool:
        """See above."""
        return self.metadata.get("source") in FORKS

    def tree(self) -> Tree:
        """As a record holds it."""
        return {
            "kind": self.kind,
            **{name: getattr(self, name) for name in ("thread", "ns", "id", "parent", "metadata", "at")},
            "value": [*self.value],
        }


@dataclass(frozen=True, slots=True)
class WritesRecord:
    """Writes of a task that wait at a checkpoint; `replaces`: those of the same place are replaced, else they stay."""

    kind: ClassVar[str] = "writes"
    thread: str
    ns: str
    id: str
    task: str
    path: str
    replaces: bool
    writes: tuple[Write, ...]
    at: str = ""

    def tree(self) -> Tree:
        """As a record holds it."""
        return {
            "kind": self.kind,
            **{name: getattr(self, name) for name in ("thread", "ns", "id", "task", "path", "replaces", "at")},
            "writes": [[one.number, one.channel, *one.value] for one in self.writes],
        }


GraphRecord = CheckpointRecord | WritesRecord


def record_of(stream: str, entry: Entry) -> GraphRecord | None:
    """The record of an entry; None for one that was deleted, or is of another kind.

    DamagedJournal; UsageError for one that this user's ralf did not write: a serialiser may run what it holds.
    """
    try:
        tree = dict(json.loads(entry.record))
        kind = tree.pop("kind", "")
        if kind == CheckpointRecord.kind:
            return CheckpointRecord(**{**tree, "value": Typed(*tree["value"])})
        if kind == WritesRecord.kind:
            writes = (Write(number, channel, Typed(*value)) for number, channel, *value in tree["writes"])
            return WritesRecord(**{**tree, "writes": tuple(writes)})
    except MALFORMED as error:
        what = f"a record is not one of a graph's thread: {type(error).__name__}"
        raise DamagedJournal(stream, what, MEND_JOURNAL) from None
    return None


def bytes_of_record(record: GraphRecord) -> bytes:
    """A record as a stream holds it: its values, which are large, are written as contents are, and last."""
    tree = dict(record.tree())
    if isinstance(record, CheckpointRecord):
        name, values = "value", _typed_bytes(record.value)
    else:
        name = "writes"
        values = b",".join(
            b"[%d,%s,%s" % (one.number, _as_json(one.channel), _typed_bytes(one.value)[1:]) for one in record.writes
        )
        values = b"[%s]" % values
    del tree[name]
    return b'%s,"%s":%s}' % (_as_json(tree)[:-1], name.encode(), values)


def _typed_bytes(value: Typed) -> bytes:
    return b"[%s,%s]" % (_as_json(value.type), contents.encoded(value.tree))


def _as_json(value: Any) -> bytes:
    return _encoder.encode(value).encode("utf-8", "surrogatepass")


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
