"""What a person's answer makes a decision of: the option they pick, or what the agent proposed and they accept."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.model import Decision
from ralf.prose import Sentence, joined
from ralf.summarizers import answers, choices, directives, grammar
from ralf.summarizers.messages import DECISION_WORDS, REASON_WORDS, Message, clip, join, room_beside, span
from ralf.summarizers.replies import listed_after, options_of, referent, reply_of

_NEAR_END = 8  # sentences in which an offer, a proposal or a question still waits for the answer


def decision_of(
    message: Message, said: Sequence[Sentence], offered: Message, replies: Sequence[Message]
) -> Decision | None:
    """The choice that an answer such as "yes", "option 2" or "the first one" makes of what the agent offered.

    None where the message accepts nothing, or only an errand.
    """
    own = joined(s.text for s in said) if len(message.text.split()) >= 4 else ""
    own = f"User: {clip(own, REASON_WORDS)}" if own else ""
    marks = answers.picked(message.text)
    if marks:
        options = options_of(offered.said)
        marks = tuple(list(options)[-1] if mark == "last" else mark for mark in marks if options)
        chosen = [options[mark] for mark in marks if mark in options]
        if chosen:
            others = tuple(clip(text, 15) for mark, text in options.items() if mark not in marks)
            text = clip("; ".join(chosen), DECISION_WORDS)
            recommended = [s.text for s in offered.said if answers.recommends(s.text) and "?" not in s.text]
            reason = join([own, _question(offered), *recommended[-1:], reply_of(replies, text)], room_beside(text))
            return Decision(decision=text, rationale=reason, alternatives=others[:4])
    if not answers.accepts(said[0].text):
        return None
    waiting = offered.said[-_NEAR_END:]
    offers = [answers.offer(s.text).split(", or ")[0] for s in waiting if "?" in s.text]
    proposed = [s for s in waiting if _proposes(s)]
    if not offers and not proposed:
        return None
    text = joined(s.text for s in said)
    if directives.user_score(text) >= 2 and len(answers.beyond_yes(text).split()) >= 4:
        meant = referent(text, offered)
        text = clip(f"{text} ({meant})" if meant else text, DECISION_WORDS)  # more than a yes: their own words
        return Decision(
            decision=text, rationale=join([_about(waiting, text), reply_of(replies, text)], room_beside(text))
        )
    offer = next((text for text in reversed(offers) if text), "")
    if offer:
        text = clip(offer, DECISION_WORDS)
    elif proposed:
        last = proposed[-1]
        first = proposed[-2:] if len(proposed) > 1 and proposed[-2].paragraph == last.paragraph else [last]
        listed = listed_after(offered.said, last) if last.text.endswith(":") else []
        named = _OPTION.search(last.text)  # "I'd go with option 1": what it says
        option = options_of(offered.said).get(named[1].lower(), "") if named else ""
        text = clip(option, DECISION_WORDS) or span(offered.said, [*first, *listed], DECISION_WORDS)
    else:
        return None
    meant = referent(text, offered)
    text = f"{text} ({clip(meant, REASON_WORDS)})" if meant and meant not in text else text
    question = _question(offered) if len(text.split()) < 30 else ""
    return Decision(
        decision=text,
        rationale=join([own, question, _about(waiting, text), reply_of(replies, text)], room_beside(text)),
    )


_OPTION = re.compile(r"\boption (\d|[a-e])\b", re.IGNORECASE)


def _question(offered: Message) -> str:
    """What was asked, where options stood below it."""
    asked = [s.text for s in offered.said if s.text.endswith("?") and len(s.text.split()) >= 6]
    return clip(asked[0], 20) if asked and options_of(offered.said) else ""


def _about(waiting: Sequence[Sentence], chosen: str) -> str:
    """Of the last sentences of the offer, those that propose, give reasons and name things."""
    scored = []
    for place, sentence in enumerate(waiting):
        text = sentence.text
        if sentence.kind == "heading" or "?" in text or grammar.looks_around(text) or text in chosen:
            continue
        score = 2 * _proposes(sentence) + 2 * grammar.gives_reason(text) + min(text.count("`") // 2, 2)
        scored.append((score + place / 10, place, text))
    kept: list[tuple[int, str]] = []
    room = REASON_WORDS + 10
    for _, place, text in sorted(scored, reverse=True):
        if room < 8:
            break
        kept.append((place, text))
        room -= len(text.split())
    return join([text for _, text in sorted(kept)], REASON_WORDS + 10)


def _proposes(sentence: Sentence) -> bool:
    text = sentence.text
    if sentence.kind == "heading" or "?" in text or grammar.looks_around(text):
        return False
    return answers.recommends(text) or choices.prescribes(text)
