"""The archive: what is old of a route's journal, with its evidence, moves to compressed files, and reads as before.

A little by itself at each checkpoint (`a_little`), or all of it at once (`archive`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple

from ralf import config, project as projects, routing
from ralf.errors import Busy, DamagedJournal, RalfError, UnknownToken
from ralf.journal import MALFORMED, stream_of
from ralf.project import Project
from ralf.store import Blob, Digest, Entry, Token

NEWEST = 20
"""Records of a route that always stay where they are."""

LITTLE = 128 << 10
"""Bytes of records that move at a checkpoint, up to the end of one, with their evidence; more where the journal is so
long that more has to move for it to pay.
"""

_PAYS = 16
"""Bytes that are written anew for each that moves, up to which moving pays at a checkpoint."""

_LONGEST = 8 << 20  # bytes of a journal from which writing it anew takes too long for a checkpoint, whatever moves
_DAY = 86_400
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
    from ralf.retention import parse_age  # what a checkpoint moves by itself goes by the configured days

    project = projects.find(root)
    project.check_links()
    days = config.of(project).archive_days
    age = parse_age(older_than).total_seconds() if older_than else days * _DAY
    limit = (time.time() if now is None else now) - age
    blobs = {blob.digest: blob for blob in project.store.blobs()}
    names = [routing.existing(project, route)] if route is not None else routing.names_of(project)
    found, damaged = [], []
    for name in names if older_than or days else ():
        try:
            found.append(_archive_all(project, name, limit, blobs, dry=dry_run))
        except DamagedJournal as error:
            damaged.append(str(error))
    others = (stream for stream in sorted(project.store.streams("")) if not stream.startswith(stream_of("")))
    for stream in others if route is None and (older_than or days) else ():
        try:
            found.append(_archive_other(project, stream, limit, dry=dry_run))
        except UnknownToken:  # somebody has rewritten it meanwhile: the next time
            continue
        except DamagedJournal as error:
            damaged.append(str(error))
    return ArchiveReport(tuple(one for one in found if one.records or one.blobs), not dry_run, tuple(damaged))


def a_little(project: Project, route: str, *, now: float | None = None) -> None:
    """Move some of what is old of a route, if there is any and moving it pays.

    Takes time by what moves, which is bounded, and by a share of it, whatever the clock says and however much is owed.
    Never fails, and never waits: what is not done now is done at a later checkpoint.
    """
    with suppress(RalfError, OSError):
        days = config.of(project).archive_days
        if days:
            _archive_some(project, route, (time.time() if now is None else now) - days * _DAY)


def _archive_some(project: Project, route: str, limit: float) -> None:
    stream, store = stream_of(route), project.store
    length, head = store.unarchived(stream), store.head(stream)
    if head is None or length > _LONGEST:
        return
    most = max(LITTLE, length // _PAYS)
    old: list[_Seen] = []
    for entry in store.read(stream, after=store.archived(stream)):
        record = _seen(entry)
        if not _is_old(record, limit) or sum(one.size for one in old) >= most:
            break
        old.append(record)
    if old:
        old = _prefix(old, _seen(store.entry(stream, head)).revision - old[-1].revision)
    if not old or sum(record.size for record in old) * _PAYS < length:
        return
    # Evidence that a record further on shares is read from the archive, too: no harm, and not worth a search.
    if not store.archive_blobs([record.evidence for record in old], wait=False):
        store.archive(stream, old[-1].token, wait=False)  # not both at one checkpoint: that would be too much for one


def _archive_all(project: Project, route: str, limit: float, blobs: Mapping[Digest, Blob], *, dry: bool) -> Archived:
    for _ in range(_MOST_TRIES):
        with suppress(UnknownToken):  # somebody has rewritten the journal meanwhile
            return _archive_route(project, route, limit, blobs, dry=dry)
    raise Busy(route, "its journal is rewritten again and again", "try again")


def _archive_route(project: Project, route: str, limit: float, blobs: Mapping[Digest, Blob], *, dry: bool) -> Archived:
    stream = stream_of(route)
    before = project.store.archived(stream)
    records = list(_all(project, stream))
    old = _prefix(list(takewhile(lambda one: _is_old(one, limit), records)), 0, of=len(records))
    known = next((number for number, one in enumerate(records, start=1) if one.token == before), 0)
    moving = old[known:]
    shared = {one.evidence for one in records[max(known, len(old)) :]}
    evidence = {one.evidence for one in records[: max(known, len(old))]} - shared
    loose = [blobs[digest] for digest in evidence & blobs.keys() if not blobs[digest].archived]
    if not dry:
        if moving:
            project.store.archive(stream, moving[-1].token)
        project.store.archive_blobs(sorted(blob.digest for blob in loose))
    times = [one.ended for one in moving if one.ended]
    return Archived(
        route=route,
        records=len(moving),
        size=sum(one.size for one in moving),
        first=times[0] if times else "",
        until=times[-1] if times else "",
        blobs=len(loose),
        freed=sum(blob.size for blob in loose),
    )


def _archive_other(project: Project, stream: str, limit: float, *, dry: bool) -> Archived:
    """The same of a stream that is no route's, such as an inbox: all that is old of it."""
    seen = map(_seen_other, project.store.read(stream, after=project.store.archived(stream)))
    moving = list(takewhile(lambda one: _is_old(one, limit), seen))
    while moving and not moving[-1].ended:
        moving.pop()
    if moving and not dry:
        project.store.archive(stream, moving[-1].token)
    times = [one.ended for one in moving if one.ended]
    size = sum(one.size for one in moving)
    return Archived(stream, len(moving), size, times[0] if times else "", times[-1] if times else "", 0, 0)


def _prefix(old: list[_Seen], following: int, *, of: int = 0) -> list[_Seen]:
    """What of the old records may go, with so many behind them, or so many records in all: not the newest, and nothing
    behind the last one whose time is known.
    """
    most = (of or len(old) + following) - NEWEST
    old = old[: max(0, most)]
    while old and not old[-1].ended:
        old.pop()
    return old


def _all(project: Project, stream: str, after: Token | None = None) -> Iterator[_Seen]:
    return (_seen(entry) for entry in project.store.read(stream, after=after))


def _is_old(record: _Seen, limit: float) -> bool:
    """Whether a record ended before; one that does not say when goes by those around it."""
    if not record.ended:
        return True
    try:
        return datetime.fromisoformat(record.ended).timestamp() < limit
    except (ValueError, OverflowError):
        return False


def _seen(entry: Entry) -> _Seen:
    try:
        record = json.loads(entry.record)
        payload = record["payload"]
        kind, revision = record["kind"], int(record["revision"])
    except MALFORMED:
        payload, kind, revision = {}, "", 0
    if not isinstance(payload, dict):
        payload = {}
    evidence = payload.get("evidence", "") if kind == "checkpoint" else ""
    if not isinstance(evidence, str):
        evidence = ""
    return _Seen(entry.token, revision, len(entry.record), _ended(payload), evidence)


def _seen_other(entry: Entry) -> _Seen:
    try:
        ended = str(json.loads(entry.record)["at"])
    except MALFORMED:
        ended = ""
    return _Seen(entry.token, 0, len(entry.record), ended, "")


def _ended(payload: Mapping[str, Any]) -> str:
    """When what a record tells ended, "" where it does not say."""
    period, decision = payload.get("period"), payload.get("decision")
    if isinstance(period, list) and len(period) == 2:
        return str(period[1])
    if isinstance(decision, dict):
        return str(decision.get("timestamp", ""))
    return ""
