"""The sessions that hooks have seen: a small file for each in the cache, so that the next hook, `health` and a fresh
session know of them. Losing it loses no checkpoint: what is owed is read off transcripts and the journal.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ralf import names, sessions
from ralf.files import atomic
from ralf.files.opening import content_of
from ralf.project import Project
from ralf.transcripts import clientlogs
from ralf_integrations.hooks import processes

_MOST_HANDED = 64
_UNTOLD = 3_600  # seconds
_END_OF_TIME = 2**36  # seconds since 1970 that a date can still tell
_PATHS = ("transcript", "worktree")
_KINDS = {
    **dict.fromkeys(
        ("session", "client", "transcript", "route", "worktree", "machine", "waiting", "compaction", "run", "forked"),
        str,
    ),
    "origin": str,
    "owed": str,
    **dict.fromkeys(("pid", "born", "told", "window", "compacts", "taken"), int),
    **dict.fromkeys(("ended", "compacted", "unnamed"), bool),
}


@dataclass(frozen=True, slots=True)
class Handed:
    """A text that was handed to the model: what `receipts` looks for in the transcript.

    event   the client's name of the event that handed it over
    what    line, brief, pressure, survived, notice
    digest  the text's sha256; `size` its characters, `start` its first characters
    at      bytes of the transcript that lay before it
    """

    event: str
    what: str
    digest: str
    size: int
    start: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of a session.

    session     the client's id of it
    client      claude-code, codex or gemini
    transcript  its session log, "" where unknown, or no log of a client's own session folder (`clientlogs`)
    route       the route that it was seen to work on last
    worktree    the directory in which it began
    pid, born   the client's process, and when that began (`/proc/PID/stat`, clock ticks); 0 where unknown
    machine     where that process is one (`processes.machine`), "" where unknown
    seen        when a hook called last, seconds since 1970: for people, and for telling silence; order is never by it
    told        the highest percent of pressure that the agent was told of since its window was last emptied
    routes      those that it was on before, and that have a checkpoint of it
    left        of these, the ones whose last checkpoint nobody has waited for: each with the byte of the transcript up
                to which that has to go before another route takes anything
    window      size of the client's window in tokens, as far as a look has found it; 0 where unknown
    compacts    tokens in it at which the client compacted it by itself last, as it told; 0 where it has not
    briefed     routes whose brief it was handed since its window was last emptied
    handed      what it was handed, newest last
    ended       the client said that the session is over
    compacted   its window was compacted or cleared, so that it does not hold all that the session has done
    compaction  how far its newest compaction has come: see `compacting`
    waiting     a text that the next hook hands over which can
    run         the run of a loop in which it is, "" for none
    owed        the brief of its run's route, which its first prompt may hold
    forked      when it began as a fork of a session that is not known yet, "" where it is none, or that one is known
    origin      the session of which it is a fork, "" for none
    begins      bytes and lines at the beginning of its transcript that are that session's
    unnamed     a prompt of it was seen, and none yet of which a route's name can be made
    taken       bytes of its transcript that were taken into its route after it ended, or hold nothing for it
    """

    session: str
    client: str = ""
    transcript: str = ""
    route: str = ""
    worktree: str = ""
    pid: int = 0
    born: int = 0
    machine: str = ""
    seen: float = 0.0
    told: int = 0
    routes: tuple[str, ...] = ()
    left: tuple[tuple[str, int], ...] = ()
    window: int = 0
    compacts: int = 0
    briefed: tuple[str, ...] = ()
    handed: tuple[Handed, ...] = ()
    ended: bool = False
    compacted: bool = False
    compaction: str = ""
    waiting: str = ""
    run: str = ""
    owed: str = ""
    forked: str = ""
    origin: str = ""
    begins: tuple[int, int] = (0, 0)
    unnamed: bool = False
    taken: int = 0

    def with_handed(self, handed: Handed) -> Known:
        """The same, with one more text that was handed over."""
        return replace(self, handed=(*self.handed, handed)[-_MOST_HANDED:])


def folder(project: Project) -> Path:
    """Where these files lie."""
    return project.cache / "hooks"


def of(project: Project, session: str) -> Known:
    """What is remembered of a session; nothing but its name where nothing is, or the file cannot be read."""
    return _read(_path(project, session)) or Known(session)


def everyone(project: Project) -> Iterator[Known]:
    """Every session that is remembered, in no particular order."""
    with suppress(OSError):
        for path in folder(project).glob("*.json"):
            if (known := _read(path)) is not None:
                yield known


def worked_in(project: Project, route: str, run: str) -> bool:
    """Whether a session in a run of a loop is known of whose log something was taken into a route."""
    found = (known for known in everyone(project) if run and known.run == run)
    return any(sessions.standing(project, route, known.session).position.byte for known in found)


def remember(project: Project, known: Known) -> None:
    """Keep it for the next hook. A cache that cannot be written costs knowledge, not data."""
    with suppress(OSError):
        path = _path(project, known.session)
        project.make_room(path, prepare=True)
        atomic.write(path, json.dumps(asdict(known)).encode())


def live(known: Known) -> bool:
    """Whether a session's client still runs, as far as its process tells. One on another machine, in another container,
    or whose process nobody knows counts as running for an hour after its last hook.
    """
    if known.ended or processes.runs(known.pid, known.born):
        return not known.ended
    is_told = not known.machine or (known.pid and known.machine == processes.machine())
    return not is_told and time.time() - known.seen < _UNTOLD


def look_again(project: Project, session: str) -> None:
    """Have the session's next hook look, whatever was foretold."""
    with suppress(OSError):
        (folder(project) / f"{names.slug(session)}.next").unlink()


def _path(project: Project, session: str) -> Path:
    return folder(project) / f"{names.slug(session)}.json"


def _read(path: Path) -> Known | None:
    try:
        tree = json.loads(content_of(path))
        return _made(tree)
    except (OSError, ValueError, TypeError, RecursionError, AttributeError):
        return None


def _made(tree: dict[str, Any]) -> Known:
    """TypeError, or another of those above, for what is no such tree."""
    values = {field.name: tree[field.name] for field in fields(Known) if field.name in tree}
    for name, kind in _KINDS.items():
        if not isinstance(values.get(name, kind()), kind) or isinstance(values.get(name), bool) > (kind is bool):
            raise TypeError(name)
        if (kind is int and values.get(name, 0) < 0) or (name in _PATHS and not _may_be_path(values.get(name, ""))):
            raise ValueError(name)
    if not clientlogs.is_own(values.get("transcript", "")):
        values["transcript"] = ""
    for name in ("briefed", "routes"):
        values[name] = tuple(str(route) for route in values.get(name, ()))
    values["left"] = tuple((str(route), int(byte)) for route, byte in values.get("left", ()))
    byte, line = map(int, values.get("begins", (0, 0)))
    values["begins"] = (max(0, byte), max(0, line))
    values["seen"] = float(values.get("seen", 0.0))
    if not 0 <= values["seen"] < _END_OF_TIME:
        raise ValueError("seen")
    values["handed"] = tuple(map(_handed, values.get("handed", ())))
    return Known(**values)


def _handed(tree: dict[str, Any]) -> Handed:
    values = {field.name: tree[field.name] for field in fields(Handed) if field.name in tree}
    if not all(type(value) is (int if name in ("size", "at") else str) for name, value in values.items()):
        raise TypeError("handed")
    if values.get("at", 0) < 0:
        raise ValueError("handed")
    return Handed(**values)


def _may_be_path(text: str) -> bool:
    """Whether a file can have such a name; UnicodeEncodeError for half a character."""
    return b"\0" not in os.fsencode(text)
