"""Finds in a conversation what was decided: choices, standing rules and approaches that failed, with their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ralf.model import Decision
from ralf.summarizers import grammar, said, spoken
from ralf.summarizers.messages import messages, source
from ralf.summarizers.supersession import linked
from ralf.transcripts.events import Event

_MOST = 40  # of one segment, whatever it says


@dataclass(frozen=True, slots=True)
class Found:
    """The decisions of a segment, oldest first, and how many candidates were left out."""

    decisions: tuple[Decision, ...]
    dropped: int


def find(events: Sequence[Event], *, session: str = "", known: Sequence[Decision] = ()) -> Found:
    """Find what the events decided; `known` are the route's active decisions, which a new one may supersede."""
    told = messages(events)
    found: list[tuple[int, Decision]] = []
    dropped = 0
    for place, message in enumerate(told):
        made = spoken.decided(told, place) if message.who == "user" else said.decided(message)
        for score, decision, sources in made:
            if score < grammar.ENOUGH:
                dropped += 1
                continue
            where = source(session, sources)
            stamped = replace(decision, timestamp=message.event.timestamp, source=where)
            found.append((score, stamped))
    kept = _best(found)
    dropped += len(found) - len(kept)
    return Found(tuple(linked([decision for _, decision in kept], known)), dropped)


def _best(found: Sequence[tuple[int, Decision]]) -> list[tuple[int, Decision]]:
    if len(found) <= _MOST:
        return list(found)
    places = sorted(range(len(found)), key=lambda n: (-found[n][0], -n))[:_MOST]
    return [found[n] for n in sorted(places)]
