"""Tells sessions under pressure, by their inboxes, once each time that the mark is crossed, whoever looks how often.

What was told is remembered in the cache; the notice's key lands once, so that two who look at once leave one notice.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import NamedTuple

from ralf import command, config, names
from ralf.errors import RalfError
from ralf.files import atomic
from ralf.files.opening import content_of
from ralf.project import Project
from ralf_integrations import inbox
from ralf_integrations.health.look import Health
from ralf_integrations.health.rules import Session
from ralf_integrations.hooks import receipts

_FALLEN = 10  # points below the mark at which a crossing is over
_OVER = ("ended", "killed")


class _Told(NamedTuple):
    """How often a session has crossed the mark, whether it is above it, and where its last compaction stood."""

    crossings: int = 0
    above: bool = False
    compaction: int = 0


def nudge(project: Project, health: Health) -> list[str]:
    """Leave a notice to each session that has crossed the mark since it was last told; the sessions that got one.

    A session whose own hooks have told it is left alone. Raises Busy, OSError, Damaged, UsageError.
    """
    mark = config.of(project).health_pressure
    return [one.session for one in health.sessions if one.session and _nudged(project, one, mark)]


def _nudged(project: Project, session: Session, mark: int) -> bool:
    if session.percent is None or session.state in _OVER:
        return False
    before = _read(project, session, mark)
    fallen = session.percent < mark - _FALLEN or session.compaction > before.compaction
    armed = fallen or not before.above
    if session.percent < mark or not armed:
        if before.above and fallen:
            _keep(project, session.session, _Told(before.crossings, compaction=session.compaction))
        return False
    told = _Told(before.crossings + 1, above=True, compaction=session.compaction)
    missing = session.told < mark or not _has_arrived(project, session)
    if missing:
        text = command.typed(_text(session), project.command)
        inbox.send(project, session.session, text, sender="ralf health", key=_key(mark, told.crossings))
    _keep(project, session.session, told)
    return missing


def _has_arrived(project: Project, session: Session) -> bool:
    """Whether what the session's own hooks said of pressure is in its client's log, as far as anybody can tell: a hook
    that was killed, or whose answer the client refused, has told nothing.
    """
    told = [there for one, there in receipts.check(project, session.session) if one.what == "pressure"]
    return not told or told[-1] is not False


def _key(mark: int, crossing: int) -> str:
    return f"{mark}-{crossing}"


def _text(session: Session) -> str:
    return (
        f"This session's context window is {session.percent:.0f} % full (about {session.tokens:,} of"
        f" {session.window:,} tokens). Finish the step that you are at, begin no other one, then have the window"
        f" compacted or hand over. To have everything kept first: ralf context checkpoint {session.route}"
    )


def _read(project: Project, session: Session, mark: int) -> _Told:
    """What is remembered of a session; where the cache is gone, its inbox tells: its last crossing counts as told."""
    with suppress(OSError, ValueError, TypeError, RecursionError):
        crossings, above, compaction = json.loads(content_of(project.cache / "nudged" / names.slug(session.session)))
        return _Told(int(crossings), bool(above), int(compaction))
    left = 0
    while inbox.was_left(project, session.session, _key(mark, left + 1)):
        left += 1
    return _Told(left, above=left > 0, compaction=session.compaction)


def _keep(project: Project, session: str, told: _Told) -> None:
    with suppress(OSError, RalfError):
        project.prepare()
        path = project.cache / "nudged" / names.slug(session)
        project.make_room(path, prepare=True)
        atomic.write(path, json.dumps(told).encode())
