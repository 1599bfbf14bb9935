"""One look at the sessions of a project: each by the end of its log, and what hooks and the journal know of it; and the
notices to those under pressure, by their inboxes, once each time that the mark is crossed, whoever looks how often.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path

from ralf import config, project as projects, routing
from ralf.allocation.gauge import minutes_until
from ralf.allocation.shares import LEAST_WINDOW, allocate, threshold_of
from ralf.compaction.records import session_status
from ralf.errors import RalfError
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route import offsets
from ralf.route.load import load_state
from ralf.transcripts.reader import newest_logs, open_transcript
from ralf_integrations import inbox
from ralf_integrations.client import CLAUDE_CODE, CLIENTS
from ralf_integrations.health import limits, rules, tail
from ralf_integrations.health.rules import GONE, Session
from ralf_integrations.health.tail import Tail, seconds
from ralf_integrations.hooks import handover, session_registry, usage
from ralf_integrations.hooks.session_registry import KnownSession

RECENT = 24 * 3_600
"""Seconds within which a session has to have stirred to be listed, unless its client is known to run."""

MOST = 200
"""Sessions that are listed, those that stirred last."""

_BORDERS = ("task-completed", "compaction")  # reasons of checkpoints at which a task ends
_PATIENCE = 2.0  # seconds that a look waits for a hook of the session
_EVER = -1.0


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

    Reads a bounded part of each log; one that cannot be read is a `problem`. Raises UsageError (a refused name, a bad
    configuration), Damaged (a configuration that cannot be read).
    """
    project = projects.find(root)
    clock = time.time() if now is None else now
    wanted = routing.known(project, route) or route if route is not None else None
    looking = _Looking(project, clock)
    found = [one for one in looking.sessions(everything=everything) if wanted in (None, one.route)]
    found.sort(key=lambda one: one.session)
    found.sort(key=lambda one: one.last, reverse=True)
    found.sort(key=lambda one: (not one.warnings, one.state in GONE))
    return Health(_time(clock), tuple(found))


def known_ids(root: str | os.PathLike[str] | None = None) -> set[str]:
    """The ids of all sessions that `look` could list, however many. Raises as it does."""
    found = set()
    for one, path, _ in _kept(projects.find(root), _EVER):
        with suppress(RalfError, OSError):
            found.add(one.session or (open_transcript(path).session if path is not None else ""))
    return found - {""}


def _kept(project: Project, since: float) -> list[tuple[KnownSession, Path | None, float]]:
    """What is known of each session that has stirred since then, or runs, its log, and when it last stirred; the last
    first.
    """
    found: list[tuple[KnownSession, Path | None, float]] = []
    logs = set()
    for one in session_registry.all_sessions(project):
        path = Path(one.transcript) if one.transcript else None
        stirred = max(one.seen, _written(path))
        if path is not None:
            logs.add(os.path.realpath(path))
        if stirred > since or session_registry.is_live(one):
            found.append((one, path, stirred))
    others = [path for path in newest_logs(project) if os.path.realpath(path) not in logs and _written(path) > since]
    found += [(KnownSession(""), path, _written(path)) for path in others]
    return sorted(found, key=lambda entry: entry[2], reverse=True)


class _Looking:
    """What sessions have in common is read once."""

    def __init__(self, project: Project, now: float) -> None:
        self._project = project
        self._settings = config.of(project)
        self._now = now
        self._context = cache(self._read_context)

    def sessions(self, *, everything: bool) -> Iterator[Session]:
        found = _kept(self._project, _EVER if everything else self._now - RECENT)[:MOST]
        known = {one.session for one, _, _ in found}
        for one, path, stirred in found:
            session = self._session(one, path, stirred)
            if not one.session and session.session in known:
                continue  # another log of it: Gemini CLI begins one when it resumes, and goes on with the old one
            yield replace(session, warnings=tuple(rules.broken(session, self._settings)))

    def _session(self, one: KnownSession, path: Path | None, stirred: float) -> Session:
        problem, end, session, route = "", Tail(), one.session, one.route
        try:
            log = path if path is not None and path.exists() else None
            name = open_transcript(log).session if log is not None else session
            session = session or name
            route = self._route(one, name)
            if log is not None:
                end = tail.read(log, offsets.ingest_offset(self._project, route, name).position)
        except (RalfError, OSError) as error:
            problem = str(error)
        session = session or (path.stem if path is not None else "")
        window = end.capacity or one.window or self._settings.window
        window = usage.LARGE_WINDOW if end.filled is not None and end.filled > window else window
        context, last = self._context(route), end.last or stirred
        history = context.checkpoint_history[::-1] if context is not None else ()
        saved = next((entry.timestamp for entry in history if entry.session == session), "")
        silent = self._ago(last) or 0.0
        state, stuck = self._state(one, end, silent, context)
        is_gone = state in GONE  # nothing grows any more
        limit = None if is_gone else limits.of_words(end.stopped, end.failed)
        if limit is not None and 0 < limit.until < self._now:
            limit = None
        until_compacted = window - CLIENTS.get(one.client, CLAUDE_CODE).reserve
        compactions, minutes_since_compaction = self._compactions(end, session)
        return Session(
            session=session,
            client=one.client,
            route=route,
            transcript=str(path) if path is not None else "",
            state=state if limit is None else "parked",
            tokens=end.filled,
            window=window,
            percent=None if end.filled is None else round(100 * end.filled / window, 1),
            growth=None if is_gone or end.growth is None else round(end.growth, 1),
            unsaved=end.unsaved,
            minutes_to_checkpoint=None if is_gone else self._to_checkpoint(end, window),
            minutes_to_compaction=None if is_gone else _minutes(end.filled, until_compacted, end.growth),
            last_checkpoint=saved,
            minutes_since_checkpoint=self._ago(seconds(saved)),
            minutes_silent=silent,
            last=_time(last) if last else "",
            seen_by_hooks=bool(one.seen),
            told=one.told,
            compaction=end.compaction,
            notices=self._notices(session),
            stuck=stuck,
            parked=limit.said if limit is not None else "",
            parked_until=limit.until if limit is not None else 0.0,
            problem=problem,
            compactions=compactions,
            minutes_since_compaction=minutes_since_compaction,
            minutes_to_threshold=None if is_gone else minutes_until(threshold_of(window), end.filled or 0, end.growth),
            active_task_tokens=_active_task(end, context, session),
            memory_size=self._memory_size,
            allocation=allocate(max(window, LEAST_WINDOW)),
        )

    def _route(self, one: KnownSession, session: str) -> str:
        """The route of a session, as `ralf status` shows it; the one that a hook saw, unless another was chosen.

        session  as its log calls it
        """
        choice = routing.choose(self._project, session=one.session or session)
        if one.route and not choice.is_chosen:
            choice = routing.Choice(one.route, choice.rule)
        route = routing.known(self._project, choice.route) or choice.route
        if choice.is_chosen or session not in self._held:
            return route
        return route if offsets.ingest_offset(self._project, route, session).position.byte else self._held[session][0]

    @cached_property
    def _held(self) -> dict[str, tuple[str, int]]:
        return begun(self._project, offsets.recent(self._project))

    def _state(self, one: KnownSession, end: Tail, silent: float, context: RouteContext | None) -> tuple[str, str]:
        """What a session is at, and why it is stuck."""
        if one.ended:
            return "ended", ""
        if one.pid and one.born and not session_registry.is_live(one):
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
        return ("silent" if silent >= self._settings.health_silent else "working"), ""

    def _to_checkpoint(self, end: Tail, window: int) -> float | None:
        """Minutes until the next checkpoint falls due, by text or by pressure; 0 where one is due."""
        by_text = _minutes(end.unsaved, self._settings.due_at, end.speech)
        by_pressure = _minutes(end.filled, self._settings.pressure * window // 100, end.growth)
        return by_text if not by_pressure else min(by_pressure, by_text if by_text is not None else by_pressure)

    def _read_context(self, route: str) -> RouteContext | None:
        with suppress(RalfError, OSError):
            state = load_state(self._project, route)
            return state.context if state is not None else None
        return None

    @cached_property
    def _memory_size(self) -> int:
        """Bytes of the project's memory documents."""
        found = 0
        for path in (self._project.folder / "memory").glob("*.md"):
            with suppress(OSError):
                found += path.stat().st_size
        return found

    def _compactions(self, end: Tail, session: str) -> tuple[int, float | None]:
        """How often the window was compacted, and minutes since: as hooks have recorded, or the log's end shows."""
        count, last = end.compactions, end.compacted
        with suppress(RalfError, OSError):
            if session:
                known = session_status(self._project, session)
                count = max(count, known.count)
                last = max(filter(None, (last, seconds(known.last_compacted))), default=None)
        return count, self._ago(last)

    def _notices(self, session: str) -> int:
        with suppress(RalfError, OSError):
            return len(inbox.waiting(self._project, session)) if session else 0
        return 0

    def _ago(self, then: float | None) -> float | None:
        return None if then is None else round(max(0.0, self._now - then) / 60, 1)


def begun(project: Project, routes: Iterable[str]) -> dict[str, tuple[str, int]]:
    """By session, which of these routes has most of it, and how many bytes of its transcript that has."""
    most: dict[str, tuple[str, int]] = {}
    for route in routes:
        with suppress(RalfError, OSError):  # a damaged one is said by whoever reads it
            for session, byte in offsets.ingested_bytes(project, route).items():
                if byte > most.get(session, ("", 0))[1]:
                    most[session] = (route, byte)
    return most


def _active_task(end: Tail, context: RouteContext | None, session: str) -> int:
    """Tokens of the task at hand: by the log's end, or what no checkpoint has and the checkpoints since the last task
    was complete; never more than the window holds.
    """
    found = end.task
    if found is None:
        found = end.unsaved
        for entry in reversed(context.checkpoint_history if context is not None else ()):
            if entry.reason in _BORDERS:
                break
            found += entry.tokens if entry.session == session else 0
    return found if end.filled is None else min(found, end.filled)


def _minutes(now: int | None, then: int, growth: float | None) -> float | None:
    if now is None:
        return None
    if now >= then:
        return 0.0
    return round((then - now) / growth, 1) if growth else None


def _written(path: Path | None) -> float:
    try:
        return path.stat().st_mtime if path is not None else 0.0
    except OSError:
        return 0.0


def _time(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def nudge(project: Project, health: Health) -> list[str]:
    """Ask the agent of each session whose window has filled up to the mark to hand over, by a notice, unless it was
    asked since that window was emptied, by its own hooks or by who looked before; the sessions that got one.

    Raises Busy, OSError, Damaged, UsageError.
    """
    mark = config.of(project).health_pressure
    alive = (one for one in health.sessions if one.session and one.state not in GONE)
    return [one.session for one in alive if one.percent is not None and _nudged(project, one, one.percent, mark)]


def _nudged(project: Project, session: Session, percent: float, mark: int) -> bool:
    if percent < mark and not session_registry.load(project, session.session).told:
        return False
    with session_registry.alone(project, session.session, _PATIENCE):
        known = session_registry.load(project, session.session)
        is_emptied = percent < mark - usage.REARM or session.compaction > known.told_at
        told, told_at = 0 if is_emptied else known.told, known.told_at
        is_asked = percent >= mark and not told
        path = known.transcript or session.transcript
        if is_asked:
            text = config.typed(handover.full(session.route, percent), project.command)
            inbox.send(project, session.session, text, sender="ralf status --all", by="")
            told, told_at = int(percent), Path(path).stat().st_size
        if (told, told_at) != (known.told, known.told_at):
            session_registry.save(project, replace(known, transcript=path, told=told, told_at=told_at))
        return is_asked
