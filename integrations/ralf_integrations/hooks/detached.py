"""Checkpoints that a hook does not wait for: made by a process of their own, which looks for itself whether one is due.

Nothing is queued. What a killed one has not made is still due at the next look.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ralf import config, detached, project as projects
from ralf.errors import Busy, RalfError
from ralf.files import locks
from ralf.project import Project
from ralf.transcripts import open_transcript
from ralf_integrations.hooks import complaints, hints, known, taking, usage
from ralf_integrations.hooks.session import Session

Why = Literal["due", "task-completed", "session-end", "compaction", "route-change", "run-begun", "run-ended"]
"""Why it is made: `due` where a look has found it to be, and the next look will again; else whatever was seen."""

_OF_RUNS = ("run-begun", "run-ended")
_QUIET = "quiet"
_LAST = 60.0  # seconds that one waits whose hook no other follows


def start(session: Session, why: Why) -> bool:
    """Start a process that makes a checkpoint of what is new in a session's transcript; whether one was started.

    Not without a transcript, not for a session that has no route and has not worked, and not where somebody is at the
    route's checkpoint and another look will come. OSError, NotImplementedError: none could be started.
    """
    from ralf_integrations.hooks import naming  # most looks start nothing

    return naming.by_work(session) and start_for(session, session.route, why)


def start_for(session: Session, route: str, why: Why) -> bool:
    """The same for a route that the session has left."""
    source, payload = session.transcript, session.payload
    if source is None or (why == "due" and _is_taken(session.project, route)):
        return False
    begin(session.project, route, payload.session, payload.client, why, [source.path])
    return True


def begin(
    project: Project,
    route: str,
    session: str,
    client: str,
    why: Why,
    transcripts: Iterable[Path],
    *,
    quiet: bool = False,
) -> int:
    """Start a process that makes checkpoints of transcripts, one after the other; its id. Its exit status is 0 where
    all went well; what did not is a complaint, unless `quiet`. OSError, NotImplementedError: none could be started.
    """
    arguments = [str(project.root), route, session, client, why, _QUIET if quiet else "", *map(str, transcripts)]
    return detached.start(__name__, __file__, arguments)


def main(arguments: Sequence[str]) -> None:
    """What the process does: `make`, within its limits, with an exit status."""
    from ralf_integrations.hooks import limits

    limits.limit_work()
    if not make(arguments):
        raise SystemExit(1)


def make(arguments: Sequence[str]) -> bool:
    """Make what is due: `ROOT ROUTE SESSION CLIENT WHY QUIET TRANSCRIPT…`; whether all went well."""
    from ralf_integrations.hooks import limits  # only the process itself has any

    root, route, session, client, why, quiet, *transcripts = arguments
    os.chdir("/")
    project = projects.find(root)
    try:
        for transcript in transcripts:
            work(project, route, session, client, Path(transcript), why)
    except (Exception, limits.Exhausted) as error:  # noqa: BLE001  # nobody looks on: the next hook says it
        if quiet != _QUIET:
            complaints.add(project, f"checkpoint of {route}", error)
        return False
    return True


def work(project: Project, route: str, session: str, client: str, transcript: Path, why: str) -> bool:
    """Make a checkpoint of what is new, if one is due, or for another reason; whether one was made.

    One at a time for each route: who comes second looks again at what the first has left.
    """
    try:
        with locks.held(taking.lock(project, route), f"{route}: its checkpoint", 0 if why == "due" else _LAST):
            if why == "due":
                return _make_due(project, route, session, client, transcript)
            if why in _OF_RUNS:
                return _take_run(project, route, transcript, why)
            return taking.take(project, route, session, transcript, why)
    except Busy:
        if why == "due":
            return False  # somebody is at it, or writes faster than we do: the next look sees
        raise


def _take_run(project: Project, route: str, folder: Path, why: str) -> bool:
    """Take in the folder of a run. What is wrong with one of them keeps no other from being taken."""
    from ralf.checkpoint import checkpoint
    from ralf.transcripts import runfolder
    from ralf.transcripts.notes import session_of

    with suppress(RalfError, OSError):
        logged = known.worked_in(project, route, session_of(folder, project.root))
        source = runfolder.reader(folder, project.root, logged=logged)
        return bool(checkpoint(route, source, root=project.root, reason=why).checkpoints)
    return False


def _make_due(project: Project, route: str, session: str, client: str, transcript: Path) -> bool:
    """Make what is due by an exact count, and foretell when the next is."""
    from ralf.checkpoint import checkpoint

    settings, made = config.of(project), False
    source = open_transcript(transcript)
    taking.close(project, route, session, transcript)
    scale = hints.scale(project, session)
    while True:
        found = known.of(project, session)
        stand = taking.start(project, route, session, source)
        look = usage.look(source, stand, settings, client, known=found.window, compacted=found.compacts, scale=None)
        scale = look.scale or scale
        if not look.due:
            break
        made_now = checkpoint(
            route,
            transcript,
            root=project.root,
            reason=look.due,
            begin=stand.position,
            run=found.run,
            restart=True,
        )
        if not made_now.checkpoints:
            break
        made = True
    hints.foretell(project, session, transcript, look, settings=settings, told=found.told, scale=scale)
    return made


def _is_taken(project: Project, route: str) -> bool:
    try:
        with locks.held(taking.lock(project, route), route, 0):
            return False
    except Busy:
        return True
