"""Checkpoints that hooks make of a session: where its part of a log begins, the process that makes them, its limits,
and the events at which one is made.

A hook starts a process and does not wait for it, or waits no longer than it may: so no lock, disk or text keeps a
client waiting. The process looks for itself whether a checkpoint is due. Nothing is queued: what a killed one has not
made is still due at the next look.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ralf import config, environment, project as projects
from ralf.errors import Busy, RalfError
from ralf.project import Project
from ralf.route import offsets
from ralf.route.offsets import IngestOffset
from ralf.storage import locks
from ralf.text import cleaning
from ralf.text.patterns import regex
from ralf.transcripts import lines
from ralf.transcripts.events import Position
from ralf.transcripts.reader import Transcript, open_transcript
from ralf_integrations.client import CLAUDE_CODE, CLIENTS
from ralf_integrations.hooks import error_log, session_registry, usage
from ralf_integrations.hooks.messages import Answer, Payload, takes_context
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.usage import Look

_PATIENCE = 60.0  # seconds that who comes next waits for the last checkpoint of a session
_TIME = regex(rb'"timestamp":\s?"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z)"')
_STATE_PATIENCE = 5.0  # seconds for which a hook of the session may hold its state


def ingest_offset(project: Project, route: str, session: str, source: Transcript) -> IngestOffset:
    """Returns the place from which a session's log belongs to a route: behind what this route and the session's earlier
    ones have of it, the log's beginning if it was replaced since.

    session  the session's id as the client's hooks tell it, which may be another than its log's
    """
    known = session_registry.load(project, session)
    routes = dict.fromkeys((route, *filter(cleaning.is_valid, known.routes)))
    found = (offsets.ingest_offset(project, one, source.session) for one in routes)
    still = (stand for stand in found if offsets.is_unchanged(stand, source))
    stand = max([*still, IngestOffset(source.session)], key=lambda stand: stand.position.byte)
    return stand if stand.position.byte or not known.forked else _own_part(source, known.forked.encode())


def _own_part(source: Transcript, since: bytes) -> IngestOffset:
    """Returns the place at which a fork's own part of its log begins: records that are copied keep their times."""
    end = Position()
    with lines.open_regular(source.path) as file:
        for record in lines.read_lines(file):
            times = _TIME.findall(record.data)
            if times and max(times) < since:
                end = Position(record.end, record.number + 1)
            elif times and end.byte:
                break
    found = lines.take_fingerprint(source.path, end.byte) if end.byte else None
    return IngestOffset(source.session) if found is None else IngestOffset(source.session, end, *found)


def checkpoint_session(project: Project, route: str, session: str, transcript: Path, reason: str) -> bool:
    """Make a checkpoint of the new part of a session's log that belongs to a route. Returns whether one was made;
    raises what `checkpoint` does.
    """
    from ralf.checkpointing.flow import checkpoint  # only who makes one pays for it

    begin = ingest_offset(project, route, session, open_transcript(transcript)).position
    run = session_registry.load(project, session).run
    made = checkpoint(route, transcript, root=project.root, reason=reason, begin=begin, run=run, restart=True)
    return bool(made.checkpoints)


# ---- a process of its own ----


Why = Literal["due", "task-completed", "session-end", "compaction", "route-change", "run-begun", "run-ended"]
"""Why a checkpoint is made. `due`: a look found it due, and the next look would again; else the event is the reason."""

_OF_RUNS = ("run-begun", "run-ended")
_ENDS = ("session-end", "run-ended")
_LEARN = "learn"  # from the checkpoints, instead of making one

BYTES_PER_SECOND = 400_000
"""Bytes of a transcript that a checkpoint processes at least, on a slow machine with nothing loaded yet."""


def start(session: Session, why: Why, *, route: str = "", seconds: float = 0.0) -> bool:
    """Start a process that makes a checkpoint of the new part of a session's transcript, and wait for so many seconds,
    where it can be done by then. Returns whether all of it is in a checkpoint now.

    route  which one; "": the session's own, of which a session that was only greeted has none

    None is started where another process is at it and another look will come. OSError, NotImplementedError: none could
    be.
    """
    from ralf_integrations.hooks import prompt_intent  # most looks start nothing

    source = session.transcript
    if source is None or not (route or prompt_intent.name_by_work(session)):
        return False
    return take(session.project, route or session.route, session.payload.session, source, why, seconds=seconds)


def take(
    project: Project, route: str, session: str, source: Transcript, why: Why, *, seconds: float, patience: float = 0.0
) -> bool:
    """`start`, for a session of which no hook is called.

    seconds   of work that is waited for; `patience`: that this may take, where the machine has more to do
    """
    new = source.size() - ingest_offset(project, route, session, source).position.byte
    if new <= 0:
        return True
    if why == "due":
        try:
            with locks.locked(session_registry.checkpoint_lock(project, session), session, 0):
                pass
        except Busy:
            return False
    child = spawn(project, route, session, why, [source.path])
    return new <= seconds * BYTES_PER_SECOND and environment.status_within(child, patience or seconds) == 0


def spawn(project: Project, route: str, session: str, why: str, transcripts: Iterable[Path]) -> int:
    """Start a process that makes checkpoints of transcripts, one after the other, and return its id. Its exit status is
    0 for success; an error goes to the error log. OSError, NotImplementedError: none was started.
    """
    arguments = [str(project.root), route, session, why, *map(str, transcripts)]
    return environment.start_detached(__name__, __file__, arguments)


def main(arguments: Sequence[str]) -> None:
    """Run `make` in the process, within its limits, with an exit status."""
    limit_work()
    if not make(arguments):
        raise SystemExit(1)


def make(arguments: Sequence[str]) -> bool:
    """Make the checkpoints that `ROOT ROUTE SESSION WHY TRANSCRIPT…` ask for, and have another process learn from them;
    or do what that one does. Whether all went well.
    """
    root, route, session, why, *named = arguments
    os.chdir("/")
    project, transcripts = projects.find(root), [Path(one) for one in named]
    try:
        if why == _LEARN:
            _learn(project, route, session, transcripts)
            return True
        made = [work(project, route, session, transcript, why) for transcript in transcripts]
        if config.of(project).memory == "on" and (any(made) or why in _ENDS):
            with suppress(OSError, NotImplementedError):  # nobody waits for it; the next one learns from this, too
                spawn(project, route, session, _LEARN, transcripts if why in _ENDS else ())
    except (Exception, Exhausted) as error:  # noqa: BLE001  # nobody looks on: the next hook says it
        error_log.add(project, f"{'memory' if why == _LEARN else 'checkpoint'} of {route}", error)
        return False
    return True


def work(project: Project, route: str, session: str, transcript: Path, why: str) -> bool:
    """Make a checkpoint of the new part of a transcript if one is due, or for another reason. Returns whether it did.

    One process at a time works on a session; the second one looks again at what the first one left.
    """
    place, patience = session_registry.checkpoint_lock(project, session or route), 0.0 if why == "due" else _PATIENCE
    try:
        with locks.locked(place, f"{route}: its checkpoint", patience):
            if why == "due":
                return _make_due(project, route, session, transcript)
            if why in _OF_RUNS:
                return _take_run(project, route, transcript, why)
            return checkpoint_session(project, route, session, transcript, why)
    except Busy:
        if why == "due":
            return False  # somebody is at it, or writes faster than we do: the next look sees
        raise


def _take_run(project: Project, route: str, folder: Path, why: str) -> bool:
    """Import the folder of a run. An error in one folder does not keep the others from being imported."""
    from ralf.checkpointing.flow import checkpoint
    from ralf.transcripts.notes import session_of

    with suppress(RalfError, OSError):
        logged = session_registry.worked_in(project, route, session_of(folder, project.root))
        source = open_transcript(folder, root=project.root, logged=logged)
        return bool(checkpoint(route, source, root=project.root, reason=why).checkpoints)
    return False


def _make_due(project: Project, route: str, session: str, transcript: Path) -> bool:
    """Make the checkpoints that are due by an exact count, and leave the hint for the next look."""
    source, settings, made = open_transcript(transcript), config.of(project), False
    client, window = CLIENTS.get(source.format, CLAUDE_CODE), session_registry.load(project, session).window
    while True:
        stand = ingest_offset(project, route, session, source)
        look = usage.look(source, stand, settings, client, known=window, counts=True)
        if not look.due or not checkpoint_session(project, route, session, transcript, look.due):
            break
        made = True
    with session_registry.alone(project, session, _STATE_PATIENCE):
        now = Session(Payload(client.name, "", "tools-used", session, transcript), project)
        now.foretell(usage.foretold(look, settings, usage.next_count(look), told=now.known.told))
        session_registry.save(project, now.known)
    return made


def _learn(project: Project, route: str, session: str, ended: Sequence[Path]) -> None:
    """Take in what a route's checkpoints hold; of a session that is over also what came of what it was handed, as far
    as its client's log confirms that it has arrived.

    session  as the client's hooks tell it
    ended    its transcripts where it is over

    Errors: `ralf.memory.writing.record`.
    """
    from ralf.memory import harvest, writing
    from ralf.memory.model import DEFAULT_AGENT
    from ralf_integrations.hooks import receipts

    known = session_registry.load(project, session)
    name = known.memory or DEFAULT_AGENT
    harvest.take_in(project, route, agent=name)
    if ended and (offered := writing.load(project, name).offers):  # the client shows nothing at the end itself
        what = f"ralf memory show; to take one in: ralf memory accept {offered[0].id}"
        error_log.leave(project, config.typed(f"{len(offered)} offered to the memory: {what}", project.command))
    there = [one.handed for one in receipts.arrivals(known) if one.arrived and one.handed.labels] if ended else []
    labels = list(dict.fromkeys(label for one in there for label in one.labels))
    for transcript in ended if labels else ():
        with suppress(OSError), transcript.open("rb") as file:
            after = file.read(min(one.at for one in there)).count(b"\n")
            logged = open_transcript(transcript).session
            harvest.judge(project, route, agent=name, session=logged, labels=labels, after=after)


# ---- how much work the process may do: no text keeps one busy for ever ----


CPU_SECONDS = 900
"""Seconds of processor time. Work is linear in the text: this is some hundred megabytes of a transcript."""

_GRACE = 30  # seconds after which the system kills it


class Exhausted(BaseException):
    """The process has used its processor time. Not an `Exception`: code at work must not catch it as one of its own."""


def limit_work(seconds: int = CPU_SECONDS) -> None:
    """Raise `Exhausted` in the main thread after so much processor time, and again each second; then the system ends
    the process. Segments that were acknowledged are kept, all else is still due.
    """

    def exhausted(*_: object) -> None:
        raise Exhausted(f"took more than {seconds:,} s of processor time; what is not taken yet is still due")

    import resource
    import signal  # only the process that does the work needs them

    with suppress(ValueError, OSError):  # a lower limit is in force, and holds
        signal.signal(signal.SIGXCPU, exhausted)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _GRACE))


# ---- what the events of a session's work do ----


LEFT_ROUTE_SECONDS = 2.0
"""Seconds that a hook waits for the last checkpoint of the route that was left."""

HEADLESS_SECONDS = 2.0
"""Seconds that a headless run which stops may wait for its checkpoint."""


def leave_route(session: Session) -> None:
    """Close the segment of the route that the session has left since its last hook, if it is one that has anything of
    the session: else what was said before belongs to the new one, too, as what is not taken in does. At the session's
    end nothing is waited for.
    """
    left, source, project, id_ = session.known.route, session.readable, session.project, session.payload.session
    if source is None or not cleaning.is_valid(left) or left == session.route:
        return
    if not ingest_offset(project, left, id_, source).position.byte:
        return
    session.note(routes=(*(one for one in session.known.routes if one not in (left, session.route)), left))
    session_registry.save(project, session.known)  # before anybody makes another one
    start(session, "route-change", route=left, seconds=LEFT_ROUTE_SECONDS * (session.payload.event != "session-end"))


def tools_used(session: Session) -> Answer:
    """Start the checkpoint that is due and return: the agent does not wait."""
    return Answer(context=look_at(session, asks=takes_context(session.payload)), what="pressure")


def stopped(session: Session) -> Answer:
    """The agent has stopped: for good in a headless run, which ends with it; else until the person goes on."""
    if session.payload.sender.is_headless(session.payload.transcript):
        start(session, "session-end", seconds=HEADLESS_SECONDS)
    else:
        look_at(session)
    return Answer()


def look_at(session: Session, *, asks: bool = False) -> str:
    """Look at the session, start the checkpoint that is due, which leaves a better hint, and leave the hint for the
    next look. Returns the line that asks the agent to hand over, "" for none; `asks`: whether it can be asked.

    Where very much of the log is new, another process looks instead.
    """
    source, payload, known = session.transcript, session.payload, session.known
    if source is None:
        session.foretell(usage.Foretold())
        return ""
    stand, size = ingest_offset(session.project, session.route, payload.session, source), source.size()
    if source.format in usage.IN_LINES and size - stand.position.byte > usage.MOST_READ:
        session.foretell(usage.Foretold(size, usage.limit(size)))
        start(session, "due")
        return ""
    look = usage.look(source, stand, session.settings, payload.sender, known=known.window, counts=False)
    session.note(window=look.window)
    line = _asked(session, look) if asks else ""
    limit = max(usage.limit_of(known.hint, session.project, source.path, size), usage.next_count(look))
    is_due = bool(look.due) or look.size >= limit
    limit = usage.limit(size) if is_due else limit
    session.foretell(usage.foretold(look, session.settings, limit, told=session.known.told))
    if is_due:
        start(session, "due")
    return line


def _asked(session: Session, look: Look) -> str:
    """The line that asks the agent to hand over, once in a window that is nearly full, and once where a task is set to
    done; "" also where that has been handed over lately, or somebody else has asked (`health --nudge`).
    """
    known, settings = session.known, session.settings
    told = usage.told_since(settings, look, known.told)
    is_full = not told and usage.is_full(settings, look)
    is_done = look.due == "task-completed" and session.standing.position.byte >= known.done
    session.note(
        told=int(look.percent or 0) if is_full else told,
        told_at=look.size if is_full else known.told_at,
        done=look.size if is_done else known.done,
    )
    if not (is_full or is_done) or settings.inject == "off":
        return ""
    from ralf_integrations.hooks import handover  # few looks have something to say

    return "" if handover.is_handed_over(session) else handover.asked(session, look, is_done=is_done)
