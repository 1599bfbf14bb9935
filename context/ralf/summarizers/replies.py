"""What stands around an answer: what the agent made of it, and what its question was about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.prose import Sentence
from ralf.summarizers import answers, choices, directives, grammar, leads, said
from ralf.summarizers.messages import REASON_WORDS, Message, clip, join, room_beside

_LISTED = 6
_DID = re.compile(
    r"^i(?:'ve| have)? (?:read|looked|checked|ran|opened|searched|fetched|went through|started)\b", re.IGNORECASE
)


def reply_of(replies: Sequence[Message], answered: str) -> str:
    """What the agent made of it: the sentences of its first messages and its last that give reasons and name things."""
    told: list[tuple[int, int, str]] = []
    for number, reply in enumerate([*replies[:2], *replies[2:][-1:]]):
        if _decides(reply, answered) or leads.says_place(reply.said):
            continue  # a decision of its own, or the work that it led to: not the reason of this one
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


def referent(text: str, offered: Message | None) -> str:
    """What "it" or "2 and 3" stands for in an answer: items of the list before it, else what was last said; or ""."""
    if offered is None or not directives.says_little(text):
        return ""
    options = options_of(offered.said)
    marks = [mark for mark in re.findall(r"\b\d\b", text) if mark in options]
    if re.search(r"\b(?:all|both)\b", text, re.IGNORECASE) and len(options) > 1:
        marks = list(options)
    if marks:
        return "; ".join(f"{mark}. {clip(options[mark], max(25 // len(marks), 5))}" for mark in marks)
    if not directives.leans(text):
        return ""
    told = [s.text for s in offered.said if "?" not in s.text and s.kind != "heading"]
    told = [t for t in told if len(t.split()) > 3 and not t.endswith(":") and not grammar.looks_around(t)]
    return told[-1] if told else ""


def listed_after(said: Sequence[Sentence], sentence: Sentence) -> list[Sentence]:
    """The items of the list that a sentence introduces."""
    listed: list[Sentence] = []
    for following in said[said.index(sentence) + 1 :]:
        if following.kind != "item" or len(listed) == _LISTED:
            break
        listed.append(following)
    return listed


def options_of(said: Sequence[Sentence]) -> dict[str, str]:
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


def _decides(reply: Message, answered: str) -> bool:
    """Whether a reply holds a decision of its own, and not how the one that it answers is carried out."""
    if len(grammar.content_words(reply.text) & grammar.content_words(answered)) >= 2:
        return False
    return any(score >= grammar.ENOUGH for score, _, _ in said.decided(reply))
