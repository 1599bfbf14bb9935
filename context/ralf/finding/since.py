"""Tells how much work has come after a route's last checkpoint that none covers yet. Computed at each read: the route
file depends on the transcript alone.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from ralf.errors import RalfError
from ralf.model import RouteContext, Since
from ralf.project import Project
from ralf.route import offsets
from ralf.text.patterns import regex
from ralf.transcripts.events import session_of_log
from ralf.transcripts.reader import estimate_since, newest_logs, open_transcript

_READ = 1 << 20  # bytes of a transcript that are read; what is beyond is estimated

_SESSIONS = 4  # of the newest transcripts are looked at

_TAIL = 64 << 10

_TIME = regex(rb'"timestamp":\s*"([^"]{10,40})"')


def look(project: Project, context: RouteContext) -> Since:
    """The work of the newest known session that no checkpoint covers; never fails, whatever its log holds."""
    if not any(entry.session for entry in context.checkpoint_history):
        return Since()
    try:
        found = newest_logs(project)[:_SESSIONS]
    except OSError:
        return Since()
    for path in found:
        with suppress(OSError, RalfError):
            position = offsets.ingest_offset(project, context.route, session_of_log(path)).position
            size = path.stat().st_size
            if 0 < position.byte < size:
                tokens = estimate_since(open_transcript(path), position, most=_READ)
                return Since(tokens, _minutes(path, size, context.last_checkpoint))
    return Since()


def _minutes(path: Path, size: int, last: str) -> int | None:
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL))
        times = _TIME.findall(file.read(_TAIL))
    try:
        gone = datetime.fromisoformat(times[-1].decode()) - datetime.fromisoformat(last)
        return max(0, round(gone.total_seconds() / 60))
    except (IndexError, ValueError, TypeError):
        return None
