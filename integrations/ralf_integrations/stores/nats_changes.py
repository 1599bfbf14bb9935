"""Which streams on NATS have changed since somebody looked last: a request or two, however many streams there are."""

from __future__ import annotations

from typing import NamedTuple

from ralf_integrations.stores.nats_log import ID, Gone, Log
from ralf_integrations.stores.nats_records import Records


class Mark(NamedTuple):
    """The newest message below a prefix at one moment: its sequence and its id."""

    seq: int
    id: str


class Changes(NamedTuple):
    """What has changed.

    mark     for the next look; None where there is no message
    streams  those that have changed; None where any may have: messages that were there are gone
    """

    mark: Mark | None
    streams: frozenset[str] | None


async def changes_since(log: Log, records: Records, folder: str, since: Mark | None) -> Changes:
    """The streams right or further below a folder that have changed since a mark."""
    pattern = f"{records.subject(folder)}.>"
    newest = await log.last(pattern)
    if newest is None:
        return Changes(None, None)
    mark = Mark(newest.seq, newest.headers.get(ID, ""))
    if since is None or mark.seq < since.seq:
        return Changes(mark, None)
    if mark == since:
        return Changes(mark, frozenset())
    known = await log.at(since.seq)
    if known is None or known.headers.get(ID, "") != since.id:
        return Changes(mark, None)
    try:
        found = await log.headers(pattern, since.seq + 1, mark.seq)
    except Gone:
        return Changes(mark, None)
    return Changes(mark, frozenset(records.stream_of(message.subject) for message in found))
