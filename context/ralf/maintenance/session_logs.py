"""The logs that ralf keeps of opencode's sessions, which lie outside the store: what a forget masks in them.

The client's own database has the same words, and is not ralf's to change.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ralf.errors import Damaged, RalfError
from ralf.maintenance.purge import Wording
from ralf.project import Project
from ralf.storage import journal
from ralf.transcripts import opencode
from ralf.transcripts.reader import log_of_opencode, logs_of_opencode

_MOST = 20_000  # logs, of all projects, that are looked at


class Segment(NamedTuple):
    """What a checkpoint was made of: a log, and from which byte to which."""

    log: Path
    start: int
    end: int

    def blank(self) -> None:
        """Mask all that was said in it. OSError where the log cannot be written."""
        opencode.blank(*self)


def with_words(project: Project, wording: Wording) -> list[Path]:
    """The logs of a project's sessions in which words stand; one that cannot be read may hold them."""
    found = []
    for _, path in logs_of_opencode(project, most=_MOST):
        try:
            is_held = opencode.holds(path, wording.spans)
        except (RalfError, OSError):
            is_held = path.exists()
        found += [path] if is_held else []
    return sorted(found)


def segments(project: Project, route: str, revisions: Container[int] | None = None) -> list[Segment]:
    """The segments of logs that a route's checkpoints were made of, or those of some revisions; none of another client.
    What a damaged journal does not tell stays.
    """
    found = list[Segment]()
    with suppress(Damaged):
        for _, record in journal.read(project.store, route, kinds=("checkpoint",)):
            with journal.understood(route, record):
                source = dict(record.payload.get("source") or {})
            path = log_of_opencode(str(source.get("session", "")))
            if path is not None and (revisions is None or record.revision in revisions):
                found.append(Segment(path, int(source["from_byte"]), int(source["to_byte"])))
    return found
