"""Finds the verdicts of a review: numbered findings, each with what is to be done about it, or why nothing is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.model import Decision
from ralf.prose import Sentence
from ralf.summarizers import grammar
from ralf.summarizers.grammar import any_of
from ralf.summarizers.messages import DECISION_WORDS, Made, Message, clip, join, room_beside

_NUMBERED = re.compile(r"^(?:issue |finding |comment |item )?#?\d{1,2}[.):]\s+\S", re.IGNORECASE)
_VERDICT = any_of(
    r"\b(?:not blocking|non-?blocking|non-?issue|no (?:action|change|fix) (?:is )?needed|not actionable|won't fix"
    r"|wontfix)\b",
    r"\b(?:fine (?:as is|given|because|since|here)|(?:is|are) (?:fine|acceptable|intentional)|by design"
    r"|false positive)\b",
    r"\b(?:should|must|needs? to) (?:also |still |just |then |not |only )*(?:be )?\w+(?:ed|en|e)\b|\bbefore merging\b",
    r"^(?:accept|reject|agree|disagree|skip|defer|decline|fix(?:ed)?|keep|valid|valid point|suggestion)(?:ed|d|s)?\b\W",
)
_MOST = 4


def decided(message: Message) -> Made:
    """The findings of a review with a verdict, with their scores; nothing where a message is no such list."""
    parts = [part for part in _parts(message.said) if len(part) > 1]
    judged = [(part, verdict) for part in parts if (verdict := _verdict(part)) is not None]
    if len(parts) < 2 or len(judged) < 2:
        return []
    made: Made = []
    for part, verdict in judged[:_MOST]:
        title = re.sub(r"^\W*\d{1,2}[.):]\s+", "", part[0].text).rstrip(":.")
        text = clip(f"{title}: {verdict.text}", DECISION_WORDS)
        rest = [s.text for s in part[1:] if s is not verdict and not grammar.guesses(s.text, len(s.text))]
        decision = Decision(decision=text, rationale=join(rest, room_beside(text)), origin="agent")
        made.append((grammar.ENOUGH, decision, [message]))
    return made


def _verdict(part: Sequence[Sentence]) -> Sentence | None:
    for sentence in part[1:]:
        text = sentence.text
        if _VERDICT.found(text) and not grammar.is_question(text) and not grammar.guesses(text, len(text)):
            return sentence
    return None


def _parts(said: Sequence[Sentence]) -> list[list[Sentence]]:
    """The findings: each numbered heading with what stands below it."""
    parts: list[list[Sentence]] = []
    inside = False
    for sentence in said:
        if sentence.kind == "heading":
            inside = bool(_NUMBERED.match(sentence.text))
            if inside:
                parts.append([sentence])
        elif inside:
            parts[-1].append(sentence)
    return parts
