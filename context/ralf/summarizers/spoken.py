"""Finds what a person decided: by directive or correction, by a rule, by an answer to an offer, by declining a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ralf.model import Decision
from ralf.prose import Sentence, joined, sentences
from ralf.summarizers import accepted, answers, approved, choices, directives, grammar, lasting, quoted
from ralf.summarizers.messages import DECISION_WORDS, REASON_WORDS, Made, Message, around, clip, join, room_beside, span
from ralf.summarizers.replies import before_question, listed_after, offer_before, referent, reply_of

_LONG_MESSAGE, _SHORT_REQUEST = 150, 60  # words: beyond the first only rules are told; within the second, kept whole
_MOST_RULES = 10  # of one message: they are pinned, and the file is capped
_MEANT = 25  # words that tell what "it" or "all 4" stands for
_SHORT_ANSWER = 60  # words within which a message may be an answer to an offer
_UNANSWERED = 100  # messages of a person in a row, after which none is a reply to the first


def decided(said_by_all: Sequence[Message], place: int) -> Made:
    """The decisions in the message at `place`, which a person wrote, with their scores and where they stand."""
    message = said_by_all[place]
    said = [s for s in message.said if s.kind != "heading"]
    words = sum(len(s.text.split()) for s in sentences(message.text) if s.kind != "heading")  # pasted ones included
    if approved.is_ordered(message.text):
        return [(grammar.ENOUGH + 2, decision, [message]) for decision in approved.of_plan(message.text)]
    if not said:
        return []
    offered = offer_before(said_by_all, place)
    replies = _replies(said_by_all, place)
    if offered is not None and words <= _SHORT_ANSWER and not message.declined:
        decision = accepted.decision_of(message, said, offered, replies)
        if decision is not None:
            rules = _rules(message, said[1:], replies)  # "yes. and never …"
            return [(grammar.ENOUGH + 1, replace(decision, origin="user"), [offered, message]), *rules]
    made = _rules(message, message.said, replies)
    if words <= _LONG_MESSAGE and not made:
        made = _own_words(message, said, offered, replies) or _conceded(message, said, replies)
    return made


def _rules(message: Message, said: Sequence[Sentence], replies: Sequence[Message]) -> Made:
    own = [s for s in said if not quoted.reports(s.text)]
    if sum(len(s.text.split()) for s in said if s.kind != "heading") > _LONG_MESSAGE:
        own = lasting.parts(own)
        rules = [(one.sentence, one.lasting) for one in lasting.laid_down(own)]
    else:
        outright = lasting.outright(own)
        plain = [s for s in own if s.kind != "heading" and directives.is_rule(lasting.unquoted(s.text))]
        told = [s for s in own if s in outright or s in plain]
        rules = [(s, s in outright or directives.is_standing(s.text)) for s in told[:_MOST_RULES]]
        rules += [(s, pinned and not directives.is_for_now(s.text)) for s, pinned in _orders_behind(own, rules)]
    made: Made = []
    for sentence, pinned in rules:
        reason = join(
            [around(own, sentence, 30, but=directives.is_order), reply_of(replies, sentence.text)], REASON_WORDS
        )
        text = clip(sentence.text, DECISION_WORDS)
        decision = Decision(
            kind="rule" if pinned else "decision", pinned=pinned, decision=text, rationale=reason, origin="user"
        )
        made.append((grammar.ENOUGH + 2, decision, [message]))
    return made


def _orders_behind(said: Sequence[Sentence], rules: Sequence[tuple[Sentence, bool]]) -> list[tuple[Sentence, bool]]:
    """The orders behind a rule in its paragraph, each with whether that one lasts: no reason for it, but more to do."""
    lasts, found = dict(rules), []
    before: Sentence | None = None
    for sentence in said:
        if sentence in lasts:
            before = sentence
        elif before and sentence.paragraph == before.paragraph and directives.is_order(sentence.text):
            found.append((sentence, lasts[before]))
    return found


def _own_words(message: Message, said: Sequence[Sentence], offered: Message | None, replies: Sequence[Message]) -> Made:
    """A directive, a correction, a suggestion that was taken up, or a statement that the agent took as settled."""
    first = replies[0].said[0].text if replies and replies[0].said else ""
    agreed = answers.agrees(first)
    acted = bool(message.does) or any(reply.does for reply in replies[:3])
    words = sum(len(s.text.split()) for s in said)
    said = said[next((n + 1 for n in reversed(range(len(said))) if directives.withdraws(said[n].text)), 0) :]
    errand = directives.is_errand if message.declined else directives.is_errand_request
    telling = [s for s in said if not (directives.asks(s.text) or errand(s.text))]
    scores = {s: directives.user_score(s.text) for s in telling}
    best = max(scores.values(), default=0)
    suggested = [s for s in telling if directives.suggests(s.text)]
    chosen = [s for s in telling if scores[s] > 0 or s in suggested]
    if message.declined:
        if not telling or words < 3:
            return []
        if not best and any(directives.doubts(s.text) for s in telling):
            return []  # "lol, I guess"
        best, chosen = best + 3, chosen or telling
    else:
        if best:
            answered = offered is not None and any("?" in s.text for s in offered.said[-4:])
            best += int(agreed or answered or acted) + int(answered and words < 12 and best < 2)
        if suggested and (agreed or acted):
            best = max(best, grammar.ENOUGH)
        if (
            best < grammar.ENOUGH
            and answers.affirms(first)
            and (stated := [s for s in telling if directives.states(s.text)])
        ):
            best, chosen = grammar.ENOUGH, stated
    if best <= 0 or not chosen:
        return []
    text = (
        joined(s.text for s in telling) if words <= _SHORT_REQUEST and telling else span(said, chosen, DECISION_WORDS)
    )
    meant = clip(referent(text, offered), _MEANT)
    if not meant and directives.leans(text) and not directives.says_something(text):
        return []
    text += f" ({meant})" if meant else ""
    text = clip(text, DECISION_WORDS + 10)
    options = (message.declined,) if message.declined else tuple(grammar.rejected(text))
    context = before_question(offered) if words < 12 and not message.declined else ""
    beside = [s.text for s in said if directives.asks(s.text) and len(s.text.split()) <= 15 and s.text not in text]
    asked = f"User: {joined(beside[:2])}" if beside else ""
    reason = join([asked, reply_of(replies, text), context], room_beside(text))
    decision = Decision(decision=text, rationale=reason, alternatives=options, origin="user")
    return [(best, decision, [message, *replies[:1]])]


def _conceded(message: Message, said: Sequence[Sentence], replies: Sequence[Message]) -> Made:
    """What the agent gives way to when a person objects or asks why."""
    if not replies or not replies[0].said or not answers.concedes(replies[0].said[0].text):
        return []
    settled = [s for s in replies[0].said[:8] if s.kind == "text" and choices.prescribes(s.text) and "?" not in s.text]
    settled = [s for s in settled if not s.text.endswith(":") or listed_after(replies[0].said, s)]
    if not settled:
        return []
    listed = listed_after(replies[0].said, settled[0]) if settled[0].text.endswith(":") else []
    reason = join(
        [f"User: {clip(joined(s.text for s in said), REASON_WORDS // 2)}", around(replies[0].said, settled[0], 30)], 45
    )
    decision = Decision(
        decision=clip(joined(s.text for s in [settled[0], *listed]), DECISION_WORDS), rationale=reason, origin="user"
    )
    return [(grammar.ENOUGH, decision, [message, replies[0]])]


def _replies(said_by_all: Sequence[Message], place: int) -> list[Message]:
    """What the agent said next, until the person spoke again; nothing where it left that much unanswered."""
    ahead = range(place + 1, len(said_by_all))
    begins = next((n for n in ahead[:_UNANSWERED] if said_by_all[n].who == "agent"), None)
    if begins is None:
        return []
    ends = next((n for n in range(begins, len(said_by_all)) if said_by_all[n].who != "agent"), None)
    return list(said_by_all[begins:ends])
