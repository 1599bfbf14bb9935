"""A route's journal: its records in the store's stream, oldest first. Format: docs/format.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ralf.errors import MEND_JOURNAL, DamagedJournal
from ralf.store import Entry, Store, Token

VERSION = 1


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a route.

    revision  1 for the route's first record, then one more per record
    kind      checkpoint, refinement, unrefined, decision, edit, import; others are kept and passed over
    payload   by kind, a plain tree
    render    digest of the route file that shows this revision, "" where none was rendered for it
    """

    revision: int
    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    render: str = ""


def stream_of(route: str) -> str:
    """The name of a route's stream."""
    return f"routes/{route}"


def append(store: Store, route: str, record: Record, *, id: str, after: Token | None) -> Token:  # noqa: A002
    """Append a record to a route's journal; acknowledged when this returns. Errors: `Store.append`."""
    line = {
        "v": VERSION,
        "revision": record.revision,
        "parent": record.revision - 1,
        "kind": record.kind,
        "payload": record.payload,
        "render": record.render,
    }
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    return store.append(stream_of(route), text.encode(), id=id, after=after)


def read(store: Store, route: str, *, after: Token | None = None) -> Iterator[tuple[Token, Record]]:
    """A route's records after a place, oldest first, each with its own place. Errors: `Store.read`."""
    for entry in store.read(stream_of(route), after=after):
        yield entry.token, _record(route, entry)


def at(store: Store, route: str, token: Token) -> Record:
    """The record of a route at a place. Errors: `Store.entry`."""
    return _record(route, store.entry(stream_of(route), token))


def _record(route: str, entry: Entry) -> Record:
    try:
        line = json.loads(entry.record.decode())
        if b"\\u" in entry.record:  # we write none but of control characters: an unpaired surrogate fits no file
            json.dumps(line, ensure_ascii=False).encode()
        return Record(int(line["revision"]), str(line["kind"]), dict(line["payload"]), str(line.get("render", "")))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedJournal(route, f"the record {entry.id!r} is not one of a route: {error}", MEND_JOURNAL) from None
