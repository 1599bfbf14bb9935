"""What a person's answer makes a decision of: the option they pick, or what the agent proposed and they accept."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.model import Decision
from ralf.prose import Sentence, joined
from ralf.summarizers import answers, choices, grammar
from ralf.summarizers.messages import DECISION_WORDS, REASON_WORDS, Message, around, clip, join, room_beside, span
from ralf.summarizers.replies import reply_of

_NEAR_END = 8  # sentences in which an offer, a proposal or a question still waits for the answer
_LISTED = 6


def decision_of(
    message: Message, said: Sequence[Sentence], offered: Message, replies: Sequence[Message]
) -> Decision | None:
    """The choice that an answer such as "yes", "option 2" or "the first one" makes of what the agent offered.

    None where the message accepts nothing, or only an errand.
    """
    own = joined(s.text for s in said) if len(message.text.split()) >= 4 else ""
    own = f"User: {clip(own, REASON_WORDS // 2)}" if own else ""
    marks = answers.picked(message.text)
    if marks:
        options = _options(offered.said)
        marks = tuple(list(options)[-1] if mark == "last" else mark for mark in marks if options)
        chosen = [options[mark] for mark in marks if mark in options]
        if chosen:
            others = tuple(clip(text, 20) for mark, text in options.items() if mark not in marks)
            recommended = [s.text for s in offered.said if answers.recommends(s.text) and "?" not in s.text]
            text = clip("; ".join(chosen), DECISION_WORDS)
            reason = join([own, *recommended[-1:], reply_of(replies, text)], room_beside(text))
            return Decision(decision=text, rationale=reason, alternatives=others[:4])
    if not answers.accepts(said[0].text):
        return None
    waiting = offered.said[-_NEAR_END:]
    offers = [answers.offer(s.text) for s in waiting if "?" in s.text]
    proposed = [s for s in waiting if _proposes(s)]
    if not offers and not proposed:
        return None
    text = joined(s.text for s in said)
    if answers.user_score(text) >= 2 and len(answers.beyond_yes(text).split()) >= 4:
        about = [s.text for s in (proposed or _told(waiting))[-2:]]  # more than a yes: their own words
        return Decision(
            decision=clip(text, DECISION_WORDS), rationale=join([*about, reply_of(replies, text)], room_beside(text))
        )
    offer = next((text for text in reversed(offers) if text), "")
    if offer:
        text = clip(offer, DECISION_WORDS)
        about = [s.text for s in (proposed or _told(waiting))[-2:]]
        return Decision(decision=text, rationale=join([own, *about, reply_of(replies, text)], room_beside(text)))
    if not proposed:
        return None
    last = proposed[-1]
    first = proposed[-2:] if len(proposed) > 1 and proposed[-2].paragraph == last.paragraph else [last]
    listed = _listed_after(offered.said, last) if last.text.endswith(":") else []
    text = span(offered.said, [*first, *listed], DECISION_WORDS)
    return Decision(decision=text, rationale=join([own, around(offered.said, last, REASON_WORDS)], room_beside(text)))


def _proposes(sentence: Sentence) -> bool:
    text = sentence.text
    if sentence.kind == "heading" or "?" in text or grammar.looks_around(text):
        return False
    return answers.recommends(text) or choices.prescribes(text)


def _told(said: Sequence[Sentence]) -> list[Sentence]:
    return [s for s in said if s.kind != "heading" and "?" not in s.text and not grammar.looks_around(s.text)]


def _listed_after(said: Sequence[Sentence], sentence: Sentence) -> list[Sentence]:
    listed: list[Sentence] = []
    for following in said[said.index(sentence) + 1 :]:
        if following.kind != "item" or len(listed) == _LISTED:
            break
        listed.append(following)
    return listed


def _options(said: Sequence[Sentence]) -> dict[str, str]:
    """The last numbered or lettered list of a message: mark to text."""
    found: dict[str, str] = {}
    for sentence in said:
        if sentence.kind == "item" and sentence.mark and sentence.mark != "-":
            if sentence.mark in ("1", "a"):
                found = {}
            found[sentence.mark] = sentence.text
        elif sentence.kind == "item" and not sentence.mark and found:
            last = next(reversed(found))
            found[last] = f"{found[last]} {sentence.text}"
        else:
            named = _NAMED.match(sentence.text)
            if named and (sentence.kind == "heading" or named[1]):
                found = {} if named[2].lower() in ("1", "a") else found
                found[named[2].lower()] = named[3]
    return found


_NAMED = re.compile(
    r"(?:(option|approach) )?(\d|[a-z])(?:[.):]|(?<=option \w)|(?<=approach \w))\s+(\S.*)", re.IGNORECASE
)
