"""The records of the stream `tasks`, and how they fold into rows: no file is looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.storage.journal import MALFORMED
from ralf.tasks.model import Attempt, Claim, Evidence, Task
from ralf.text.frozen import dataclass, fields

STREAM = "tasks"

_DIGITS = 32  # of a file's sha256: so it is taken for the name of no blob

MOST_CHANGES = 1_000
"""Files that one record may change."""

_MOST_ATTEMPTS = 100  # that are told of a task; the stream has all

BY_FILE = "file"
"""The author of a record of an edit."""


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

    place   where the file is afterwards, from the project's folder on
    base    digest of the bytes that it had, "" for a new one; `digest`: of those that it is to have
    tree    what it says then; `is_cut`: without secrets that it has
    foreign whether the file is not this user's, and stays so: a pull changed it while its task was claimed
    prior   what it said before, where that is not what the record before says
    offers  who made it, and chose its `verify`, where no person did: "agent" (a script, too), "list"; else ""
    """

    task: str = ""
    place: str = ""
    base: str = ""
    digest: str = ""
    tree: Mapping[str, Any] | None = None
    is_cut: bool = False
    foreign: bool = False
    prior: Mapping[str, Any] | None = None
    offers: str = ""


# ---- records ----

# kind      what it says of a task, or of files
# seen      files that ralf writes, or that somebody has edited (`changes`); `digests`: ids of tasks, and the bytes of
#           saves of them that were merged
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


# ---- what the records come to ----


@dataclass(frozen=True, slots=True)
class Known(Change):
    """What the records say of the file of a task: the last change of it, and

    boot             in which run of the machine that was recorded, "" where nobody knows
    order            the place of the task's first record: of tasks of one second the first one is the older one
    has_edited_verify  whether an edit of the file, or a list, gave it its `verify`, and nobody has accepted it since
    has_agents_verify  whether an agent or a script did, by a command
    has_agents_words   whether its title and text are as an agent left them that did not add it
    author             `created_by` of its first record
    """

    boot: str = ""
    order: int = 0
    has_edited_verify: bool = False
    has_agents_verify: bool = False
    has_agents_words: bool = False
    author: str = ""


def known(rows: Rows, id_: str) -> Known:
    """What the records say of the file of a task."""
    row = rows.one(f"known/{id_}") or {}
    return Known(**{each.name: row[each.name] for each in fields(Known) if each.name in row})


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
    boot        the run of the machine in which the newest write was; whoever made it has looked at all files
    """
    body = record.body
    if boot := body.get("boot"):
        rows.put("boot", boot)
    with suppress(*MALFORMED):
        for _, digest in body.get("digests", ()):
            rows.put(f"own/{digest}", 1)
        for place, change in enumerate(body.get("changes", ())):
            by_command = record.by != BY_FILE and change.get("offers") != "list"
            _note(rows, change, MOST_CHANGES * record.revision + place, by_command, body.get("kind") == "seen")
        if (kind := _KINDS.get(body.get("kind", ""))) is not None:
            known = rows.one(f"known/{body['task']}") or {}
            _put(rows, body["task"], known | kind(known, record, {"by": record.by, **body}))


def _put(rows: Rows, id_: str, known: Mapping[str, Any]) -> None:
    claims = rows.one("claims") or {}
    number = known["claim"]["number"] if known.get("claim") else None
    if claims.get(id_) != number:
        rest = {other: one for other, one in claims.items() if other != id_}
        rows.put("claims", rest if number is None else rest | {id_: number})
    rows.put(f"known/{id_}", known)


def _note(rows: Rows, change: Mapping[str, Any], order: int, by_command: bool, is_seen: bool) -> None:
    """Add what a record does to a file, or what an edit of the file did.

    is_seen  whether that is all the record says: a command's that changes nothing has accepted the file as it is
    """
    base, digest, foreign = change.get("base", ""), change.get("digest", ""), change.get("foreign", False)
    for one in filter(None, () if foreign else (base, digest)):
        rows.put(f"own/{one}", 1)
    was = rows.one(f"known/{change['task']}") or {}
    tree = change.get("tree")
    if tree is None and was.get("tree") is not None:  # a record may have only the values that change
        tree = {**was["tree"], **change.get("values", {})}
    verify = (tree or {}).get("verify", "")
    by_agent = by_command and change.get("offers") == "agent"
    accepts = by_command and is_seen and base == digest  # an agent takes it over as its own choice
    is_reworded = was.get("tree") and any((tree or {}).get(one) != was["tree"].get(one) for one in ("title", "text"))
    is_kept = verify == (was.get("tree") or {}).get("verify", "") and not accepts
    more = {
        "place": change.get("place", ""),
        "base": base,
        "digest": digest,
        "tree": tree,
        "is_cut": (change if change.get("tree") is not None else was).get("is_cut", False),
        "foreign": foreign,
        "prior": change.get("prior", was.get("tree")),
        "boot": str(rows.one("boot") or ""),
        "order": was.get("order") or order,
        "has_edited_verify": was.get("has_edited_verify", False) if is_kept else not by_command and bool(verify),
        "has_agents_words": change.get("offers") == "agent" if is_reworded else was.get("has_agents_words", False),
        "author": was.get("author") or (tree or {}).get("created_by", ""),
        "has_agents_verify": was.get("has_agents_verify", False) if is_kept else by_agent and bool(verify),
    }
    _put(rows, change["task"], {**was, **more})


_Tree = Mapping[str, Any]


def _claimed(known: _Tree, record: Record, body: _Tree) -> dict[str, Any]:
    names = [name for name in ("seconds", "process", "born", "machine") if name in body]
    claim = {"number": record.revision, "by": body["by"], "claimed": record.at, "sign": record.at}
    attempt = {"number": record.revision, "by": body["by"], "began": record.at}
    attempts = [*known.get("attempts", ()), attempt][-_MOST_ATTEMPTS:]
    return {"claim": claim | {name: body[name] for name in names}, "attempts": attempts, "evidence": _refusal(known)}


def _refusal(known: _Tree) -> _Tree | None:
    """What refused to take a task for done: it stays, as what was said before does, since whoever goes on needs it."""
    evidence = known.get("evidence") or {}
    return evidence if evidence.get("state") == "failed" else None


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
    "retry": lambda known, record, body: {"reason": "", "finished": "", "evidence": _refusal(known)},
    "evidence": lambda known, record, body: {"evidence": body.get("evidence")},
}
