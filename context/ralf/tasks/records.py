"""The records of the stream `tasks`, one class for each kind, and what they come to: pure, no file is looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import field, fields, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Protocol

from ralf.errors import MEND_JOURNAL, DamagedJournal
from ralf.storage.journal import MALFORMED, Entry
from ralf.tasks.model import Attempt, Claim, Evidence, Task
from ralf.text.frozen import dataclass

STREAM = "tasks"

VERSION = 1

_DIGITS = 32  # of a file's sha256: so it is taken for the name of no blob

MOST_CHANGES = 1_000
"""Files that one record may change."""

_MOST_ATTEMPTS = 100  # that are told of a task; the stream has all


def digest_of(content: bytes) -> str:
    """What names the bytes of a task's file in a record."""
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def now() -> str:
    """The time as records have it: a lease is counted in less than seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def seconds_of(at: str) -> float:
    """A time of a record in seconds since 1970, 0.0 for none."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


# ---- plain trees: what stands in a record, and in the index ----


def tree_of(value: Any) -> dict[str, Any]:
    """A value of the model as a plain tree; what is as it always is at first is left out."""
    tree = {}
    for each in fields(value):
        found = getattr(value, each.name)
        if found != (each.default_factory() if callable(each.default_factory) else each.default):
            tree[each.name] = dict(found) if isinstance(found, Mapping) else found
    return tree


def task_of(tree: Mapping[str, Any]) -> Task:
    """A task of its plain tree."""
    return Task(**{**tree, "tags": tuple(tree.get("tags", ())), "after": tuple(tree.get("after", ()))})


def _evidence_of(tree: Mapping[str, Any] | None) -> Evidence | None:
    return Evidence(**tree) if tree is not None else None


def value_digest(value: Any) -> str:
    """What a field's value is known by where it need not be kept: a text may be long, and hold a secret."""
    plain = list(value) if isinstance(value, tuple) else value
    return digest_of(json.dumps(plain, ensure_ascii=True, sort_keys=True, default=str).encode())


# ---- what a record does to the file of a task ----


@dataclass(frozen=True, slots=True)
class Change:
    """What a record does to the file of a task. The record comes first: who dies between leaves the file behind it.

    place   where the file stands afterwards, from the project's folder on; `origin`: where it stood, "" for a new one
    base    digest of the bytes that it had, "" for a new one
    digest  of those that it is to have
    values  the fields that change, with their new values; `before` has digests of what they were
    tree    of a new task: all of it
    foreign whether the file is not this user's, and stays so: a pull changed it while its task was claimed
    """

    task: str = ""
    place: str = ""
    origin: str = ""
    base: str = ""
    digest: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    tree: Mapping[str, Any] | None = None
    foreign: bool = False

    def made_to(self, task: Task) -> Task:
        """A task with the fields changed that nobody else has changed since; theirs stand."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.values.items()
            if self.before.get(name) == value_digest(getattr(task, name))
        }
        return replace(task, **values)


# ---- the kinds ----


@dataclass(frozen=True, slots=True)
class Seen:
    """Files whose bytes are this user's: taken in as they are (`digests`, with the ids), or written (`changes`)."""

    kind: ClassVar[str] = "seen"
    changes: tuple[Change, ...] = ()
    digests: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Taken:
    """A claim. `digest`: of the file that was claimed, whose bytes are this user's from now on."""

    kind: ClassVar[str] = "claim"
    task: str = ""
    by: str = ""
    seconds: int = 900
    process: int = 0
    born: int = 0
    machine: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Renewed:
    """A sign of life of a claim's holder; `process` where it goes on as another one."""

    kind: ClassVar[str] = "renew"
    task: str = ""
    lease: int = 0
    process: int = 0
    born: int = 0
    machine: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """A claim that ended otherwise than by what its holder did: `outcome` as in `Attempt`."""

    kind: ClassVar[str] = "release"
    task: str = ""
    lease: int = 0
    outcome: str = "released"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """A claim that ran out, as the next one who claims says."""

    kind: ClassVar[str] = "lost"
    task: str = ""
    lease: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a task's holder says of it."""

    kind: ClassVar[str] = "progress"
    task: str = ""
    lease: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """A task that is completed; `lease` is 0 where a person says so who had not claimed it."""

    kind: ClassVar[str] = "done"
    task: str = ""
    lease: int = 0
    by: str = ""
    summary: str = ""
    tokens: int = 0
    evidence: Mapping[str, Any] | None = None
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """A task that its holder gives up."""

    kind: ClassVar[str] = "fail"
    task: str = ""
    lease: int = 0
    by: str = ""
    reason: str = ""
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Retried:
    """A task that is to be tried again."""

    kind: ClassVar[str] = "retry"
    task: str = ""
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Evident:
    """What says that a task is done."""

    kind: ClassVar[str] = "evidence"
    task: str = ""
    evidence: Mapping[str, Any] | None = None


Body = Seen | Taken | Renewed | Released | Lost | Progress | Done | Failed | Retried | Evident

_KINDS: dict[str, type[Any]] = {
    each.kind: each for each in (Seen, Taken, Renewed, Released, Lost, Progress, Done, Failed, Retried, Evident)
}


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the stream.

    number  1 for the first of this user's, then one more each; of a claim it is the fencing number
    write   the name of the write that it is part of: one holder of the lock
    owes    tasks whose files earlier writes could not bring up to date
    seen    digests of files that a person wrote here and that were read since the record before
    body    None for a kind or a version that is not known here
    """

    number: int
    at: str
    write: str
    owes: tuple[str, ...] = ()
    body: Body | None = None
    seen: tuple[str, ...] = ()


def encoded(record: Record) -> bytes:
    """A record as one line of JSON."""
    body = record.body
    if body is None:
        raise ValueError("a record without a body")
    tree = {
        "v": VERSION,
        "n": record.number,
        "at": record.at,
        "kind": body.kind,
        "w": record.write,
        **({"owes": record.owes} if record.owes else {}),
        **({"seen": record.seen} if record.seen else {}),
        **tree_of(body),
    }
    if "changes" in tree:
        tree["changes"] = [tree_of(one) for one in tree["changes"]]
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"), default=str).encode()


def parsed(entry: Entry) -> Record | None:
    """The record in an entry; None for one that is not this user's. DamagedJournal for one that is none."""
    if entry.foreign:
        return None
    try:
        tree = json.loads(entry.record)
        kind = _KINDS.get(tree["kind"]) if tree.get("v") == VERSION else None
        body = None
        if kind is not None:
            values = {name: tree[name] for name in _names(kind) if name in tree}
            if "changes" in values:
                values["changes"] = tuple(Change(**one) for one in values["changes"])
            if "digests" in values:
                values["digests"] = tuple((str(task), str(digest)) for task, digest in values["digests"])
            body = kind(**values)
        owes, seen = tuple(tree.get("owes", ())), tuple(map(str, tree.get("seen", ())))
        return Record(int(tree["n"]), str(tree["at"]), str(tree["w"]), owes, body, seen)
    except MALFORMED as error:
        raise DamagedJournal(STREAM, f"the record {entry.id!r} is not one of tasks: {error}", MEND_JOURNAL) from None


_named: dict[type[Any], tuple[str, ...]] = {}


def _names(kind: type[Any]) -> tuple[str, ...]:
    if kind not in _named:
        _named[kind] = tuple(each.name for each in fields(kind))
    return _named[kind]


# ---- what the records come to ----


@dataclass(frozen=True, slots=True)
class Known:
    """What the records say of a task; of its text and status the file says more.

    change  what was last done to its file, by the write `write`
    sign    the last sign of life of its holder that is a record
    order   the place of its first record: of tasks of one second the first one is the older one
    """

    change: Change | None = None
    write: str = ""
    order: int = 0
    claim: Claim | None = None
    sign: str = ""
    attempts: tuple[Attempt, ...] = ()
    progress: str = ""
    progress_at: str = ""
    summary: str = ""
    reason: str = ""
    finished: str = ""
    tokens: int = 0
    evidence: Evidence | None = None


class Shelf(Protocol):
    """What is known of tasks by their ids; nothing is ever taken out."""

    def get(self, id_: str, /) -> Known | None:
        """What is known of a task, None for nothing."""

    def __setitem__(self, id_: str, known: Known, /) -> None:
        """Keep what is known of a task."""


class Book(Protocol):
    """Where what the records come to is kept."""

    number: int
    write: str
    owed: dict[str, None]

    @property
    def known(self) -> Shelf:
        """What is known of each task."""

    def own(self, digest: str) -> None:
        """Keep that bytes of a task's file are this user's."""


def fold(records: Iterable[Record], into: Book) -> None:
    """Add records, the oldest first, to what those before them came to."""
    for record in records:
        into.number = max(into.number, record.number)
        if record.write != into.write:  # whoever wrote it has completed what the one before left, but for `owes`
            into.write, into.owed = record.write, dict.fromkeys(record.owes)
        for digest in record.seen:
            into.own(digest)
        body = record.body
        if body is None:
            continue
        for place, change in enumerate(getattr(body, "changes", ())):
            _note(into, change, record, place)
        if isinstance(body, Seen):
            for _, digest in body.digests:
                into.own(digest)
            continue
        known = into.known.get(body.task) or Known()
        if isinstance(body, Taken) and body.digest:
            into.own(body.digest)
        made = _FOLDS[type(body)](known, record, body)
        if made is not known:
            into.known[body.task] = made


def _note(into: Book, change: Change, record: Record, place: int) -> None:
    for digest in filter(None, () if change.foreign else (change.base, change.digest)):
        into.own(digest)
    known = into.known.get(change.task) or Known()
    order = known.order or MOST_CHANGES * record.number + place
    into.known[change.task] = replace(known, change=change, write=record.write, order=order)
    into.owed.setdefault(change.task)


def _taken(known: Known, record: Record, body: Taken) -> Known:
    claim = Claim(record.number, body.by, record.at, body.seconds, body.process, body.born, body.machine)
    attempts = (*known.attempts, Attempt(record.number, body.by, record.at))[-_MOST_ATTEMPTS:]
    # What was said before stays: whoever goes on needs it. A task that begins anew has nothing yet.
    return replace(known, claim=claim, sign=record.at, attempts=attempts, evidence=None)


def _renewed(known: Known, record: Record, body: Renewed) -> Known:
    if known.claim is None or known.claim.number != body.lease:
        return known
    claim = known.claim
    if body.process:
        claim = replace(claim, process=body.process, born=body.born, machine=body.machine)
    return replace(known, sign=record.at, claim=claim)


def _ended(known: Known, record: Record, lease: int, outcome: str, note: str) -> Known:
    """The attempt of a lease as it ended; the claim goes where it is that one."""
    attempts = tuple(
        replace(one, ended=record.at, outcome=outcome, note=note) if one.number == lease and not one.ended else one
        for one in known.attempts
    )
    held = known.claim is not None and known.claim.number == lease
    return replace(known, attempts=attempts, claim=None if held else known.claim)


def _released(known: Known, record: Record, body: Released) -> Known:
    return _ended(known, record, body.lease, body.outcome, body.note)


def _lost(known: Known, record: Record, body: Lost) -> Known:
    return _ended(known, record, body.lease, "lost", body.note)


def _progress(known: Known, record: Record, body: Progress) -> Known:
    held = known.claim is not None and known.claim.number == body.lease
    sign = record.at if held else known.sign
    return replace(known, progress=body.text, progress_at=record.at, sign=sign)


def _closed(known: Known, record: Record, lease: int, by: str, outcome: str, note: str) -> Known:
    """The end of a task by whoever says so: of the lease's attempt, else of one that is made for it."""
    if lease:
        return _ended(known, record, lease, outcome, note)
    before = _ended(known, record, known.claim.number, "released", f"{outcome}, as {by} says") if known.claim else known
    attempt = Attempt(record.number, by, record.at, record.at, outcome, note)
    return replace(before, attempts=(*before.attempts, attempt)[-_MOST_ATTEMPTS:])


def _done(known: Known, record: Record, body: Done) -> Known:
    made = _closed(known, record, body.lease, body.by, "done", "")
    evidence = _evidence_of(body.evidence)
    return replace(
        made, summary=body.summary, reason="", finished=record.at, tokens=known.tokens + body.tokens, evidence=evidence
    )


def _failed(known: Known, record: Record, body: Failed) -> Known:
    made = _closed(known, record, body.lease, body.by, "failed", body.reason)
    return replace(made, reason=body.reason, finished=record.at)


def _retried(known: Known, record: Record, body: Retried) -> Known:
    return replace(known, reason="", finished="", evidence=None)


def _evident(known: Known, record: Record, body: Evident) -> Known:
    return replace(known, evidence=_evidence_of(body.evidence))


_FOLDS: dict[type[Any], Any] = {
    Taken: _taken,
    Renewed: _renewed,
    Released: _released,
    Lost: _lost,
    Progress: _progress,
    Done: _done,
    Failed: _failed,
    Retried: _retried,
    Evident: _evident,
}


# ---- what is known of a task, as the index keeps it ----


def known_text(known: Known) -> str:
    """What is known of a task as JSON."""
    tree = tree_of(known)
    for name in ("change", "claim", "evidence"):
        if name in tree:
            tree[name] = tree_of(tree[name])
    if "attempts" in tree:
        tree["attempts"] = [tree_of(one) for one in tree["attempts"]]
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":"), default=str)


def known_of(text: str) -> Known:
    """What was kept by `known_text`."""
    tree = json.loads(text)
    if "change" in tree:
        tree["change"] = Change(**tree["change"])
    if "claim" in tree:
        tree["claim"] = Claim(**tree["claim"])
    if "evidence" in tree:
        tree["evidence"] = Evidence(**tree["evidence"])
    tree["attempts"] = tuple(Attempt(**one) for one in tree.get("attempts", ()))
    return Known(**tree)
