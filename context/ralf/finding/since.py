"""Tells how much work has come after a route's last checkpoint that none covers yet. Computed at each read: the route
file depends on the transcript alone.
"""

from __future__ import annotations

from contextlib import suppress

from ralf.errors import RalfError
from ralf.model import RouteContext
from ralf.project import Project

_READ = 1 << 20  # bytes of a transcript that are read; what is beyond is estimated

_SESSIONS = 4  # of the newest transcripts are looked at


def tokens_since(project: Project, context: RouteContext) -> int:
    """The tokens of the newest known session that no checkpoint covers; never fails, whatever its log holds."""
    if any(entry.session for entry in context.checkpoint_history):
        from ralf.route import offsets  # a route without a checkpoint needs none of these
        from ralf.transcripts.events import session_of_log
        from ralf.transcripts.reader import estimate_since, newest_logs, open_transcript

        with suppress(OSError):
            for path in newest_logs(project)[:_SESSIONS]:
                with suppress(OSError, RalfError):
                    position = offsets.ingest_offset(project, context.route, session_of_log(path)).position
                    if 0 < position.byte < path.stat().st_size:
                        return estimate_since(open_transcript(path), position, most=_READ)
    return 0
