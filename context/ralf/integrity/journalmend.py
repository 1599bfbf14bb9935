"""A damaged journal's lines made anew: what is whole, in its order, and a record in the place of each that is lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

from ralf import journal
from ralf.integrity.journalscan import ROUTES, Piece, Scan
from ralf.journal import Record
from ralf.past.history import numbers
from ralf.storage import journalline


def chained(scan: Scan, damaged: Sequence[str], shown: int, sealed: Callable[[bytes], bytes]) -> list[bytes]:
    """The whole records' lines, with a record in the place of each that is missing, and a last one that says so.

    damaged  where the bytes lie now that could not be read
    shown    how many checkpoints there were, as far as anybody knows
    sealed   puts this user's seal on a record
    """
    made: list[bytes] = []
    expected, count = 1, 0
    lost_checkpoints = _lost_checkpoints(scan, shown)
    for piece in scan.whole():
        record = piece.record
        if record is not None:
            for revision in range(expected, record.revision):
                payload: dict[str, object] = {"lost": True}
                number = lost_checkpoints.get(record.revision, 0) if revision == record.revision - 1 else 0
                if number:
                    count += number  # those that follow are called what they were called
                    at = ["context_checkpoint", "checkpoint_count"]
                    payload["changes"] = [{"at": at, "value": count}]
                made.append(_repair_line(revision, payload, sealed))
            expected = record.revision + 1
            count = _counted(count, record)
        made.append(_line(piece))
    if scan.damaged and scan.stream.startswith(ROUTES):
        missing = [list(gap) for gap in scan.gaps]
        made.append(_repair_line(expected, {"damaged": list(damaged), "missing": missing}, sealed))
    return made


def _counted(count: int, record: Record) -> int:
    """How many checkpoints there are with one more record."""
    if record.kind == "checkpoint" and not record.foreign:
        return count + 1
    return max([count, *numbers(record)])


def _line(piece: Piece) -> bytes:
    """A whole record's line, framed anew where its frame is damaged."""
    if piece.entry is not None and not journalline.is_sound(piece.raw):
        return journalline.framed(piece.entry.id, piece.entry.record)
    return piece.raw.rstrip(b"\n") + b"\n"


def _lost_checkpoints(scan: Scan, shown: int) -> dict[int, int]:
    """How many of the records that are lost before a revision were checkpoints, as far as their remains tell, and else
    as many of the first ones as the route file shows more.
    """
    gaps = {last + 1: last - first + 1 for first, last in scan.gaps}
    found: dict[int, int] = {}
    remains, count = b"", 0
    for piece in (piece for lines in scan.lines for piece in lines.pieces):
        if piece.record is None:
            remains += piece.raw
            continue
        marks = max(remains.count(mark) for mark in (b'{"id":"checkpoint-', b'"kind":"checkpoint"'))
        found[piece.record.revision] = min(gaps.get(piece.record.revision, 0), marks)
        count = _counted(count, piece.record)
        remains = b""
    missing = shown - count - sum(found.values())
    for revision, size in sorted(gaps.items()):
        more = max(0, min(missing, size - found.get(revision, 0)))
        found[revision] = found.get(revision, 0) + more
        missing -= more
    return found


def _repair_line(revision: int, payload: dict[str, object], sealed: Callable[[bytes], bytes]) -> bytes:
    record = {
        "v": journal.VERSION,
        "revision": revision,
        "parent": revision - 1,
        "kind": "repair",
        "digest": journal.digest_of(payload),
        "payload": payload,
        "render": "",
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    return journalline.framed(f"repair-{revision}-{hashlib.sha256(text).hexdigest()[:24]}", sealed(text))
