"""Whether what was handed to the model has really arrived: the client's own log says so, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from ralf.errors import RalfError
from ralf.text.digests import sha256
from ralf.text.frozen import dataclass
from ralf.transcripts.events import Position, time_of
from ralf.transcripts.gemini import injected
from ralf.transcripts.lines import open_regular, read_lines
from ralf_integrations.hooks.session_registry import Handed, KnownSession

MOST_READ = 64 << 20
"""Bytes behind the place where a text was handed over in which it is looked for."""

_MARKS = (b"hook_additional_context", b"additional_context", b'"developer"', b"<hook_context>", b"<!-- ralf:context")
"""What a record has that holds such a text, in whichever client."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What became of a text that was handed over.

    arrived  whether the log holds it in the model's input, whole; None where nobody can tell, because the log is gone
             or cannot be read, or is too long behind that place
    time     of the log's record that holds it, ISO 8601; "" where it has not arrived, or the client tells no time
    text     as the model got it, "" as well
    """

    handed: Handed
    arrived: bool | None
    time: str = ""
    text: str = ""


def arrivals(found: KnownSession) -> list[Arrival]:
    """What a session was handed, oldest first. Its log is read from the first text on, until all are found."""
    if not found.handed:
        return []
    missing = {handed.digest: handed for handed in found.handed}
    seen: dict[str, tuple[str, str]] = {}
    is_told, start = True, Position(min(handed.at for handed in found.handed), 0)
    try:
        with open_regular(Path(found.transcript), start) as file:
            for line in read_lines(file, start):
                is_told = line.end - start.byte <= MOST_READ
                if not missing or not is_told:
                    break
                if not line.cut and any(mark in line.data for mark in _MARKS):
                    there = _within(line.data, [*missing.values()])
                    seen |= there
                    missing = {digest: one for digest, one in missing.items() if digest not in there}
    except (RalfError, OSError):
        is_told = False
    return [
        Arrival(handed, True, *seen[handed.digest])
        if handed.digest in seen
        else Arrival(handed, False if is_told else None)
        for handed in found.handed
    ]


def _within(line: bytes, wanted: Iterable[Handed]) -> dict[str, tuple[str, str]]:
    """By digest, those of some texts that a record holds whole: the record's time, and the text."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # the last line may be unfinished, any may be damaged
        return {}
    if not isinstance(record, dict):
        return {}
    found = {}
    texts = [*_strings(record), *injected(record)]  # Gemini CLI escapes what it is handed
    for one in wanted:
        parts = (text[text.index(one.start) :][: one.size] for text in texts if one.start in text)
        if (part := next((part for part in parts if _digest(part) == one.digest), None)) is not None:
            found[one.digest] = time_of(record.get("timestamp")), part
    return found


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _digest(text: str) -> str:
    return str(sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
