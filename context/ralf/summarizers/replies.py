"""What stands around an answer: what the agent made of it, and what its question was about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.summarizers import answers, choices, grammar, said
from ralf.summarizers.messages import REASON_WORDS, Message, join, room_beside

_DID = re.compile(
    r"^i(?:'ve| have)? (?:read|looked|checked|ran|opened|searched|fetched|went through|started)\b", re.IGNORECASE
)


def reply_of(replies: Sequence[Message], answered: str) -> str:
    """What the agent made of it: the sentences of its first messages and its last that give reasons and name things."""
    told: list[tuple[int, int, str]] = []
    for number, reply in enumerate([*replies[:2], *replies[2:][-1:]]):
        if _decides(reply, answered):
            continue  # a decision of its own, not the reason of this one
        for sentence in reply.said[:12]:
            text = sentence.text
            if sentence.kind == "heading" or "?" in text or grammar.looks_around(text) or grammar.is_status(text):
                continue
            if _DID.match(text) or len(text.split()) < (3 if "`" in text else 4) or text == answered:
                continue
            score = 2 * grammar.gives_reason(text) + min(text.count("`") // 2, 2) + 2 * choices.prescribes(text)
            score += 2 * (number == 0) + (not told) - (sentence.kind == "item")
            told.append((score, len(told), text))
    kept: list[tuple[int, str]] = []
    room = most = room_beside(answered)
    for _, place, text in sorted(told, key=lambda one: (-one[0], one[1])):
        if room < 8:
            break
        kept.append((place, text))
        room -= len(text.split())
    return join([text for _, text in sorted(kept)], most)


def offer_before(said_by_all: Sequence[Message], place: int) -> Message | None:
    """What the message at `place` answers: the agent's last one that asks or proposes something, else its last."""
    before: list[Message] = []
    for message in reversed(said_by_all[max(0, place - 3) : place]):
        if message.who != "agent":
            break
        before.append(message)
    return next((m for m in before if any("?" in s.text or answers.recommends(s.text) for s in m.said[-8:])), None) or (
        before[0] if before else None
    )


def before_question(offered: Message | None) -> str:
    """The last sentences before the question with which a message ends: what the question is about."""
    if offered is None or not any("?" in s.text for s in offered.said[-4:]):
        return ""
    told = [s.text for s in offered.said if "?" not in s.text and not grammar.looks_around(s.text)]
    kept: list[str] = []
    room = REASON_WORDS
    for text in reversed(told):
        room -= len(text.split())
        if room < 0 and kept:
            break
        kept.append(text)
    return join(kept[::-1], REASON_WORDS)


def _decides(reply: Message, answered: str) -> bool:
    """Whether a reply holds a decision of its own, and not how the one that it answers is carried out."""
    if not any(score >= grammar.ENOUGH for score, _, _ in said.decided(reply)):
        return False
    return len(grammar.content_words(reply.text) & grammar.content_words(answered)) < 2
