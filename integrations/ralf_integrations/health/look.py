"""One look at the sessions of a project: each by the end of its log, and what hooks and the journal know of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ralf import config, holding, project as projects, routing, sessions, state as states
from ralf.config import Config
from ralf.context import RouteContext
from ralf.errors import RalfError
from ralf.project import Project
from ralf.transcripts import clientlogs, ofproject, open_transcript
from ralf.transcripts.events import Position
from ralf_integrations import inbox
from ralf_integrations.health import rules, tail
from ralf_integrations.health.rules import Session
from ralf_integrations.health.tail import Tail, seconds
from ralf_integrations.hooks import known as seen
from ralf_integrations.hooks.known import Known

RECENT = 24 * 3_600
"""Seconds within which a session has to have stirred to be told of, unless its client is known to run."""

MOST = 200
"""Sessions that are told of, those that stirred last."""

COMPACTS_BEFORE = 13_000
"""Tokens before the end of its window at which Claude Code compacts."""

_LARGE_WINDOW = 1_000_000


@dataclass(frozen=True, slots=True)
class Health:
    """The sessions of a project, those that want something first; `looked` is when, ISO 8601."""

    looked: str
    sessions: tuple[Session, ...]


def look(
    *,
    route: str | None = None,
    everything: bool = False,
    now: float | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Health:
    """Look at every session that hooks have seen, or that a client keeps of this project; nothing is changed.

    route       only those that work on it
    everything  also those that have long ended
    now         seconds since 1970; None: the clock

    Reads a bounded part of each log. One that cannot be read is told of with what is wrong. Raises UsageError (a
    refused name, a bad configuration), Damaged (a configuration that cannot be read).
    """
    project = projects.find(root)
    clock = time.time() if now is None else now
    looking = _Looking(project, config.of(project), clock)
    wanted = routing.known(project, route) or route if route is not None else None
    found = [one for one in looking.sessions(everything=everything) if wanted in (None, one.route)]
    found.sort(key=lambda one: one.session)
    found.sort(key=lambda one: one.last, reverse=True)
    found.sort(key=lambda one: (not one.warnings, one.state in ("ended", "killed")))
    return Health(_time(clock), tuple(found))


def known_ids(root: str | os.PathLike[str] | None = None) -> set[str]:
    """The ids of all sessions that `look` could tell of, however many. Raises as it does."""
    project = projects.find(root)
    found = set()
    for one, path, _ in _Looking(project, config.of(project), time.time()).found(everything=True):
        with suppress(RalfError, OSError):
            found.add(one.session or (open_transcript(path).session if path is not None else ""))
    return found - {""}


class _Looking:
    """What sessions have in common is read once."""

    def __init__(self, project: Project, settings: Config, now: float) -> None:
        self._project = project
        self._settings = settings
        self._now = now
        self._routes: dict[str, RouteContext | None] = {}

    def sessions(self, *, everything: bool) -> Iterator[Session]:
        for one, path, stirred in self.found(everything=everything)[:MOST]:
            session = self._session(one, path, stirred)
            yield replace(session, warnings=tuple(rules.broken(session, self._settings)))

    def found(self, *, everything: bool) -> list[tuple[Known, Path | None, float]]:
        """What is known of each session, its log, and when it last stirred; the last first."""
        found: list[tuple[Known, Path | None, float]] = []
        logs = set()
        for one in seen.everyone(self._project):
            path = Path(one.transcript) if one.transcript else None
            stirred = max(one.seen, _written(path))
            if path is not None:
                logs.add(os.path.realpath(path))
            if everything or self._now - stirred < RECENT or seen.live(one):
                found.append((one, path, stirred))
        for path in ofproject.newest_first(self._project):
            stirred = _written(path)
            if os.path.realpath(path) not in logs and (everything or self._now - stirred < RECENT):
                found.append((Known(""), path, stirred))
        return sorted(found, key=lambda entry: entry[2], reverse=True)

    def _session(self, one: Known, path: Path | None, stirred: float) -> Session:
        problem, end, route = "", Tail(), one.route
        try:
            route = self._route(one, path, one.session)
            if path is not None and path.exists():
                end = tail.read(path, lambda name: self._taken(self._route(one, path, name), name))
                route = self._route(one, path, end.session)
        except (RalfError, OSError) as error:
            problem = str(error)
        session = one.session or end.session or (path.stem if path is not None else "")
        window = self._window(one, end)
        last = end.last or stirred
        context = self._context(route)
        saved = _saved(context, session)
        made = Session(
            session=session,
            client=one.client,
            route=route,
            transcript=str(path) if path is not None else "",
            state="waiting",
            tokens=end.filled,
            window=window,
            percent=None if end.filled is None else round(100 * end.filled / window, 1),
            growth=None if end.growth is None else round(end.growth, 1),
            unsaved=end.unsaved,
            minutes_to_checkpoint=self._to_checkpoint(end, window),
            minutes_to_compaction=_minutes(end.filled, window - COMPACTS_BEFORE, end.growth),
            last_checkpoint=saved,
            minutes_since_checkpoint=_ago(self._now, seconds(saved)),
            minutes_silent=_ago(self._now, last) or 0.0,
            last=_time(last) if last else "",
            seen_by_hooks=bool(one.session),
            told=one.told,
            compaction=end.compaction,
            notices=self._notices(session),
            problem=problem,
        )
        state, stuck = self._state(one, end, made, context)
        if state in ("ended", "killed"):  # nothing grows any more
            made = replace(made, growth=None, minutes_to_checkpoint=None, minutes_to_compaction=None)
        return replace(made, state=state, stuck=stuck)

    def _taken(self, route: str, session: str) -> Position:
        return sessions.standing(self._project, route, session).position

    def _route(self, one: Known, path: Path | None, session: str) -> str:
        """The route of a session, as `ralf status` tells it; the one that a hook saw, unless another was chosen."""
        own = one.session or (clientlogs.session_of(path) if path is not None else "")
        choice = routing.choose(self._project, session=own)
        if one.route and not holding.is_chosen(choice):
            choice = routing.Choice(one.route, choice.rule)
        choice = holding.route_of(self._project, session, choice)
        return routing.known(self._project, choice.route) or choice.route

    def _state(self, one: Known, end: Tail, session: Session, context: RouteContext | None) -> tuple[str, str]:
        """What a session is at, and why it is stuck."""
        if one.ended:
            return "ended", ""
        if one.pid and one.born and not seen.live(one):
            return "killed", ""
        repeats = self._settings.health_repeats
        if end.repeats >= repeats:
            return "stuck", f"failed {end.repeats} times with the same output: {end.repeated}"
        work = context.active_work if context is not None else None
        if work is not None and work.attempts is not None and end.open:
            idle = work.attempts - (work.last_progress or 0)
            if idle >= repeats:
                return "stuck", f"nothing has changed in {idle} attempts; last outcome {work.outcome or 'unknown'}"
        if not end.open or end.asks:
            return "waiting", ""
        return ("silent" if session.minutes_silent >= self._settings.health_silent else "working"), ""

    def _window(self, one: Known, end: Tail) -> int:
        window = end.capacity or one.window or self._settings.window
        return _LARGE_WINDOW if end.filled is not None and end.filled > window else window

    def _to_checkpoint(self, end: Tail, window: int) -> float | None:
        """Minutes until the next checkpoint falls due, by text or by pressure; 0 where one is due."""
        by_text = _minutes(end.unsaved, self._settings.segment_limit, end.speech)
        by_pressure = _minutes(end.filled, self._settings.pressure * window // 100, end.growth)
        return by_text if not by_pressure else min(by_pressure, by_text if by_text is not None else by_pressure)

    def _context(self, route: str) -> RouteContext | None:
        if route not in self._routes:
            self._routes[route] = None
            with suppress(RalfError, OSError):
                state = states.load(self._project, route)
                self._routes[route] = state.context if state is not None else None
        return self._routes[route]

    def _notices(self, session: str) -> int:
        with suppress(RalfError, OSError):
            return len(inbox.waiting(self._project, session)) if session else 0
        return 0


def _saved(context: RouteContext | None, session: str) -> str:
    """When the last record was written that a checkpoint has of a session."""
    history = context.checkpoint_history if context is not None else ()
    return next((entry.timestamp for entry in reversed(history) if entry.session == session), "")


def _minutes(now: int | None, then: int, growth: float | None) -> float | None:
    if now is None:
        return None
    if now >= then:
        return 0.0
    return round((then - now) / growth, 1) if growth else None


def _ago(now: float, then: float | None) -> float | None:
    return None if then is None else round(max(0.0, now - then) / 60, 1)


def _written(path: Path | None) -> float:
    try:
        return path.stat().st_mtime if path is not None else 0.0
    except OSError:
        return 0.0


def _time(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
