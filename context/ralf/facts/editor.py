"""Who edited the file of a document: the agent, where a record of its client says that a tool may have written it.

In doubt an edit is the agent's: a person who is not believed sees it in the next brief, an agent that is believed as a
person changes what that person decided.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ralf.document.access import BY_AGENT, BY_FILE
from ralf.errors import RalfError
from ralf.facts.commands import command_text, looks, simple_commands
from ralf.facts.steps import Steps
from ralf.model.entries import Mark, Step
from ralf.project import Project
from ralf.text.patterns import regex
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.reader import newest_logs, open_transcript

_READ = 64 << 20  # bytes of all logs since the document was written; of more, any may be about it

_BLOCK = 1 << 20

_TIME = regex(rb'"timestamp"\s*:\s*"([0-9T:.-]{19,26})')

_SECOND = len("2026-11-29T12:00:00")


def author_of(project: Project, stream: str, path: Path) -> str:
    """Who edited the file of a document since ralf wrote it: `BY_AGENT` as `is_by_agent`, else `BY_FILE`.

    A write that leaves a half-saved file alone is later than the edit in it; the file's own time is not.
    """
    folder, _, name = stream.rpartition("/")
    last = project.store.written(folder).get(name)
    written = last.written / 1e9 if last is not None else 0
    with suppress(OSError):
        written = min(written, path.stat().st_mtime)
    since = datetime.fromtimestamp(written, UTC)
    return BY_AGENT if is_by_agent(project, path, since.strftime("%Y-%m-%dT%H:%M:%SZ")) else BY_FILE


def is_by_agent(project: Project, path: Path, since: str) -> bool:
    """Whether a client's record shows that a tool of its agent may have written a file at `since` (ISO 8601, UTC) or
    later, or says more than is read.

    Never fails: a log that cannot be read shows nothing.
    """
    begun, room = _seconds(since), _READ
    with suppress(OSError):  # no folder of a client can be listed
        for log in newest_logs(project):
            for one in (log, *log.with_suffix("").rglob("*.jsonl")):  # those of sub-agents, too, whose calls it lacks
                with suppress(OSError, RalfError):
                    status = one.stat()
                    if status.st_mtime + 1 < begun:
                        continue
                    start = _start(one, status.st_size, since, room)
                    room -= status.st_size - start
                    if room < 0 or _may_have_written(one, start, path, since):
                        return True
    return False


def _start(log: Path, size: int, since: str, room: int) -> int:
    """Where to begin to read what a log says since a time: not behind its first record of that time."""
    if log.suffix != ".jsonl":
        return 0
    start = size
    with log.open("rb") as file:
        while start > 0 and size - start <= room:
            start = max(0, start - _BLOCK)
            file.seek(start)
            first = _TIME.search(file.read(_BLOCK))
            if first is not None and first[1][:_SECOND].decode() < since[:_SECOND]:
                break
    return start


def _may_have_written(log: Path, start: int, path: Path, since: str) -> bool:
    """Whether a call of a log that ended at a time or later, or has not ended, may have written a file."""
    transcript = open_transcript(log)
    steps, calls, cwd = Steps(""), dict[str, Event](), transcript.cwd
    wanted = os.path.realpath(path)

    def writes(step: Step | Mark) -> bool:
        if not isinstance(step, Step) or step.id not in calls:
            return False
        call = calls[step.id]
        return _writes(call, step, call.cwd or cwd, wanted, path.name)

    for event in transcript.events(_line_at(log, start)):
        if event.kind == "call":
            calls[event.call_id] = event
        ended = [*steps.take(event)] if event.kind in ("call", "result") else []
        if event.timestamp[:_SECOND] >= since[:_SECOND] and any(map(writes, ended)):
            return True
    return any(map(writes, steps.pending))


def _line_at(log: Path, start: int) -> Position:
    if not start:
        return START
    with log.open("rb") as file:
        file.seek(start)
        file.readline()
        return Position(file.tell())


def _writes(call: Event, step: Step, cwd: str, wanted: str, name: str) -> bool:
    """Whether a call may have written a file: it names it, by any path, and is none that only looks.

    A command that failed may have written before.
    """
    if any(os.path.realpath(Path(step.folder or cwd, one)) == wanted for one, _ in step.files):
        return True
    if command := command_text(call.input):
        return command.count(name) > _looked_at(command, name)
    is_other = not step.looks and not step.has_failed
    return is_other and any(os.path.realpath(Path(cwd, one)) == wanted for one in _paths(call.input))


def _looked_at(command: str, name: str) -> int:
    """How often a command line names a file where it lists, searches or prints."""
    looking = (one for one in simple_commands(command) if looks(one))
    return sum(word.count(name) for one in looking for word in one.words)


def _paths(given: object) -> Iterator[str]:
    """The texts of a call's arguments that may be a path."""
    match given:
        case str() if 0 < len(given) < os.pathconf("/", "PC_PATH_MAX") and "\n" not in given and "\0" not in given:
            yield given
        case Mapping():
            for one in given.values():
                yield from _paths(one)
        case list() | tuple():
            for one in given:
                yield from _paths(one)


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.0
