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
from ralf.transcripts.reader import Transcript, open_transcript
from ralf_integrations.hooks import error_log, session_registry, usage
from ralf_integrations.hooks.messages import Answer, Payload, takes_context
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.usage import Look

_PATIENCE = 60.0  # seconds that who comes next waits for the last checkpoint of a session
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
    return max([*still, IngestOffset(source.session)], key=lambda stand: stand.position.byte)


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


def start(session: Session, why: Why, *, route: str = "", seconds: float = 0.0) -> bool:
    """Start a process that makes a checkpoint of the new part of a session's transcript, and wait for so many seconds,
    where it can be done by then. Returns whether all of it is in a checkpoint now.

    route  which one; "": the session's own, of which a session that was only greeted has none

    None is started where another process is at it and another look will come. OSError, NotImplementedError: none could
    be.
    """
    from ralf_integrations.hooks import prompt_intent  # most looks start nothing

    source, payload = session.transcript, session.payload
    if source is None or not (route or prompt_intent.name_by_work(session)):
        return False
    return take(session.project, route or session.route, payload.session, payload.client, source, why, seconds=seconds)


def take(
    project: Project,
    route: str,
    session: str,
    client: str,
    source: Transcript,
    why: Why,
    *,
    seconds: float,
    patience: float = 0.0,
) -> bool:
    """`start`, for a session of which no hook is called.

    seconds   of work that is waited for; `patience`: that this may take, where the machine has more to do
    """
    new = source.size() - ingest_offset(project, route, session, source).position.byte
    if new <= 0 or (why == "due" and _is_taken(project, session)):
        return new <= 0
    child = spawn(project, route, session, client, why, [source.path])
    return new <= seconds * BYTES_PER_SECOND and environment.status_within(child, patience or seconds) == 0


def spawn(project: Project, route: str, session: str, client: str, why: Why, transcripts: Iterable[Path]) -> int:
    """Start a process that makes checkpoints of transcripts, one after the other, and return its id. Its exit status is
    0 for success; an error goes to the error log. OSError, NotImplementedError: none was started.
    """
    arguments = [str(project.root), route, session, client, why, *map(str, transcripts)]
    return environment.start_detached(__name__, __file__, arguments)


def main(arguments: Sequence[str]) -> None:
    """Run `make` in the process, within its limits, with an exit status."""
    limit_work()
    if not make(arguments):
        raise SystemExit(1)


def make(arguments: Sequence[str]) -> bool:
    """Make the checkpoints that `ROOT ROUTE SESSION CLIENT WHY TRANSCRIPT…` ask for, and have another process
    learn from them; or do what that one does. Whether all went well.
    """
    root, route, session, client, why, *named = arguments
    os.chdir("/")
    project, transcripts = projects.find(root), [Path(one) for one in named]
    try:
        if why == _LEARN:
            _learn(project, route, session, transcripts)
        else:
            made = [work(project, route, session, client, transcript, why) for transcript in transcripts]
            if config.of(project).memory == "on" and (any(made) or why in _ENDS):
                ended = named if why in _ENDS else []
                with suppress(OSError, NotImplementedError):  # nobody waits for it; the next one learns from this, too
                    arguments = [root, route, session, client, _LEARN, *ended]
                    environment.start_detached(__name__, __file__, arguments)
    except (Exception, Exhausted) as error:  # noqa: BLE001  # nobody looks on: the next hook says it
        error_log.add(project, f"{'memory' if why == _LEARN else 'checkpoint'} of {route}", error)
        return False
    return True


def work(project: Project, route: str, session: str, client: str, transcript: Path, why: str) -> bool:
    """Make a checkpoint of the new part of a transcript if one is due, or for another reason. Returns whether it did.

    One process at a time works on a session; the second one looks again at what the first one left.
    """
    place, patience = session_registry.checkpoint_lock(project, session or route), 0.0 if why == "due" else _PATIENCE
    try:
        with locks.locked(place, f"{route}: its checkpoint", patience):
            if why == "due":
                return _make_due(project, route, session, client, transcript)
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


def _make_due(project: Project, route: str, session: str, client: str, transcript: Path) -> bool:
    """Make the checkpoints that are due by an exact count, and leave the hint for the next look."""
    payload, made = Payload(client, "", "tools-used", session, transcript), False
    source, settings, known = open_transcript(transcript), config.of(project), session_registry.load(project, session)
    while True:
        stand = ingest_offset(project, route, session, source)
        look = usage.look(source, stand, settings, payload.sender, known=known.window, scale=None)
        if not look.due:
            break
        if not checkpoint_session(project, route, session, transcript, look.due):
            break
        made = True
    with session_registry.alone(project, session, _STATE_PATIENCE):
        now = Session(payload, project)
        now.note(scale=look.scale or now.known.scale)
        now.foretell(usage.foretold(look, settings, told=now.known.told))
        session_registry.save(project, now.known)
    return made


def _is_taken(project: Project, session: str) -> bool:
    try:
        with locks.locked(session_registry.checkpoint_lock(project, session), session, 0):
            return False
    except Busy:
        return True


def _learn(project: Project, route: str, session: str, ended: Sequence[Path]) -> None:
    """Take in what a route's checkpoints hold; of a session that is over also what came of what it was handed.

    session  as the client's hooks tell it
    ended    its transcripts where it is over

    What came of what the session was handed is judged by what its client's log confirms to have arrived.
    Errors: `ralf.memory.writing.record`.
    """
    from ralf.memory import harvest, writing
    from ralf.memory.model import DEFAULT_AGENT
    from ralf_integrations.hooks import receipts

    known = session_registry.load(project, session)
    name = known.memory or DEFAULT_AGENT
    harvest.take_in(project, route, agent=name)
    offered = writing.load(project, name).offers if ended else ()
    if offered:  # the client shows nothing at the end itself
        what = f"ralf memory show; to take one in: ralf memory accept {offered[0].id}"
        line = f"{len(offered)} offered to the memory: {what}"
        error_log.leave(project, config.typed(line, project.command))
    if not ended or not any(one.labels for one in known.handed):
        return
    there = [one.handed for one in receipts.arrivals(known) if one.arrived and one.handed.labels]
    labels = list(dict.fromkeys(label for one in there for label in one.labels))
    for transcript in ended if labels else ():
        after = _lines_before(transcript, min(one.at for one in there))
        logged = open_transcript(transcript).session
        harvest.judge(project, route, agent=name, session=logged, labels=labels, after=after)


def _lines_before(transcript: Path, byte: int) -> int:
    """How many lines of a transcript end before a byte."""
    count = 0
    with suppress(OSError), transcript.open("rb") as file:
        while byte > 0 and (part := file.read(min(byte, 1 << 20))):
            count += part.count(b"\n")
            byte -= len(part)
    return count


BYTES_PER_SECOND = 400_000
"""Bytes of a transcript that a checkpoint processes at least, on a slow machine with nothing loaded yet."""


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


# ---- a session that goes on with another route ----


LEFT_ROUTE_SECONDS = 2.0
"""Seconds that a hook waits for the last checkpoint of the route that was left."""


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


# ---- what the events of a session's work do ----


def tools_used(session: Session) -> Answer:
    """Start the checkpoint that is due and return: the agent does not wait. The hint says when the next look is."""
    look = look_at(session)
    if look is None:
        if session.transcript is None:
            session.foretell(usage.Foretold())
        return Answer()
    said = Answer(context=_asked(session, look) if takes_context(session.payload) else "", what="pressure")
    _apply(session, look)
    return said


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

    if handover.is_handed_over(session):
        return ""
    return handover.asked(session, look, is_done=is_done)


def look_at(session: Session) -> Look | None:
    """Look at the session; None while there is no transcript, and where so much of it is new that another process looks
    instead: it is started here.
    """
    source, payload, known = session.transcript, session.payload, session.known
    if source is None:
        return None
    stand, size = ingest_offset(session.project, session.route, payload.session, source), source.size()
    if source.format in usage.IN_LINES and size - stand.position.byte > usage.MOST_READ:
        session.foretell(usage.Foretold(size, usage.limit(size)))
        start(session, "due")
        return None
    look = usage.look(
        source,
        stand,
        session.settings,
        payload.sender,
        known=known.window,
        scale=usage.factor(known.scale),
    )
    session.note(window=look.window)
    return look


def _apply(session: Session, look: Look) -> None:
    """Leave the hint for the next look, and start the checkpoint that is due; it leaves a better hint."""
    session.foretell(usage.foretold(look, session.settings, told=session.known.told))
    if look.due:
        start(session, "due")


# ---- the end of a task, a turn, a session ----


HEADLESS_SECONDS = 2.0
"""Seconds that a headless run which stops may wait for its checkpoint."""


def stopped(session: Session) -> Answer:
    """The agent has stopped: for good in a headless run, which ends with it; else until the person goes on."""
    if session.payload.sender.is_headless(session.payload.transcript):
        start(session, "session-end", seconds=HEADLESS_SECONDS)
    elif (look := look_at(session)) is not None:
        _apply(session, look)
    return Answer()
