"""What a session comes to by its record, as tests ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ralf.brief.work import work_of
from ralf.facts.facts import facts_of
from ralf.model import ActiveWork, ErrorFact, Facts
from ralf.talk.recording import record
from ralf.talk.turns import thread
from ralf.transcripts.events import Event


class Extracted(NamedTuple):
    """The facts, and where the work stands."""

    facts: Facts
    work: ActiveWork


def extract(
    events: Sequence[Event], *, base: str = "", work: ActiveWork | None = None, unsolved: Sequence[ErrorFact] = ()
) -> Extracted:
    """The facts and the work of some events; `base`: the project's folder."""
    talk = thread(record(events, base))
    return Extracted(facts_of(talk.entries, unsolved), work_of(work or ActiveWork(), talk))
