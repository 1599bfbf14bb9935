"""Finds in a conversation what was decided: choices, standing rules and approaches that failed, with their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ralf.model import Decision, Tombstone
from ralf.summarizers import approved, grammar, said, spoken, verdicts
from ralf.summarizers.messages import messages, source, whole_of
from ralf.summarizers.supersession import linked
from ralf.transcripts.events import Event

_MOST = 60  # of one segment, whatever it says


def find(
    events: Sequence[Event],
    *,
    session: str = "",
    known: Sequence[Decision] = (),
    before: Sequence[Event] = (),
    dropped: Sequence[Tombstone] = (),
) -> tuple[Decision, ...]:
    """The decisions of a segment, oldest first.

    known   the route's active decisions, which a new one may supersede
    before  what the agent said right before the events: an offer, which the first of them may answer
    dropped  what is not to be found again
    """
    asked = messages(before)
    told = [*asked, *messages(events)]
    made = approved.decided(events)
    whole: list[Decision] = []
    for place, message in enumerate(told):
        if message in asked:
            continue
        text = whole_of(message)
        if text:
            at, when = source(session, [message]), message.event.timestamp
            whole.append(Decision(decision=text, timestamp=when, source=at, origin=message.who))
        last = told[place - 1] if place and told[place - 1].who == "agent" else None
        if message.who == "user":
            made += spoken.decided(told, place)
        else:
            made += verdicts.decided(message) or said.decided(message, last)
    found: list[tuple[int, Decision]] = []
    for score, decision, sources in sorted(made, key=lambda one: one[2][0].event.start.line):
        if score >= grammar.ENOUGH:
            sources = [one for one in sources if one not in asked]  # a claim rests on lines of its own segment
            stamped = replace(decision, timestamp=sources[-1].event.timestamp, source=source(session, sources))
            found.append((score, stamped))
    return tuple(linked(_best(found), known, whole, dropped))


def _best(found: Sequence[tuple[int, Decision]]) -> list[Decision]:
    places = sorted(range(len(found)), key=lambda n: (-found[n][0], -n))[:_MOST]
    return [found[n][1] for n in sorted(places)]
