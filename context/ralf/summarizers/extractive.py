"""The embedded summariser: offline, deterministic, without a model; it keeps the source's own words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ralf.facts import said_in_refusal
from ralf.model import ActiveWork, Decision
from ralf.prose import Sentence, joined, sentences
from ralf.summarizers import Segment, Summary, grammar
from ralf.summarizers.decisions import find
from ralf.text import one_line
from ralf.transcripts.events import Event
from ralf.trim import trimmed

_CHARS_PER_TOKEN = 4
_SHARE = 0.085  # of a segment's text, for all that is stored of it
_LEAST_ROOM, _MOST_ROOM = 600, 4400  # characters of a section
_OVERHEAD = 40  # characters around a text in the file
_REQUEST, _STATEMENT, _FINDING, _STEP = 200, 600, 240, 160  # characters
_LONGEST = 16_000  # characters of a message that are read for its statement

_RESULT = re.compile(
    r"\b(?:fix(?:ed|es)?|added|removed|renamed|moved|created|updated|implemented|replaced|committed|pushed"
    r"|merged|rebased|resolved"
    r"|pass(?:es|ed)?|fail(?:s|ed)?|works?|done|complete[d]?|now|because|root cause|caused?|the issue"
    r"|the problem|found|result"
    r"|so|therefore|means|confirmed|turns out|instead|only|changed|wired|refactored|verified|posted|replied"
    r"|skipped)\b",
    re.I,
)
_FINDS = re.compile(
    r"\b(?:root cause|the (?:real |actual |underlying )?(?:cause|culprit|problem|issue|bug) (?:is|was)|(?:is"
    r"|was) caused by|turns out"
    r"|it turned out|caused by|explains why|this is why|that's why|confirmed that|the reason (?:is|was))\b",
    re.I,
)
_BLOCKS = re.compile(
    r"\b(?:blocked (?:by|on|until)|waiting (?:for|on)|cannot proceed|can't proceed|can't continue"
    r"|need(?:s)? your|depends on you"
    r"|until (?:you|the user|it is merged)|missing (?:credentials?|access|permissions?|api key)|before (?:i"
    r"|we) can)\b",
    re.I,
)
_NEXT = re.compile(
    r"^(?:next(?: steps?| up)?\b|remaining\b|still to do\b|to ?do\b|then i'll\b|what's left\b|left to do\b|ready to\b"
    r"|now i(?:'ll| will)\b|i(?:'ll| will) (?:now|next|then)\b|after that\b|follow-ups?\b)",
    re.I,
)
_NEXT_HEADING = re.compile(
    r"^(?:next(?: steps?| up)?|remaining(?: work| tasks?)?|to ?do|what's (?:left|next)|follow-ups?)\W*$", re.I
)


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A request and what the agent said until the next one."""

    request: str
    said: list[Event]


class Extractive:
    """Keeps requests, concluding statements, decisions and the state of the work, in the words of the source."""

    name = "extractive"

    def summarize(self, segment: Segment) -> Summary:
        """Sum the segment up; tool output is not read, but for what a person said in declining a call."""
        found = find(segment.events, session=segment.session, known=segment.decisions)
        exchanges = _exchanges(segment.events)
        room = _room(segment, found.decisions)
        lines, left_out = _history(exchanges, room)
        if not lines:
            lines = ["- Nothing worth keeping was said in this segment."]
        return Summary(
            title=_title(exchanges, segment.active_work),
            text="\n".join(lines),
            decisions=found.decisions,
            active_work=_work(segment.active_work, exchanges),
            key_events=_key_events(segment, found.decisions),
            kept=len(found.decisions) + len(lines),
            dropped=found.dropped + left_out,
        )


def _room(segment: Segment, decisions: Sequence[Decision]) -> int:
    """Characters that the section may take, so that with facts and decisions a segment comes to well under a tenth."""
    facts = segment.facts
    texts = [fact.path for fact in facts.paths] + [fact.command for fact in facts.commands]
    texts += [fact.request for fact in facts.requests] + [fact.error for fact in facts.errors]
    texts += [text for item in decisions for text in (item.decision, item.rationale, *item.alternatives)]
    spent = sum(map(len, texts)) + _OVERHEAD * len(texts)
    return max(_LEAST_ROOM, min(_MOST_ROOM, int(segment.tokens * _CHARS_PER_TOKEN * _SHARE) - spent))


def _exchanges(events: Sequence[Event]) -> list[_Exchange]:
    out: list[_Exchange] = []
    for event in events:
        spoken = event.text if event.kind == "user" else said_in_refusal(event)
        if spoken.strip():
            out.append(_Exchange(spoken, []))
        elif event.kind == "assistant" and event.text.strip():
            if not out:
                out.append(_Exchange("", []))
            out[-1].said.append(event)
    return out


# ---- the section ----


def _history(exchanges: Sequence[_Exchange], room: int) -> tuple[list[str], int]:
    """The lines of the section in at most so many characters, and how many statements were left out."""
    pieces: list[list[str]] = []
    costs: list[tuple[int, int]] = []
    for place, exchange in enumerate(exchanges):
        piece: list[str] = []
        if exchange.request:
            piece.append("- **Asked:** " + trimmed(one_line(exchange.request), _REQUEST))
        piece.extend(("  " if piece else "- ") + said for said in _conclusion(exchange.said))
        pieces.append(piece)
        weight = 2 * (len(exchange.request) > 60) + min(len(exchange.said), 6) + 3 * (place >= len(exchanges) - 2)
        costs.append((weight, place))
    # The newest and the most worked on first, until the room is used; the rest keep their request in short.
    lines: dict[int, list[str]] = {}
    left_out = 0
    for _, place in sorted(costs, key=lambda cost: (-cost[0], -cost[1])):
        piece = pieces[place]
        size = sum(len(line) + 1 for line in piece)
        if size > room and piece:
            left_out += len(piece) - 1
            piece = [trimmed(piece[0], 120)]
            size = len(piece[0]) + 1
        if piece and size <= room:
            lines[place] = piece
            room -= size
        else:
            left_out += len(piece)
    return [line for place in sorted(lines) for line in lines[place]], left_out


def _conclusion(said: Sequence[Event]) -> list[str]:
    """The best sentences of the last substantial message, and of the one before where the last says little."""
    for event in reversed(said):
        telling = [s for s in sentences(event.text[:_LONGEST]) if _tells(s)]
        if telling:
            return [trimmed(_best(telling, _STATEMENT), _STATEMENT)]
    return []


def _tells(sentence: Sentence) -> bool:
    text = sentence.text
    return sentence.kind != "heading" and len(text) > 24 and "?" not in text and not grammar.looks_around(text)


def _best(telling: Sequence[Sentence], most: int) -> str:
    """The first sentence and those with results, causes and names, in their order, in at most `most` characters."""
    scored = []
    for place, sentence in enumerate(telling):
        text = sentence.text
        score = 2 * len(_RESULT.findall(text)[:3]) + min(text.count("`") // 2, 3) + (3 if place == 0 else 0)
        score += 2 if grammar.gives_reason(text) else 0
        scored.append((-score, place, text))
    kept: list[tuple[int, str]] = []
    for _, place, text in sorted(scored):
        if len(text) + 1 <= most:
            kept.append((place, text))
            most -= len(text) + 1
        if most < 60:
            break
    return joined(text for _, text in sorted(kept)) or telling[0].text


def _title(exchanges: Sequence[_Exchange], work: ActiveWork) -> str:
    """A few words of the segment's main request, else of its main statement."""
    asked = [e for e in exchanges if len(e.request) >= 12]
    worked = max(asked, key=lambda e: (len(e.request) >= 25, len(e.said)), default=None)
    texts = [worked.request] if worked else []
    texts += [s.text for e in exchanges for event in e.said[-1:] for s in sentences(event.text[:_LONGEST]) if _tells(s)]
    for least in (16, 8):
        for text in texts:
            for sentence in sentences(text[:_LONGEST]):
                title = one_line(sentence.text.replace("`", "").replace("*", "")).strip(" #>-:.,;!?")
                if len(title) >= least:
                    return trimmed(title, 72)
    return trimmed(one_line(work.task_title or work.current_task).replace("`", ""), 72) or "Work without words"


def _key_events(segment: Segment, decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Up to four short lines: commits, tests, decisions, errors that are left."""
    facts = segment.facts
    lines = [f"{commit.commit} {commit.message}" for commit in facts.commits[-2:]]
    lines += [decision.decision for decision in decisions if decision.status == "active" and not decision.id][-2:]
    lines += [error.error for error in facts.errors if not error.fixed_by][-1:]
    lines += [test.result for test in facts.tests[-1:]]
    return tuple(trimmed(one_line(line), 100) for line in lines[:4])


# ---- where the work stands ----


def _work(work: ActiveWork, exchanges: Sequence[_Exchange]) -> ActiveWork:
    said = [event for exchange in exchanges for event in exchange.said]
    statement = next((text for event in reversed(said) if (text := _statement(event))), "")
    steps = _next_steps(said)
    open_todos = [todo.content for todo in work.todos if todo.status != "completed"]
    findings = _picked(said, _FINDS, _FINDING, 4)
    blockers = _picked(said[-6:], _BLOCKS, _FINDING, 2)
    return replace(
        work,
        last_statement=statement or work.last_statement,
        next_steps=tuple(dict.fromkeys([*steps, *(trimmed(one_line(t), _STEP) for t in open_todos)]))[:6],
        findings=tuple(dict.fromkeys([*work.findings, *findings]))[-6:],
        blockers=tuple(blockers),
        work_status=_status(work, statement, bool(open_todos), bool(said)),
    )


def _status(work: ActiveWork, statement: str, open_todos: bool, spoke: bool) -> str:
    if work.todos and not open_todos:
        return "completed"
    return "in_progress" if spoke or statement else work.work_status


def _statement(event: Event) -> str:
    telling = [s.text for s in sentences(event.text[:_LONGEST]) if _tells(s)]
    text = joined(telling)
    return trimmed(text, _STATEMENT) if len(text) >= 40 else ""


def _next_steps(said: Sequence[Event]) -> list[str]:
    """What the agent said it would do next, in its last messages."""
    found: list[str] = []
    for event in said[-3:]:
        listed = False
        for sentence in sentences(event.text[:_LONGEST]):
            if sentence.kind == "heading":
                listed = bool(_NEXT_HEADING.match(sentence.text))
            elif (listed and sentence.kind == "item") or (_NEXT.match(sentence.text) and "?" not in sentence.text):
                found.append(trimmed(sentence.text, _STEP))
    return found[-5:]


def _picked(said: Sequence[Event], pattern: re.Pattern[str], length: int, most: int) -> list[str]:
    found = [
        trimmed(sentence.text, length)
        for event in said
        for sentence in sentences(event.text[:_LONGEST])
        if _tells(sentence) and pattern.search(sentence.text)
    ]
    return found[-most:]
