"""Which routes have something of a session, and which stirred last."""

from __future__ import annotations

import os
from contextlib import suppress

from ralf import names, routing, sessions
from ralf.errors import RalfError, UsageError
from ralf.project import Project
from ralf.transcripts import Transcript, clientlogs
from ralf.transcripts.events import START, Position

HELD = "its last checkpoint"
"""The rule beside those of `routing`: the route that has most of the session."""

RECENT = 20
"""Routes that are looked at where one look has to cost the same however many there are."""


def recent(project: Project, most: int | None = RECENT) -> list[str]:
    """The routes that have a journal, the one that was written last first; `most` None: all."""
    folder = project.folder / "journal" / "routes"
    found: list[tuple[int, str]] = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name.removesuffix(".jsonl")
            if name != entry.name and names.is_valid(name):
                with suppress(FileNotFoundError):  # forgotten meanwhile
                    found.append((-entry.stat().st_mtime_ns, name))
    return [name for _, name in sorted(found)[:most]]


def of_session(project: Project, session: str, *, but: str = "", most: int | None = RECENT) -> tuple[str, Position]:
    """The route that has most of a session, and up to where; ("", START) where none has anything.

    but   a route that is not asked
    most  so many routes are asked, those that were written last; None: all. A damaged one is left out
    """
    best, end = "", START
    for route in recent(project, most):
        if route == but:
            continue
        with suppress(RalfError, OSError):  # whoever reads it says what is wrong with it
            position = sessions.standing(project, route, session).position
            if position.byte > end.byte:
                best, end = route, position
    return best, end


def route_of(project: Project, session: str, choice: routing.Choice) -> routing.Choice:
    """The route of a session as `routing.choose` tells it, unless nobody has chosen it, it has nothing of the session,
    and another one has: then that one.
    """
    if is_chosen(choice):
        return choice
    with suppress(RalfError, OSError):
        route = routing.known(project, choice.route) or choice.route
        if sessions.standing(project, route, session).position.byte:
            return choice
    held, _ = of_session(project, session)
    return routing.Choice(held, HELD) if held else choice


def begin_of(project: Project, route: str, source: Transcript, *, again: bool = False) -> Position | None:
    """Where a checkpoint of a session begins in a route that has nothing of it: None, its beginning, where no other
    route has anything; behind what another one has, where this is the route that was chosen for the session.

    again  take it from its beginning, whatever another route has

    InAnother where another route has it, and nobody wants it twice: what was decided there would stand in both. Of
    documents nothing is asked.
    """
    if again or source.rewritten or source.origin == "import":
        return None
    found = routing.known(project, route) or route
    if sessions.standing(project, found, source.session).position.byte:
        return None
    other, end = of_session(project, source.session, but=found, most=None)
    if not other:
        return None
    choice = routing.choose(project, session=source.session)
    if is_chosen(choice) and (routing.known(project, choice.route) or choice.route) == found:
        return end
    raise InAnother(route, source.path, other)


class InAnother(UsageError):
    """A session that another route, `other`, has already."""

    def __init__(self, route: str, path: object, other: str) -> None:
        what = f"the route {other} has this session already: {path}"
        hint = (
            f"ralf context checkpoint {other}; for what comes from now on, within the session: ralf route use {route}; "
            f"to have all of it in both: ralf context checkpoint {route} --again"
        )
        super().__init__(route, what, hint)
        self.other = other


def keep(project: Project, route: str, source: Transcript) -> None:
    """Make a route that has taken a session its route, for the hooks and for every look, unless one was chosen, or the
    rules name it anyway. Only a log in a client's own folder counts.
    """
    if source.rewritten or source.origin == "import" or not clientlogs.is_own(source.path):
        return  # any other file may say that it is any session
    for session in {source.session, clientlogs.session_of(source.path)}:  # a log that was resumed has another name
        choice = routing.choose(project, session=session)
        if not is_chosen(choice) and choice.route != route:
            with suppress(OSError):  # what counts is in the journal
                routing.use(project, route, session=session)


def is_chosen(choice: routing.Choice) -> bool:
    """Whether somebody has named the route: in the call, by the environment, for a loop's run, or for this session."""
    return choice.rule.startswith("$") or choice.rule in ("named", routing.CHOSEN, *routing.OF_RUN)
