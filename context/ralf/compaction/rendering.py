"""The record that a completed segment gives way to: the section of its checkpoint, at more length than others have.

It is what was said and done, by fields: the person's words, the agent's texts, files, commits, tests, commands that
failed, what was sent. Nothing is chosen by what it says: what there is no room for leaves by its age.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ralf.brief import lines
from ralf.brief.quoting import indented, quotation
from ralf.checkpointing.section import Extractive, Segment, Summary, opened
from ralf.facts.commands import command_text, flat, program_of, simple_commands
from ralf.facts.state import State
from ralf.facts.steps import changed_lines
from ralf.model.entries import Entry, Message, Said, Step
from ralf.talk import cutting
from ralf.talk.turns import thread
from ralf.text import tokens
from ralf.text.cleaning import one_line, trimmed
from ralf.text.frozen import replace
from ralf.text.patterns import regex
from ralf.transcripts.events import Event

SHARE, LEAST = 0.07, 600
"""Of a segment's tokens, and tokens at least, for what is in its record besides what was done and the closing text."""

_ITEM, _SENT, _TEXT, _CHANGE = 300, 1_000, 1_500, 80  # characters

_MESSAGES = (4_000, 1_000, 280, 140)  # units of a person's message, as many as there is room for

_FILES, _DONE, _TESTS = 100, 10_000, 3  # files, characters that name them, runs of tests

_PROMISE = regex(r"<promise>[^<\n]{0,40}</promise>")
"""What an agent says to its loop alone."""

_SENDING = frozenset(
    "task agent spawnagent delegate delegatetask handoff sendmessage postmessage recorddecision handover".split()
)
"""Tools that give something to another agent, or to ralf."""

_OWN, _LOOKS = frozenset("decide drop handover memory message signal task".split()), frozenset(("list", "show", "why"))
"""Commands of ralf that record or send something, and the words behind them that do not."""


class Record(Extractive):
    """Sums a segment up in its record; the same segment gives the same text."""

    def summarize(self, segment: Segment) -> Summary:
        """See `Summarizer`."""
        return replace(super().summarize(segment), text="\n".join(_lines(segment)))


def _lines(segment: Segment) -> Iterator[str]:
    entries, facts = thread(segment.entries).entries, segment.facts
    steps = [entry for entry in entries if isinstance(entry, Step)]
    said_by_agent = ((place, entry.text) for place, entry in enumerate(entries) if isinstance(entry, Said))
    unpromised = ((place, _PROMISE.sub("", text).strip()) for place, text in said_by_agent)
    texts = {place: text for place, text in unpromised if text}
    closing = texts.popitem()[1] if texts else ""
    answered = {event.call_id for event in segment.events if event.kind == "result" and not event.failed}
    calls = [event for event in segment.events if event.kind == "call" and event.call_id in answered]
    errors = (
        f"{lines.command(one.command)}: {'; '.join(filter(None, (one.error, one.fixed_by)))}" for one in facts.errors
    )
    done = [
        *lines.changed((file for step in steps for file in step.files), _FILES),
        *lines.git(steps),
        *(f"{lines.command(one.command)}: {one.result}" for one in facts.tests[-_TESTS:]),
    ]
    todos = (f"{item.text}: {item.status}" for item in State.of(entries).items)

    room = max(LEAST, int(SHARE * segment.tokens))
    sent, room = _newest(enumerate(map(_given, filter(_sends, calls))), room, _SENT)
    failed, room = _newest(enumerate(errors), room)
    said = _asked(entries, room)
    room -= _tokens([*said.values(), closing])
    changed, unused = _newest(enumerate(_changes(calls)), room // 3)
    told, _ = _newest(texts.items(), room - room // 3 + unused, _TEXT)
    said |= {place: f"  · {text}" for place, text in told.items()}
    sections = {
        "Done": _newest(enumerate(done), segment.tokens, _DONE)[0],
        "Failed": failed,
        "Sent and recorded": sent,
        "To-dos": _newest(enumerate(todos), LEAST)[0],
        "Changed": changed,
    }
    for head, items in sections.items():
        yield from [f"**{head}:**", *(f"- {item}" for item in items.values())] if items else ()
    yield from ["**Said:**", *(said[place] for place in sorted(said))] if said else ()
    yield from ["**Said last:**", quotation(closing)] if closing else ()


def _tokens(texts: Iterable[str]) -> int:
    return sum(tokens.estimate(text) + 1 for text in texts)


def _newest(texts: Iterable[tuple[int, str]], room: int, most: int = _ITEM) -> tuple[dict[int, str], int]:
    """The newest of some texts that there is room for, by their places, each on one line and once; and the room that is
    left.
    """
    found: dict[int, str] = {}
    for place, text in reversed([*texts]):
        item = trimmed(one_line(text), most)
        price = _tokens([item])
        if price <= room and item not in found.values():
            found[place] = item
            room -= price
    return dict(reversed(found.items())), room


def _asked(entries: Sequence[Entry], room: int) -> dict[int, str]:
    """All messages of the person by their places among the entries, as long as there is room."""
    said = {place: entry for place, entry in enumerate(entries) if isinstance(entry, Message)}
    for most in _MESSAGES:
        found = {at: f'{opened(one)}{indented(cutting.message(one.text, most))}"' for at, one in said.items()}
        if _tokens(found.values()) <= room:
            break
    return found


def _sends(call: Event) -> bool:
    """Whether a call gives something to another agent, or to ralf to keep."""
    command = command_text(call.input).replace("ralf context ", "ralf ")
    ran = (
        [one.words for one in simple_commands(command) if program_of(one.words) == "ralf"] if "ralf" in command else []
    )
    is_own = any(_OWN.intersection(words[1:2]) and not _LOOKS.intersection(words[2:3]) for words in ran)
    return is_own or flat(call.tool.rpartition("__")[2]) in _SENDING


def _given(call: Event) -> str:
    """A call with its arguments."""
    if command := command_text(call.input):
        return f"`{command.replace('`', chr(39))}`"
    given = (f"{key}: {value}" for key, value in call.input.items() if isinstance(value, str) and value)
    return f"{call.tool.rpartition('__')[2]}: {'; '.join(trimmed(one_line(one), _ITEM) for one in given)}"


def _changes(calls: Iterable[Event]) -> Iterator[str]:
    """The edits of one line, as `path: old → new`."""
    for call in calls:
        path = next((call.input[key] for key in ("file_path", "path") if isinstance(call.input.get(key), str)), "")
        old, new = ([line.strip() for line in found if line.strip()] for found in changed_lines(call.input, call.text))
        if path and len(old) == len(new) == 1 and max(len(old[0]), len(new[0])) <= _CHANGE:
            yield f"{path.removeprefix(f'{call.cwd}/')}: {old[0]} → {new[0]}"
