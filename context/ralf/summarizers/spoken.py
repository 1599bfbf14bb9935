"""Finds what a person decided: by directive or correction, by a rule, by an answer to an offer, by declining a call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ralf.model import Decision
from ralf.prose import Sentence, joined
from ralf.summarizers import answers, grammar
from ralf.summarizers.messages import Message, around, clip, join, span

Made = list[tuple[int, Decision, Sequence[Message]]]
"""Scores, decisions and the messages in which they stand."""

_LONG_MESSAGE, _SHORT_REQUEST = 150, 60  # words: beyond the first it is pasted text; within the second, kept whole
_DECISION_WORDS, _REASON_WORDS, _REPLY_WORDS = 90, 80, 70


def decided(said_by_all: Sequence[Message], place: int) -> Made:
    """The decisions in the message at `place`, which a person wrote, with their scores and where they stand."""
    message = said_by_all[place]
    said = [s for s in message.said if s.kind != "heading"]
    if not said or len(message.text) > 6000:
        return []
    words = sum(len(s.text.split()) for s in said)
    offered = said_by_all[place - 1] if place and said_by_all[place - 1].who == "agent" else None
    replies = _replies(said_by_all, place)
    reply = _reply(replies)
    agreed = bool(replies) and bool(replies[0].said) and answers.agrees(replies[0].said[0].text)
    if offered is not None and words <= 60 and not message.declined:
        accepted = _accepted(message, said, offered)
        if accepted is not None:
            own = f"User: {clip(joined(s.text for s in said), 40)}"
            whole = replace(accepted, rationale=join([own, accepted.rationale, reply], 100), origin="user")
            return [(grammar.ENOUGH + 1, whole, [offered, message])]
    made: Made = []
    rules = [s for s in said if answers.is_rule(s.text) and words <= 400]
    for rule in rules:
        reason = join([around(said, rule, 50), reply], _REASON_WORDS)
        pinned = answers.is_standing(rule.text)
        decision = Decision(kind="rule", pinned=pinned, decision=clip(rule.text, 80), rationale=reason, origin="user")
        made.append((grammar.ENOUGH + 2, decision, [message]))
    if words > _LONG_MESSAGE or rules:
        return made
    scored = [(answers.user_score(s.text), s) for s in said]
    best = max(score for score, _ in scored)
    if message.declined:
        plain_question = all(grammar.is_question(s.text) for s in said)
        best = 0 if words < 3 or (plain_question and not agreed and not message.declined.startswith("`")) else best + 3
    elif best:
        answered = offered is not None and any("?" in s.text for s in offered.said[-4:])
        best += int(agreed or answered or (words <= 25 and len(reply.split()) >= 8))
    elif agreed and words >= 8 and any(answers.suggests(s.text) for _, s in scored):
        best = grammar.ENOUGH
    if best > 0:
        chosen = [s for score, s in scored if score > 0 or answers.suggests(s.text)] or said
        text = joined(s.text for s in said) if words <= _SHORT_REQUEST else span(said, chosen, _DECISION_WORDS)
        options = (message.declined,) if message.declined else tuple(grammar.rejected(text))
        context = _before_question(offered) if words < 12 and not message.declined else ""
        rationale = join([reply, context], 100)
        decision = Decision(decision=text, rationale=rationale, alternatives=options, origin="user")
        made.append((best, decision, [message, *replies[:1]]))
    return made


def _accepted(message: Message, said: Sequence[Sentence], offered: Message) -> Decision | None:
    """The choice that an answer such as "yes", "option 2" or "1." makes among what the agent offered."""
    marks = answers.picked(message.text)
    if marks:
        options = _options(offered.said)
        chosen = [options[m] for m in marks if m in options]
        if chosen:
            others = tuple(clip(text, 30) for m, text in options.items() if m not in marks)
            recommended = join([s.text for s in offered.said if answers.recommends(s.text)], 50)
            return Decision(decision=clip("; ".join(chosen), 80), rationale=recommended, alternatives=others[:4])
    asks = any("?" in s.text or answers.recommends(s.text) for s in offered.said[-8:])
    if not answers.accepts(said[0].text) or not asks:
        return None
    proposed = [s for s in offered.said if answers.recommends(s.text) and s.kind != "heading" and "?" not in s.text]
    if proposed:
        last = proposed[-1]
        listed = _listed_after(offered.said, last) if last.text.endswith(":") else []
        text = span(offered.said, [*proposed[-3:], *listed], _DECISION_WORDS)
        return Decision(decision=text, rationale=around(offered.said, last, 60))
    for sentence in reversed(offered.said):
        offer = answers.offer(sentence.text)
        if offer:
            return Decision(decision=clip(offer, 60), rationale=_before_question(offered))
    return None


def _listed_after(said: Sequence[Sentence], sentence: Sentence) -> list[Sentence]:
    listed: list[Sentence] = []
    for following in said[said.index(sentence) + 1 :]:
        if following.kind != "item" or len(listed) == 6:
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
        elif sentence.kind == "heading":
            mark = re.match(r"(?:option |approach )?(\d|[a-z])[.):]\s+(\S.*)", sentence.text, re.I)
            if mark:
                found = {} if mark[1].lower() in ("1", "a") else found
                found[mark[1].lower()] = mark[2]
    return found


def _replies(said_by_all: Sequence[Message], place: int) -> list[Message]:
    """What the agent said until the person spoke again."""
    replies = []
    for message in said_by_all[place + 1 :]:
        if message.who == "user":
            break
        replies.append(message)
    return replies


def _reply(replies: Sequence[Message]) -> str:
    """What the agent made of it: the first sentences that say more than that it is looking around."""
    kept: list[str] = []
    for place, reply in enumerate([*replies[:2], *replies[-1:]]):
        if place and _decides(reply):
            continue  # a decision of its own, not the reason of this one
        for sentence in reply.said[:12]:
            if "?" in sentence.text and kept:
                break
            if sentence.kind == "heading" or "?" in sentence.text or grammar.looks_around(sentence.text):
                continue
            if not grammar.is_status(sentence.text):
                kept.append(sentence.text)
        if sum(len(text.split()) for text in kept) >= 25:
            break
    text = join(kept, _REPLY_WORDS)
    return text if len(text.split()) >= 5 else ""


def _before_question(offered: Message | None) -> str:
    """The last sentences before the question with which a message ends: what the question is about."""
    if offered is None:
        return ""
    told = [s.text for s in offered.said if "?" not in s.text and not grammar.looks_around(s.text)]
    kept: list[str] = []
    room = 60
    for text in reversed(told):
        room -= len(text.split())
        if room < 0 and kept:
            break
        kept.append(text)
    return join(kept[::-1], 60)


def _decides(reply: Message) -> bool:
    texts = [sentence.text for sentence in reply.said if sentence.kind == "text"]
    return bool(grammar.states_design(texts)) or any(grammar.agent_score(text) >= grammar.ENOUGH for text in texts[:2])
