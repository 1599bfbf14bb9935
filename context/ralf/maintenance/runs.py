"""Agents' runs, whose bytes are of formats that nobody knows: a run that holds the words of a forget is dropped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress

from ralf.agent import contents, records
from ralf.agent.listing import forget_run
from ralf.errors import NotFound
from ralf.maintenance.purge import Wording
from ralf.project import Project
from ralf.storage.journal import MALFORMED

STREAMS = (records.RUNS, records.SIGNALS, records.OUTPUT)


def is_of_run(streams: Iterable[str]) -> bool:
    """Whether all of some streams, at least one, are of runs."""
    found = list(streams)
    return bool(found) and all(stream.startswith(STREAMS) for stream in found)


def count_held(project: Project, stream: str, wording: Wording) -> int:
    """How many records a stream of a run has, 0 where the words stand in none of them, nor in what they contain.

    Output is looked at as one text: its records end where time was up, in the middle of a word.
    """
    is_held, count, whole = False, 0, list[bytes]()
    for entry in project.store.read(stream):
        count += 1
        pieces = [entry.record]
        with suppress(NotFound, *MALFORMED):
            pieces += [contents.unpack(project.store, one, stream) for one in contents.found(json.loads(entry.record))]
        is_held = is_held or any(wording.stands_in(piece.decode("utf-8", "replace")) for piece in pieces)
        whole += pieces[1:] if stream.startswith(records.OUTPUT) else ()
    return count if is_held or wording.stands_in(b"".join(whole).decode("utf-8", "replace")) else 0


def drop(project: Project, stream: str) -> None:
    """Drop the run that a stream is of. Claimed where a live process holds it; what is gone already is passed over."""
    with suppress(NotFound):
        forget_run(stream.split("/")[1], root=project.root)
