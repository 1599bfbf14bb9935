"""The sessions and runs before this one: which are over, what of them is in no checkpoint yet, and which of them a
person means who wants to go on. A live session's work is never touched, and never handed to another.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ralf import environment, extensions, routing
from ralf.errors import RalfError
from ralf.model import ActiveWork, RouteContext
from ralf.project import Project
from ralf.route import offsets
from ralf.route.closing import why_closed
from ralf.storage import git_files
from ralf.text import cleaning
from ralf.text.cleaning import one_line, trimmed
from ralf.text.frozen import NamedTuple, replace
from ralf.transcripts.reader import open_transcript
from ralf_integrations.hooks import checkpoints, prompt_intent, session_registry
from ralf_integrations.hooks.checkpoints import Why
from ralf_integrations.hooks.handover import age, context_of, line
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.session_registry import KnownSession

SECONDS = 2.0
"""Of work on what dead sessions have left, for which one that starts waits."""

RUN_SECONDS = 8.0
"""That a session which starts waits for what earlier runs have left; what takes longer goes on behind it."""

_PATIENCE = 8.0  # seconds that it waits for `SECONDS` of work at the most, where the machine has more to do
_LEAST = 0.5  # seconds without which none is begun
_MOST_TOLD = 4  # routes that are offered in words
_A_DAY = 86_400
_LONGEST_WORDS = 80  # characters of the last words of unfinished work


def ended_sessions(project: Project, route: str, but: str) -> list[KnownSession]:
    """The sessions of a route that are over, the one that was seen last first; `but` is left out."""
    return [found for found in _over(project, but) if found.route == route and not found.unnamed]


def catch_up(project: Project, route: str, but: str, *, deadline: float = 0.0) -> str:
    """Take into a route what its dead sessions have left, in a time that a person can wait. The session `but` is left
    alone. Returns what is to be said of those for which it was too much, "" for nothing.

    deadline  by the monotonic clock; 0.0: in `SECONDS`
    """
    deadline = deadline or time.monotonic() + SECONDS
    left = 0
    for found in ended_sessions(project, route, but):
        with suppress(RalfError, OSError):  # what is wrong with its log is no business of a session that begins
            size = Path(found.transcript).stat().st_size if found.transcript else 0
            if size in (0, found.taken, offsets.ingest_offset(project, route, found.session).position.byte):
                continue  # one that has become shorter was replaced
            source, seconds = open_transcript(Path(found.transcript)), deadline - time.monotonic()
            is_its_own = source.session == found.session and source.format != "text"
            if is_its_own and seconds >= _LEAST:
                how = {"seconds": seconds, "patience": _PATIENCE}
                if checkpoints.take(project, route, found.session, source, "session-end", **how):
                    session_registry.save(project, replace(found, taken=size))
                    continue
            left += 1
    if not left:
        return ""
    what = "A session of it" if left == 1 else f"{left} sessions of it"
    return f"{what} left work that is in no checkpoint yet: `ralf checkpoint {route}` takes it in."


def _over(project: Project, but: str) -> list[KnownSession]:
    """The sessions that are over, but one, the one seen last first."""
    found = (one for one in session_registry.all_sessions(project) if one.session != but)
    over = [one for one in found if cleaning.is_valid(one.route) and not session_registry.is_live(one)]
    return sorted(over, key=lambda one: -one.seen)


def last_session_text(found: KnownSession) -> str:
    """A session that is over, in words."""
    return f"Its last session {_ended(found)}."


def _ended(found: KnownSession) -> str:
    return f"{'ended' if found.ended else 'was interrupted'} {age(found.seen)}"


# ---- what is unfinished here ----


class Unfinished(NamedTuple):
    """Work of this worktree that is over and not closed."""

    session: KnownSession  # its newest one
    context: RouteContext | None  # None where it could not be taken in yet

    @property
    def last_words(self) -> str:
        """What the person has said last of it, in quotes; "" for nothing."""
        said = (self.context.active_work.last_request or self.context.goal) if self.context is not None else ""
        return f"“{trimmed(one_line(said), _LONGEST_WORDS)}”" if said else ""

    def about(self, found: Sequence[Unfinished]) -> list[str]:
        """What is to be said of it where it is gone on with, or told of, and of the others that were found."""
        others = ", ".join(
            f"{one.session.route} ({', '.join(filter(None, (_ended(one.session), one.last_words)))})"
            for one in found
            if one is not self
        )
        more = f"Other unfinished work: {others}; `ralf show ROUTE --brief`." if others else ""
        return [last_session_text(self.session), more]


def unfinished(session: Session) -> list[Unfinished]:
    """What is unfinished in this worktree, for a session that has no route of its own yet, one for each route: those
    whose client was killed first, then the ones seen last. What they have left is taken in while there is time.
    """
    deadline, found = time.monotonic() + SECONDS, []
    for one in _left_here(session):
        left = catch_up(session.project, one.route, session.payload.session, deadline=deadline)
        context = context_of(session.project, one.route)
        if context is None and not left:
            continue
        work = context.active_work if context is not None else ActiveWork()
        if not why_closed(session.project, one.route, work.work_status, work.current_task):
            found.append(Unfinished(one, context))
        if len(found) == _MOST_TOLD:
            break
    return found


def interrupted(session: Session, found: Sequence[Unfinished]) -> Unfinished | None:
    """The work to go on with that nobody has named: the only one that was interrupted within a day, by a kill or by
    this client when it cleared its window.
    """
    since, pid = time.time() - _A_DAY, session.known.pid
    killed = [one for one in found if not one.session.ended or (pid and one.session.pid == pid)]
    late = [one for one in killed if one.session.seen >= since]
    return late[0] if len(late) == 1 and late[0].context is not None else None


def unfinished_line(session: Session) -> str:
    """The line about what is unfinished in this worktree, with its last words, and how to load it; "" for nothing."""
    found = unfinished(session)
    first = next((one for one in found if one.context is not None), None)
    if first is None:
        return ""
    words = [f"Its last request: {first.last_words}."] if first.last_words else []
    which = "it" if len(found) == 1 else "one of them"
    how = f"To go on with {which}, read it before you do anything else: then it is this session's route."
    return line(session, first.session.route, said=[*words, *first.about(found), how])


def _left_here(session: Session) -> list[KnownSession]:
    project = session.project
    busy = {one.route for one in session_registry.all_sessions(project) if session_registry.is_live(one)}
    root = os.path.realpath(project.root)

    @cache
    def place(folder: str) -> Path:
        """The worktree in which a folder lies; outside of git the project, or the folder itself."""
        path = Path(os.path.realpath(folder))
        return git_files.worktree(path) or (Path(root) if path.is_relative_to(root) else path)

    by_route: dict[str, KnownSession] = {}
    for known in _over(project, session.payload.session):
        if place(known.worktree) != place(session.worktree):
            continue
        if (route := prompt_intent.route_of_ended(project, known)) != known.route:
            known = replace(known, route=route, unnamed=False)
            session_registry.save(project, known)  # it is not asked again
        is_own = route == session.route and session.has_route
        if route and not is_own and (known.transcript or routing.known(project, route) is not None):
            by_route.setdefault(route, known)
    return sorted((one for one in by_route.values() if one.route not in busy), key=lambda one: (one.ended, -one.seen))


# ---- runs of a loop ----


def catch_up_runs(session: Session) -> None:
    """Take into the session's route what earlier runs of it have left: those that were killed have told nobody. What is
    wrong with one of their folders is no business of a session that begins.
    """
    if session.project.run:
        _take_runs(session, lambda runs: runs.earlier_folders(session.project, session.route), "run-ended")


def note_run(session: Session) -> None:
    """Write down that our run has begun, so that it counts even where it is killed before it says a word."""
    _take_runs(session, lambda runs: filter(None, [runs.current_folder(session.project.root)]), "run-begun")


def _take_runs(session: Session, folders_of: Callable[[Any], Iterable[Path]], why: Why) -> None:
    """Take folders of runs in, in a process of its own, for which a session that starts waits no longer than it may."""
    with suppress(RalfError, OSError):
        asked = extensions.ask(extensions.RUNS, folders_of)
        paths = [folder.absolute() for folders in asked for folder in folders]
        if paths:
            child = checkpoints.spawn(session.project, session.route, "", why, paths)
            environment.status_within(child, RUN_SECONDS)
