"""The journal of a route, and the store port: what ralf asks of whatever keeps its records and blobs.

The docstrings of the port are its contract. `tests/conformance` holds every implementation to it;
`ralf.storage.filestore` is the embedded one, and `tests/conformance/memory_store.py` the plainest one.
`ralf.storage.own` stands before either and hides what is not this user's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ralf.errors import MEND_JOURNAL, DamagedJournal, UsageError
from ralf.text import cleaning, digests
from ralf.text.frozen import NamedTuple, dataclass, field
from ralf.text.patterns import regex

# ---- the port ----

Token = str
"""A place in a stream, opaque: only its store can read it. Equal tokens of one stream are the same place."""

Digest = str
"""The sha256 of a blob's content, 64 lower-case hexadecimal digits."""


class Entry(NamedTuple):
    """A record as it stands in a stream: its place, the id under which it was appended, and its bytes."""

    token: Token
    id: str
    record: bytes


class Blob(NamedTuple):
    """A blob that is kept: its digest, the bytes that it takes up, and when it was last put, in seconds since 1970."""

    digest: Digest
    size: int
    put: float


class Written(NamedTuple):
    """When a stream was written last, in nanoseconds since 1970.

    written  as whoever wrote it says, or whoever copied it
    changed  the later one of that and of when it was put where it is, which nobody can choose
    """

    written: int
    changed: int


class Store(Protocol):
    """Streams of records and a heap of blobs.

    A stream's name is a path of route-name-like parts, `routes/TASK-001`; the first append makes it.
    Every method may raise Busy (try again) and OSError (unwritable, disk full): then nothing was done.

    """

    @property
    def files(self) -> Files | None:
        """The files in which streams and blobs lie; None for an engine that has none."""

    @property
    def leases(self) -> Leases | None:
        """What says who may write, on whatever machine they are; None where only the streams say it."""

    # ---- streams ----

    def append(self, stream: str, record: bytes, *, id: str, after: Token | None, is_new: bool = False) -> Token:  # noqa: A002
        """Append one record to a stream, and return its place, once it is durable.

        record  one JSON object as UTF-8 without a line break
        id      unique within the stream: a record lands once per id, whatever `after` says; appending it again
                changes nothing and returns the place of the first
        after   the head that the caller saw, None for an empty stream; Conflict(head) when it is another by now
        is_new  the caller knows that no record up to `after` has the id: where `after` is the head, nobody looks for it

        Whole or not at all: no reader ever sees a part of a record. Of two callers with the same `after` one wins.
        """

    def read(self, stream: str, *, after: Token | None = None) -> Iterator[Entry]:
        """The records after a place, or all, oldest first; nothing for a stream that does not exist.

        A record that was being written when reading began may or may not be among them. DamagedJournal when a record's
        bytes are not those that were written, after all records before it; UnknownToken when `after` is no place of
        this stream.
        """

    def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place. UnknownToken when that is no place of this stream, DamagedJournal as in `read`."""

    def newest(self, stream: str) -> Entry | None:
        """The newest record, None for a stream without one. DamagedJournal as in `read`."""

    def head(self, stream: str) -> Token | None:
        """The place of the newest record, None for an empty or missing stream. Takes no longer for a long stream."""

    def streams(self, prefix: str) -> Iterator[str]:
        """The names of all streams that begin with `prefix`, in no particular order."""

    def written(self, folder: str) -> Mapping[str, Written]:
        """When the streams right below a folder (`routes`) were written last, by their last part; where no one can tell
        it may have been just now.
        """

    def replace(self, stream: str, change: Callable[[Entry], bytes], *, wipe: bool = True) -> int:
        """Replace the bytes of records, and return how many are others now; durable when this returns.

        change  told each record, oldest first; returns the bytes that are to stand in its place, or its own
        wipe    whether the bytes that were replaced have to be gone; False where this only makes room: then an engine
                may leave them where they are until it needs the room, which can be much quicker

        Ids and order stay, and nobody appends meanwhile. Whole or not at all: a reader sees all records as they were or
        all as they are now. With `wipe` nothing of what was replaced is left. Every token of the stream is void
        afterwards (UnknownToken), unless no record changed. DamagedJournal as in `read`; what `change` raises comes
        through: then nothing was done.
        """

    def drop(self, stream: str, *, wipe: bool = True) -> None:
        """Forget a stream, archived or not; nothing happens when there is none. `wipe`: as in `replace`.

        Durable when this returns. Nothing of it is left, and it may be begun anew. Broken off, it has all records or
        none, and done again it is completed.
        """

    # ---- blobs ----

    def put_blob(self, chunks: Iterable[bytes]) -> Digest:
        """Keep the chunks' joined bytes durably and return their digest. Idempotent; `Blob.put` is now."""

    def open_blob(self, digest: Digest) -> BinaryIO:
        """A blob's bytes, verified; NotFound when there is none of this digest, Damaged when it is not what was put."""

    def has_blob(self, digest: Digest) -> bool:
        """Whether a blob of this digest is kept."""

    def blobs(self) -> Iterator[Blob]:
        """Every blob that is kept, in no particular order, whole ones only."""

    def drop_blob(self, digest: Digest) -> None:
        """Forget a blob; nothing happens when there is none."""

    # ---- both ----

    def sweep(self) -> int:
        """Remove what those have left who died in the middle of a call, and return how many pieces; durable.

        Waits for whoever is at it, Busy when that takes too long. DamagedJournal as in `read`.
        """


class Files(Protocol):
    """Streams and blobs in files, which git may track and a person may look at.

    folder  below which they lie
    """

    folder: Path

    def path(self, stream: str) -> Path:
        """The file that a stream's newest records are in, or would be."""

    def size(self) -> int:
        """How many bytes the files of streams and blobs have."""

    def marks(self, folder: str) -> Mapping[str, str]:
        """Of the streams right below a folder (`routes`) that can tell, by their last part, a mark that is the same
        only while the stream is; for who keeps what was made of many. Takes much less than the head of each.

        One that was changed a moment ago is left out: what changed it once more might leave the same mark.
        """

    def archive(self, stream: str, head: Token) -> bool:
        """Compress a whole stream whose newest record is at a place; whether that is done.

        Every method goes on as before, tokens stay what they are, and the next record that is appended brings the
        stream back. At no moment is a record in neither place. Conflict where the newest record is another one,
        DamagedJournal as in `read`, Busy at once where somebody writes.
        """

    def archived(self, folder: str) -> frozenset[str]:
        """The streams right below a folder that are archived, by their last part."""


class Leases(Protocol):
    """Says who may write, on whatever machine they are. A lease ends by itself unless its holder renews it; for a store
    that has leases they are the only sign of life of who holds a step of a run or a task.

    Every method asks the engine, and waits no longer than the store's other calls do; Fenced where it cannot be
    reached. Two that are equal are of the same engine and project.
    """

    @property
    def seconds(self) -> float:
        """How long a lease lasts that is not renewed, unless it was taken for longer."""

    def take(self, name: str, holder: str, *, seconds: float = 0.0) -> Token:
        """Take a lease that nobody has; the token is what renews and releases it.

        name     a path like a stream's, which says what the lease is for
        holder   one line for others: who has it
        seconds  how long it lasts each time, in whole seconds; 0: `seconds` of the engine

        Claimed where somebody has it, named as they named themselves, with the time when their lease ends. After Fenced
        it may have been taken all the same, and then ends by itself.
        """

    def renew(self, name: str, token: Token, *, seconds: float = 0.0) -> Token:
        """Have a lease last `seconds` from now on, 0: as long as it was taken for, and return the token that stands for
        it then.

        Fenced with `lost` where it has ended, or somebody else has it.
        """

    def resume(self, name: str, holder: str) -> Token:
        """The token of a lease that was taken in this holder's name, for a process that continues with what another one
        has taken. Fenced with `lost` where nobody has it under this name.
        """

    def holder(self, name: str) -> str | None:
        """Who has a lease, None for nobody."""

    def until(self, name: str) -> str:
        """When a lease ends that is not renewed, as a time in UTC; "" where nobody has it."""

    def held(self, prefix: str) -> frozenset[str]:
        """The names of all leases that somebody has and that begin with `prefix`, which ends with a slash; one look."""

    def release(self, name: str, token: Token) -> None:
        """End a lease at once; nothing happens where it has ended or somebody else has it."""


# ---- what every store refuses ----

_LONGEST_ID = 200  # characters

_DIGEST = regex(r"[0-9a-f]{64}")


def is_stream(name: str) -> bool:
    """Whether a stream may have this name."""
    return all(map(cleaning.is_valid, name.split("/")))


def check_stream(name: str) -> None:
    """UsageError for what is no stream's name."""
    if not is_stream(name):
        raise UsageError(ascii(name), "refused as a stream name")


def check_record(stream: str, record: bytes, id: str = "id") -> None:  # noqa: A002
    """UsageError for a record of several lines, and for an id that is too long or empty."""
    if b"\n" in record or not 0 < len(id) <= _LONGEST_ID:
        raise UsageError(stream, f"a record is one line, and its id has 1 to {_LONGEST_ID} characters")


def is_digest(text: str) -> bool:
    """Whether a text is a digest."""
    return _DIGEST.fullmatch(text) is not None


def check_digest(digest: Digest) -> None:
    """UsageError for what is no digest."""
    if not is_digest(digest):
        raise UsageError(ascii(digest), "not a digest")


# ---- a route's records in the store's stream, oldest first; format: docs/format.md ----

VERSION = 2


class Save(NamedTuple):
    """A file that somebody has saved and a record has absorbed: the digest of its blob, and its stamp."""

    digest: str
    stamp: str


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
    mark      of the route, in its first record; of one from before there were marks a hash of the record
    save      the edit that it absorbs, None for none
    """

    revision: int
    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    render: str = ""
    version: int = field(default=VERSION, compare=False)
    digest: str = field(default="", compare=False)
    purged: bool = False
    mark: str = field(default="", compare=False)
    save: Save | None = field(default=None, compare=False)


_LABEL = r"DEC-([0-9]{1,9})"

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
    return digests.sha256(encoded(payload)).hexdigest()


def runs_of(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The runs of a loop of which a record tells: `attempt` of a checkpoint, `attempts` of a record of their own."""
    return [*filter(None, [payload.get("attempt")]), *payload.get("attempts", ())]


def append(store: Store, route: str, record: Record, *, id: str, after: Token | None) -> Token:  # noqa: A002
    """Append a record to a route's journal; acknowledged when this returns. Errors: `Store.append`."""
    return store.append(stream_of(route), line_of(record), id=id, after=after)


def line_of(record: Record) -> bytes:
    """A route's record as a store keeps it."""
    payload = encoded(record.payload)
    more = b',"mark":%s' % json.dumps(record.mark).encode() if record.mark else b""
    more += b',"save":%s' % json.dumps(record.save).encode() if record.save else b""
    return b'{"v":%d,"revision":%d,"parent":%d,"kind":%s,"digest":"%s","payload":%s,"render":%s%s}' % (
        VERSION,
        record.revision,
        record.revision - 1,
        json.dumps(record.kind).encode(),
        digests.sha256(payload).hexdigest().encode(),
        payload,
        json.dumps(record.render).encode(),
        more,
    )


def read(
    store: Store, route: str, *, after: Token | None = None, kinds: tuple[str, ...] = ()
) -> Iterator[tuple[Token, Record]]:
    """A route's records after a place, oldest first, each with its own place; of some `kinds`, or of all. Errors:
    `Store.read`.
    """
    words = [f'"{kind}"'.encode() for kind in kinds]
    for entry in store.read(stream_of(route), after=after):
        if not words or any(word in entry.record for word in words):  # most lines need no parsing
            record = parsed(route, entry)
            if not kinds or record.kind in kinds:
                yield entry.token, record


def newest(store: Store, route: str) -> Record | None:
    """A route's newest record, None where it has none. Errors: `Store.newest`."""
    entry = store.newest(stream_of(route))
    return parsed(route, entry) if entry is not None else None


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
            render="" if line.get("outdated") is True else str(line.get("render", "")),
            version=version,
            digest=str(line.get("digest", "")) or (digest_of(payload) if version > VERSION else ""),
            purged=line.get("purged") is True,
            mark=str(line.get("mark") or ("" if line["revision"] != 1 else _mark_of(entry))),
            save=Save(*map(str, line["save"])) if line.get("save") else None,
        )
    except MALFORMED as error:
        what = f"the record {entry.id!r} is not one of a route: {error}"
        raise DamagedJournal(route, what, MEND_JOURNAL) from None


def _mark_of(entry: Entry) -> str:
    return digests.sha256(entry.record).hexdigest()[:8]


def _labels_given(payload: object) -> int:
    """The highest number of a decision's label that stands as an `id` or a key in a tree, 0 for none: none that was
    given is to be given again. One that is only spoken of was not.
    """
    if isinstance(payload, list):
        return max(map(_labels_given, payload), default=0)
    if not isinstance(payload, dict):
        return 0
    named = [re.fullmatch(_LABEL, name) for name in (payload.get("id"), *payload) if isinstance(name, str)]
    return max(0, *(int(label[1]) for label in named if label), *map(_labels_given, payload.values()))
