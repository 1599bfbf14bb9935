"""Masks the words of a forget in what agents' runs and sessions keep: bytes whose format is nobody's to know.

Text in records is purged as any other. Bytes that are no text keep their length, so that formats which count it stay
whole. Output is looked at as one: its records end where time was up, in the middle of a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ralf.agent import contents, records
from ralf.compaction.records import STREAMS as COMPACTIONS
from ralf.maintenance.purge import Purge, Wording
from ralf.storage.journal import Entry, Store

_STREAMS = (records.RUNS, records.SIGNALS, records.OUTPUT, "sessions/", "graphs/", COMPACTIONS)

_MASK = "*"


def is_opaque(streams: Iterable[str]) -> bool:
    """Whether all of some streams, at least one, keep bytes for agents."""
    found = list(streams)
    return bool(found) and all(stream.startswith(_STREAMS) for stream in found)


def masked(content: bytes, wording: Wording) -> bytes:
    """Bytes with `*` in the words' place, as many as the words had."""
    text = content.decode("utf-8", "surrogateescape")
    made, done = list[str](), 0
    for start, end in wording.spans(text):
        made += [text[done:start], _MASK * len(text[start:end].encode("utf-8", "surrogateescape"))]
        done = end
    return "".join([*made, text[done:]]).encode("utf-8", "surrogateescape") if made else content


def purge_of(store: Store, purge: Purge) -> Purge:
    """What purges a stream: `purge` itself, but for one that keeps bytes for agents."""
    if not purge.stream.startswith(_STREAMS):
        return purge
    if purge.stream.startswith(records.OUTPUT):
        return OutputPurge(purge.stream, purge.wording, purge.item, purge.digests).prepared(store)
    return OpaquePurge(purge.stream, purge.wording, purge.item, purge.digests)


class OpaquePurge(Purge):
    """Purges a stream of a run or a session: text by its words, base64 by what it stands for."""

    __slots__ = ()

    def purged(self, tree: Any, revision: int = 0) -> Any:
        """A record's tree without the words."""
        made = contents.changed(tree, lambda data: masked(data, self.wording))
        return super().purged(made, revision)


class OutputPurge(Purge):
    """Purges a step's output, whose words may begin in one record and end in a later one."""

    __slots__ = ("_new",)

    def prepared(self, store: Store) -> OutputPurge:
        """Itself, once it has read the whole stream."""
        ids, pieces = list[str](), list[bytes]()
        for entry in store.read(self.stream):
            data = json.loads(entry.record).get("data", {})
            if contents.is_kept(data) and "digests" not in data:
                ids.append(entry.id)
                pieces.append(contents.unpack(store, data, self.stream))
        whole = b"".join(pieces)
        rest = masked(whole, self.wording)
        self._new: dict[str, bytes] = {}
        if rest != whole:
            for id_, piece in zip(ids, pieces, strict=True):
                new, rest = rest[: len(piece)], rest[len(piece) :]
                if new != piece:
                    self._new[id_] = new
        return self

    def __call__(self, entry: Entry) -> bytes:
        """The bytes that are to stand in a record's place."""
        record = entry.record
        if entry.id in self._new:
            tree = json.loads(record)
            tree["data"] = contents.inline(self._new[entry.id])
            record = records.line_of(tree)
        changed = self.changed
        made = super().__call__(entry._replace(record=record))
        self.changed = changed + (made != entry.record)
        return made
