"""The embedded summariser: offline, deterministic, without a model; it keeps the source's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from ralf.extraction.combining import combine
from ralf.model import ActiveWork, Decision, Facts
from ralf.prose import Sentence, joined, sentences, split
from ralf.summarizers import Segment, Summary, history, quoted
from ralf.summarizers.decisions import find
from ralf.summarizers.grammar import any_of
from ralf.summarizers.history import FINDS, tells
from ralf.summarizers.statements import LONGEST, Exchange, Statement, exchanges
from ralf.text import one_line
from ralf.trim import trimmed

_SHARE = 0.077  # of a segment's text, for all that is stored of it
_LEAST_ROOM, _MOST_ROOM = 600, 14_000  # characters of a section
_SAID_MOST, _THOUGHT_MOST = 0.6, 0.15  # of what was said, and of thoughts and calls, that is worth the room
_SAID_LEAST, _SHARE_LEAST = 0.5, 0.0355  # of what was said, and of the segment, that has room whatever else is stored
_OVERHEAD = 30  # characters around a text in the file
_SOURCE, _ENTRY = 200, 1_000  # characters of a decision's source, and of a checkpoint's entry and state of the work
_STATEMENT, _FINDING, _STEP = 600, 240, 160  # characters
_TELLING = 40  # characters from which what a message tells is a statement

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


class Extractive:
    """Keeps requests, concluding statements, decisions and the state of the work, in the words of the source."""

    name = "extractive"

    def summarize(self, segment: Segment) -> Summary:
        """Sum the segment up; of tool output only a sub-agent's report is read, and what a person said in declining."""
        found = find(
            segment.events,
            session=segment.session,
            known=segment.decisions,
            before=segment.before,
            dropped=segment.dropped,
        )
        talk = exchanges(segment.events)
        talk_only = not any(event.kind == "note" for event in segment.events)  # notes say where the work stands
        found = (*found, *segment.noted)
        told = "\n".join(text for item in found for text in (item.decision, item.rationale))
        room = _room(segment, found)
        lines = history.lines_of(talk, room, keep=segment.keep, told=told)
        if not lines and not talk_only:
            lines = history.briefly(talk, room) or _counted(segment.noted)
        if not lines:
            lines = ["- Nothing worth keeping was said in this segment."]
        return Summary(
            title=_noted_title(segment) or _title(talk, segment.active_work),
            text="\n".join(lines),
            decisions=found,
            active_work=_work(segment.active_work, talk) if talk_only else segment.active_work,
            key_events=_key_events(segment, found),
        )


def _counted(decisions: Sequence[Decision]) -> list[str]:
    """What documents of decisions come to, where they hold nothing else."""
    count = len(decisions)
    return [f"- {count:,} decision{'s' * (count != 1)}; nothing else was noted down."] if count else []


def _room(segment: Segment, decisions: Sequence[Decision]) -> int:
    """Characters that the section may take, so that with all else a segment comes to well under a tenth."""
    facts = combine(Facts(), segment.facts)  # as much as a route's file takes of them
    texts = [fact.path for fact in facts.paths] + [fact.request for fact in facts.requests]
    texts += [fact.command for fact in facts.commands]
    texts += [text for fact in facts.errors for text in (fact.error, fact.command, fact.fixed_by)]
    texts += [text for fact in facts.tests for text in (fact.command, fact.result)]
    texts += [text for item in decisions for text in (item.decision, item.rationale, *item.alternatives)]
    spent = sum(map(len, texts)) + _OVERHEAD * len(texts) + _SOURCE * len(decisions) + len(", ".join(facts.names))
    size = sum(len(event.text) for event in segment.events if not event.agent)
    said = sum(len(event.text) for event in segment.events if event.kind in ("assistant", "note"))
    thought = sum(len(event.text) for event in segment.events if event.kind in ("thinking", "call") and not event.agent)
    room = min(int(size * _SHARE) - spent - _ENTRY, int(said * _SAID_MOST + thought * _THOUGHT_MOST))
    return max(_LEAST_ROOM, min(_MOST_ROOM, max(room, int(min(said * _SAID_LEAST, size * _SHARE_LEAST)))))


def _noted_title(segment: Segment) -> str:
    """The title that the first of the notes has which has one; "" for none."""
    titles = (event.input.get("title") for event in segment.events if event.kind == "note")
    return next((trimmed(one_line(title), 72) for title in titles if isinstance(title, str) and title.strip()), "")


def _title(talk: Sequence[Exchange], work: ActiveWork) -> str:
    """A few words of the segment's main request, else of its main statement."""
    asked = [e for e in talk if len(e.request) >= 12]
    worked = max(asked, key=lambda e: (len(e.request) >= 25, len(e.spoken)), default=None)
    texts = [s.text for s in sentences(worked.request[:LONGEST])] if worked else []
    texts += [s.text for e in talk for statement in e.spoken[-1:] for s in statement.said if tells(s)]
    texts += [s.text for e in talk for one in e.statements if one.voice == "noted" for s in one.said if tells(s)]
    for least in (16, 8):
        for text in texts:
            title = one_line(text.replace("`", "").replace("*", "")).strip(" #>-:.,;!?")
            if len(title) >= least:
                return trimmed(title, 72)
    return trimmed(one_line(work.task_title or work.current_task).replace("`", ""), 72) or "Work without words"


def _key_events(segment: Segment, decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Up to two short lines: commits, tests, decisions, errors that are left."""
    facts = segment.facts
    lines = [f"{commit.commit} {commit.message}" for commit in facts.commits[-2:]]
    lines += [decision.decision for decision in decisions if decision.status == "active" and not decision.id][-2:]
    lines += [error.error for error in facts.errors if not error.fixed_by][-1:]
    lines += [test.result for test in facts.tests[-1:]]
    return tuple(trimmed(one_line(line), 80) for line in lines[:2])


# ---- where the work stands ----


def _work(work: ActiveWork, talk: Sequence[Exchange]) -> ActiveWork:
    statements = [statement for exchange in talk for statement in exchange.spoken]
    spoken = [quoted.own(statement.said) for statement in statements]
    statement = next((text for said in reversed(statements) if (text := _statement(said))), "")
    steps = _next_steps(spoken)
    open_todos = [todo.content for todo in work.todos if todo.status != "completed"]
    findings = _picked(spoken, FINDS.found, _FINDING, 4)
    blockers = _picked(spoken[-6:], _BLOCKS.search, _FINDING, 2)
    return replace(
        work,
        last_statement=statement or work.last_statement,
        next_steps=tuple(dict.fromkeys([*steps, *(trimmed(one_line(t), _STEP) for t in open_todos)]))[:6],
        findings=tuple(dict.fromkeys([*work.findings, *findings]))[-6:],
        blockers=tuple(blockers),
        work_status=_status(work, statement, joined(s.text for s in spoken[-1]) if spoken else "", bool(open_todos)),
    )


_FINISHED = any_of(
    r"\b(?:all|everything|task|work|ticket|feature|change|fix|refactor\w*|migration|implementation|it|that|this)\b[^.\n]{0,60}"
    r"\b(?:done|completed?|finished|shipped|merged|in place)\b",
    r"^\W{0,3}(?:all )?(?:done|completed?|finished|shipped)\b",
)
_UNFINISHED = any_of(r"\b(?:not|never|nothing|still|left|remain\w*|until|once|when|if|partly|half)\b|n't\b")


def _is_finished(statement: str) -> bool:
    """Whether a sentence of what was said last says that the work is done."""
    return any(_FINISHED.found(one) and not _UNFINISHED.found(one) for one in split(one_line(statement)[-2_000:]))


def _status(work: ActiveWork, statement: str, said: str, open_todos: bool) -> str:
    if work.todos and not open_todos and _is_finished(said):
        return "completed"  # a list that is ticked off is no task done where nobody says so
    return "in_progress" if said or statement else work.work_status


def _statement(statement: Statement) -> str:
    """A message that says something: as it stands where it is short, else the sentences of it that tell."""
    text = joined(sentence.text for sentence in statement.said if tells(sentence))
    if len(text) < _TELLING:
        return ""
    whole = statement.event.text.strip()
    return whole if len(whole) <= _STATEMENT else trimmed(text, _STATEMENT)


def _next_steps(spoken: Sequence[Sequence[Sentence]]) -> list[str]:
    """What the agent said it would do next, in its last messages."""
    found: list[str] = []
    for said in spoken[-3:]:
        listed = False
        for sentence in said:
            if sentence.kind == "heading":
                listed = bool(_NEXT_HEADING.match(sentence.text))
            elif (listed and sentence.kind == "item") or (_NEXT.match(sentence.text) and "?" not in sentence.text):
                found.append(trimmed(sentence.text, _STEP))
    return found[-5:]


def _picked(spoken: Sequence[Sequence[Sentence]], is_in: Callable[[str], object], length: int, most: int) -> list[str]:
    found = [
        trimmed(sentence.text, length)
        for said in spoken
        for sentence in said
        if tells(sentence) and is_in(sentence.text) and not sentence.text.endswith(":")
    ]
    return found[-most:]
