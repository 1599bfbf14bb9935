"""A journal's line: a record in its frame, which has its id, its length, and sums of both."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import NamedTuple

from ralf.errors import MEND_JOURNAL, DamagedJournal, UnknownToken
from ralf.store import Entry, Token

_FRAME = re.compile(
    rb'\{"id":(?P<id>"(?:[^"\\]++|\\.)*+"),"length":(?P<length>\d{1,12}),"sha256":"(?P<sum>[0-9a-f]{32})"'
    rb'(?:,"frame":"(?P<frame>[^"]*)")?,"record":'
)
FRAME_BYTES = 4096  # more than a frame before its record ever takes


class Line(NamedTuple):
    """A line's token, and where the line ends."""

    token: Token
    end: int


def framed(id: str, record: bytes) -> bytes:  # noqa: A002
    """A record as a line."""
    begin = b'{"id":%s,"length":%d,"sha256":"%s"' % (json.dumps(id).encode(), len(record), sum_of(record))
    return b'%s,"frame":"%s","record":%s}\n' % (begin, _sum_of_frame(begin), record)


def is_sound(line: bytes) -> bool:
    """Whether a line's frame, and so its id, is what was written. Of a line of an earlier version, which has no sum of
    its frame, nobody can tell more than that an id stands in it.
    """
    match = _FRAME.match(line)
    return match is not None and _sound_id(match) is not None


def _sound_id(match: re.Match[bytes]) -> str | None:
    """The id in a frame, None where the frame is not what was written."""
    begin = match.string[match.start() : match.end("sum") + 1]
    return _text_of(match["id"]) if match["frame"] in (None, _sum_of_frame(begin)) else None


def sum_of(content: bytes) -> bytes:
    """The sum of some bytes, 32 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:32].encode()


def _sum_of_frame(begin: bytes) -> bytes:
    """The sum of a line up to its record's, which is another one, so that a record whose id is damaged is still known
    to be whole.
    """
    return sum_of(begin)[:16]


def token_at(offset: int, line: bytes) -> Token:
    """The token of a line at a place."""
    match = _FRAME.match(line)
    checksum = (
        match["sum"].decode() if match else sum_of(line[:FRAME_BYTES]).decode()
    )  # a damaged line has a place, too
    return f"{offset}-{checksum}"


def line_at(offset: int, begin: bytes) -> Line:
    """The line at a place, by its first FRAME_BYTES."""
    match = _FRAME.match(begin)
    if match is None:
        return Line(token_at(offset, begin), offset + len(begin))
    return Line(token_at(offset, begin), offset + match.end() + int(match["length"]) + 2)


def offset_of(token: Token) -> int:
    """Where the line of a token begins; UnknownToken for what is none."""
    number, _, _ = token.partition("-")
    if not number.isdecimal() or len(number) > 18:
        raise UnknownToken(ascii(token), "no such place in this stream")
    return int(number)


def parsed(path: Path, start: int, line: bytes) -> Entry:
    """The entry in a line; DamagedJournal where it is not what was written."""
    match = _FRAME.match(line)
    record = line[match.end() : -2] if match else b""
    id_ = _sound_id(match) if match else None
    whole = match is not None and len(record) == int(match["length"]) and sum_of(record) == match["sum"]
    if id_ is None or not whole or line[-2:] != b"}\n":
        raise DamagedJournal(path, f"the record at byte {start} is not what was written", MEND_JOURNAL)
    return Entry(token_at(start, line), id_, record)


def record_at(content: bytes, start: int, base: int = 0) -> tuple[bytes, Entry] | None:
    """The whole record that begins at a place of some bytes, with its line break if it has one; None where none does.
    One whose frame is not sound has an id made of that frame.

    base  where the bytes begin in the journal
    """
    match = _FRAME.match(content, start)
    if match is None:
        return None
    end = match.end() + int(match["length"])
    record = content[match.end() : end]
    if content[end : end + 1] != b"}" or sum_of(record) != match["sum"] or b"\n" in record:
        return None
    id_ = _sound_id(match)
    if id_ is None:
        id_ = f"repaired-{sum_of(match[0]).decode()}"
    raw = content[start : end + (2 if content[end + 1 : end + 2] == b"\n" else 1)]
    return raw, Entry(token_at(base + start, match[0]), id_, record)


def id_of(line: bytes) -> str | None:
    """The id in a line's frame as it stands there, None where no frame does. What is no text of JSON is some id, too:
    that of a record that may be whole.
    """
    match = _FRAME.match(line)
    if match is None:
        return None
    found = _text_of(match["id"])
    return found if found is not None else match["id"].decode("utf-8", "replace")


def _text_of(quoted: bytes) -> str | None:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return None
