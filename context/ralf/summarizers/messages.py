"""A conversation as messages, and the cutting and joining of what they say."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ralf.extraction import pasted
from ralf.extraction.commands import command_text, is_shell
from ralf.extraction.filetools import changes_file
from ralf.model import SHA256_DIGITS, Decision, Source
from ralf.prose import Sentence, joined, sentences
from ralf.summarizers import grammar, leads
from ralf.transcripts.events import Event
from ralf.trim import trimmed

DECISION_WORDS, REASON_WORDS = 60, 40
"""How long a decision and its reason may be: the file is capped, and each takes its part of it."""

_BOTH = 85
_SHORT = 45  # words of a message that says one thing


def room_beside(text: str) -> int:
    """The words that the reason of a decision may have: more for one that says little by itself ("yes, do that")."""
    return max(REASON_WORDS - 5, min(_BOTH - len(text.split()), 70))


@dataclass(frozen=True, slots=True)
class Message:
    """What one side said at once.

    who       user or agent
    declined  the call that a person declined in saying it
    does      what the agent did before anybody spoke again: "edits" files, "calls" other tools, or nothing
    """

    who: str
    text: str
    event: Event
    said: tuple[Sentence, ...]
    declined: str = ""
    does: str = ""


Made = list[tuple[int, Decision, Sequence[Message]]]
"""Scores, decisions and the messages in which they stand."""


def messages(events: Sequence[Event]) -> list[Message]:
    """What people and the agent said, in order."""
    out: list[Message] = []
    calls: dict[str, Event] = {}
    for event in events:
        text, who, declined = event.text, "agent", ""
        if event.kind == "call":
            calls[event.call_id] = event
            if out and out[-1].does != "edits" and not event.agent:
                out[-1] = replace(out[-1], does="edits" if changes_file(event.tool, event.input) else "calls")
            continue
        if event.kind == "user":
            who = "user"
            declined = _call(calls.get(event.call_id)) if event.call_id else ""
        elif event.kind != "assistant":
            continue
        if text.strip():
            said = sentences(pasted.own(text) if who == "user" else text)
            out.append(Message(who, text, event, said, declined))
    return out


def _call(call: Event | None) -> str:
    """A declined call in few words: a command's first line, or the tool and the file it was to change."""
    if call is None:
        return "the call"
    command = command_text(call.input) if is_shell(call.tool) else ""
    if command:
        line = trimmed(command.split("\n")[0], 160)
        return f"`{line}`" if "`" not in line else line
    path = next((call.input[key] for key in ("file_path", "notebook_path", "path") if key in call.input), "")
    return f"{call.tool} {path}".strip()


def source(session: str, said: Sequence[Message]) -> Source:
    """Where messages stand in their session, with the hash of their words."""
    text = "\n".join(message.text for message in said)
    return Source(
        session,
        min(message.event.start.line for message in said) + 1,
        max(message.event.end.line for message in said),
        hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:SHA256_DIGITS],
    )


def whole_of(message: Message) -> str:
    """A short message of statements on one line; "" for a longer one, and for one that asks or tells what it is about
    to look at, or at which step it is.
    """
    words = sum(len(sentence.text.split()) for sentence in message.said)
    if not 4 <= words <= _SHORT or message.declined or leads.says_place(message.said):
        return ""
    if any(grammar.is_question(s.text) or grammar.looks_around(s.text) for s in message.said):
        return ""
    return joined(sentence.text for sentence in message.said)


def around(
    said: Sequence[Sentence], sentence: Sentence, words: int, *, but: Callable[[str], bool] = lambda _: False
) -> str:
    """The sentences next to one that hold its reason, up to the first behind it of which `but` says that it is none."""
    place = said.index(sentence)
    kept: list[str] = []
    if place and grammar.gives_reason(said[place - 1].text) and not grammar.looks_around(said[place - 1].text):
        kept.append(said[place - 1].text)
    for number, following in enumerate(said[place + 1 : place + 5]):
        if "?" in following.text or grammar.looks_around(following.text) or following.kind == "heading":
            break
        if but(following.text):
            break
        near = following.paragraph == sentence.paragraph or (following.kind == "item" and sentence.kind != "item")
        if grammar.gives_reason(following.text) or (near and number < 3):
            kept.append(following.text)
        elif not near:
            break
    return join(kept, words)


def clip(text: str, words: int) -> str:
    """At most so many words, with "…" where it was cut, and no half of a pair of backticks left."""
    parts = text.split(" ")
    if len(parts) <= words:
        return text
    cut = " ".join(parts[:words])
    if cut.count("`") % 2:
        cut = cut[: cut.rindex("`")].rstrip()
    return cut.rstrip(" ,;:(") + "…"


def join(texts: Sequence[str], words: int) -> str:
    """As many of the texts, in order and each once, as fit into so many words."""
    kept: list[str] = []
    room = words
    for text in dict.fromkeys(texts):
        size = len(text.split())
        if not text or room <= 0:
            continue
        kept.append(text if size <= room else clip(text, room))
        room -= size
    return joined(kept)


def span(said: Sequence[Sentence], chosen: Sequence[Sentence], words: int) -> str:
    """From the first to the last of the chosen sentences if that is short, else the chosen ones alone."""
    places = [place for place, sentence in enumerate(said) if sentence in chosen]
    between = [s.text for s in said[places[0] : places[-1] + 1] if s.kind != "heading"]
    if sum(len(t.split()) for t in between) <= words:
        return joined(between)
    return clip(joined(s.text for s in chosen), words)
