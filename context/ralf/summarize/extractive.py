"""The embedded summariser: offline, deterministic, without a model; it keeps the source's own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest

from ralf.brief.wording import NOTHING_SAID, PROPOSED, WORDLESS
from ralf.facts.commands import changes_file
from ralf.facts.progress import combine
from ralf.model import ActiveWork, Decision, Facts, Tombstone
from ralf.summarize import (
    Segment,
    Summarizer,
    Summary,
    agent_decisions,
    attempts,
    check,
    english,
    messages,
    settling,
    standing,
    user_decisions,
)
from ralf.summarize.messages import (
    LONGEST,
    Exchange,
    Message,
    Statement,
    exchanges,
    messages_in,
    source,
    whole_of,
)
from ralf.summarize.section import FINDS, briefly, lines_of, tells
from ralf.summarize.supersession import linked
from ralf.text.cleaning import one_line, trimmed, without_middle
from ralf.text.matcher import AnyOf
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
    made = settling.plans_carried_out(user_decisions.tool_decisions(events), events)
    whole: list[Decision] = []
    for place, message in enumerate(told):
        if message in asked:
            continue
        last = told[place - 1] if place and told[place - 1].who == "agent" else None
        if message.who == "user":
            own = user_decisions.user_decisions(told, place)
        else:
            own = agent_decisions.verdicts(message) or agent_decisions.agent_decisions(message, last)
        rules = [one.decision for _, one, _ in own if one.kind == "rule"]
        if text := _whole(message, told[place - 1] if place else None, rules):
            whole.append(_stamped(Decision(decision=text, origin=message.who), session, [message]))
        if message.who == "user":
            made = settling.followed_up(made, own, told, place)
        made += settling.settled(own, told, place, made)
        made += attempts.tried(told, place)
    enough = [one for one in made if one[0] >= english.ENOUGH]
    enough.sort(key=lambda one: one[2][0].event.start.line)
    best = sorted(range(len(enough)), key=lambda n: (-enough[n][0], -n))[:_MOST]
    found: list[Decision] = []
    reasons: dict[tuple[str, int, int], str] = {}
    for _, decision, sources in map(enough.__getitem__, sorted(best)):
        theirs = [one for one in sources if one not in asked]  # a claim rests on lines of its own segment
        one = _stamped(decision, session, theirs)
        reasons[_place(one)] = one.rationale
        heard = _heard(told, theirs)  # the agent's answer tells what says the same; it is no reason
        found.append(replace(one, rationale=f"{one.rationale} {heard}".strip()))
    out = [
        replace(one, rationale=reasons.get(_place(one), one.rationale)) for one in linked(found, known, whole, dropped)
    ]
    told_again = {one.id for one in out} | {one.supersedes for one in out}
    over = settling.carried_out([one for one in known if one.id and one.id not in told_again], events, session)
    return (*out, *over)


def _whole(message: Message, before: Message | None, rules: Sequence[str]) -> str:
    """A short message as a whole, which may replace what was decided; "" for a longer one, and for one in which the
    agent says again what a person decided. The rules in it stand for themselves.
    """
    answers = message.who == "agent" and before is not None and before.who == "user"
    if answers and message.said and agent_decisions.agrees(message.said[0].text):
        return ""
    if rules and whole_of(message):
        return joined(s.text for s in message.said if s.text not in rules)
    return whole_of(message)


def _place(decision: Decision) -> tuple[str, int, int]:
    lines = decision.source
    return (decision.decision, lines.first_line, lines.last_line) if lines else (decision.decision, 0, 0)


def _heard(told: Sequence[Message], sources: Sequence[Message]) -> str:
    """What the agent made of what a person said; "" for what it said itself."""
    asking = next((one for one in reversed(sources) if one.who == "user"), None)
    place = next((n for n, one in enumerate(told) if one is asking), None)
    return "" if place is None else user_decisions.reply_of(messages.replies_to(told, place), told[place].text)


def _stamped(decision: Decision, session: str, said: Sequence[Message]) -> Decision:
    """The decision with its place in the session, and the time of the last of the messages in which it stands."""
    return replace(decision, timestamp=said[-1].event.timestamp, source=source(session, said))


# ---- the summariser ----

_SHARE = 0.077  # of a segment's text, for all that is stored of it

_LEAST_ROOM, _MOST_ROOM = 600, 14_000  # characters of a section

_SAID_MOST, _THOUGHT_MOST = 0.6, 0.15  # of what was said, and of thoughts and calls, that is worth the room

_SAID_LEAST, _SHARE_LEAST = 0.5, 0.033  # of what was said, and of the segment, that has room whatever else is stored

_OVERHEAD = 30  # characters around a text in the file

_SOURCE, _ENTRY = 200, 1_000  # characters of a decision's source, and of a checkpoint's entry and state of the work

_STATEMENT = (3_600, 2_400)  # characters of the beginning and the end of the last message

_BACK = 8  # messages among which one is looked for that says something

_FINDING, _STEP = 240, 160  # characters

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
        listed = [item for item in found if item.status == "active"]  # a brief leaves the others out
        offered = _on_offer(found, talk, segment.events)
        told = "\n".join(text for item in listed for text in (item.decision, item.rationale))
        room = _room(segment, found)
        lines = lines_of(talk, room, keep=segment.keep, told=told)
        if not lines and not talk_only:
            lines = briefly(talk, room) or _counted(segment.noted)
        return Summary(
            title=_noted_title(segment)
            or _committed(segment)
            or _title(talk, segment.active_work)
            or _worked_on(segment),
            text="\n".join(lines or [f"- {NOTHING_SAID}"]),
            decisions=found,
            active_work=_work(segment.active_work, talk, offered) if talk_only else segment.active_work,
            key_events=_key_events(segment, found),
        )


_COMMITS = 2  # whose messages are a title


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


def _committed(segment: Segment) -> str:
    """What the segment came to, by the messages of its newest commits; "" without one."""
    messages = dict.fromkeys(one_line(commit.message) for commit in reversed(segment.facts.commits) if commit.message)
    newest = [*messages][:_COMMITS]
    more = f" (+{len(messages) - len(newest)} commits)" if len(messages) > len(newest) else ""
    return f"{'; '.join(trimmed(message, 72) for message in reversed(newest))}{more}" if newest else ""


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
            title = standing.without_joint(standing.without_opening(title))
            if len(title) >= least:
                return trimmed(title, 72)
    return trimmed(one_line(work.task_title or work.current_task).replace("`", ""), 72)


def _worked_on(segment: Segment) -> str:
    """The title of a segment in which nobody said anything: the files that it changed."""
    paths = [fact.path for fact in segment.facts.paths if set(fact.did) - {"read"}]
    return trimmed(f"Changed {', '.join(reversed(paths))}", 72) if paths else WORDLESS


def _key_events(segment: Segment, decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Up to two short lines: commits, tests, decisions, errors that are left."""
    facts = segment.facts
    lines = [f"{commit.commit} {commit.message}" for commit in facts.commits[-2:]]
    lines += [decision.decision for decision in decisions if decision.status == "active" and not decision.id][-2:]
    lines += [error.error for error in facts.errors if not error.fixed_by][-1:]
    lines += [test.result for test in facts.tests[-1:]]
    return tuple(trimmed(one_line(line), 80) for line in lines[:2])


# ---- where the work stands ----


def _on_offer(found: Sequence[Decision], talk: Sequence[Exchange], events: Sequence[Event]) -> str:
    """What the agent proposed last and nobody has accepted, where no file was changed since; "" for nothing."""
    edits = [e.start.line for e in events if e.kind == "call" and not e.agent and changes_file(e.tool, e.input)]
    since = max(edits, default=-1)
    waiting = [(_said_last(one), one.decision) for one in found if one.status == "proposed"]
    for exchange, after in zip_longest(talk, talk[1:]):
        if after is not None and english.accepts(after.request):
            waiting = []
            continue
        for statement in exchange.spoken[-1:]:
            texts = [offer for s in statement.said if "?" in s.text and (offer := agent_decisions.offer(s.text))]
            waiting += [(statement.event.start.line, text) for text in texts[-1:] if standing.reads_alone(text)]
    line, text = max(waiting, default=(since, ""))
    return f"{PROPOSED}{trimmed(one_line(text), _FINDING)}" if line > since else ""


def _said_last(decision: Decision) -> int:
    """The line where a decision was said last."""
    places = [decision.source, *decision.further_sources]
    return max((place.first_line for place in places if place is not None), default=-1)


def _work(work: ActiveWork, talk: Sequence[Exchange], offered: str = "") -> ActiveWork:
    statements = [statement for exchange in talk for statement in exchange.spoken]
    spoken = [said for exchange in talk for said in _own(exchange)]
    statement = _last_message(statements)
    steps = [*filter(None, [offered]), *_next_steps(spoken)]
    open_todos = [todo.content for todo in work.todos if todo.status != "completed"]
    findings = [finding for exchange in talk for finding in _sentences_that(_own(exchange), FINDS, _FINDING, 1)][-4:]
    blockers = _sentences_that(spoken[-6:], _BLOCKS, _FINDING, 2)
    return replace(
        work,
        last_statement=statement or work.last_statement,
        next_steps=tuple(dict.fromkeys([*steps, *(trimmed(one_line(t), _STEP) for t in open_todos)]))[:6],
        findings=tuple(dict.fromkeys([*work.findings, *findings]))[-6:],
        blockers=tuple(blockers),
        work_status=_status(work, statement, joined(s.text for s in spoken[-1]) if spoken else "", bool(open_todos)),
    )


def _own(exchange: Exchange) -> list[list[Sentence]]:
    """The agent's own sentences of an exchange, message by message."""
    return [messages.own_sentences(statement.said) for statement in exchange.spoken]


_FINISHED = AnyOf(
    r"\b(?:all|everything|task|work|ticket|feature|change|fix|refactor\w*|migration|implementation|it|that"
    r"|this)\b[^.\n]{0,60}"
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


def _last_message(statements: Sequence[Statement]) -> str:
    """The last message as it stands, only of a very long one the middle cut; where it says next to nothing ("Now the
    test:"), the last one before it that says something stands above it.
    """
    texts: list[str] = []
    for statement in reversed(statements[-_BACK:]):
        texts.insert(0, statement.event.text.strip())
        if len(joined(s.text for s in statement.said if tells(s))) >= _TELLING:
            break
    else:
        texts = texts[-1:]
    return without_middle("\n\n".join(dict.fromkeys([*texts[:1], *texts[-1:]])), *_STATEMENT)[0]


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
