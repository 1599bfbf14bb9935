"""Ingest offsets: how far each session's transcript was taken into a route, derived from the journal."""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ralf import routing
from ralf.errors import MEND_JOURNAL, DamagedJournal, RalfError, TranscriptChanged, UnknownToken, UsageError
from ralf.project import Project
from ralf.storage import journal
from ralf.storage.files import content_of, open_single_link
from ralf.storage.journal import Token, digest_of, entry_at, runs_of, written
from ralf.text import cleaning
from ralf.transcripts.events import START, Event, Position, session_of_log
from ralf.transcripts.reader import Transcript, is_own_log

# ---- offsets in the cache: a line a checkpoint, each with a sum of all before it ----
#
# A session missing there would be ingested again: hence the sums.


_OF_A_CALL = ("tool", "call_id", "text", "timestamp", "cwd")

_BEGIN = b"\n"

_SUM = b',"sum":'


@dataclass(frozen=True, slots=True)
class IngestOffset:
    """How far a route has ingested a session's transcript.

    position     the place after the last record that was ingested
    head, tail   hashes of the transcript's beginning and of what lies before `position` (`ralf.transcripts.lines`)
    pending      calls without a result at that place, as trees
    tails        by kind of event, the redacted end of what was said there: a secret may go on from it
    """

    session: str
    position: Position = field(default_factory=Position)
    head: str = ""
    tail: str = ""
    pending: tuple[Mapping[str, Any], ...] = ()
    tails: Mapping[str, str] = field(default_factory=dict)


def ingest_offset(project: Project, route: str, session: str) -> IngestOffset:
    """A session's offset, the start where the route has none of it. DamagedJournal where no offset can be told."""
    known = _lines(project, route)
    try:
        return _offset_in(known, session)
    except journal.MALFORMED:  # a cache may hold anything: the journal knows
        try:
            return _offset_in(_renewed(project, route, b""), session)
        except journal.MALFORMED as error:
            what = f"its records do not say where the session {session!r} stands: {error}"
            raise DamagedJournal(route, what, MEND_JOURNAL) from None


def ingested_bytes(project: Project, route: str) -> dict[str, int]:
    """The number of bytes that a route has ingested of each session's transcript, by session."""
    found: dict[str, int] = {}
    for line in _lines(project, route).split(b"\n"):
        if line.startswith(b'{"session":'):
            with suppress(*journal.MALFORMED):
                offset = _parsed(line)
                found[offset.session] = offset.position.byte
    return found


def note_digests(project: Project, route: str, session: str) -> set[str]:
    """The digests of a session's notes in a route, for a transcript that is rewritten in place."""
    try:
        return _note_digests_in(_lines(project, route), session)
    except journal.MALFORMED:  # a cache may hold anything
        return _note_digests_in(_renewed(project, route, b""), session)


def known_runs(project: Project, route: str, trees: Sequence[Mapping[str, Any]]) -> list[tuple[bool, bool]]:
    """Of each run, as `progress.run_tree` has it, whether a route has a record of it, and whether the newest of its
    records says what the tree says.
    """
    known, found = _lines(project, route), []
    for tree in trees:
        line = _last_line(known, b'{"run":' + json.dumps(str(tree.get("run", ""))).encode() + b",")
        found.append((bool(line), b'"told":' + json.dumps(_told(tree)).encode() + b"," in line))
    return found


def _note_digests_in(known: bytes, session: str) -> set[str]:
    wanted = b'{"session":' + json.dumps(session).encode() + b","
    lines = (json.loads(line) for line in known.split(b"\n") if line.startswith(wanted))
    return {digest for line in lines for digest in _digests(line.get("notes"))}


def _digests(tree: object) -> list[str]:
    return [digest for digest in tree if isinstance(digest, str)] if isinstance(tree, list) else []


def is_unchanged(offset: IngestOffset, transcript: Transcript) -> bool:
    """Whether a transcript still begins with what was ingested of it; one that is rewritten in place has no
    beginning.
    """
    if transcript.rewritten or not offset.position.byte:
        return True
    now = transcript.mark(offset.position)
    return now is not None and (now.head, now.tail) == (offset.head, offset.tail)


def check_unchanged(offset: IngestOffset, transcript: Transcript, route: str) -> None:
    """TranscriptChanged where the transcript shrank or was replaced since the last checkpoint of its session."""
    if is_unchanged(offset, transcript):
        return
    what = "was replaced" if transcript.mark(offset.position) is not None else "shrank"
    raise TranscriptChanged(
        transcript.path,
        f"{what} since the last checkpoint of its session, which ended at byte {offset.position.byte:,}",
        f"ralf context checkpoint {route} --transcript {transcript.path} --restart",
    )


def pending_tree(event: Event) -> dict[str, Any]:
    """A call that has no result yet, for `IngestOffset.pending`."""
    return {
        "tool": event.tool,
        "call_id": event.call_id,
        "input": dict(event.input),
        "text": event.text,
        "timestamp": event.timestamp,
        "cwd": event.cwd,
        "start": asdict(event.start),
        "end": asdict(event.end),
    }


def pending_event(tree: Mapping[str, Any]) -> Event:
    """The call that such a tree holds."""
    rest = {key: tree[key] for key in ("tool", "call_id", "input", "text", "timestamp", "cwd")}
    return Event(kind="call", start=Position(**tree["start"]), end=Position(**tree["end"]), **rest)


def _offset_in(known: bytes, session: str) -> IngestOffset:
    line = _last_line(known, b'{"session":' + json.dumps(session).encode() + b",")
    return _parsed(line) if line else IngestOffset(session)


def _last_line(known: bytes, begin: bytes) -> bytes:
    """The last line that begins so, b"" for none."""
    place = known.rfind(b"\n" + begin)
    return known[place + 1 : known.index(b"\n", place + 1)] if place >= 0 else b""


def _lines(project: Project, route: str) -> bytes:
    """What is remembered of all of a route's records; b"" where it has none."""
    head = project.store.head(journal.stream_of(route))
    if head is None:
        return b""
    known = _known(_path(project, route))
    return known if place_of(known) == head else _renewed(project, route, known)


def _renewed(project: Project, route: str, known: bytes) -> bytes:
    """The lines, with those of the records that were appended since; kept for the next time."""
    path, after = _path(project, route), place_of(known)
    try:
        added = lines_since(project, route, after, known or _BEGIN)
    except UnknownToken:
        known, added = b"", lines_since(project, route, None)
    with suppress(OSError):
        project.make_room(path)
        if not known:
            path.unlink(missing_ok=True)
        with open(path, "ab", opener=open_single_link) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_size == len(known):  # else somebody else was first
                file.write(added if known else _BEGIN + added)
        if not known and _is_gone(project, route, place_of(added)):
            path.unlink(missing_ok=True)  # the words of a journal that was purged meanwhile are not to come back
    return (known or _BEGIN) + added


def _is_gone(project: Project, route: str, place: Token | None) -> bool:
    try:
        return place is None or not entry_at(project.store, journal.stream_of(route), place)
    except UnknownToken:
        return True


def lines_since(project: Project, route: str, after: Token | None, known: bytes = _BEGIN) -> bytes:
    """What is remembered of the records after a place, or of all, a line each; it follows on `known`."""
    lines = []
    for token, record in journal.read(project.store, route, after=after):
        # Of what a foreign record says that it has taken, nothing was taken for this user.
        source = record.payload.get("source") if record.kind == "checkpoint" and not record.foreign else None
        line: dict[str, Any] = {"token": token}
        if source:
            with journal.understood(route):
                line = {
                    "session": source.get("session", ""),
                    "byte": source.get("to_byte", 0),
                    "line": source.get("to_line", 0),
                    "head": source.get("head", ""),
                    "tail": source.get("tail", ""),
                    **({"notes": _digests(source["notes"])} if source.get("notes") else {}),
                    **_carried(record.payload),
                    "token": token,
                }
        if record.kind in ("checkpoint", "attempt") and not record.foreign:
            with journal.understood(route):
                lines += [
                    _line({"run": str(run.get("run", "")), "told": _told(run), "token": token})
                    for run in runs_of(record.payload)
                ]
        lines.append(_line(line))
    return with_sums(known, lines)


def with_sums(known: bytes, lines: Iterable[bytes]) -> bytes:
    """Lines that follow on `known`, each a JSON object, with the sum of all before it as its last field."""
    made, sum_ = [], zlib.crc32(known)
    for line in lines:
        begin = line.removesuffix(b"}")
        sum_ = zlib.crc32(begin, sum_)
        end = b"%s%d}\n" % (_SUM, sum_)
        sum_ = zlib.crc32(end, sum_)
        made += [begin, end]
    return b"".join(made)


def _line(tree: Mapping[str, Any]) -> bytes:
    return json.dumps(tree, separators=(",", ":")).encode()


def _told(run: Mapping[str, Any]) -> str:
    return str(run.get("digest") or "") or digest_of({key: value for key, value in run.items() if key != "again"})


def _carried(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint hands on to the next one. What no writer of ours has made of it counts for nothing: it helps
    the next one to understand its segment, no more.
    """
    pending, tails = payload.get("pending"), payload.get("tails")
    return {
        "pending": [tree for tree in pending if _is_call(tree)] if isinstance(pending, list) else [],
        "tails": tails if isinstance(tails, dict) and all(isinstance(text, str) for text in tails.values()) else {},
    }


def _is_call(tree: object) -> bool:
    return (
        isinstance(tree, dict)
        and all(isinstance(tree.get(key), str) for key in _OF_A_CALL)
        and isinstance(tree.get("input"), dict)
        and all(_is_position(tree.get(key)) for key in ("start", "end"))
    )


def _is_position(tree: object) -> bool:
    return isinstance(tree, dict) and tree.keys() == {"byte", "line"} and all(type(n) is int for n in tree.values())


def _parsed(line: bytes) -> IngestOffset:
    tree = json.loads(line)
    position = Position(int(tree["byte"]), int(tree["line"]))
    carried = _carried(tree)
    if min(position.byte, position.line) < 0 or any(tree.get(key, value) != value for key, value in carried.items()):
        raise ValueError("no line of ours")
    pending = tuple(carried["pending"])
    return IngestOffset(str(tree["session"]), position, str(tree["head"]), str(tree["tail"]), pending, carried["tails"])


def _known(path: Path) -> bytes:
    try:
        content = content_of(path)
    except OSError:
        return b""
    summed, sum_, said = content.rpartition(_SUM)
    return content if sum_ and said == b"%d}\n" % zlib.crc32(summed) else b""  # torn or damaged: make it anew


def place_of(known: bytes) -> Token | None:
    """The place of the record that the last line of the cache is of, None where it has none."""
    last = known[known.rfind(b"\n", 0, -1) + 1 :] if known else b""
    try:
        return str(json.loads(last)["token"])
    except journal.MALFORMED:
        return None


def _path(project: Project, route: str) -> Path:
    return project.cache / "sessions" / f"{route}.jsonl"


# ---- the routes that have ingested a session, and the routes written last ----


HELD = "its last checkpoint"
"""The rule beside those of `routing`: the route that has most of the session."""

RECENT = 20
"""The number of routes to look at where the cost must not grow with their number."""


def recent(project: Project, most: int | None = RECENT) -> list[str]:
    """The routes that have a journal, the last written first; all of them if `most` is None."""
    found = written(project.store, "routes")
    return sorted(filter(cleaning.is_valid, found), key=lambda name: (-found[name].written, name))[:most]


def of_session(project: Project, session: str, *, but: str = "", most: int | None = RECENT) -> tuple[str, Position]:
    """The route that has most of a session, and its offset there; ("", START) if none has any of it.

    but   a route that is not asked
    most  so many routes are asked, those that were written last; None: all. A damaged one is left out
    """
    best, end = "", START
    for route in recent(project, most):
        if route == but:
            continue
        with suppress(RalfError, OSError):  # a read of that route reports the problem
            position = ingest_offset(project, route, session).position
            if position.byte > end.byte:
                best, end = route, position
    return best, end


def route_of(project: Project, session: str, choice: routing.Choice) -> routing.Choice:
    """The route of a session as `routing.choose` tells it, unless nobody has chosen it, it has nothing of the session,
    and another one has: then that one.
    """
    if choice.is_chosen:
        return choice
    with suppress(RalfError, OSError):
        route = routing.known(project, choice.route) or choice.route
        if ingest_offset(project, route, session).position.byte:
            return choice
    held, _ = of_session(project, session)
    return routing.Choice(held, HELD) if held else choice


def begin_of(project: Project, route: str, source: Transcript, *, again: bool = False) -> Position | None:
    """Where a checkpoint of a session begins in a route that has nothing of it: None, its beginning, where no other
    route has anything; behind what another one has, where this is the route that was chosen for the session.

    again  take it from its beginning, whatever another route has

    InAnother where another route has it, and nobody wants it twice: what was decided there would stand in both. Of
    documents nothing is asked.
    """
    if again or source.rewritten or source.origin == "import":
        return None
    found = routing.known(project, route) or route
    if ingest_offset(project, found, source.session).position.byte:
        return None
    other, end = of_session(project, source.session, but=found, most=None)
    if not other:
        return None
    choice = routing.choose(project, session=source.session)
    if choice.is_chosen and (routing.known(project, choice.route) or choice.route) == found:
        return end
    raise InAnother(route, source.path, other)


class InAnother(UsageError):
    """A session that another route, `other`, has already."""

    def __init__(self, route: str, path: object, other: str) -> None:
        what = f"the route {other} has this session already: {path}"
        hint = (
            f"ralf context checkpoint {other}; for what comes from now on, within the session: ralf route use {route}; "
            f"to have all of it in both: ralf context checkpoint {route} --again"
        )
        super().__init__(route, what, hint)
        self.other = other


def keep(project: Project, route: str, source: Transcript) -> None:
    """Make a route that has taken a session its route, for the hooks and for every look, unless one was chosen, or the
    rules name it anyway. Only a log in a client's own folder counts.
    """
    if source.rewritten or source.origin == "import" or not is_own_log(source.path):
        return  # any other file may say that it is any session
    for session in {source.session, session_of_log(source.path)}:  # a log that was resumed has another name
        choice = routing.choose(project, session=session)
        if not choice.is_chosen and choice.route != route:
            with suppress(OSError):  # what counts is in the journal
                routing.use(project, route, session=session)
