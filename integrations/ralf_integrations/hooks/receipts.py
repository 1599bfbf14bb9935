"""Whether what was handed to the model has really arrived: the client's own log says so, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ralf.errors import RalfError
from ralf.text.digests import sha256
from ralf.text.frozen import dataclass, replace
from ralf.transcripts.events import Position, time_of
from ralf.transcripts.gemini import injected
from ralf.transcripts.lines import open_regular, parsed, read_lines
from ralf_integrations.hooks.session_registry import Handed, KnownSession

MOST_READ = 64 << 20
"""Bytes behind the place where a text was handed over in which it is looked for."""

_MARKS = (b"hook_additional_context", b"additional_context", b'"developer"', b"<hook_context>", b"<!-- ralf:context")
"""What a record has that holds such a text, in whichever client."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What became of a text that was handed over."""

    handed: Handed
    arrived: bool | None  # whether the log holds it, whole; None where the log is gone, cannot be read or is too long
    time: str = ""  # of the log's record that holds it, ISO 8601, where the client tells one
    text: str = ""  # as the model got it


def arrivals(found: KnownSession) -> list[Arrival]:
    """What a session was handed, oldest first. Its log is read from the first text on, until all are found."""
    if not found.handed:
        return []
    missing = {handed.digest: handed for handed in found.handed}
    there: dict[str, Arrival] = {}
    is_told = True
    start = Position(min(handed.at for handed in found.handed), 0)
    try:
        with open_regular(Path(found.transcript), start) as file:
            for line in read_lines(file, start):
                is_told = line.end - start.byte <= MOST_READ
                if not missing or not is_told:
                    break
                if not line.cut and any(mark in line.data for mark in _MARKS):
                    for arrival in _within(line.data, [*missing.values()]):
                        there[arrival.handed.digest] = arrival
                        missing.pop(arrival.handed.digest, None)
    except (RalfError, OSError):
        is_told = False
    return [
        replace(there[one.digest], handed=one) if one.digest in there else Arrival(one, False if is_told else None)
        for one in found.handed
    ]


def _within(line: bytes, wanted: Iterable[Handed]) -> Iterator[Arrival]:
    """Those of some texts that a record holds whole."""
    record = parsed(line)  # the last line may be unfinished, any may be damaged
    if record is None:
        return
    texts = [*_strings(record), *injected(record)]  # Gemini CLI escapes what it is handed
    for one in wanted:
        for part in (text[text.index(one.start) :][: one.size] for text in texts if one.start in text):
            if sha256(part.encode("utf-8", "surrogatepass")).hexdigest() == one.digest:
                yield Arrival(one, True, time_of(record.get("timestamp")), part)
                break


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)
