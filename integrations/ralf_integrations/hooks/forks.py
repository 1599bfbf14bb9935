"""A session that was forked: its window and its log begin with all that another session has said, whose route has it.

Claude Code writes the log of a fork with its first answer, so that its first hooks see none. Records that are copied
keep their times: they are those before the fork began.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from ralf.errors import RalfError
from ralf.transcripts import Transcript, open_transcript
from ralf.transcripts.lines import open_regular, read_lines
from ralf_integrations.hooks import known as knowns, naming
from ralf_integrations.hooks.known import Known
from ralf_integrations.hooks.session import Session

_TIME = re.compile(rb'"timestamp":\s?"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z)"')
_MOST_LOOKED_AT = 50  # sessions, the one that was seen last first
_FIRST_EVENTS = 20


def begun(session: Session) -> None:
    """Note that the session is a fork that starts now."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    session.note(forked=now)


def settle(session: Session) -> None:
    """Once the log is there: find the session that it is a fork of, and let it go on with that one's route, behind what
    that one has said. A fork of a session of which nothing is remembered is a session like any other.
    """
    known, source = session.known, session.readable
    if not known.forked or source is None:
        return
    origin = _origin(session, source)
    session.note(forked="")
    if origin is None:
        return
    begins = _copied(source.path, known.forked.encode())
    session.note(origin=origin.session, begins=begins)
    knowns.remember(session.project, session.known)  # before anybody takes a part of it
    if not session.has_route and (route := naming.of_dead(session.project, origin)):
        session.use(route)
        session.note(route=route)  # it has left none


def _origin(session: Session, source: Transcript) -> Known | None:
    wanted = _first_events(source)
    others = (one for one in knowns.everyone(session.project) if one.session != session.payload.session)
    for one in islice(sorted(others, key=lambda one: -one.seen), _MOST_LOOKED_AT):
        with suppress(RalfError, OSError):
            if one.transcript and not wanted.isdisjoint(_first_events(open_transcript(Path(one.transcript)))):
                return one
    return None


def _first_events(source: Transcript) -> set[tuple[str, str]]:
    """What was said and called first, and when: no two sessions have one alike that was not copied. Not all of a log's
    first records are copied, and a fork has a prompt of its own before them.
    """
    return {(event.text, event.timestamp) for event in islice(source.events(), _FIRST_EVENTS) if event.timestamp}


def _copied(path: Path, since: bytes) -> tuple[int, int]:
    """Bytes and lines of a log up to the end of the last record that is older than the fork."""
    byte = line = 0
    with open_regular(path) as file:
        for record in read_lines(file):
            times = _TIME.findall(record.data)
            if times and max(times) < since:
                byte, line = record.end, record.number + 1
            elif times and byte:
                break
    return byte, line
