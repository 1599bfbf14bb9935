"""Finds what was tried and did not help: a change after which somebody says that it still fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ralf.model import Decision
from ralf.summarize import english, standing
from ralf.summarize.messages import DECISION_WORDS, REASON_WORDS, Made, Message, clip, join
from ralf.summarize.section import FINDS
from ralf.text.matcher import AnyOf
from ralf.text.sentences import joined

_STILL = AnyOf(
    r"^(?:hmm+|ok(?:ay)?|no|nope|ugh|well|sorry|unfortunately)?[,.! ]{0,3}"
    r"(?:(?:it|this|that|they|the \w+(?: \w+){0,2})(?:'s|'re| is| are)? )?"
    r"still (?:not |fail|broken|red|the same|an? (?:error|failure)|there\b|hangs?\b|crash|wrong|happen|getting"
    r"|see(?:ing)?\b|doesn't|does not|isn't|won't|can't)",
    r"^(?:same (?:error|failure|issue|problem|result)\b|no (?:luck|change)\b"
    r"|(?:that|this|it) (?:did not|didn't|does not|doesn't) (?:work|help|fix|change|make a)"
    r"|(?:that|this) (?:change|fix|attempt|edit) (?:did not|didn't|does not|doesn't))",
)

_BACK = 5  # messages of the agent in which the change lies that did not help

_WHY = 2  # messages behind in which the agent may say why


def tried(told: Sequence[Message], place: int) -> Made:
    """The change before the message at `place`, where that says that it did not help; with why, as the agent found out
    right after.
    """
    message = told[place]
    if not message.said or not _STILL.match(message.said[0].text):
        return []
    change = _change_before(told, place)
    statement = _statement(change) if change is not None else ""
    if change is None or not statement:
        return []
    where = f" (an edit of `{change.touched}`)" if change.touched and change.touched not in statement else ""
    text = f"tried, and it still failed{where}: {clip(statement, DECISION_WORDS - 10)}"
    decision = Decision(kind="failed-approach", decision=text, rationale=_why(told, place), origin="agent")
    return [(english.ENOUGH, decision, [change, message])]


def _change_before(told: Sequence[Message], place: int) -> Message | None:
    """The agent's newest message after which it edited files, since a person last spoke."""
    for message in reversed(told[max(0, place - _BACK) : place]):
        if message.who != "agent":
            return None
        if message.does == "edits":
            return message
    return None


def _statement(change: Message) -> str:
    """What the agent said of a change: what it found, and what it was going to do about it."""
    said = [s.text for s in change.said if s.kind != "heading" and "?" not in s.text]
    told = [standing.unannounced(text).rstrip(":") for text in said if not english.looks_around(text)]
    telling = [text for text in told if len(text.split()) > 3 and not english.is_status(text)]
    return joined(telling) if telling and standing.reads_alone(joined(telling)) else ""


def _why(told: Sequence[Message], place: int) -> str:
    return join([*_causes(told[place : place + 1 + _WHY])][:2], REASON_WORDS)


def _causes(said: Sequence[Message]) -> Iterator[str]:
    for message in said:
        if message.who != "agent":
            return
        yield from (s.text for s in message.said if FINDS(s.text) or s.text.lower().startswith("the issue is"))
