"""Retention: old journal parts and evidence move to the archive, and evidence that is too old or large goes."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, NamedTuple

from ralf import config, project as projects, routing
from ralf.errors import Busy, DamagedJournal, RalfError, UnknownToken, UsageError
from ralf.project import Project
from ralf.route import history
from ralf.storage import journal
from ralf.storage.journal import MALFORMED, Archive, Blob, Digest, Entry, Token, entry_at, required, stream_of
from ralf.transcripts.events import named_digests

# ---- the archive: a little at each checkpoint (`a_little`), or all that is old (`archive`) ----


NEWEST = 20
"""Records of a route that always stay where they are."""

LITTLE = 128 << 10
"""Bytes of records that move at a checkpoint, up to the end of one, with their evidence; more where the journal is so
long that more has to move for it to pay.
"""

_PAYS = 16
"""Bytes that are written anew for each that moves, up to which moving pays at a checkpoint."""

_LONGEST = 8 << 20  # bytes of a journal from which writing it anew takes too long for a checkpoint, whatever moves

_SECONDS_A_DAY = 86_400

_MOST_TRIES = 20


@dataclass(frozen=True, slots=True)
class Archived:
    """What moved of one route, or of another stream such as an inbox (`route` is then its name), or would.

    records, size   of the journal: how many, and their bytes
    first, until    when the first and the last checkpoint among them ended, "" where none is
    blobs, freed    of the evidence: how many, and the bytes that they took
    """

    route: str
    records: int
    size: int
    first: str
    until: str
    blobs: int
    freed: int


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What archiving came to.

    routes   those of which something moved
    moved    whether it did, or was only looked at
    damaged  what is wrong with the journals that could not be read
    """

    routes: tuple[Archived, ...]
    moved: bool
    damaged: tuple[str, ...] = ()


class _Seen(NamedTuple):
    """A record on its way: its place, its revision, its bytes, when what it tells ended ("" where it does not say), its
    evidence.
    """

    token: Token
    revision: int
    size: int
    ended: str
    evidence: Digest


def archive(
    route: str | None = None,
    *,
    older_than: str | None = None,
    dry_run: bool = False,
    now: float | None = None,
    root: str | os.PathLike[str] | None = None,
) -> ArchiveReport:
    """Move all that is old to the archive.

    route       None: all of them
    older_than  an age such as `90d`, `12h`, `4w`; None: as configured
    dry_run     only look
    now         seconds since 1970; None: the clock

    The newest records of each route stay, and evidence that one of those that stay shares. Nothing else changes: every
    command reads what is archived. A journal that cannot be read is passed over, and told of. Raises RouteNotFound,
    UsageError, DamagedBlob (an archive that cannot be read), Busy, OSError.
    """

    project = projects.find(root)
    project.check_links()
    days = config.of(project).archive_days
    age = parse_age(older_than).total_seconds() if older_than else days * _SECONDS_A_DAY
    limit = (time.time() if now is None else now) - age
    blobs = {blob.digest: blob for blob in required(project.store.properties.heap, "list blobs").blobs()}
    names = [routing.existing(project, route)] if route is not None else routing.names_of(project)
    streams = [stream_of(name) for name in names]
    if route is None:
        streams += sorted(stream for stream in project.store.streams("") if not stream.startswith(stream_of("")))
    found, damaged = [], []
    for stream in streams if older_than or days else ():
        try:
            found.append(_archive_all(project, stream, limit, blobs, dry=dry_run))
        except DamagedJournal as error:
            damaged.append(str(error))
    return ArchiveReport(tuple(one for one in found if one.records or one.blobs), not dry_run, tuple(damaged))


def _archive_of(project: Project) -> Archive:
    """The archive of a project's store; UsageError where it has none."""
    return required(project.store.properties.archive, "archive anything")


def a_little(project: Project, route: str, *, now: float | None = None) -> None:
    """Move some of what is old of a route, if there is any and moving it pays.

    Takes time by what moves, which is bounded, and by a share of it, whatever the clock says and however much is owed.
    Never fails, and never waits: what is not done now is done at a later checkpoint.
    """
    with suppress(RalfError, OSError):
        days = config.of(project).archive_days
        if days:
            _archive_some(project, route, (time.time() if now is None else now) - days * _SECONDS_A_DAY)


def _archive_some(project: Project, route: str, limit: float) -> None:
    stream, store, archive = stream_of(route), project.store, _archive_of(project)
    length, head = archive.unarchived(stream), store.head(stream)
    if head is None or length > _LONGEST:
        return
    most = max(LITTLE, length // _PAYS)
    old: list[_Seen] = []
    for entry in store.read(stream, after=archive.archived(stream)):
        record = _seen(entry)
        if not _is_old(record, limit) or sum(one.size for one in old) >= most:
            break
        old.append(record)
    if old:
        following = _seen(entry_at(store, stream, head)).revision - old[-1].revision
        old = _prefix(old, len(old) + following - NEWEST)
    if not old or sum(record.size for record in old) * _PAYS < length:
        return
    # Evidence that a record further on shares is read from the archive, too: no harm, and not worth a search.
    if not archive.archive_blobs([record.evidence for record in old], wait=False):
        archive.archive(stream, old[-1].token, wait=False)  # not both at one checkpoint: that would be too much for one


def _archive_all(project: Project, stream: str, limit: float, blobs: Mapping[Digest, Blob], *, dry: bool) -> Archived:
    for _ in range(_MOST_TRIES):
        with suppress(UnknownToken):  # the stream was rewritten meanwhile
            return _archive_stream(project, stream, limit, blobs, dry=dry)
    raise Busy(stream.removeprefix(stream_of("")), "its journal is rewritten again and again", "try again")


def _archive_stream(
    project: Project, stream: str, limit: float, blobs: Mapping[Digest, Blob], *, dry: bool
) -> Archived:
    archive, keep = _archive_of(project), NEWEST if stream.startswith(stream_of("")) else 0
    before = archive.archived(stream)
    records = list(map(_seen, project.store.read(stream)))
    old = _prefix(list(takewhile(lambda one: _is_old(one, limit), records)), len(records) - keep)
    known = next((number for number, one in enumerate(records, start=1) if one.token == before), 0)
    moving = old[known:]
    shared = {one.evidence for one in records[max(known, len(old)) :]}
    evidence = {one.evidence for one in records[: max(known, len(old))]} - shared
    loose = [blobs[digest] for digest in evidence & blobs.keys() if not blobs[digest].archived]
    if not dry:
        if moving:
            archive.archive(stream, moving[-1].token)
        archive.archive_blobs(sorted(blob.digest for blob in loose))
    times = [one.ended for one in moving if one.ended]
    return Archived(
        route=stream.removeprefix(stream_of("")),
        records=len(moving),
        size=sum(one.size for one in moving),
        first=times[0] if times else "",
        until=times[-1] if times else "",
        blobs=len(loose),
        freed=sum(blob.size for blob in loose),
    )


def _prefix(old: list[_Seen], most: int) -> list[_Seen]:
    """The old records that may be archived: at most so many, and none after the last one whose time is known."""
    old = old[: max(0, most)]
    while old and not old[-1].ended:
        old.pop()
    return old


def _is_old(record: _Seen, limit: float) -> bool:
    """Whether a record ended before; one that does not say when goes by those around it."""
    if not record.ended:
        return True
    try:
        return datetime.fromisoformat(record.ended).timestamp() < limit
    except (ValueError, OverflowError):
        return False


def _seen(entry: Entry) -> _Seen:
    """A record of a route, or of another stream, where `at` is its time."""
    payload, kind, revision, at = {}, "", 0, ""
    with suppress(*MALFORMED):
        record = json.loads(entry.record)
        at, kind = str(record.get("at", "")), record.get("kind", "")
        revision, payload = int(record.get("revision", 0)), dict(record.get("payload", ()))
    evidence = str(payload.get("evidence", "")) if kind == "checkpoint" else ""
    return _Seen(entry.token, revision, len(entry.record), at or _ended(payload), evidence)


def _ended(payload: Mapping[str, Any]) -> str:
    """When what a record tells ended, "" where it does not say."""
    period, decision = payload.get("period"), payload.get("decision")
    if isinstance(period, list) and len(period) == 2:
        return str(period[1])
    return str(decision.get("timestamp", "")) if isinstance(decision, dict) else ""


# ---- retention: which evidence is old or large enough to go; journals and route files stay ----


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
    heap = required(project.store.properties.heap, "drop evidence")
    blobs = {blob.digest: blob for blob in heap.blobs()}
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
        from ralf.document import index  # for start-up: few writes prune

        since = {blob.digest: blob.put for blob in heap.blobs()}
        for one in pruned:
            if since.get(one.digest) == blobs[one.digest].put:  # else somebody has put it again meanwhile
                heap.drop_blob(one.digest)
        for path in index.files_in(project.cache):  # which hold words of what was pruned
            path.unlink(missing_ok=True)
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
    return uses, set(named_digests(project.store))


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
