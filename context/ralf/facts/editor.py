"""Who edited the file of a document: the agent, where a record of its client says that a tool wrote it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path

from ralf.document.access import BY_AGENT, BY_FILE
from ralf.errors import RalfError
from ralf.facts.steps import Steps
from ralf.model.entries import Step
from ralf.project import Project
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.reader import Transcript, newest_logs, open_transcript

_SESSIONS = 8  # of the newest transcripts are read

_SUBAGENTS = 64  # logs of a session's sub-agents that are read

_READ = 8 << 20  # bytes at the end of each

_SECOND = len("2026-11-29T12:00:00")


def author_of(project: Project, stream: str, path: Path) -> str:
    """Who edited the file of a document since its stream was written: `BY_AGENT` as `is_by_agent`, else `BY_FILE`."""
    folder, _, name = stream.rpartition("/")
    last = project.store.written(folder).get(name)
    since = datetime.fromtimestamp(last.written / 1e9 if last is not None else 0, UTC)
    return BY_AGENT if is_by_agent(project, path, since.strftime("%Y-%m-%dT%H:%M:%SZ")) else BY_FILE


def is_by_agent(project: Project, path: Path, since: str) -> bool:
    """Whether a client's record shows that a tool of its agent wrote a file at `since` (ISO 8601, UTC) or later.

    Never fails: a log that cannot be read shows nothing.
    """
    wanted = os.path.realpath(path)
    begun = _seconds(since)
    with suppress(OSError):
        for log in chain.from_iterable(map(_with_subagents, newest_logs(project)[:_SESSIONS])):
            with suppress(OSError, RalfError):
                if log.stat().st_mtime + 1 < begun:
                    continue
                found = _written(open_transcript(log), since) if _names(log, path.name) else ()
                if any(os.path.realpath(one) == wanted for one in found):
                    return True
    return False


def _with_subagents(log: Path) -> Iterator[Path]:
    """A session's log and those of its sub-agents, also of one that has not ended, whose calls the first lacks."""
    yield log
    yield from islice(log.with_suffix("").glob("subagents/*.jsonl"), _SUBAGENTS)


def _written(transcript: Transcript, since: str) -> Iterator[str]:
    """The files that tools of a session wrote since a time."""
    steps, cwd = Steps(""), transcript.cwd
    for event in _newest(transcript):
        cwd = event.cwd or cwd
        if event.kind in ("call", "result") and event.timestamp[:_SECOND] >= since[:_SECOND]:
            for step in (*steps.take(event), *(steps.pending if event.kind == "call" else ())):
                if isinstance(step, Step):
                    yield from (str(Path(step.folder or cwd, one)) for one, _ in step.files)


def _names(log: Path, name: str) -> bool:
    """Whether the part of a log that is read may name a file: to look for it costs far less than to read the events."""
    if log.suffix != ".jsonl" or not name.isascii():
        return True
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _READ))
        return name.encode() in file.read()


def _newest(transcript: Transcript) -> Iterator[Event]:
    size = transcript.size()
    if size <= _READ or transcript.path.suffix != ".jsonl":
        return transcript.events(START)
    with transcript.path.open("rb") as file:
        file.seek(size - _READ)
        file.readline()
        return transcript.events(Position(file.tell()))


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.0
