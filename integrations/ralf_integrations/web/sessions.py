"""What the page of sessions shows: each with its state, its window, and what it was handed.

A look at all sessions reads the ends of their logs. It is taken by one thread and kept: pages show the newest look, and
say when it was taken.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock

from ralf.errors import NotFound, RalfError
from ralf_integrations.health.look import look
from ralf_integrations.health.rules import Session
from ralf_integrations.health.tail import seconds
from ralf_integrations.hooks import receipts, session_registry
from ralf_integrations.hooks.receipts import Arrival
from ralf_integrations.hooks.session_registry import KnownSession
from ralf_integrations.loop import state as loops
from ralf_integrations.loop.state import LoopState
from ralf_integrations.web.reading import Reader, ViewedProject

FRESH = 5.0
"""Seconds for which a look is shown without another."""

ORDER = ("parked", "stuck", "killed", "silent", "working", "waiting", "ended")
"""States in the order in which they are shown."""

_MOST_RECEIPTS = 12  # sessions of a route whose receipts are looked for


@dataclass(frozen=True, slots=True)
class Look:
    """All sessions at one moment; `loop`: the loop that ran last, `problem`: why there is no newer look."""

    taken: float = 0.0
    sessions: tuple[Session, ...] = ()
    loop: LoopState = field(default_factory=LoopState)
    problem: str = ""

    @property
    def stamp(self) -> str:
        """What tells that a page of it would show something else."""
        told = [(one.session, one.state, one.tokens, one.last_checkpoint, len(one.warnings)) for one in self.sessions]
        return repr((told, self.problem, self.loop.parked, self.loop.running, int(self.taken // 60)))

    @property
    def counts(self) -> dict[str, int]:
        """How many sessions are in each state that there is."""
        found = [one.state for one in self.sessions]
        return {state: found.count(state) for state in ORDER if state in found}


class Sessions:
    """The newest look. One thread at a time takes another."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._look = Look()
        self._looking = Lock()

    def newest(self) -> Look:
        """A look that is as good as new."""
        with self._looking:
            if time.time() - self._look.taken >= FRESH:
                self._look = self._taken()
            return self._look

    def find(self, session: str) -> Session:
        """A session by its id, however long ago it ended. NotFound."""
        found = [one for one in self.newest().sessions if one.session == session]
        if not found and session:
            with self._looking:
                found = [one for one in self._sessions(everything=True) if one.session == session]
        if not found:
            raise NotFound(session[:80] or "session", "no such session of this project", "ralf status --all --idle")
        return found[0]

    def _taken(self) -> Look:
        try:
            seen = self._sessions()
            loop = loops.load(self._reader.project())
        except (RalfError, OSError) as error:
            return Look(time.time(), self._look.sessions, self._look.loop, str(error))
        seen.sort(key=lambda one: (ORDER.index(one.state), not one.warnings))
        return Look(time.time(), tuple(seen), loop)

    def _sessions(self, *, everything: bool = False) -> list[Session]:
        return list(look(root=self._reader.project(), everything=everything).sessions)


def arrivals(project: ViewedProject, session: str) -> list[Arrival]:
    """What a session was handed, and whether its log has it, the newest first."""
    newest = receipts.arrivals(session_registry.load(project, session))[::-1]
    newest.sort(key=_handed_at, reverse=True)
    return newest


def of_route(project: ViewedProject, route: str) -> tuple[list[str], list[tuple[KnownSession, Arrival]]]:
    """The ids of the sessions that work on a route, and what sessions were handed of it, the newest first; what was
    handed over at an unknown time comes last.
    """
    known = sorted(session_registry.all_sessions(project), key=lambda one: -one.seen)
    handed = [one for one in known if one.handed and route in (one.route, *one.briefed)][:_MOST_RECEIPTS]
    got = [(one, arrival) for one in handed for arrival in receipts.arrivals(one)[::-1]]
    got.sort(key=lambda one: _handed_at(one[1]), reverse=True)
    return [one.session for one in known if one.route == route], got


def _handed_at(arrival: Arrival) -> float:
    """When a text was handed over, seconds since 1970: as the hook noted it, else as the log has it; 0 for unknown."""
    return arrival.handed.when or seconds(arrival.time) or 0.0
