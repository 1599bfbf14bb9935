"""What a person settled through a tool: a plan that they approved, and options that they chose when asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralf.model import Decision
from ralf.prose import Sentence, plain, sentences
from ralf.summarizers import choices, designs, grammar
from ralf.summarizers.messages import DECISION_WORDS, REASON_WORDS, Made, Message, clip, join
from ralf.transcripts.events import Event

_APPROVED = re.compile(r"^#+ *approved plan\b[^\n]*\n", re.IGNORECASE | re.MULTILINE)
_WHY = re.compile(r"\b(?:context|why|background|problem|motivation|overview|goal|summary|purpose)\b", re.IGNORECASE)
_HOW_TO_CHECK = re.compile(r"\b(?:verif\w+|test(?:s|ing)?|critical files|references?|files)\b", re.IGNORECASE)
_ORDERED = re.compile(
    r"\W*(?:please |now |then |ok,? )*(?:implement|execute|carry out|follow)\b[^\n]{0,60}\bplan\b", re.I
)
_LABEL = re.compile(r"^(?:implementation |the )?plan\s*[:—-]\s*", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:step |phase |task )?\d", re.IGNORECASE)
_ASKING = frozenset({"askuserquestion", "askuser", "askquestion", "askfollowupquestion", "requestuserinput"})
_PLANNING = frozenset({"exitplanmode", "planmoderespond"})
"""The tools whose answer a person gives. What any other answers, a server of tools included, is a tool's."""
_STEPS, _STEP_WORDS, _CHOICES = 6, 14, 4
_MOST_ASKED, _LONGEST_ANSWER = 16, 20_000  # questions, and options of one; characters of what was answered
_FREE = re.compile(r"(?<![\"'=:>])[\"'=:>]++\s*+([^\"]{2,400})\"")


def decided(events: Sequence[Event]) -> Made:
    """The decisions in answered questions and approved plans, with their scores."""
    made: Made = []
    calls: dict[str, Event] = {}
    for event in events:
        if event.kind == "call" and not event.agent:
            calls[event.call_id] = event
        call = calls.get(event.call_id)
        if event.kind != "result" or call is None or event.refused or event.failed:
            continue
        said = [Message("agent", call.text, call, ()), Message("user", event.text, event, ())]
        tool = call.tool.lower().replace("_", "")
        found = _answers(call.input, event.text) if tool in _ASKING else []
        if tool in _PLANNING and isinstance(call.input.get("plan", ""), str):
            heading = _APPROVED.search(event.text)
            found = of_plan(event.text[heading.end() :] if heading else call.input.get("plan", ""))
        made += [(grammar.ENOUGH + 2, decision, said) for decision in found]
    return made


# ---- questions ----


def _answers(asked: Mapping[str, Any], answer: str) -> list[Decision]:
    """What was chosen of each question's options; a free answer stands as it was given."""
    questions, answer = asked.get("questions"), answer[:_LONGEST_ANSWER]
    if not isinstance(questions, list):
        return []
    asked_of = [
        one for one in questions[:_MOST_ASKED] if isinstance(one, dict) and isinstance(one.get("question"), str)
    ]
    places = [answer.find(str(one["question"])) for one in asked_of]
    decisions = []
    for one, place in zip(asked_of, places, strict=True):
        if place < 0:
            continue
        start = place + len(one["question"])
        given = answer[start : min((p for p in places if p > place), default=len(answer))]
        options = {
            str(option.get("label", "")): plain(str(option.get("description", "")))
            for option in _some(one.get("options"))
            if isinstance(option, dict) and option.get("label")
        }
        chosen = [label for label in options if label in given]
        free = _FREE.search(given)
        if chosen:
            text = "; ".join(f"{label}: {options[label]}" if options[label] else label for label in chosen)
        elif free:
            text = plain(free[1])
        else:
            continue
        rejected = tuple(clip(label, 12) for label in options if label not in chosen)[:4]
        asking = clip(plain(one["question"]), REASON_WORDS)
        decisions.append(
            Decision(decision=clip(text, DECISION_WORDS), rationale=asking, alternatives=rejected, origin="user")
        )
    return decisions


def _some(options: object) -> list[Any]:
    return options[:_MOST_ASKED] if isinstance(options, list) else []


# ---- plans ----


def is_ordered(text: str) -> bool:
    """Whether a message orders a plan to be carried out, as a client does for a person who approved one, and the plan
    follows: headings over lists of changes. Any other plan in a message may be anybody's.
    """
    said = sentences(text) if _ORDERED.match(text) else ()
    return sum(s.kind == "heading" for s in said) >= 2 and sum(s.kind == "item" for s in said) >= 2


def of_plan(text: str) -> list[Decision]:
    """A plan as one decision, its title with its steps, and the choices in it that name what they turn down."""
    said = [s for s in sentences(text) if s.text]
    if len(said) < 2:
        return []
    parts = list(_parts(said))
    title = _LABEL.sub("", next((s.text for s in said if s.kind == "heading"), said[0].text))
    why = [s for heading, part in parts if _WHY.search(heading) for s in part]
    rest = [(h, part) for h, part in parts if not _WHY.search(h) and not _HOW_TO_CHECK.search(h)]
    steps = _steps(rest)
    whole = f"{title}: {'; '.join(steps)}" if steps else title
    first = next((place for place, s in enumerate(why) if grammar.gives_reason(s.text)), max(0, len(why) - 2))
    reasons = [s.text for s in why[first:]]
    decisions = [
        Decision(decision=clip(whole, DECISION_WORDS + 10), rationale=join(reasons, REASON_WORDS), origin="user")
    ]
    scored: list[tuple[int, int, str, str]] = []
    for _, part in rest:
        for place, sentence in enumerate(part):
            score = choices.agent_score(sentence.text) + designs.is_imperative(sentence.text)
            if score >= grammar.ENOUGH and not grammar.is_question(sentence.text):
                before = [s.text for s in part[max(0, place - 1) : place] if grammar.gives_reason(s.text)]
                scored.append((score, len(scored), sentence.text, join(before, REASON_WORDS)))
    best = sorted(sorted(scored, key=lambda one: -one[0])[:_CHOICES], key=lambda one: one[1])
    for _, _, sentence_text, reason in best:
        short = clip(sentence_text.rstrip(":"), DECISION_WORDS)
        options = tuple(grammar.rejected(short))
        decisions.append(Decision(decision=short, rationale=reason, alternatives=options, origin="user"))
    return decisions


def _parts(said: Sequence[Sentence]) -> Iterator[tuple[str, list[Sentence]]]:
    """The sentences of a plan under their headings."""
    heading = ""
    part: list[Sentence] = []
    for sentence in said:
        if sentence.kind == "heading":
            if part:
                yield heading, part
            heading, part = sentence.text, []
        else:
            part.append(sentence)
    if part:
        yield heading, part


def _steps(parts: Sequence[tuple[str, list[Sentence]]]) -> list[str]:
    """The steps of a plan: its numbered items, else its headings with numbers, else its items."""
    items = [s for _, part in parts for s in part if s.kind == "item" and s.mark]
    numbered = [s.text for s in items if s.mark.isdigit()]
    headed = [f"{heading.rstrip(':')}: {part[0].text}" for heading, part in parts if _NUMBERED.match(heading)]
    steps = numbered or headed or [s.text for s in items]
    return [clip(text.rstrip(":."), _STEP_WORDS) for text in steps[:_STEPS]]
