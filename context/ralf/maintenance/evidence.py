"""Drops evidence, the text of transcripts behind checkpoints, where a person asks for it. Nothing else ever does."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from ralf import project as projects, routing
from ralf.document import index
from ralf.errors import UsageError
from ralf.project import Project
from ralf.route import history
from ralf.storage import journal
from ralf.storage.durable import removed
from ralf.storage.journal import Blob, Digest
from ralf.transcripts.events import named_digests

GRACE = 600
"""Seconds after a blob was put during which it stays: the record that needs it may still be on its way."""

_AGES = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1), "": timedelta(days=1)}


@dataclass(frozen=True, slots=True)
class Dropped:
    """A blob that went, or would go.

    route, checkpoints  whose evidence it is; "" and () for one that no record names
    time                of its newest checkpoint's last record
    size                bytes on the disk
    """

    digest: Digest
    route: str
    checkpoints: tuple[str, ...]
    time: str
    size: int


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """What dropping came to.

    removed   whether it was done, or only looked at
    kept      bytes on the disk that stay, `freed` those that do not
    just_put  blobs that were spared because they were put within `GRACE`
    """

    dropped: tuple[Dropped, ...]
    removed: bool
    kept: int
    just_put: int

    @property
    def freed(self) -> int:
        """Bytes that went, or would go."""
        return sum(one.size for one in self.dropped)


def drop_evidence(
    older_than: str,
    *,
    remove: bool = False,
    now: float | None = None,
    root: str | os.PathLike[str] | None = None,
) -> EvidenceReport:
    """Find the evidence of segments that ended before an age such as `90d`, `12h`, `4w`, and with `remove` drop it.

    now  seconds since 1970; None: the clock

    The newest checkpoint of each route keeps its evidence, and so does one that does not say when it ended. Blobs that
    no record names go, too. Afterwards `why` says which lines stood behind a claim, and search does not find them.
    Raises UsageError (no age, a folder that is a link), Damaged (a journal cannot be read: then it is not known what is
    needed; nothing was removed), OSError.
    """
    project = projects.find(root)
    clock = time.time() if now is None else now
    uses = _uses(project, clock - parse_age(older_than).total_seconds())
    named = named_digests(project.store)
    blobs = {blob.digest: blob for blob in project.store.blobs()}
    going = {digest for digest in blobs if digest not in named or (digest in uses and None not in uses[digest])}
    just_put = {digest for digest in going if clock - blobs[digest].put < GRACE}
    going -= just_put
    dropped = sorted((_dropped(blobs[one], uses.get(one, [])) for one in going), key=lambda one: one.time)
    if remove and dropped:
        since = {blob.digest: blob.put for blob in project.store.blobs()}
        for digest in going:
            if since.get(digest) == blobs[digest].put:  # else somebody has put it again meanwhile
                project.store.drop_blob(digest)
        removed(index.files_in(project.cache))  # which hold words of it
    kept = sum(blob.size for digest, blob in blobs.items() if digest not in going)
    return EvidenceReport(tuple(dropped), remove, kept, len(just_put))


def parse_age(text: str) -> timedelta:
    """The age that `90d`, `12h`, `4w` or `90` (days) means; UsageError for anything else."""
    match = re.fullmatch(r"([0-9]{1,6})\s*+([hdw]?)", text.strip())
    if match is None:
        raise UsageError(ascii(text), "is no age", "write 90d, 12h or 4w")
    return int(match[1]) * _AGES[match[2]]


def _uses(project: Project, limit: float) -> dict[Digest, list[tuple[str, str, str] | None]]:
    """By blob the checkpoints that ended before a moment and whose evidence it is, each with its route, its label and
    when it ended; None for one that keeps it.
    """
    uses: dict[Digest, list[tuple[str, str, str] | None]] = {}
    for route in routing.names_of(project):
        checkpoints = list(history.checkpoints(project, route))
        for label, record in checkpoints:
            with journal.understood(route, record):
                ended = str((*record.payload.get("period", ()), "", "")[1])
            is_old = label != checkpoints[-1][0] and _is_before(ended, limit)
            use = (route, label, ended) if is_old else None
            uses.setdefault(str(record.payload.get("evidence", "")), []).append(use)
    return uses


def _is_before(time_: str, limit: float) -> bool:
    try:
        found = datetime.fromisoformat(time_)
    except ValueError:
        return False
    return found.tzinfo is not None and found.timestamp() < limit


def _dropped(blob: Blob, uses: list[tuple[str, str, str] | None]) -> Dropped:
    found = [use for use in uses if use is not None]
    routes = sorted({route for route, _, _ in found})
    labels = tuple(label if len(routes) == 1 else f"{route} {label}" for route, label, _ in found)
    return Dropped(blob.digest, ", ".join(routes), labels, max((ended for _, _, ended in found), default=""), blob.size)
