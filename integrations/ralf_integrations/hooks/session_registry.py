"""The state of each session: one small file in the cache, which hooks leave for the next hook, for `health` and for the
session that follows; and whether a session's client still runs. Losing it loses no checkpoint: transcripts and the
journal say what is missing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from ralf.errors import Busy
from ralf.project import Project
from ralf.route import offsets
from ralf.storage import durable, locks
from ralf.storage.files import content_of
from ralf.text import cleaning, digests
from ralf.text.frozen import dataclass, fields, replace
from ralf.transcripts.reader import is_own_log
from ralf_integrations.client import Client

_Made = TypeVar("_Made", "Handed", "KnownSession")

_UNTOLD = 3_600  # seconds
_DAYS = 90  # after which a session is forgotten: its client has long deleted the transcript
_END_OF_TIME = 2**36  # seconds since 1970 that a date can still tell, and more bytes than any log has


@dataclass(frozen=True, slots=True)
class Handed:
    """A text that was handed to the model: what `receipts` looks for in the transcript."""

    event: str = ""  # the client's name of the event that handed it over
    what: str = ""  # line, brief, pressure, survived, notice, memory
    digest: str = ""  # its sha256
    size: int = 0  # its characters
    start: str = ""  # its first characters
    at: int = 0  # bytes of the transcript that lay before it
    labels: tuple[str, ...] = ()  # of the items of a memory in it
    when: int = 0  # seconds since 1970, 0 where unknown: for people only


@dataclass(frozen=True, slots=True)
class KnownSession:
    """What is known of a session; "" and 0 where something is unknown."""

    session: str  # the client's id of it
    client: str = ""  # claude-code, codex, gemini or opencode
    transcript: str = ""  # its log, if that lies in a client's own session folder
    route: str = ""  # that it was seen to work on last
    routes: tuple[str, ...] = ()  # those that it was on before
    worktree: str = ""  # the directory in which it began
    pid: int = 0  # the client's process
    born: int = 0  # when that began (`/proc/PID/stat`, clock ticks)
    machine: str = ""  # of that process
    seen: float = 0.0  # when a hook called last: for people, and for telling silence; order is never by it
    ended: bool = False  # the client said that the session is over
    forked: str = ""  # when it began as a fork (ISO 8601): what is older in its log is another session's
    unnamed: bool = False  # a prompt of it was seen, and none yet of which a route's name can be made
    taken: int = 0  # bytes of its log that were taken into its route after it ended, or hold nothing for it
    run: str = ""  # the run of a loop in which it is
    memory: str = ""  # whose memory it reads and writes
    # its window
    hint: str = ""  # up to where no hook needs to look: see `usage.hint`; "" where the next one does
    window: int = 0  # its size in tokens
    told: int = 0  # percent at which its agent was asked to hand over, by whomever; 0 where it was emptied since
    told_at: int = 0  # bytes of the log then
    done: int = 0  # bytes of the log at which it was asked to hand over what a task that is done leaves behind
    compacted: bool = False  # it was compacted or cleared, so that it does not hold all that the session has done
    compaction: str = ""  # how far its newest compaction has come: see `compacting`
    # what it was handed
    briefed: tuple[str, ...] = ()  # routes whose brief it has had since its window was last emptied
    recalled: bool = False  # whether it has had what the memory has of its task since then, if anything
    waiting: str = ""  # a text that the next hook hands over which can
    owed: str = ""  # the brief of its run's route, which its first prompt may hold
    handed: tuple[Handed, ...] = ()  # newest last
    cost: int = 0  # tokens of all that, by estimate


def folder(project: Project) -> Path:
    """Returns the folder of the registry."""
    return project.cache / "hooks"


def load(project: Project, session: str) -> KnownSession:
    """Returns what is known of a session: only its id if there is no file, or it cannot be read."""
    return _read(path_of(project, session)) or KnownSession(session)


def all_sessions(project: Project) -> Iterator[KnownSession]:
    """Yields every known session, in no particular order."""
    return (known for path in _paths(project) if (known := _read(path)) is not None)


def last_called(project: Project) -> float:
    """Returns when a hook of any session called last, in seconds since 1970; 0.0 if none has, or unknown."""
    return max(map(_time, _paths(project)), default=0.0)


def sweep(project: Project) -> None:
    """Forget sessions of which no hook has called for long, and the locks of their checkpoints."""
    for place in (folder(project), checkpoint_lock(project, "").parent):
        with suppress(OSError):
            for path in place.iterdir():
                if time.time() - _time(path) > _DAYS * 86_400:
                    path.unlink()


def checkpoint_lock(project: Project, session: str) -> Path:
    """Returns the lock that a hook's checkpoint of a session holds, whichever route it is of: so nothing of its log is
    recorded twice.
    """
    return project.folder / "locks" / "hooks" / f"{cleaning.slug(session)}.lock"


def worked_in(project: Project, route: str, run: str) -> bool:
    """Returns whether a route has something of the log of a session in this run of a loop."""
    found = (known for known in all_sessions(project) if run and known.run == run)
    return any(offsets.ingest_offset(project, route, known.session).position.byte for known in found)


def cost(project: Project, route: str, own: KnownSession) -> int:
    """Returns the tokens that sessions on a route were handed, by estimate; `own`: one of them, as it is now."""
    others = (one for one in all_sessions(project) if one.session != own.session)
    return sum(one.cost for one in (own, *others) if route in (one.route, *one.routes))


def save(project: Project, known: KnownSession) -> None:
    """Keep a session for the next hook. A cache that cannot be written costs knowledge, not data."""
    with suppress(OSError):
        path = path_of(project, known.session)
        project.make_room(path, prepare=True)
        durable.write(path, json.dumps(known, default=_tree).encode(), is_synced=False)


def is_live(known: KnownSession) -> bool:
    """Whether a session's client still runs, as far as its process tells. One on another machine, in another container,
    or whose process nobody knows counts as running for an hour after its last hook.
    """
    if known.ended or is_running(known.pid, known.born):
        return not known.ended
    is_told = not known.machine or (known.pid and known.machine == machine())
    return not is_told and time.time() - known.seen < _UNTOLD


@contextmanager
def alone(project: Project, session: str, seconds: float) -> Iterator[None]:
    """One at a time changes what is known of a session (and of few others: they share 256 locks). Who has waited for so
    many seconds goes on all the same: two at once are better than none.
    """
    name = digests.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:2]
    path = project.folder / "locks" / "sessions" / f"{name}.lock"  # not where a route's would lie of that name
    with ExitStack() as stack:
        with suppress(Busy, OSError):  # where nothing can be written, what is kept is handed over all the same
            stack.enter_context(locks.locked(path, session, seconds))
        yield


def path_of(project: Project, session: str) -> Path:
    """Returns the file of a session."""
    return folder(project) / f"{cleaning.slug(session)}.json"


def _paths(project: Project) -> Iterator[Path]:
    with suppress(OSError):
        yield from folder(project).glob("*.json")


def _time(path: Path) -> float:
    """When a hook has called last: `instant` touches the file."""
    with suppress(OSError):
        return path.lstat().st_mtime
    return 0.0


def _tree(value: Handed | KnownSession) -> dict[str, Any]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _read(path: Path) -> KnownSession | None:
    """What a file says; None where it cannot be read, or says what no hook has written."""
    try:
        tree = json.loads(content_of(path))
        handed = tuple(_made(Handed(), one) for one in tree.pop("handed", ()))
        found = replace(_made(KnownSession(""), tree | {"session": tree["session"]}), handed=handed)
        return found if is_own_log(found.transcript) else replace(found, transcript="")
    except (OSError, ValueError, TypeError, LookupError, RecursionError, AttributeError):
        return None


def _made(usual: _Made, tree: Mapping[str, Any]) -> _Made:
    """A value with the fields that a tree has of it; TypeError for one of another type, or out of all bounds."""
    values: dict[str, Any] = {}
    for name, default in _tree(usual).items():
        value = tree.get(name, default)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            value = tuple(value)
        if type(value) is not type(default) or (isinstance(value, int | float) and not 0 <= value < _END_OF_TIME):
            raise TypeError(name)
        values[name] = value
    return replace(usual, **values)


# ---- the process of a client: a number alone may be another process's by now ----


_BETWEEN = frozenset(
    "sh ash bash rbash dash zsh fish ksh mksh csh tcsh nu pwsh xonsh elvish busybox env timeout nice".split()
)
"""Names of processes that stand between a client and its hook."""

_MOST_BETWEEN = 8


def client_process(client: Client) -> tuple[int, int]:
    """The process of the client that calls us, and when that began; zeros where that cannot be told."""
    process = client.process()
    if not process:
        process = os.getppid()
        for _ in range(_MOST_BETWEEN):
            name, parent, _ = _stat(process)
            if name not in _BETWEEN:
                break
            process = parent
    began = process_start(process)
    return (process, began) if process > 1 and began else (0, 0)


def machine() -> str:
    """The machine, and on it the space of process numbers that we see: a container has one of its own."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return f"{os.uname().nodename} {space}"


def process_start(process: int) -> int:
    """When a process began, in clock ticks since the machine did; 0 for one that is gone, or only waits to be reaped,
    or where the system does not say.
    """
    return _stat(process)[2]


def process_parent(process: int) -> int:
    """The process that started another, 0 where that cannot be told."""
    return _stat(process)[1]


def is_running(process: int, began: int) -> bool:
    """Returns whether the process that began at that time still runs."""
    return process > 0 and began > 0 and process_start(process) == began


def _stat(process: int) -> tuple[str, int, int]:
    """A process's name, its parent, and when it began."""
    try:
        text = Path(f"/proc/{process}/stat").read_bytes().decode("utf-8", "replace")
        name, _, rest = text.partition("(")[2].rpartition(")")
        found = rest.split()
        return name, int(found[1]), 0 if found[0] in "ZX" else int(found[19])
    except (OSError, ValueError, IndexError):
        return "", 0, 0
