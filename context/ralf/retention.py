"""Retention: which evidence is old or large enough to go, and its removal. Journals and route files are never touched.

The newest checkpoint of a route always keeps its evidence, and so does every checkpoint whose text another one that
stays shares.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from ralf import config, evidence, journal, project as projects, routing
from ralf.errors import UsageError
from ralf.past import history
from ralf.project import Project
from ralf.store import Blob, Digest

GRACE = 600
"""Seconds after a blob was put during which it stays: the record that needs it may still be on its way."""

_DAY = timedelta(days=1)
_AGES = {"h": timedelta(hours=1), "d": _DAY, "w": timedelta(weeks=1), "": _DAY}


@dataclass(frozen=True, slots=True)
class Pruned:
    """A blob that went, or would go.

    route, checkpoints  whose evidence it is; "" and () for one that no record names
    time                of its newest checkpoint's last record
    size                bytes on the disk
    reason              "age", "size" or "unused"
    """

    digest: Digest
    route: str
    checkpoints: tuple[str, ...]
    time: str
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What pruning came to.

    removed     whether it was done, or only looked at
    kept        bytes on the disk that stay, `freed` those that do not
    just_put    blobs that were spared because they were put within `GRACE`
    """

    pruned: tuple[Pruned, ...]
    removed: bool
    kept: int
    just_put: int

    @property
    def freed(self) -> int:
        """Bytes that went, or would go."""
        return sum(one.size for one in self.pruned)


class _Use(NamedTuple):
    """A checkpoint that needs a blob: `newest` of its route, when it ended, as seconds since 1970 or None."""

    route: str
    checkpoint: str
    time: str
    at: float | None
    newest: bool


def prune(
    *,
    older_than: str | None = None,
    keep_under: str | None = None,
    remove: bool = False,
    now: float | None = None,
    root: str | os.PathLike[str] | None = None,
) -> PruneReport:
    """Find the evidence that is too old, or the oldest that is too much, and with `remove` drop it.

    older_than  an age such as `90d`, `12h`, `4w`: evidence of segments that ended before goes
    keep_under  a size such as `500MB`: the oldest goes until what is left takes less
    now         seconds since 1970; None: the clock

    What is not given is as configured. Blobs that no record names go, too. Evidence of unknown age goes by size only,
    after all that is dated. Afterwards `why` says which lines stood behind a claim, and search does not find them.
    Raises UsageError (no age or size, a folder that is a link), Damaged (a journal cannot be read: then it is not known
    what is needed; nothing was removed), OSError.
    """
    project = projects.find(root)
    project.check_links()
    settings = config.of(project)
    age = parse_age(older_than) if older_than else settings.evidence_days * _DAY
    size_text = keep_under or settings.evidence_size
    room = config.parse_size(size_text) if size_text else None
    clock = time.time() if now is None else now
    uses, named = _uses(project)
    blobs = {blob.digest: blob for blob in project.store.blobs()}
    held = {digest for digest, found in uses.items() if any(use.newest for use in found)}
    reasons = {digest: "unused" for digest in blobs if digest not in named}
    if age:
        limit = clock - age.total_seconds()
        reasons |= {
            digest: "age"
            for digest in blobs.keys() & uses.keys() - held
            if all(use.at is not None and use.at < limit for use in uses[digest])
        }
    if room is not None:
        left = sum(blob.size for digest, blob in blobs.items() if digest not in reasons)
        for digest in sorted(blobs.keys() & uses.keys() - held - reasons.keys(), key=lambda d: _age_of(d, uses[d])):
            if left <= room:
                break
            reasons[digest] = "size"
            left -= blobs[digest].size
    just_put = {digest for digest in reasons if clock - blobs[digest].put < GRACE}
    for digest in just_put:
        del reasons[digest]
    pruned = sorted((_pruned(blobs[d], uses.get(d, ()), why) for d, why in reasons.items()), key=lambda one: one.time)
    if remove and pruned:
        since = {blob.digest: blob.put for blob in project.store.blobs()}
        for one in pruned:
            if since.get(one.digest) == blobs[one.digest].put:  # else somebody has put it again meanwhile
                project.store.drop_blob(one.digest)
        _forget_index(project)
    kept = sum(blob.size for digest, blob in blobs.items() if digest not in reasons)
    return PruneReport(tuple(pruned), remove, kept, len(just_put))


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
    return uses, set(evidence.named(project.store))


def _seconds(time_: str) -> float | None:
    try:
        found = datetime.fromisoformat(time_)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo is not None else None


def _age_of(digest: Digest, uses: Iterable[_Use]) -> tuple[bool, float, Digest]:
    """The order in which evidence goes: by its newest use, what is of unknown age last."""
    times = [use.at for use in uses]
    known = [at for at in times if at is not None]
    return len(known) < len(times), max(known, default=0.0), digest


def _pruned(blob: Blob, uses: Iterable[_Use], reason: str) -> Pruned:
    found = list(uses)
    routes = sorted({use.route for use in found})
    labels = tuple(use.checkpoint if len(routes) == 1 else f"{use.route} {use.checkpoint}" for use in found)
    return Pruned(
        blob.digest, ", ".join(routes), labels, max((use.time for use in found), default=""), blob.size, reason
    )


def _forget_index(project: Project) -> None:
    """Remove the search index, which holds words of what was pruned; it is made anew at the next search."""
    for path in project.cache.glob("search*"):
        path.unlink(missing_ok=True)
