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
from datetime import UTC, datetime
from typing import Any

from ralf.errors import MEND_JOURNAL, Conflict, DamagedJournal, NotFound
from ralf.project import Project
from ralf.storage.journal import MALFORMED, Entry, Token
from ralf.text.cleaning import slug
from ralf.text.frozen import dataclass

STREAMS = "compactions/"

_VERSION = 1

Tree = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Messages that gave way to others.

    kind      compacted: a completed segment; shortened: a summary, to its first line
    key       the sha256 of the messages as JSON
    before    their tokens; `after`: of those in their place
    made      the messages in their place; `original`: theirs, as the blobs that have their JSON
    stays     which of the original ones stay, before those made, by their places among them
    """

    kind: str
    key: str
    title: str
    before: int
    after: int
    made: tuple[Tree, ...]
    original: Tree
    stays: tuple[int, ...] = ()

    @property
    def reduction(self) -> float:
        """The share of the tokens that left, 0 to 1."""
        return 1 - self.after / self.before if self.before else 0.0


@dataclass(frozen=True, slots=True)
class Status:
    """What the newest record of a route says of its compactions.

    count           how many there were; `undone`: how many of them were undone
    last_compacted  when the last one was, ISO 8601, "" for never
    parts           what gave way; () where the newest record is no compaction of ours
    """

    count: int = 0
    undone: int = 0
    last_compacted: str = ""
    parts: tuple[Part, ...] = ()


def status(project: Project, route: str) -> Status:
    """How often a route's conversation was compacted, and when; reads one record. DamagedJournal, OSError."""
    return _newest(project, f"{STREAMS}{route}")[1]


def last_compaction(project: Project, route: str) -> Status:
    """The newest compaction that was not undone; an empty status for none. DamagedJournal, OSError."""
    stream, newest = f"{STREAMS}{route}", status(project, route)
    if newest.parts:
        return newest
    found = Status()
    for entry in project.store.read(stream):
        one = _parsed(stream, entry)
        if one.parts or one.undone > found.undone:
            found = one
    return found


def append_compaction(project: Project, route: str, parts: Sequence[Part], before: int, after: int) -> Status:
    """Record a compaction, and return it as it is recorded: once for the same parts. Raises Busy, OSError, Damaged."""
    trees = [{name: getattr(part, name) for name in Part.__slots__} for part in parts]
    keys = sorted(part.key for part in parts)
    return _append(project, route, "compaction", keys, {"before": before, "after": after, "parts": trees})


def append_note(project: Project, route: str, kind: str, **fields: Any) -> Status:
    """Record something else of a route's window, which changes neither count nor time.

    kind  undo, which counts, or rolled: outputs that were stored
    """
    return _append(project, route, kind, [json.dumps(fields, sort_keys=True)], fields)


def count_clients(project: Project, session: str) -> Status:
    """Record that a client compacted the window of a session by itself: its count and time. Raises as `compact`."""
    return _append(project, _of_session(session), "client", [os.urandom(16).hex()], {})


def session_status(project: Project, session: str) -> Status:
    """How often a client compacted a session's window, as far as hooks have seen, and when. DamagedJournal, OSError."""
    return status(project, _of_session(session))


def _of_session(session: str) -> str:
    return f"sessions/{slug(session)}"


def _append(project: Project, route: str, kind: str, called: Sequence[str], fields: Tree) -> Status:
    """Append a record behind the newest one, and return what it says; `called`: what its id is made of."""
    stream, now = f"{STREAMS}{route}", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    is_counted = kind in ("compaction", "client")
    while True:
        head, known = _newest(project, stream)
        last = now if is_counted else known.last_compacted
        counts = {"count": known.count + is_counted, "undone": known.undone + (kind == "undo"), "last": last, "at": now}
        line = json.dumps({"v": _VERSION, "kind": kind, **counts, **fields}, ensure_ascii=False, separators=(",", ":"))
        seed = "\0".join((route, str(known.undone), *called)).encode("utf-8", "surrogatepass")
        try:
            record = line.encode("utf-8", "surrogatepass")
            token = project.store.append(stream, record, id=f"{kind}-{_digest(seed)[:40]}", after=head)
        except Conflict as error:
            if type(error) is not Conflict:
                raise
            continue
        return _parsed(stream, project.store.entry(stream, token))


def _newest(project: Project, stream: str) -> tuple[Token | None, Status]:
    head = project.store.head(stream)
    return head, _parsed(stream, project.store.entry(stream, head)) if head is not None else Status()


def _parsed(stream: str, entry: Entry) -> Status:
    """What a record says. DamagedJournal."""
    try:
        tree = json.loads(entry.record)
        return Status(
            count=int(tree["count"]),
            undone=int(tree["undone"]),
            last_compacted=str(tree["last"]),
            parts=tuple(map(_part, tree.get("parts", ()))),
        )
    except MALFORMED as error:
        what = f"the record {entry.id!r} is not a compaction: {type(error).__name__}"
        raise DamagedJournal(stream, what, MEND_JOURNAL) from None


def _part(tree: Tree) -> Part:
    """A part as a record has it; those of earlier versions have more fields, or fewer."""
    known = {name: tree[name] for name in Part.__slots__ if name in tree}
    return Part(**{**known, "made": tuple(tree["made"]), "stays": tuple(tree.get("stays", ()))})


# ---- the messages that gave way ----


def key_of(messages: Sequence[Tree]) -> str:
    """What messages are called: the sha256 of their JSON."""
    return _digest(_encoded(messages))


def kept(project: Project, messages: Sequence[Tree]) -> dict[str, Any]:
    """Messages as a content that is durable in a blob when this returns. TypeError, ValueError, RecursionError where
    JSON cannot hold them.
    """
    data = _encoded(messages)
    return {"digests": [project.store.put_blob([data])], "size": len(data)}


def decoded(project: Project, original: Tree, route: str) -> list[dict[str, Any]]:
    """The messages of a content. NotFound where they were forgotten; Damaged."""
    if "digests" not in original:
        raise NotFound(route, "the messages that were compacted have been removed")
    data = b""
    for digest in original["digests"]:
        with project.store.open_blob(str(digest)) as file:
            data += file.read()
    found: list[dict[str, Any]] = json.loads(data.decode("utf-8", "surrogatepass"))
    return found


def _encoded(messages: Sequence[Tree]) -> bytes:
    return json.dumps(list(map(dict, messages)), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
