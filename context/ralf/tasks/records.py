"""The records of the stream `tasks`, one class for each kind, and how they fold into rows: no file is looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field, fields, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.storage.journal import MALFORMED
from ralf.tasks.model import Attempt, Claim, Evidence, Task
from ralf.text.frozen import dataclass

STREAM = "tasks"

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


def plain(value: Any) -> dict[str, Any]:
    """A value of the model as JSON has it: lists for tuples, texts for dates in unknown keys."""
    tree: dict[str, Any] = json.loads(json.dumps(tree_of(value), default=str))
    return tree


def task_of(tree: Mapping[str, Any]) -> Task:
    """A task of its plain tree."""
    return Task(**{**tree, "tags": tuple(tree.get("tags", ())), "after": tuple(tree.get("after", ()))})


def _evidence_of(tree: Mapping[str, Any] | None) -> Evidence | None:
    return Evidence(**tree) if tree is not None else None


# ---- what a record does to the file of a task ----


@dataclass(frozen=True, slots=True)
class Change:
    """What a record does to a task and its file. The record comes first: who dies between leaves the file behind it.

    place   where the file stands afterwards, from the project's folder on; `origin`: where it stood, "" for a new one
    base    digest of the bytes that it had, "" for a new one
    digest  of those that it is to have
    values  the fields that change, with their new values
    tree    all of a task that is new, or that somebody has edited; `is_cut`: without secrets that its file has
    foreign whether the file is not this user's, and stays so: a pull changed it while its task was claimed
    """

    task: str = ""
    place: str = ""
    origin: str = ""
    base: str = ""
    digest: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    tree: Mapping[str, Any] | None = None
    is_cut: bool = False
    foreign: bool = False

    def made_to(self, task: Task) -> Task:
        """A task with the fields changed."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in self.values.items()
        }
        return replace(task, **values)


# ---- the kinds ----


@dataclass(frozen=True, slots=True)
class Seen:
    """Files that ralf writes, or that somebody has edited (`changes`).

    digests  of files that are this user's as they are, with the ids of their tasks
    brought  names and digests of files that were there before the user opted in: they are not theirs
    """

    kind: ClassVar[str] = "seen"
    changes: tuple[Change, ...] = ()
    digests: tuple[tuple[str, str], ...] = ()
    brought: tuple[tuple[str, str], ...] = ()


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


def body_of(body: Body) -> dict[str, Any]:
    """The body of a record, as JSON has it."""
    tree = {"kind": body.kind, **tree_of(body)}
    if "changes" in tree:
        tree["changes"] = [tree_of(one) for one in tree["changes"]]
    made: dict[str, Any] = json.loads(json.dumps(tree, default=str))
    return made


def parsed(record: Record) -> Body | None:
    """What a record says; None for a kind that is not known here, and for one that makes no sense."""
    kind = _KINDS.get(record.body.get("kind", ""))
    if kind is None:
        return None
    values = {name: record.body[name] for name in _names(kind) if name in record.body}
    if record.by and "by" in _names(kind):
        values["by"] = record.by
    with suppress(*MALFORMED):
        if "changes" in values:
            known = _names(Change)
            trees = ({name: one[name] for name in known if name in one} for one in values["changes"])
            values["changes"] = tuple(Change(**tree) for tree in trees)
        for name in ("digests", "brought"):
            if name in values:
                values[name] = tuple((str(one), str(digest)) for one, digest in values[name])
        body: Body = kind(**values)
        return body
    return None


def tasks_of(body: Body) -> set[str]:
    """The tasks that a record is about."""
    found = {change.task for change in getattr(body, "changes", ())}
    return found | ({id_ for id_, _ in body.digests} if isinstance(body, Seen) else {body.task})


_named: dict[type[Any], tuple[str, ...]] = {}


def _names(kind: type[Any]) -> tuple[str, ...]:
    if kind not in _named:
        _named[kind] = tuple(each.name for each in fields(kind))
    return _named[kind]


# ---- what the records come to ----


@dataclass(frozen=True, slots=True)
class Known:
    """What the records say of a task. What its file says counts, where that is another.

    change  what was last done to its file
    tree    what the file says then, None where no record has it; `prior`: what it said before; is_cut: see `Change`
    boot    in which run of the machine that was recorded, "" where nobody knows
    sign    the last sign of life of its holder that is a record
    order   the place of its first record: of tasks of one second the first one is the older one
    """

    change: Change | None = None
    tree: Mapping[str, Any] | None = None
    prior: Mapping[str, Any] | None = None
    is_cut: bool = False
    boot: str = ""
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


def known(rows: Rows, id_: str) -> Known | None:
    """What the records say of a task; None for nothing."""
    tree = rows.one(f"known/{id_}")
    return _known_of(tree) if tree is not None else None


def fold(rows: Rows, record: Record) -> None:
    """Add a record to what those before it came to.

    known/ID    what is known of a task
    own/DIGEST  bytes of a task's file that are this user's
    claims      the numbers of the claims that last, by task
    write owed  the newest write, and the tasks that it changed: their files may not show it yet
    boot        the run of the machine in which the newest write was; whoever made it has looked at all files
    """
    tree = record.body
    if not tree:
        return
    if rows.one("owed") is None or tree.get("w", "") != rows.one(
        "write"
    ):  # whoever wrote it has completed what the one before left, but for `owes`
        rows.put("write", tree.get("w", ""))
        rows.put("owed", [str(id_) for id_ in tree.get("owes", ())])
    if boot := tree.get("boot"):
        rows.put("boot", boot)
    body = parsed(record)
    for digest in tree.get("seen", ()):
        rows.put(f"own/{digest}", 1)
    changes: tuple[Change, ...] = getattr(body, "changes", ())
    for place, change in enumerate(changes):
        _note(rows, change, record, place)
    if changes:
        rows.put("owed", list(dict.fromkeys([*rows.one("owed"), *(change.task for change in changes)])))
    if isinstance(body, Seen):
        for _, digest in body.digests:
            rows.put(f"own/{digest}", 1)
        for name, digest in body.brought:
            rows.put(f"brought/{name}", 1)
            rows.put(f"brought/{digest}", 1)
    elif body is not None:
        if isinstance(body, Taken) and body.digest:
            rows.put(f"own/{body.digest}", 1)
        _put(rows, body.task, _FOLDS[type(body)](known(rows, body.task) or Known(), record, body))


def _put(rows: Rows, id_: str, made: Known) -> None:
    claims = rows.one("claims") or {}
    number = made.claim.number if made.claim is not None else None
    if claims.get(id_) != number:
        rest = {other: one for other, one in claims.items() if other != id_}
        rows.put("claims", rest if number is None else rest | {id_: number})
    rows.put(f"known/{id_}", _tree_of_known(made))


def _note(rows: Rows, change: Change, record: Record, place: int) -> None:
    for digest in filter(None, () if change.foreign else (change.base, change.digest)):
        rows.put(f"own/{digest}", 1)
    was = known(rows, change.task) or Known()
    tree = change.tree
    if tree is None and was.tree is not None and not change.foreign:
        tree = {**was.tree, **change.values}
    order = was.order or MOST_CHANGES * record.revision + place
    is_cut = change.is_cut if change.tree is not None else was.is_cut
    is_again = was.change is not None and was.change.base == change.base != was.change.digest
    prior = was.prior if is_again else was.tree  # as the file has it: it could not be written then
    made = replace(was, change=replace(change, tree=None), tree=tree, prior=prior, is_cut=is_cut, order=order)
    _put(rows, change.task, replace(made, boot=str(rows.one("boot") or "")))


def _taken(known: Known, record: Record, body: Taken) -> Known:
    claim = Claim(record.revision, body.by, record.at, body.seconds, body.process, body.born, body.machine)
    attempts = (*known.attempts, Attempt(record.revision, body.by, record.at))[-_MOST_ATTEMPTS:]
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
    attempt = Attempt(record.revision, by, record.at, record.at, outcome, note)
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


def _tree_of_known(known: Known) -> dict[str, Any]:
    tree = tree_of(known)
    for name in ("change", "claim", "evidence"):
        if name in tree:
            tree[name] = tree_of(tree[name])
    if "attempts" in tree:
        tree["attempts"] = [tree_of(one) for one in tree["attempts"]]
    plain: dict[str, Any] = json.loads(json.dumps(tree, default=str))  # dates in unknown keys, tuples
    return plain


def _known_of(kept: Mapping[str, Any]) -> Known:
    tree = dict(kept)
    if "change" in tree:
        tree["change"] = Change(**tree["change"])
    if "claim" in tree:
        tree["claim"] = Claim(**tree["claim"])
    if "evidence" in tree:
        tree["evidence"] = Evidence(**tree["evidence"])
    tree["attempts"] = tuple(Attempt(**one) for one in tree.get("attempts", ()))
    return Known(**tree)
