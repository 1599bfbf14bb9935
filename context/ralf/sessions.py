"""Where each session stands in a route: the end of what was taken from its transcript, as the journal says.

Remembered in the cache, one line a checkpoint, so that asking does not read the journal. Each line ends with a sum of
all that stands in the file before it: a session that was not found there would be taken again.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralf import journal
from ralf.errors import MEND_JOURNAL, DamagedJournal, TranscriptChanged, UnknownToken
from ralf.files.opening import content_of, ours_alone
from ralf.journal import digest_of, runs_of
from ralf.project import Project
from ralf.store import Token
from ralf.transcripts.events import Event, Position

if TYPE_CHECKING:
    from ralf.transcripts import Transcript

_SPEECH = ("user", "assistant", "call", "result")
_OF_A_CALL = ("tool", "call_id", "text", "timestamp", "cwd")
_BEGIN = b"\n"
_SUM = b',"sum":'
_MOST_ASKED = 4_000  # characters: an offer stands at the end of a message


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a session's transcript was taken into a route.

    position     the place after the last record that was taken
    head, tail   hashes of the transcript's beginning and of what lies before `position` (`ralf.fingerprint`)
    pending      calls without a result at that place, as trees
    asked        the end of the agent's message that waits for an answer at that place, as a tree; {} where none does
    tails        by kind of event, the redacted end of what was said there: a secret may go on from it
    """

    session: str
    position: Position = field(default_factory=Position)
    head: str = ""
    tail: str = ""
    pending: tuple[Mapping[str, Any], ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    tails: Mapping[str, str] = field(default_factory=dict)


def standing(project: Project, route: str, session: str) -> Standing:
    """Where a session stands; at the start when the route has nothing of it. DamagedJournal where it does not say."""
    path = _path(project, route)
    head = project.store.head(journal.stream_of(route))
    if head is None:
        return Standing(session)
    return _found(project, route, path, _known(path), head, session)


def taken(project: Project, route: str) -> dict[str, int]:
    """By session, how many bytes of its transcript were taken into a route."""
    head = project.store.head(journal.stream_of(route))
    if head is None:
        return {}
    path = _path(project, route)
    known = _known(path)
    if place_of(known) != head:
        known = _renewed(project, route, path, known)
    found: dict[str, int] = {}
    for line in known.split(b"\n"):
        if line.startswith(b'{"session":'):
            with suppress(*journal.MALFORMED):
                stand = _parsed(line)
                found[stand.session] = stand.position.byte
    return found


def noted(project: Project, route: str, session: str) -> set[str]:
    """The digests of the notes that a route has of a session whose transcript is rewritten in place."""
    head = project.store.head(journal.stream_of(route))
    if head is None:
        return set()
    path = _path(project, route)
    known = _known(path)
    if place_of(known) != head:
        known = _renewed(project, route, path, known)
    try:
        return _noted_in(known, session)
    except journal.MALFORMED:  # a cache may hold anything
        return _noted_in(_renewed(project, route, path, b""), session)


def known_runs(project: Project, route: str, trees: Sequence[Mapping[str, Any]]) -> list[tuple[bool, bool]]:
    """Of each run, as `attempts.tree_of` has it, whether a route has a record of it, and whether the newest of its
    records says what the tree says.
    """
    head = project.store.head(journal.stream_of(route))
    if head is None:
        return [(False, False)] * len(trees)
    path = _path(project, route)
    known = _known(path)
    if place_of(known) != head:
        known = _renewed(project, route, path, known)
    found = []
    for tree in trees:
        place = known.rfind(b'\n{"run":' + json.dumps(str(tree.get("run", ""))).encode() + b",")
        line = known[place + 1 : known.index(b"\n", place + 1)] if place >= 0 else b""
        found.append((bool(line), b'"told":' + json.dumps(_told(tree)).encode() + b"," in line))
    return found


def _noted_in(known: bytes, session: str) -> set[str]:
    wanted = b'{"session":' + json.dumps(session).encode() + b","
    lines = (json.loads(line) for line in known.split(b"\n") if line.startswith(wanted))
    return {digest for line in lines for digest in _digests(line.get("notes"))}


def _digests(tree: object) -> list[str]:
    return [digest for digest in tree if isinstance(digest, str)] if isinstance(tree, list) else []


def unchanged(stand: Standing, transcript: Transcript) -> bool:
    """Whether what was taken of a session still stands at the beginning of its transcript; one that is rewritten in
    place has no beginning.
    """
    if transcript.rewritten or not stand.position.byte:
        return True
    now = transcript.mark(stand.position)
    return now is not None and (now.head, now.tail) == (stand.head, stand.tail)


def check_unchanged(stand: Standing, transcript: Transcript, route: str) -> None:
    """TranscriptChanged where the transcript shrank or was replaced since the last checkpoint of its session."""
    if unchanged(stand, transcript):
        return
    what = "was replaced" if transcript.mark(stand.position) is not None else "shrank"
    raise TranscriptChanged(
        transcript.path,
        f"{what} since the last checkpoint of its session, which ended at byte {stand.position.byte:,}",
        f"ralf context checkpoint {route} --transcript {transcript.path} --restart",
    )


def pending_tree(event: Event) -> dict[str, Any]:
    """A call that has no result yet, as `Standing.pending` holds it."""
    tree = {"tool": event.tool, "call_id": event.call_id, "input": dict(event.input), "text": event.text}
    return tree | {
        "timestamp": event.timestamp,
        "cwd": event.cwd,
        "start": asdict(event.start),
        "end": asdict(event.end),
    }


def pending_event(tree: Mapping[str, Any]) -> Event:
    """The call that such a tree holds."""
    rest = {key: tree[key] for key in ("tool", "call_id", "input", "text", "timestamp", "cwd")}
    return Event(kind="call", start=Position(**tree["start"]), end=Position(**tree["end"]), **rest)


def asked_tree(events: Sequence[Event]) -> dict[str, Any]:
    """The end of the agent's message with which events end, as `Standing.asked` holds it; {} where there is none."""
    last = next((event for event in reversed(events) if event.kind in _SPEECH and event.text.strip()), None)
    if last is None or last.kind != "assistant":
        return {}
    return {"text": last.text[-_MOST_ASKED:], "start": asdict(last.start), "end": asdict(last.end)}


def asked_event(tree: Mapping[str, Any]) -> Event:
    """The message that such a tree holds."""
    return Event("assistant", tree["text"], Position(**tree["start"]), Position(**tree["end"]))


def _found(project: Project, route: str, path: Path, known: bytes, head: Token, session: str) -> Standing:
    if place_of(known) != head:
        known = _renewed(project, route, path, known)
    try:
        found = _standing_in(known, session)
    except journal.MALFORMED:  # a cache may hold anything: the journal knows
        try:
            found = _standing_in(_renewed(project, route, path, b""), session)
        except journal.MALFORMED as error:
            what = f"its records do not say where the session {session!r} stands: {error}"
            raise DamagedJournal(route, what, MEND_JOURNAL) from None
    return found


def _standing_in(known: bytes, session: str) -> Standing:
    wanted = b'{"session":' + json.dumps(session).encode() + b","
    place = known.rfind(b"\n" + wanted)
    if place < 0:
        return Standing(session)
    return _parsed(known[place + 1 : known.index(b"\n", place + 1)])


def _renewed(project: Project, route: str, path: Path, known: bytes) -> bytes:
    """The lines, with those of the records that were appended since; kept for the next time."""
    after = place_of(known)
    try:
        added = lines_since(project, route, after, known or _BEGIN)
    except UnknownToken:
        known, added = b"", lines_since(project, route, None)
    with suppress(OSError):
        project.make_room(path)
        if not known:
            path.unlink(missing_ok=True)
        with open(path, "ab", opener=ours_alone) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_size == len(known):  # else somebody else was first
                file.write(added if known else _BEGIN + added)
        if not known and _is_gone(project, route, place_of(added)):
            path.unlink(missing_ok=True)  # the words of a journal that was purged meanwhile are not to come back
    return (known or _BEGIN) + added


def _is_gone(project: Project, route: str, place: Token | None) -> bool:
    try:
        return place is None or not project.store.entry(journal.stream_of(route), place)
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
                lines += [_line(_of_run(run) | {"token": token}) for run in runs_of(record.payload)]
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


def _of_run(run: Mapping[str, Any]) -> dict[str, str]:
    return {"run": str(run.get("run", "")), "told": _told(run)}


def _told(run: Mapping[str, Any]) -> str:
    return str(run.get("digest") or "") or digest_of({key: value for key, value in run.items() if key != "again"})


def _carried(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint hands on to the next one. What no writer of ours has made of it counts for nothing: it helps
    the next one to understand its segment, no more.
    """
    pending, asked, tails = payload.get("pending"), payload.get("asked"), payload.get("tails")
    return {
        "pending": [tree for tree in pending if _is_event(tree, _OF_A_CALL)] if isinstance(pending, list) else [],
        "asked": asked if _is_event(asked, ("text",)) else {},
        "tails": tails if isinstance(tails, dict) and all(isinstance(text, str) for text in tails.values()) else {},
    }


def _is_event(tree: object, texts: Sequence[str]) -> bool:
    return (
        isinstance(tree, dict)
        and all(isinstance(tree.get(key), str) for key in texts)
        and (texts != _OF_A_CALL or isinstance(tree.get("input"), dict))
        and all(_is_position(tree.get(key)) for key in ("start", "end"))
    )


def _is_position(tree: object) -> bool:
    return isinstance(tree, dict) and tree.keys() == {"byte", "line"} and all(type(n) is int for n in tree.values())


def _parsed(line: bytes) -> Standing:
    tree = json.loads(line)
    position = Position(int(tree["byte"]), int(tree["line"]))
    carried = _carried(tree)
    if min(position.byte, position.line) < 0 or any(tree.get(key, value) != value for key, value in carried.items()):
        raise ValueError("no line of ours")
    pending, asked, tails = tuple(carried["pending"]), carried["asked"], carried["tails"]
    return Standing(str(tree["session"]), position, str(tree["head"]), str(tree["tail"]), pending, asked, tails)


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
