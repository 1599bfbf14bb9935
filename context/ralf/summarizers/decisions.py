"""Finds in a conversation what was decided: choices, standing rules and approaches that failed, with their reasons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ralf.model import Decision
from ralf.prose import Sentence, joined
from ralf.summarizers import grammar
from ralf.summarizers.messages import Message, around, clip, join, messages, source
from ralf.summarizers.spoken import Made, decided
from ralf.summarizers.supersession import supersede
from ralf.transcripts.events import Event

_MOST = 40  # of one segment, whatever it says
_DECISION_WORDS, _REASON_WORDS = 90, 80
_SHORT_MESSAGE = 190  # words up to which a message with a decision in it is about that decision only


@dataclass(frozen=True, slots=True)
class Found:
    """The decisions of a segment, oldest first, and how many candidates were left out."""

    decisions: tuple[Decision, ...]
    dropped: int


def find(events: Sequence[Event], *, session: str = "", known: Sequence[Decision] = ()) -> Found:
    """Find what the events decided; `known` are the route's active decisions, which a new one may supersede."""
    said = messages(events)
    found: list[tuple[int, Decision]] = []
    dropped = 0
    for place, message in enumerate(said):
        made = decided(said, place) if message.who == "user" else _said(message)
        for score, decision, sources in made:
            if score < grammar.ENOUGH:
                dropped += 1
                continue
            where = source(session, sources)
            stamped = replace(decision, timestamp=message.event.timestamp, source=where)
            found.append((score, stamped))
    kept = _best(_distinct(found))
    dropped += len(found) - len(kept)
    return Found(tuple(supersede([decision for _, decision in kept], known)), dropped)


# ---- what the agent said ----


def _said(message: Message) -> Made:
    said = [s for s in message.said if s.kind != "heading"]
    if not said:
        return []
    words = sum(len(s.text.split()) for s in said)
    made: Made = []
    taken: set[int] = set()
    whole = grammar.states_design([s.text for s in said if s.kind == "text"]) if words <= _SHORT_MESSAGE + 60 else 0
    for place, sentence in enumerate(said):
        if sentence.paragraph in taken:
            continue
        failed = grammar.failed(sentence.text)
        score = grammar.ENOUGH if failed else grammar.agent_score(sentence.text, item=sentence.kind == "item")
        if place == 0 and whole:
            score = max(score, whole)
        if score <= 0:
            continue
        taken.add(sentence.paragraph)
        if score < grammar.ENOUGH:
            made.append((score, Decision(decision=sentence.text), [message]))
            continue
        short = words <= _SHORT_MESSAGE
        text, reason, options = _whole(said, place) if short and not failed else _part(said, place)
        if short and not failed:
            taken.update(s.paragraph for s in said[place:])
        kind = "failed-approach" if failed else "decision"
        decision = Decision(kind=kind, decision=text, rationale=reason, alternatives=options, origin="agent")
        made.append((score, decision, [message]))
    return made


def _whole(said: Sequence[Sentence], place: int) -> tuple[str, str, tuple[str, ...]]:
    """Decision, reason and rejected options of a short message that is about one decision."""
    rest = [s for s in said[place:] if not grammar.looks_around(s.text) and not s.text.endswith("?")]
    if len(rest) > 1 and grammar.is_lead_in(rest[0].text):
        rest = rest[1:]
    if not rest:
        rest = [said[place]]
    options: list[str] = []
    decided: list[str] = []
    reasons: list[str] = []
    section = decided
    for number, sentence in enumerate(rest):
        text = sentence.text
        label = grammar.label(text)
        if label == "rejected":
            section = options
        elif label == "reason" or (section is decided and number and sentence.paragraph != rest[0].paragraph):
            section = reasons
        section.append(text)
        if section is decided and sum(len(t.split()) for t in decided) >= 60:
            section = reasons
    before = [s.text for s in said[:place] if grammar.gives_reason(s.text) and not grammar.looks_around(s.text)]
    text = clip(joined(decided) or said[place].text, _DECISION_WORDS)
    rejected = [clip(joined(options), 60)] if options else grammar.rejected(text)
    return text, join([*before[-2:], *reasons], _REASON_WORDS), tuple(rejected)


def _part(said: Sequence[Sentence], place: int) -> tuple[str, str, tuple[str, ...]]:
    """Decision, reason and rejected options of a sentence in a longer message."""
    sentence = said[place]
    text = clip(sentence.text, _DECISION_WORDS)
    return text, around(said, sentence, _REASON_WORDS), tuple(grammar.rejected(text))


def _distinct(found: Sequence[tuple[int, Decision]]) -> list[tuple[int, Decision]]:
    """Without those that say what a later one says in the same words."""
    out: list[tuple[int, Decision]] = []
    seen: set[str] = set()
    for score, decision in reversed(found):
        key = " ".join(re.findall(r"\w+", decision.decision.lower()))[:160]
        if key and key not in seen:
            seen.add(key)
            out.append((score, decision))
    return out[::-1]


def _best(found: Sequence[tuple[int, Decision]]) -> list[tuple[int, Decision]]:
    if len(found) <= _MOST:
        return list(found)
    places = sorted(range(len(found)), key=lambda n: (-found[n][0], -n))[:_MOST]
    return [found[n] for n in sorted(places)]
