"""The logs that ralf keeps of opencode's sessions, which lie outside the store: what a forget masks in them.

The client's own database has the same words, and is not ralf's to change.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from pathlib import Path

from ralf.errors import Damaged, RalfError
from ralf.maintenance.purge import Wording
from ralf.project import Project
from ralf.storage import journal
from ralf.storage.journal import Record
from ralf.transcripts import opencode
from ralf.transcripts.reader import log_of_opencode, logs_of_opencode

_MOST = 20_000  # logs, of all projects, that are looked at


def with_words(project: Project, wording: Wording) -> list[Path]:
    """The logs of a project's sessions in which words stand; one that cannot be read may hold them."""
    return sorted(path for _, path in logs_of_opencode(project, most=_MOST) if _holds(path, wording))


def mask_words(project: Project, wording: Wording) -> list[Path]:
    """Mask words in the logs of a project's sessions; returns the logs that were changed. OSError where one cannot be
    written.
    """
    found = with_words(project, wording)
    for path in found:
        opencode.mask(path, wording.spans)
    return found


def of_checkpoints(
    project: Project, route: str, revisions: Container[int] | None = None, *, dry_run: bool
) -> list[Path]:
    """Mask in the logs all that a route's checkpoints were made of, or those of some revisions; returns the logs. What
    a damaged journal does not tell stays. OSError where a log cannot be written.

    dry_run  only look which logs these are
    """
    found = list[tuple[Path, int, int]]()
    with suppress(Damaged):
        found += (
            segment
            for _, record in journal.read(project.store, route)
            if (revisions is None or record.revision in revisions) and (segment := _segment(record)) is not None
        )
    return sorted({path for path, start, end in found if dry_run or opencode.blank(path, start, end)})


def _segment(record: Record) -> tuple[Path, int, int] | None:
    """The log that a checkpoint was made of, and from which byte to which; None where it is of another client."""
    source = record.payload.get("source")
    if not isinstance(source, dict):
        return None
    session, start, end = (source.get(key) for key in ("session", "from_byte", "to_byte"))
    path = log_of_opencode(session) if isinstance(session, str) else None
    return (path, start, end) if path is not None and isinstance(start, int) and isinstance(end, int) else None


def _holds(path: Path, wording: Wording) -> bool:
    with suppress(FileNotFoundError):
        try:
            return opencode.holds(path, wording.spans)
        except (RalfError, OSError):
            return path.exists()
    return False
