"""Drops evidence, the text of transcripts behind checkpoints, where a person asks for it. Nothing else ever does."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from ralf import project as projects, routing
from ralf.document import index
from ralf.errors import UsageError
from ralf.project import Project
from ralf.route import history
from ralf.storage import journal
from ralf.storage.durable import removed
from ralf.storage.journal import Blob, Digest, required
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


class _Use(NamedTuple):
    """A checkpoint that needs a blob: `newest` of its route, when it ended, as seconds since 1970 or None."""

    route: str
    checkpoint: str
    time: str
    at: float | None
    newest: bool


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
    limit = clock - parse_age(older_than).total_seconds()
    uses, named = _uses(project)
    heap = required(project.store.properties.heap, "drop evidence")
    blobs = {blob.digest: blob for blob in heap.blobs()}
    going = blobs.keys() - named
    for digest in blobs.keys() & uses.keys():
        if all(use.at is not None and use.at < limit and not use.newest for use in uses[digest]):
            going.add(digest)
    just_put = {digest for digest in going if clock - blobs[digest].put < GRACE}
    going -= just_put
    dropped = sorted((_dropped(blobs[one], uses.get(one, ())) for one in going), key=lambda one: one.time)
    if remove and dropped:
        since = {blob.digest: blob.put for blob in heap.blobs()}
        for one in dropped:
            if since.get(one.digest) == blobs[one.digest].put:  # else somebody has put it again meanwhile
                heap.drop_blob(one.digest)
        removed(index.files_in(project.cache))  # which hold words of it
    kept = sum(blob.size for digest, blob in blobs.items() if digest not in going)
    return EvidenceReport(tuple(dropped), remove, kept, len(just_put))


def parse_age(text: str) -> timedelta:
    """The age that `90d`, `12h`, `4w` or `90` (days) means; UsageError for anything else."""
    match = re.fullmatch(r"([0-9]{1,6})\s*+([hdw]?)", text.strip())
    if match is None:
        raise UsageError(ascii(text), "is no age", "write 90d, 12h or 4w")
    return int(match[1]) * _AGES[match[2]]


def _uses(project: Project) -> tuple[dict[Digest, list[_Use]], set[Digest]]:
    """The checkpoints that need each blob, and every digest that any record of any stream names."""
    uses: dict[Digest, list[_Use]] = {}
    for route in routing.names_of(project):
        checkpoints = list(history.checkpoints(project, route))
        for label, record in checkpoints:
            with journal.understood(route, record):
                time_ = str((*record.payload.get("period", ()), "", "")[1])
            use = _Use(route, label, time_, _seconds(time_), label == checkpoints[-1][0])
            uses.setdefault(str(record.payload.get("evidence", "")), []).append(use)
    return uses, set(named_digests(project.store))


def _seconds(time_: str) -> float | None:
    try:
        found = datetime.fromisoformat(time_)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo is not None else None


def _dropped(blob: Blob, uses: Iterable[_Use]) -> Dropped:
    found = list(uses)
    routes = sorted({use.route for use in found})
    labels = tuple(use.checkpoint if len(routes) == 1 else f"{use.route} {use.checkpoint}" for use in found)
    return Dropped(blob.digest, ", ".join(routes), labels, max((use.time for use in found), default=""), blob.size)
