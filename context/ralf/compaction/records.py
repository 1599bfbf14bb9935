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

from ralf.agent import contents
from ralf.errors import MEND_JOURNAL, Conflict, DamagedJournal
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
    items     what was kept of a segment, by kind
    made      the messages in their place; `original`: theirs, as a content of `ralf.agent.contents`
    """

    kind: str
    key: str
    title: str
    before: int
    after: int
    items: Mapping[str, Sequence[str]]
    made: tuple[Tree, ...]
    original: Tree

    @property
    def reduction(self) -> float:
        """The share of the tokens that left, 0 to 1."""
        return 1 - self.after / self.before if self.before else 0.0


@dataclass(frozen=True, slots=True)
class Status:
    """What the newest record of a route says of its compactions.

    count           how many there were; `undone`: how many of them were undone
    last_compacted  when the last one was, ISO 8601, "" for never
    before, after   tokens of all messages then
    parts           what gave way; () where the newest record is another
    """

    count: int = 0
    undone: int = 0
    last_compacted: str = ""
    before: int = 0
    after: int = 0
    parts: tuple[Part, ...] = ()
    is_compaction: bool = False


def status(project: Project, route: str) -> Status:
    """How often a route's conversation was compacted, and when; reads one record. DamagedJournal, OSError."""
    return _newest(project, route)[1]


def _newest(project: Project, route: str) -> tuple[Token | None, Status]:
    stream = f"{STREAMS}{route}"
    head = project.store.head(stream)
    return head, parsed(stream, project.store.entry(stream, head)) if head is not None else Status()


def parsed(stream: str, entry: Entry) -> Status:
    """What a record says. DamagedJournal."""
    try:
        tree = json.loads(entry.record)
        parts = tuple(
            Part(**{**part, "made": tuple(part["made"])})
            for part in tree.get("parts", ())
            if tree["kind"] == "compaction"
        )
        return Status(
            count=int(tree["count"]),
            undone=int(tree["undone"]),
            last_compacted=str(tree["last"]),
            before=int(tree.get("before", 0)),
            after=int(tree.get("after", 0)),
            parts=parts,
            is_compaction=tree["kind"] == "compaction",
        )
    except MALFORMED as error:
        what = f"the record {entry.id!r} is not a compaction: {type(error).__name__}"
        raise DamagedJournal(stream, what, MEND_JOURNAL) from None


def append_compaction(project: Project, route: str, parts: Sequence[Part], before: int, after: int) -> Status:
    """Record a compaction, and return it as it is recorded: once for the same parts. Raises Busy, OSError, Damaged."""
    keys = sorted(part.key for part in parts)

    def made(known: Status) -> tuple[str, dict[str, Any]]:
        seed = "\0".join((route, str(known.undone), *keys))
        trees = [{name: getattr(part, name) for name in Part.__slots__} for part in parts]
        now = _now()
        body = {"count": known.count + 1, "undone": known.undone, "last": now, "before": before, "after": after}
        return _digest(seed), {"kind": "compaction", **body, "parts": trees}

    return _append(project, route, made)


def append_note(project: Project, route: str, kind: str, **fields: Any) -> Status:
    """Record something else of a route's window, which changes neither count nor time.

    kind  undo, which counts, or rolled: outputs that were stored
    """

    def made(known: Status) -> tuple[str, dict[str, Any]]:
        undone = known.undone + (kind == "undo")
        told = {"count": known.count, "undone": undone, "last": known.last_compacted, "at": _now(), **fields}
        return _digest("\0".join((route, str(known.undone), json.dumps(fields, sort_keys=True)))), {
            "kind": kind,
            **told,
        }

    return _append(project, route, made)


def _append(project: Project, route: str, made: Any) -> Status:
    stream = f"{STREAMS}{route}"
    while True:
        head, known = _newest(project, route)
        digest, tree = made(known)
        line = json.dumps({"v": _VERSION, **tree}, ensure_ascii=False, separators=(",", ":"))
        record = line.encode("utf-8", "surrogatepass")
        try:
            token = project.store.append(stream, record, id=f"{tree['kind']}-{digest}", after=head)
        except Conflict as error:
            if type(error) is not Conflict:
                raise
            continue
        return parsed(stream, project.store.entry(stream, token))


def count_clients(project: Project, session: str) -> Status:
    """Record that a client compacted the window of a session by itself: its count and time. Raises as `compact`."""

    def made(known: Status) -> tuple[str, dict[str, Any]]:
        body = {"count": known.count + 1, "undone": known.undone, "last": _now()}
        return os.urandom(16).hex(), {"kind": "client", **body}

    return _append(project, _of_session(session), made)


def session_status(project: Project, session: str) -> Status:
    """How often a client compacted a session's window, as far as hooks have seen, and when. DamagedJournal, OSError."""
    return status(project, _of_session(session))


def _of_session(session: str) -> str:
    return f"sessions/{slug(session)}"


def last_compaction(project: Project, route: str) -> Status:
    """The newest compaction that was not undone; an empty status for none. Reads the stream where others came since."""
    stream, found = f"{STREAMS}{route}", Status()
    newest = status(project, route)
    if newest.is_compaction:
        return newest
    for entry in project.store.read(stream):
        one = parsed(stream, entry)
        if one.is_compaction:
            found = one
        elif one.undone > found.undone:
            found = Status()
    return found


def key_of(messages: Sequence[Tree]) -> str:
    """What messages are called: the sha256 of their JSON."""
    return hashlib.sha256(encoded(messages)).hexdigest()


def encoded(messages: Sequence[Tree]) -> bytes:
    """Messages as JSON, from which `decoded` gives equal ones."""
    return json.dumps(list(map(dict, messages)), ensure_ascii=False).encode("utf-8", "surrogatepass")


def kept(project: Project, messages: Sequence[Tree]) -> dict[str, Any]:
    """Messages as a content that is durable in a blob when this returns."""
    data = encoded(messages)
    return {"digests": [project.store.put_blob([data])], "size": len(data)}


def decoded(project: Project, original: Tree, route: str) -> list[dict[str, Any]]:
    """The messages of a content. NotFound where they were forgotten; Damaged."""
    found: list[dict[str, Any]] = json.loads(
        contents.unpack(project.store, original, route).decode("utf-8", "surrogatepass")
    )
    return found


def _digest(seed: str) -> str:
    return hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
