"""The embedded summariser: offline, deterministic, without a model; it keeps the source's own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import accumulate, groupby
from math import log2

from ralf.facts.commands import names_in
from ralf.facts.progress import combine
from ralf.model import ActiveWork, Decision, Facts, Tombstone
from ralf.summarize import Segment, Summarizer, Summary, agent_decisions, check, english, messages, user_decisions
from ralf.summarize.messages import (
    LONGEST,
    Exchange,
    Message,
    Statement,
    Voice,
    exchanges,
    messages_in,
    source,
    whole_of,
)
from ralf.summarize.supersession import linked
from ralf.text.cleaning import one_line, trimmed
from ralf.text.matcher import AnyOf
from ralf.text.patterns import regex
from ralf.text.sentences import Sentence, joined, sentences, split
from ralf.transcripts.events import Event

# ---- decisions ----

_MOST = 60  # of one segment, whatever it says


def find_decisions(
    events: Sequence[Event],
    *,
    session: str = "",
    known: Sequence[Decision] = (),
    before: Sequence[Event] = (),
    dropped: Sequence[Tombstone] = (),
) -> tuple[Decision, ...]:
    """The decisions of a segment, oldest first.

    known   the route's active decisions, which a new one may supersede
    before  what the agent said right before the events: an offer, which the first of them may answer
    dropped  what is not to be found again
    """
    asked = messages_in(before)
    told = [*asked, *messages_in(events)]
    made = user_decisions.tool_decisions(events)
    whole: list[Decision] = []
    for place, message in enumerate(told):
        if message in asked:
            continue
        if text := whole_of(message):
            whole.append(_stamped(Decision(decision=text, origin=message.who), session, [message]))
        last = told[place - 1] if place and told[place - 1].who == "agent" else None
        if message.who == "user":
            made += user_decisions.user_decisions(told, place)
        else:
            made += agent_decisions.verdicts(message) or agent_decisions.agent_decisions(message, last)
    enough = [one for one in made if one[0] >= english.ENOUGH]
    enough.sort(key=lambda one: one[2][0].event.start.line)
    best = sorted(range(len(enough)), key=lambda n: (-enough[n][0], -n))[:_MOST]
    found = []
    for _, decision, sources in map(enough.__getitem__, sorted(best)):
        own = [one for one in sources if one not in asked]  # a claim rests on lines of its own segment
        found.append(_stamped(decision, session, own))
    return tuple(linked(found, known, whole, dropped))


def _stamped(decision: Decision, session: str, said: Sequence[Message]) -> Decision:
    """The decision with its place in the session, and the time of the last of the messages in which it stands."""
    return replace(decision, timestamp=said[-1].event.timestamp, source=source(session, said))


# ---- the section ----

_REQUEST, _SENTENCE = 120, 320  # characters

_ANSWER = 60  # characters up to which a request only answers

_HINT = regex(r"\w{2,}")

_EMPTY = frozenset(
    "the an of to in on for and or is are was were be do doe did what when where who which why how with at by from as"
    " that thi these those it all any keep kept about everything our my your we you".split()
)

_AROUND = 4  # characters around a sentence in its line

_WEIGHT, _OFTEN, _BREVITY = 1.0, 4, 0.7

_WORD = regex(r"\w{4,}")

_LEAST = 24  # characters from which a sentence says something

_NOTED_LEAST = 48  # of an item in a document, which is mostly lists: a shorter one leans on what stands above it

FINDS = AnyOf(
    r"\b(?:root cause|the (?:real |actual |underlying )?(?:cause|culprit|problem|issue|bug) (?:is|was)|(?:is"
    r"|was) caused by|turns out"
    r"|it turned out|caused by|explains why|this is why|that's why|confirmed that|the reason (?:is|was))\b",
)
"""Sentences that say what the cause of something is."""

_RESULT = AnyOf(
    r"\b(?:fix(?:ed|es)?|added|removed|renamed|moved|created|updated|implemented|replaced|committed|pushed"
    r"|merged|rebased|resolved"
    r"|pass(?:es|ed)?|fail(?:s|ed)?|works?|done|complete[d]?|because|root cause|caused?|the issue"
    r"|the problem|found|result"
    r"|so|therefore|means|confirmed|turns out|instead|only|changed|wired|refactored|verified|posted|replied"
    r"|skipped|since|but|never|always|already|still|not|without)\b",
)

_UNSURE = AnyOf(r"\b(?:maybe|perhaps|might|could be|probably|hmm+|wait|let me|let's|i should|i need to|i'll)\b")

_VOICE: dict[Voice, float] = {"said": 3.0, "wrote": 3.0, "reported": 2.0, "thought": 1.5, "noted": 3.0}


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One sentence that the section may hold, and where it stands: exchange, statement, sentence."""

    place: tuple[int, int, int]
    text: str
    score: float
    terms: frozenset[str]


def lines_of(exchanges: Sequence[Exchange], room: int, *, keep: Sequence[str] = (), told: str = "") -> list[str]:
    """The lines of the section, in at most `room` characters.

    keep  what a person wants kept: sentences that share its content words come first, marked
    told  what the checkpoint says elsewhere: its sentences come last
    """
    wanted = _kept_on_request(exchanges, keep, room // 2)
    out = [f"- kept on request: {text}" for text in wanted]
    room -= sum(len(line) + 1 for line in out)
    requests = ((n, trimmed(one_line(exchange.request), _REQUEST)) for n, exchange in enumerate(exchanges))
    asked = {n: f"- **Asked:** {request}" for n, request in requests if exchanges[n].request}
    again = {line: n for n, line in asked.items()}  # clients record a queued request more than once
    asked = {n: line for n, line in asked.items() if again[line] == n}
    spent = sum(len(line) + 1 for line in asked.values())
    for number in sorted(asked, key=lambda n: (len(exchanges[n].request) > _ANSWER, n)):  # short answers go first
        if spent <= room // 2:
            break
        spent -= len(asked.pop(number)) + 1
    told = one_line("\n".join((told, *wanted))).casefold()
    candidates = [_without_repeats(candidate, told) for candidate in _candidates(exchanges)]
    kept = _chosen(candidates, room - spent)
    texts = {at: [kept[place] for place in places] for at, places in groupby(sorted(kept), lambda place: place[:2])}
    for number, exchange in enumerate(exchanges):
        if number in asked:
            out.append(asked[number])
        for place, statement in enumerate(exchange.statements):
            if said := texts.get((number, place)):
                thought = "thought: " if statement.voice == "thought" else ""
                out.append(("  " if number in asked else "- ") + thought + joined(said))
    return out


def briefly(exchanges: Sequence[Exchange], room: int) -> list[str]:
    """What notes say of which no sentence can stand alone: all of it, as far as there is room."""
    noted = [one for exchange in exchanges for note in exchange.statements for one in note.said]
    said = [one.text for one in noted if one.kind != "heading" and not one.text.endswith(":")]
    return [f"- {trimmed('; '.join(said), min(room, _SENTENCE))}"] if said else []


def tells(sentence: Sentence) -> bool:
    """Whether a sentence says something about the work, rather than what is looked at next or asked."""
    text = sentence.text
    return sentence.kind != "heading" and len(text) > _LEAST and "?" not in text and not english.looks_around(text)


# ---- what a person wants kept ----


def _kept_on_request(exchanges: Sequence[Exchange], hints: Sequence[str], room: int) -> list[str]:
    """The sentences that touch a hint, the newest that fit, in their order."""
    wanted = [words for hint in hints if (words := _content(hint))]
    said = (
        sentence
        for exchange in (exchanges if wanted else ())
        for part in (sentences(exchange.request[:LONGEST]), *(s.said for s in exchange.statements))
        for sentence in part
    )
    touched = [trimmed(s.text, _SENTENCE) for s in said if any(_touches(s.text, words) for words in wanted)]
    newest = [*dict.fromkeys(reversed(touched))]
    sizes = accumulate(len(text) + len("- kept on request: \n") for text in newest)
    return newest[: sum(size <= room for size in sizes)][::-1]


def _content(text: str) -> frozenset[str]:
    """The words that carry a text's meaning, without the endings of plurals."""
    words = _HINT.findall(text.lower())
    return frozenset(word.removesuffix("s") if len(word) > 3 else word for word in words) - _EMPTY


def _touches(text: str, words: frozenset[str]) -> bool:
    """Whether a sentence has both words of a hint of two, and more than half of those of a longer one."""
    shared = len(words & _content(text))
    return shared >= min(2, len(words)) and shared * 2 > len(words)


# ---- what is said ----


def _chosen(candidates: Sequence[_Candidate], room: int) -> dict[tuple[int, int, int], str]:
    """The sentences that say most that the others do not say, by their place.

    Greedy coverage: a sentence is worth its own score and the weight of its terms that no chosen one has, per
    character. A term weighs more the more sentences use it.
    """
    used = Counter(term for candidate in candidates for term in candidate.terms)
    weight = {term: _WEIGHT * log2(1 + min(count, _OFTEN)) for term, count in used.items()}
    kept: dict[tuple[int, int, int], str] = {}
    covered: set[str] = set()
    queue = [(-_worth_now(c, weight, covered), c.place, n) for n, c in enumerate(candidates)]
    heapify(queue)
    while queue and room > _LEAST:
        value, place, number = heappop(queue)
        candidate = candidates[number]
        if len(candidate.text) + _AROUND > room:
            continue
        now = -_worth_now(candidate, weight, covered)
        if now > value and queue and now > queue[0][0]:
            heappush(queue, (now, place, number))
            continue
        kept[place] = candidate.text
        covered |= candidate.terms
        room -= len(candidate.text) + _AROUND
    return kept


def _without_repeats(candidate: _Candidate, told: str) -> _Candidate:
    """The candidate, worth nothing where it says what stands elsewhere: then it fills what room is left."""
    again = one_line(candidate.text).rstrip(".…").casefold() in told
    return replace(candidate, score=0.0, terms=frozenset()) if again else candidate


def _worth_now(candidate: _Candidate, weight: Mapping[str, float], covered: set[str]) -> float:
    new = sum(weight[term] for term in candidate.terms if term not in covered)
    return (candidate.score + new) / (len(candidate.text) + _AROUND) ** _BREVITY if new else 0.0


def _candidates(exchanges: Sequence[Exchange]) -> Iterator[_Candidate]:
    for number, exchange in enumerate(exchanges):
        last = max((n for n, s in enumerate(exchange.statements) if s.voice == "said"), default=-1)
        for place, statement in enumerate(exchange.statements):
            for count, sentence in enumerate(statement.said):
                if not _worth(sentence, statement.voice):
                    continue
                score = _VOICE[statement.voice] + _score(sentence.text)
                score += 2 * (place == last) + (count == 0) + (number >= len(exchanges) - 2)
                text = trimmed(sentence.text, _SENTENCE)
                yield _Candidate((number, place, count), text, score, frozenset(map(str.lower, _WORD.findall(text))))


def _worth(sentence: Sentence, voice: Voice) -> bool:
    text = sentence.text
    if voice == "wrote" and sentence.kind == "heading":
        return len(text) > _LEAST
    if not tells(sentence) or (voice in ("noted", "thought") and text.endswith(":")):
        return False
    if voice == "noted":
        return sentence.kind != "item" or len(text) > _NOTED_LEAST
    return voice != "thought" or (not _UNSURE(text) and any(names_in(text)))


def _score(text: str) -> float:
    score = min(len(set(_RESULT.findall(text))), 3) + min(sum(1 for _ in names_in(text)), 4)
    return score + 2 * FINDS(text) + english.gives_reason(text)


# ---- the summariser ----

_SHARE = 0.077  # of a segment's text, for all that is stored of it

_LEAST_ROOM, _MOST_ROOM = 600, 14_000  # characters of a section

_SAID_MOST, _THOUGHT_MOST = 0.6, 0.15  # of what was said, and of thoughts and calls, that is worth the room

_SAID_LEAST, _SHARE_LEAST = 0.5, 0.0355  # of what was said, and of the segment, that has room whatever else is stored

_OVERHEAD = 30  # characters around a text in the file

_SOURCE, _ENTRY = 200, 1_000  # characters of a decision's source, and of a checkpoint's entry and state of the work

_STATEMENT, _FINDING, _STEP = 600, 240, 160  # characters

_TELLING = 40  # characters from which what a message tells is a statement

_BLOCKS = AnyOf(
    r"\b(?:blocked (?:by|on|until)|waiting (?:for|on)|cannot proceed|can't proceed|can't continue"
    r"|need(?:s)? your|depends on you"
    r"|until (?:you|the user|it is merged)|missing (?:credentials?|access|permissions?|api key)|before (?:i"
    r"|we) can)\b",
)

_NEXT = AnyOf(
    r"^(?:next(?: steps?| up)?\b|remaining\b|still to do\b|to ?do\b|then i'll\b|what's left\b|left to do\b|ready to\b"
    r"|now i(?:'ll| will)\b|i(?:'ll| will) (?:now|next|then)\b|after that\b|follow-ups?\b)",
)

_NEXT_HEADING = AnyOf(
    r"^(?:next(?: steps?| up)?|remaining(?: work| tasks?)?|to ?do|what's (?:left|next)|follow-ups?)\W*$"
)


class Extractive:
    """Keeps requests, concluding statements, decisions and the state of the work, in the words of the source."""

    name = "extractive"

    def summarize(self, segment: Segment) -> Summary:
        """Sum the segment up; of tool output only a sub-agent's report is read, and what a person said in declining."""
        found = find_decisions(
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
        lines = lines_of(talk, room, keep=segment.keep, told=told)
        if not lines and not talk_only:
            lines = briefly(talk, room) or _counted(segment.noted)
        return Summary(
            title=_noted_title(segment) or _title(talk, segment.active_work),
            text="\n".join(lines or ["- Nothing worth keeping was said in this segment."]),
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
    spoken = [messages.own_sentences(statement.said) for statement in statements]
    statement = next((text for said in reversed(statements) if (text := _statement(said))), "")
    steps = _next_steps(spoken)
    open_todos = [todo.content for todo in work.todos if todo.status != "completed"]
    findings = _sentences_that(spoken, FINDS, _FINDING, 4)
    blockers = _sentences_that(spoken[-6:], _BLOCKS, _FINDING, 2)
    return replace(
        work,
        last_statement=statement or work.last_statement,
        next_steps=tuple(dict.fromkeys([*steps, *(trimmed(one_line(t), _STEP) for t in open_todos)]))[:6],
        findings=tuple(dict.fromkeys([*work.findings, *findings]))[-6:],
        blockers=tuple(blockers),
        work_status=_status(work, statement, joined(s.text for s in spoken[-1]) if spoken else "", bool(open_todos)),
    )


_FINISHED = AnyOf(
    r"\b(?:all|everything|task|work|ticket|feature|change|fix|refactor\w*|migration|implementation|it|that|this)\b[^.\n]{0,60}"
    r"\b(?:done|completed?|finished|shipped|merged|in place)\b",
    r"^\W{0,3}(?:all )?(?:done|completed?|finished|shipped)\b",
)

_UNFINISHED = AnyOf(r"\b(?:not|never|nothing|still|left|remain\w*|until|once|when|if|partly|half)\b|n't\b")


def _is_finished(statement: str) -> bool:
    """Whether a sentence of what was said last says that the work is done."""
    return any(_FINISHED(one) and not _UNFINISHED(one) for one in split(one_line(statement)[-2_000:]))


def _status(work: ActiveWork, statement: str, said: str, open_todos: bool) -> str:
    if work.todos and not open_todos and _is_finished(said):
        return "completed"  # a list that is ticked off is no task done where nobody says so
    return "in_progress" if said or statement else work.work_status


def _statement(statement: Statement) -> str:
    """A message that says something: as it stands where it is short, else the sentences of it that tell."""
    text, whole = joined(s.text for s in statement.said if tells(s)), statement.event.text.strip()
    if len(text) < _TELLING:
        return ""
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


def _sentences_that(
    spoken: Sequence[Sequence[Sentence]], is_in: Callable[[str], object], length: int, most: int
) -> list[str]:
    found = [
        trimmed(sentence.text, length)
        for said in spoken
        for sentence in said
        if tells(sentence) and is_in(sentence.text) and not sentence.text.endswith(":")
    ]
    return found[-most:]


def named(name: str) -> Summarizer:
    """The summariser of this name; UsageError for one that is not known."""
    check(name)
    return Extractive()
