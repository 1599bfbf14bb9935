"""The records of compactions: one for each, with its count, its time, and what undoes it. Stream `compactions/ROUTE`;
`compactions/sessions/SLUG` for the windows that clients compact by themselves.

A compaction is durable with its record or has not happened. Its id is made of what it replaces: one that is done again,
since a process died before it could use the result, finds the record and gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from ralf.agent import contents
from ralf.document.record import now
from ralf.errors import Conflict, NotFound
from ralf.project import Project
from ralf.storage.journal import Entry, understood
from ralf.text.cleaning import slug
from ralf.text.frozen import dataclass

STREAMS = "compactions/"

_VERSION = 1

_COUNTED = ("compaction", "client")

Kind = Literal["compaction", "undo", "rolled", "client"]
"""What a record is of: a compaction of ours, the undoing of one, outputs that were stored, a client's compaction."""

Tree = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Messages that gave way to others.

    kind      compacted: a completed segment; shortened: a summary, to its first line; stored: the output of tools
    before    their tokens; `after`: of those in their place
    made      the messages in their place; `original`: theirs, as the blobs that have their JSON
    stays     which of the original ones stay, before those made, by their places among them
    """

    kind: str
    title: str
    before: int
    after: int
    made: tuple[Tree, ...]
    original: Tree
    stays: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """What the newest record of a route says of its compactions.

    count           how many there were; `undone`: how many of them were undone
    last_compacted  when the last one was, ISO 8601, "" for never
    parts           what gave way; () where the record is no compaction of ours
    """

    count: int = 0
    undone: int = 0
    last_compacted: str = ""
    parts: tuple[Part, ...] = ()


def status(project: Project, name: str) -> Status:
    """How often a route's conversation was compacted, and when; reads one record. DamagedJournal, OSError."""
    return _parsed(project.store.newest(f"{STREAMS}{name}"))


def session_status(project: Project, session: str) -> Status:
    """How often a client compacted a session's window, as far as hooks have seen, and when. DamagedJournal, OSError."""
    return status(project, f"sessions/{slug(session)}")


def count_clients(project: Project, session: str) -> Status:
    """Record that a client compacted the window of a session by itself: its count and time. Busy, OSError."""
    return _append(project, f"sessions/{slug(session)}", "client", [os.urandom(16).hex()])


def append_parts(project: Project, route: str, kind: Kind, parts: Sequence[Part]) -> Status:
    """Record what gave way, and return it as it was recorded: once for the same parts, until an undo.

    Busy, DamagedJournal, OSError.
    """
    trees = [{name: getattr(part, name) for name in Part.__slots__} for part in parts]
    return _append(project, route, kind, [part.original["digests"][0] for part in parts], parts=trees)


def _append(project: Project, name: str, kind: Kind, of: Sequence[str], **fields: Any) -> Status:
    """Append a record behind the newest one, and return what it says; `of`: what its id is made of."""
    stream = f"{STREAMS}{name}"
    while True:
        newest = project.store.newest(stream)
        known = _parsed(newest)
        counts = {"count": known.count, "undone": known.undone + (kind == "undo"), "last": known.last_compacted}
        if kind in _COUNTED:
            counts |= {"count": known.count + 1, "last": now()}
        seed = "\0".join((name, str(known.undone), *of))
        id_ = f"{kind}-{hashlib.sha256(seed.encode()).hexdigest()[:40]}"
        record = _encoded({"v": _VERSION, "kind": kind, **counts, **fields})
        try:
            token = project.store.append(stream, record, id=id_, after=newest.token if newest is not None else None)
        except Conflict:
            continue
        return _parsed(project.store.entry(stream, token))


def _parsed(entry: Entry | None) -> Status:
    """What a record says; nothing for none. DamagedJournal."""
    if entry is None:
        return Status()
    with understood(f"{STREAMS}: {entry.id}"):
        tree = json.loads(entry.record)
        parts = tuple(map(_part, tree.get("parts", ())))
        return Status(int(tree["count"]), int(tree["undone"]), str(tree["last"]), parts)


def _part(tree: Tree) -> Part:
    """A part as a record has it; those of earlier versions have more fields, or fewer."""
    known = {name: tree[name] for name in Part.__slots__ if name in tree}
    return Part(**{**known, "made": tuple(tree["made"]), "stays": tuple(tree.get("stays", ()))})


# ---- the messages that gave way ----


def kept(project: Project, messages: Sequence[Tree]) -> dict[str, Any]:
    """Messages as a content that is durable in a blob when this returns. TypeError, ValueError, RecursionError where
    JSON cannot hold them.
    """
    data = _encoded(list(map(dict, messages)))
    return {"digests": [project.store.put_blob([data])], "size": len(data)}


def decoded(project: Project, original: Tree, route: str) -> list[dict[str, Any]]:
    """The messages of a content. NotFound where they were forgotten; Damaged."""
    data = contents.unpack(project.store, original, route)
    found: list[dict[str, Any]] = json.loads(data.decode("utf-8", "surrogatepass"))
    return found


def to_undo(project: Project, route: str) -> tuple[Part, ...]:
    """What gave way last, and was not put back. NotFound where nothing did; DamagedJournal, OSError."""
    found = list[tuple[Part, ...]]()
    for entry in project.store.read(f"{STREAMS}{route}"):
        if parts := _parsed(entry).parts:
            found.append(parts)
        elif entry.id.startswith("undo-") and found:
            found.pop()
    if not found:
        raise NotFound(route, "no compaction to undo", f"ralf show {route}")
    return found[-1]


def put_back(project: Project, route: str, messages: Sequence[Tree]) -> list[Tree]:
    """Messages with the outputs of tools that were stored, but for forgotten ones. DamagedJournal, OSError."""
    found = list(messages)
    for status in map(_parsed, project.store.read(f"{STREAMS}{route}")):
        for part in status.parts:
            if part.kind == "stored" and part.made[0] in found:
                with suppress(NotFound):
                    [found[found.index(part.made[0])]] = decoded(project, part.original, route)
    return found


def _encoded(tree: object) -> bytes:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
