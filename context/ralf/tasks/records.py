"""The records of the stream `tasks`, and how they fold into rows: no file is looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, fields, replace
from datetime import UTC, datetime
from typing import Any

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


# ---- what a record says ----

# kind      what it says of a task, or of files
# seen      files that ralf writes, or that somebody has edited (`changes`); `digests`: of files that are this user's as
#           they are, with the ids of their tasks; `brought`: names and digests of files that were there before the user
#           opted in: they are not theirs
# claim     a claim: `by`, `seconds`, and where the process is known `process`, `born`, `machine`
# renew     a sign of life of the holder of a `lease`, the number of a claim; `process` where it goes on as another one
# release   a claim that ended otherwise than by what its holder did: `outcome` as in `Attempt`, and a `note`
# lost      a claim that ran out, as the next one who claims says
# progress  what a task's holder says of it: `text`
# done      a task that is completed: `summary`, `tokens`, `evidence`, `changes`; without `lease` by who had no claim
# fail      a task that its holder gives up: `reason`, `changes`
# retry     a task that is to be tried again: `changes`
# evidence  what says that a task is done


def body_of(kind: str, **values: Any) -> dict[str, Any]:
    """The body of a record, as JSON has it; what says nothing is left out."""
    tree = {"kind": kind, **{name: value for name, value in values.items() if value}}
    if "changes" in tree:
        tree["changes"] = [tree_of(one) for one in tree["changes"]]
    made: dict[str, Any] = json.loads(json.dumps(tree, default=str))
    return made


def tasks_of(body: Mapping[str, Any]) -> set[str]:
    """The tasks that a record is about."""
    with suppress(*MALFORMED):
        found = {change["task"] for change in body.get("changes", ())} | {id_ for id_, _ in body.get("digests", ())}
        return found | {body["task"]} if body.get("task") else found
    return set()


# ---- what the records come to ----


@dataclass(frozen=True, slots=True)
class Known:
    """What the records say of the file of a task. What the file says counts, where that is another.

    change  what was last done to it
    tree    what it says then, None where no record has it; `prior`: what it said before; is_cut: see `Change`
    boot    in which run of the machine that was recorded, "" where nobody knows
    order   the place of the task's first record: of tasks of one second the first one is the older one
    """

    change: Change | None = None
    tree: Mapping[str, Any] | None = None
    prior: Mapping[str, Any] | None = None
    is_cut: bool = False
    boot: str = ""
    order: int = 0


def known(rows: Rows, id_: str) -> Known | None:
    """What the records say of the file of a task; None for nothing."""
    row = rows.one(f"known/{id_}")
    if row is None:
        return None
    change = Change(**row["change"]) if row.get("change") else None
    names = [one.name for one in fields(Known) if one.name != "change"]
    return Known(change, **{name: row[name] for name in names if name in row})


_SAID = ("progress", "progress_at", "summary", "reason", "finished", "tokens")


def said(rows: Rows, id_: str) -> dict[str, Any]:
    """What the records say of a task beside its file: fields of a `TaskState`."""
    row = rows.one(f"known/{id_}") or {}
    made: dict[str, Any] = {name: row[name] for name in _SAID if name in row}
    for name, kind in (("claim", Claim), ("evidence", Evidence)):
        if row.get(name) is not None:
            made[name] = kind(**row[name])
    return made | {"attempts": tuple(Attempt(**one) for one in row.get("attempts", ()))}


def fold(rows: Rows, record: Record) -> None:
    """Add a record to what those before it came to. What makes no sense in it is passed over, as is a later kind.

    known/ID    what is known of a task: the fields of a `Known`, and what `said` tells
    own/DIGEST  bytes of a task's file that are this user's
    claims      the numbers of the claims that last, by task
    write owed  the newest write, and the tasks that it changed: their files may not show it yet
    boot        the run of the machine in which the newest write was; whoever made it has looked at all files
    """
    body = record.body
    if not body:
        return
    if rows.one("owed") is None or body.get("w", "") != rows.one("write"):
        # whoever wrote it has completed what the one before left, but for `owes`
        rows.put("write", body.get("w", ""))
        rows.put("owed", [str(id_) for id_ in body.get("owes", ())])
    if boot := body.get("boot"):
        rows.put("boot", boot)
    with suppress(*MALFORMED):
        own = [*body.get("seen", ()), *(digest for _, digest in body.get("digests", ())), body.get("digest")]
        for digest in filter(None, own):
            rows.put(f"own/{digest}", 1)
        for one in (one for pair in body.get("brought", ()) for one in pair):
            rows.put(f"brought/{one}", 1)
        changes = body.get("changes", ())
        for place, change in enumerate(changes):
            _note(rows, change, record, place)
        if changes:
            rows.put("owed", list(dict.fromkeys([*rows.one("owed"), *(change["task"] for change in changes)])))
        if (kind := _KINDS.get(body["kind"])) is not None:
            known = rows.one(f"known/{body['task']}") or {}
            _put(rows, body["task"], known | kind(known, record, {"by": record.by, **body}))


def _put(rows: Rows, id_: str, known: Mapping[str, Any]) -> None:
    claims = rows.one("claims") or {}
    number = known["claim"]["number"] if known.get("claim") else None
    if claims.get(id_) != number:
        rest = {other: one for other, one in claims.items() if other != id_}
        rows.put("claims", rest if number is None else rest | {id_: number})
    rows.put(f"known/{id_}", known)


_NAMES = tuple(one.name for one in fields(Change) if one.name != "tree")


def _note(rows: Rows, change: Mapping[str, Any], record: Record, place: int) -> None:
    """Add what a record does to a file."""
    made = {name: change[name] for name in _NAMES if name in change}
    base, digest, foreign = change.get("base", ""), change.get("digest", ""), change.get("foreign", False)
    for one in filter(None, () if foreign else (base, digest)):
        rows.put(f"own/{one}", 1)
    was = rows.one(f"known/{change['task']}") or {}
    old, tree = was.get("change") or {}, change.get("tree")
    if tree is None and was.get("tree") is not None and not foreign:
        tree = {**was["tree"], **change.get("values", {})}
    is_again = bool(old) and old.get("base", "") == base != old.get("digest", "")  # it could not be written then
    more = {
        "change": made,
        "tree": tree,
        "prior": was.get("prior") if is_again else was.get("tree"),  # as the file has it
        "is_cut": (change if change.get("tree") is not None else was).get("is_cut", False),
        "order": was.get("order") or MOST_CHANGES * record.revision + place,
        "boot": str(rows.one("boot") or ""),
    }
    _put(rows, change["task"], {**was, **more})


_Tree = Mapping[str, Any]


def _claimed(known: _Tree, record: Record, body: _Tree) -> dict[str, Any]:
    names = [name for name in ("seconds", "process", "born", "machine") if name in body]
    claim = {"number": record.revision, "by": body["by"], "claimed": record.at, "sign": record.at}
    attempt = {"number": record.revision, "by": body["by"], "began": record.at}
    attempts = [*known.get("attempts", ()), attempt][-_MOST_ATTEMPTS:]
    # What was said before stays, and what refused to take it for done: whoever goes on needs it.
    evidence = known.get("evidence") or {}
    kept = evidence if evidence.get("state") == "failed" else None
    return {"claim": claim | {name: body[name] for name in names}, "attempts": attempts, "evidence": kept}


def _renewed(known: _Tree, record: Record, body: _Tree) -> dict[str, Any]:
    claim = known.get("claim") or {}
    if not claim or claim["number"] != body["lease"]:
        return {}
    process = {name: body.get(name, empty) for name, empty in (("process", 0), ("born", 0), ("machine", ""))}
    return {"claim": {**claim, "sign": record.at, **(process if process["process"] else {})}}


def _ended(known: _Tree, record: Record, lease: int, outcome: str, note: str) -> dict[str, Any]:
    """The attempt of a lease as it ended; the claim goes where it is that one."""
    end = {"ended": record.at, "outcome": outcome, "note": note}
    attempts = [
        {**one, **end} if one["number"] == lease and not one.get("ended") else one for one in known.get("attempts", ())
    ]
    held = (known.get("claim") or {}).get("number") == lease
    return {"attempts": attempts, **({"claim": None} if held else {})}


def _closed(known: _Tree, record: Record, body: _Tree, outcome: str, note: str) -> dict[str, Any]:
    """The end of a task by whoever says so: of the lease's attempt, else of one that is made for it."""
    if lease := body.get("lease", 0):
        return _ended(known, record, lease, outcome, note)
    claim, by = known.get("claim"), body["by"]
    before = _ended(known, record, claim["number"], "released", f"{outcome}, as {by} says") if claim else {}
    attempt = {"number": record.revision, "by": by, "began": record.at, "ended": record.at}
    attempts = [*{**known, **before}.get("attempts", ()), attempt | {"outcome": outcome, "note": note}]
    return before | {"attempts": attempts[-_MOST_ATTEMPTS:]}


def _progress(known: _Tree, record: Record, body: _Tree) -> dict[str, Any]:
    said = {"progress": body.get("text", ""), "progress_at": record.at}
    return said | _renewed(known, record, {"lease": body.get("lease")})


def _done(known: _Tree, record: Record, body: _Tree) -> dict[str, Any]:
    said = {"summary": body.get("summary", ""), "reason": "", "finished": record.at, "evidence": body.get("evidence")}
    tokens = known.get("tokens", 0) + body.get("tokens", 0)
    return _closed(known, record, body, "done", "") | said | {"tokens": tokens}


def _failed(known: _Tree, record: Record, body: _Tree) -> dict[str, Any]:
    reason = body.get("reason", "")
    return _closed(known, record, body, "failed", reason) | {"reason": reason, "finished": record.at}


_KINDS: dict[str, Callable[[_Tree, Record, _Tree], dict[str, Any]]] = {
    "claim": _claimed,
    "renew": _renewed,
    "release": lambda known, record, body: _ended(
        known, record, body["lease"], body.get("outcome", "released"), body.get("note", "")
    ),
    "lost": lambda known, record, body: _ended(known, record, body["lease"], "lost", body.get("note", "")),
    "progress": _progress,
    "done": _done,
    "fail": _failed,
    "retry": lambda known, record, body: {"reason": "", "finished": "", "evidence": None},
    "evidence": lambda known, record, body: {"evidence": body.get("evidence")},
}
