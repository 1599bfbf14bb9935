"""Whether what was handed to the model has really arrived: the client's own log says so, byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ralf.errors import RalfError
from ralf.project import Project
from ralf.text.cleaning import OWN_OUTPUT
from ralf.text.digests import sha256
from ralf.text.frozen import dataclass
from ralf.transcripts.events import Position, time_of
from ralf.transcripts.gemini import injected
from ralf.transcripts.lines import open_regular, read_lines
from ralf_integrations.hooks import session_registry
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


def check(project: Project, session: str) -> list[tuple[Handed, bool | None]]:
    """What a session was handed, oldest first, each with whether it has arrived (`Arrival`)."""
    return [(one.handed, one.arrived) for one in arrivals(session_registry.load(project, session))]


def arrivals(found: KnownSession) -> list[Arrival]:
    """What a session was handed, oldest first. Its log is read from the first text on, until all are found."""
    if not found.handed:
        return []
    missing = {handed.digest for handed in found.handed}
    seen: dict[str, tuple[str, str]] = {}
    told = True
    try:
        for time, text in _texts(Path(found.transcript), min(handed.at for handed in found.handed)):
            digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            if digest in missing:
                missing.discard(digest)
                seen[digest] = time, text
            if not missing:
                break
    except (RalfError, OSError, _TooLong):
        told = False
    return [
        Arrival(handed, True, *seen[handed.digest])
        if handed.digest in seen
        else Arrival(handed, False if told else None)
        for handed in found.handed
    ]


class _TooLong(Exception):  # no error: a bound
    pass


def _texts(path: Path, start: int) -> Iterator[tuple[str, str]]:
    """The texts that hooks have handed to the model, as a log has them from a place on, each behind its time."""
    with open_regular(path, Position(start, 0)) as file:
        for line in read_lines(file, Position(start, 0)):
            if line.end - start > MOST_READ:
                raise _TooLong
            if not line.cut and any(mark in line.data for mark in _MARKS):
                try:
                    record = json.loads(line.data)
                    yield from ((_time(record), text) for text in _of(record))
                except (ValueError, RecursionError):  # the last line may be unfinished, any may be damaged
                    continue


def _time(record: Any) -> str:
    return time_of(record.get("timestamp")) if isinstance(record, dict) else ""


def _of(record: Any) -> Iterable[str]:
    """The texts of one record: an attachment of Claude Code, a developer's message of Codex, what stands between the
    tags of Gemini CLI, a text that a plugin has put into opencode's messages or behind a tool's output.
    """
    if not isinstance(record, dict):
        return ()
    if "toolCalls" in record or record.get("type") == "user":
        return injected(record)
    attached, payload = record.get("attachment"), record.get("payload")
    values: list[object] = []
    if isinstance(attached, dict):
        content = attached.get("content") if attached.get("type") == "hook_additional_context" else None
        values = content if isinstance(content, list) else [content]
    elif record.get("type") == "text" and record.get("synthetic") is True:
        values = [record.get("text")]
    elif record.get("type") == "result" and isinstance(output := record.get("output"), str):
        values = [output[found.start() :] for found in re.finditer(re.escape(OWN_OUTPUT), output)]
        values += [output[found.end() :] for found in re.finditer("\n\n", output)]
    elif isinstance(payload, dict) and payload.get("role") == "developer":
        blocks = payload.get("content")
        values = [one.get("text") for one in blocks if isinstance(one, dict)] if isinstance(blocks, list) else []
    return [value for value in values if isinstance(value, str)]
