"""A route's journal: its records in the store's stream, oldest first. Format: docs/format.md."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from typing import Any

from ralf.errors import MEND_JOURNAL, DamagedJournal, UnknownToken
from ralf.storage.port import Entry, Store, Token, entry_at
from ralf.text.frozen import dataclass

VERSION = 2

_MOST_LOOKS = 100  # at a stream that is rewritten again and again; each rewriting takes longer than a look


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a route.

    revision  1 for the route's first record, then one more per record
    kind      one of those in `route._KINDS`; others are kept and passed over. Of a later format it is `KIND/FORMAT`,
              none of them: what it means there no one here can know
    payload   by kind, a plain tree; of a later format only how many labels of decisions it has given
    render    digest of the route file that shows this revision, "" where none was rendered for it
    version   of the record's format: 1 has no digest
    digest    sha256 of the payload as it was written (`digest_of`), "" where it is not known yet
    purged    words were taken out of the payload since (`ralf.forgetting`): it does not match its digest any more
    outdated  words were purged since that the file of `render` may show: it is ours, but not what the route comes to
    lineage   the name of the history up to here, in a record of version 1 that was purged; else ""
    encoded   the payload's bytes, where they are known, so that they are made once
    foreign   this user's ralf did not write it (`ralf.storage.port.SealedStore`)
    """

    revision: int
    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    render: str = ""
    version: int = field(default=VERSION, compare=False)
    digest: str = field(default="", compare=False)
    purged: bool = False
    outdated: bool = False
    lineage: str = ""
    encoded: bytes = field(default=b"", compare=False, repr=False)
    foreign: bool = field(default=False, compare=False)


_LABEL = re.compile(r"DEC-([0-9]{1,9})")

MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError)
"""What comes of a payload that no writer of ours has made."""


@contextmanager
def understood(route: str, record: Record | None = None) -> Iterator[None]:
    """DamagedJournal for what a block raises over a payload that is not what its kind holds.

    record  the one that the block reads, where it reads one
    """
    try:
        yield
    except MALFORMED as error:
        which = (
            f"the record of revision {record.revision} is no {record.kind}" if record else "a record is not of its kind"
        )
        raise DamagedJournal(route, f"{which}: {type(error).__name__}: {error}", MEND_JOURNAL) from error


def stream_of(route: str) -> str:
    """The name of a route's stream."""
    return f"routes/{route}"


def encoded(payload: Mapping[str, Any]) -> bytes:
    """A payload as canonical JSON: no white space, keys in the order in which they stand, characters as they are.

    UnicodeEncodeError for half of a surrogate pair, which no file can hold: text is made `clean` before it comes here.
    """
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def digest_of(payload: Mapping[str, Any]) -> str:
    """The sha256, in hex, of a payload as canonical JSON."""
    return hashlib.sha256(encoded(payload)).hexdigest()


def runs_of(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The runs of a loop of which a record tells: `attempt` of a checkpoint, `attempts` of a record of their own."""
    return [*filter(None, [payload.get("attempt")]), *payload.get("attempts", ())]


def sealed(record: Record) -> Record:
    """The record with its payload's bytes and their digest, for who needs both before it is appended."""
    content = encoded(record.payload)
    return replace(record, encoded=content, digest=hashlib.sha256(content).hexdigest())


def is_intact(record: Record) -> bool:
    """Whether a record's payload is the one that it was written with; no one can tell of one that was purged, or of a
    later format.
    """
    return record.version != VERSION or record.purged or digest_of(record.payload) == record.digest


def append(store: Store, route: str, record: Record, *, id: str, after: Token | None) -> Token:  # noqa: A002
    """Append a record to a route's journal; acknowledged when this returns. Errors: `Store.append`."""
    if not record.encoded:
        record = sealed(record)
    line = b'{"v":%d,"revision":%d,"parent":%d,"kind":%s,"digest":"%s","payload":%s,"render":%s}' % (
        VERSION,
        record.revision,
        record.revision - 1,
        json.dumps(record.kind).encode(),
        record.digest.encode(),
        record.encoded,
        json.dumps(record.render).encode(),
    )
    return store.append(stream_of(route), line, id=id, after=after)


def read(store: Store, route: str, *, after: Token | None = None) -> Iterator[tuple[Token, Record]]:
    """A route's records after a place, oldest first, each with its own place. Errors: `Store.read`."""
    for entry in store.read(stream_of(route), after=after):
        yield entry.token, parsed(route, entry)


def at(store: Store, route: str, token: Token) -> Record:
    """The record of a route at a place. Errors: `Lookup.entry`."""
    return parsed(route, entry_at(store, stream_of(route), token))


def newest(store: Store, route: str) -> Record | None:
    """A route's newest record, None where it has none. DamagedJournal where it cannot be found; other errors: as
    `Lookup.entry`.
    """
    for _ in range(_MOST_LOOKS):
        token = store.head(stream_of(route))
        if token is None:
            return None
        with suppress(UnknownToken):  # rewritten in between
            return at(store, route, token)
    raise DamagedJournal(route, "its newest record cannot be found", MEND_JOURNAL)


def parsed(route: str, entry: Entry) -> Record:
    """The record in an entry of a route's stream; DamagedJournal where it is none."""
    try:
        line = json.loads(entry.record.decode())
        if b"\\u" in entry.record:  # we write none but of control characters: an unpaired surrogate fits no file
            json.dumps(line, ensure_ascii=False).encode()
        version, kind, payload = int(line.get("v", 1)), str(line["kind"]), dict(line["payload"])
        return Record(
            revision=int(line["revision"]),
            kind=kind if version <= VERSION else f"{kind}/{version}",
            payload=payload if version <= VERSION else {"decision_count": _labels_given(payload)},
            render=str(line.get("render", "")),
            version=version,
            digest=str(line.get("digest", "")) or (digest_of(payload) if version > VERSION else ""),
            purged=line.get("purged") is True,
            outdated=line.get("outdated") is True,
            lineage=str(line.get("lineage", "")),
            foreign=entry.foreign,
        )
    except MALFORMED as error:
        # What someone else wrote is not told: a hook may hand the words on.
        what = f"the record {entry.id!r} is not one of a route: {error}"
        what = "a record that came with the repository is not one of a route" if entry.foreign else what
        raise DamagedJournal(route, what, MEND_JOURNAL) from None


def _labels_given(payload: object) -> int:
    """The highest number of a decision's label that stands as an `id` or a key in a tree, 0 for none: none that was
    given is to be given again. One that is only spoken of was not.
    """
    if isinstance(payload, list):
        return max(map(_labels_given, payload), default=0)
    if not isinstance(payload, dict):
        return 0
    named = [_LABEL.fullmatch(name) for name in (payload.get("id"), *payload) if isinstance(name, str)]
    return max(0, *(int(label[1]) for label in named if label), *map(_labels_given, payload.values()))
