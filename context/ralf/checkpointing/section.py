"""The section of a checkpoint: what a summariser makes of a segment. The embedded one keeps what was said and done."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from ralf.brief import lines, quoting
from ralf.model import SHA256_DIGITS, ActiveWork, Decision, Facts, Source
from ralf.model.entries import Entry, Message, Step
from ralf.talk import cutting
from ralf.talk.recording import record
from ralf.talk.turns import Talk, Turn, thread
from ralf.text.cleaning import one_line, trimmed
from ralf.text.frozen import dataclass, field
from ralf.transcripts.events import Event

_MESSAGE, _CLOSING, _OTHER = 1_000, 600, 240  # characters of a message, a closing text, another text, in a section

_SHARE, _LEAST_ROOM = 0.06, 600  # of a segment's text, and characters at least, that its section may take

_TITLE, _EVENT = 60, 80  # characters

_MOST_EVENTS = 6

DECLINED = "(declined)"
"""The text of a message that refuses to answer a question."""

NOTHING_SAID = "Nothing was said or done that its client recorded."


@dataclass(frozen=True, slots=True)
class Segment:
    """What a summariser is given.

    session      the session's id
    events       the segment's events in order, redacted
    facts        what was taken from them mechanically
    tokens       o200k_base tokens of the events
    decisions    the route's active decisions before this segment
    active_work  where the work stands after it, by the record
    keep         what a person wants kept: hints such as "the migration plan"; what touches them comes first
    entries      what its events came to, by the client's records; () to have it found out
    noted        decisions that stand in fields of the segment's notes: the checkpoint has them, whatever is summed up
    """

    session: str
    events: Sequence[Event]
    facts: Facts
    tokens: int
    decisions: Sequence[Decision] = ()
    active_work: ActiveWork = field(default_factory=ActiveWork)
    keep: Sequence[str] = ()
    noted: Sequence[Decision] = ()
    entries: Sequence[Entry] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What a summariser gives back.

    title        a few words for the section's heading, one line, taken from the source
    text         the section's Markdown; every line of it begins with "- ", "> ", "**" or two spaces, so that no text
                 of a transcript can become a heading, a rule or a fence
    decisions    new decisions, rules and failed approaches, oldest first, without ids
    active_work  where the work stands after the segment (the whole of it, not a difference)
    key_events   a few lines for the checkpoint's entry in the front matter
    """

    title: str
    text: str
    decisions: tuple[Decision, ...] = ()
    active_work: ActiveWork = field(default_factory=ActiveWork)
    key_events: tuple[str, ...] = ()


class Summarizer(Protocol):
    """Turns a segment into a summary. `name` is written into the checkpoint."""

    name: str

    def summarize(self, segment: Segment) -> Summary:
        """Sum the segment up; the same segment gives the same summary, whatever the time and place."""
        ...


class Extractive:
    """Keeps messages, closing texts and what was done, in the words of the source."""

    name = "extractive"

    def summarize(self, segment: Segment) -> Summary:
        """Sum the segment up; see `Summarizer`."""
        entries = segment.entries or tuple(record(segment.events, "", segment.session))
        talk = thread(entries)
        answers = _answered(talk, segment)
        return Summary(
            title=title_of(segment.events, talk),
            text="\n".join(_section(segment, talk) or _noted(segment) or [f"- {NOTHING_SAID}"]),
            decisions=(*answers, *segment.noted),
            active_work=segment.active_work,
            key_events=tuple(_events(entries)),
        )


# ---- the section ----


def title_of(events: Sequence[Event], talk: Talk) -> str:
    """The title of a segment: that which notes give, its first message, or how many calls were made."""
    titles = (event.input.get("title") for event in events if event.kind == "note")
    noted = next((title for title in titles if isinstance(title, str) and title.strip()), "")
    if noted:
        return trimmed(one_line(noted), 72)
    first = next((turn.message for turn in talk.turns if turn.message is not None), None)
    if first is not None:
        return quoting.quoted(first.text, _TITLE)
    count = sum(len(turn.steps) for turn in talk.turns)
    return f"{count} call{'s' * (count != 1)}"


def _section(segment: Segment, talk: Talk) -> list[str]:
    """The talk of a segment, with what was done and the closing texts: as much of it as there is room for."""
    size = sum(len(event.text) for event in segment.events if not event.agent)
    room = max(_LEAST_ROOM, int(size * _SHARE))
    for message, closing, other in ((_MESSAGE, _CLOSING, _OTHER), (500, 300, 0), (280, 160, 0), (140, 0, 0)):
        made = [line for turn in talk.turns for line in _lines(turn, message, closing, other)]
        if sum(map(len, made)) <= room:
            return made
    return made


def _lines(turn: Turn, most: int, closing: int, other: int) -> Iterator[str]:
    """A turn: the message, other texts, what was done, the agent's last text; each line fits a section."""
    if turn.message is not None:
        yield f'{opened(turn.message)}{quoting.indented(cutting.message(turn.message.text, most))}"'
    elif turn.entries:
        yield "- going on with what was asked before"
    else:
        return
    last = turn.closing
    for said in turn.texts if other else ():
        if said is not last:
            yield f"  \u00b7 {quoting.indented(cutting.cut(said.text, other), '    ')}"
    if did := lines.did(turn):
        yield f"  {did}"
    if last is not None and closing:
        yield f"  \u2192 {quoting.indented(cutting.cut(last.text, closing), '    ')}"


def opened(message: Message) -> str:
    """When and how a message came, and the quotation mark before it."""
    form = f"({message.form})" if message.form else ""
    return " ".join(filter(None, ("-", quoting.clock(message.at), form, '"')))


_KNOWN_BY = 30  # characters of its first line by which a message is found again


def beginning(message: Message) -> str:
    """How the line of a message begins in a section, so that it is found again, also in one of an earlier version."""
    return opened(message) + cutting.message(message.text, _MESSAGE).split("\n")[0][:_KNOWN_BY]


def _noted(segment: Segment) -> list[str]:
    """What documents say, or how many decisions they hold; what is for the evidence alone is not told."""
    notes = [event for event in segment.events if event.kind == "note" and event.text.strip()]
    said = [event for event in notes if "decision" not in event.input and event.input.get("aside") is not True]
    found = [f"- {quoting.indented(cutting.cut(event.text.strip(), _MESSAGE))}" for event in said]
    count = len(segment.noted)
    if not found and count:
        found = [f"- {count:,} decision{'s' * (count != 1)}; nothing else was noted down."]
    return found


def _events(entries: Sequence[Entry]) -> list[str]:
    """Commits, pushes, answers and approved plans, the newest last."""
    found: list[str] = []
    for entry in entries:
        if isinstance(entry, Step):
            found += lines.git([entry])
        elif isinstance(entry, Message) and entry.form == "answer":
            found.append(f"answered: {one_line(entry.about)} \u2192 {one_line(entry.text)}")
        elif isinstance(entry, Message) and entry.form == "plan":
            found.append(f"plan approved: {_heading(entry.about)}")
    return [trimmed(one_line(text), _EVENT) for text in found[-_MOST_EVENTS:]]


# ---- decisions in fields of the record ----


def _answered(talk: Talk, segment: Segment) -> list[Decision]:
    """What the person chose in answer to a tool's question, and plans that they approved."""
    known = {item.decision.partition(" \u2192 ")[0]: item.id for item in segment.decisions if item.origin == "answer"}
    found = []
    for turn in talk.turns:
        message = turn.message
        if message is None or message.form not in ("answer", "plan") or message.text == DECLINED:
            continue
        if message.form == "plan":
            text, before = f"plan approved: {_heading(message.about)}", ""
        else:
            question = trimmed(one_line(message.about), 300)
            text, before = f"{question} \u2192 {one_line(message.text)}", known.get(question, "")
        digest = hashlib.sha256(message.text.encode("utf-8", "replace")).hexdigest()[:SHA256_DIGITS]
        place = Source(message.session or segment.session, message.line, message.line, digest)
        others = tuple(option for option in message.options if option != message.text)
        found.append(
            Decision(
                decision=trimmed(text, 600),
                timestamp=message.at,
                alternatives=others,
                supersedes=before,
                source=place,
                origin="answer",
            )
        )
    return found


def _heading(plan: str) -> str:
    """The first line of a plan that says something."""
    return next((one_line(line.lstrip("# ")) for line in plan.splitlines() if line.strip("# \t")), "without a heading")
