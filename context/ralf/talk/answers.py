"""What a person's message answers: always a quotation, chosen by the form of two texts, never by their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ralf.model.entries import Item, Message
from ralf.talk.cutting import cut, cut_end, units
from ralf.text.cleaning import one_line, trimmed
from ralf.text.patterns import regex

AFTER = "before: "
"""How the end of the agent's text begins that stands before a short message."""

_LONGEST_LABEL_TEXT = 130  # characters of an option's text

_SHORT, _SHORT_WORDS, _SHORT_UNITS = 60, 8, 90  # units; words, and units of a message of so few words

_QUESTION = 12  # units above which a message that ends in a question mark says itself what it is about

_ASKS = ("?", "\uff1f", "\u061f")

_NO_ANSWER = ("queued", "refused", "command", "unsent", "ran")

_LISTED = regex(
    r"(?m)^([ \t>]*)(?:[-*]\s+)?[(\uff08]?([A-H]|\d{1,2})[.):\u3001\uff09\uff0e\uff1a][ \t]*(.*)$"
    r"|^([ \t]*)\|[ \t]*([A-H]|\d{1,2})[ \t]*\|(.*)$"
)
"""A line or a row of a table whose first mark is a label."""

_ALONE = regex(r"(?<![A-Za-z0-9])([A-H]|\d{1,2})(?![A-Za-z0-9])")

_AT_LINE = regex(r"(?m)^[^\S\n]*+(?:\*\*)?([A-H]|\d{1,2})(?:\*\*)?[.):\u3001\uff09\uff0e\uff1a]")

_CAPITAL = regex(r"\A(?:\S+\s+){0,3}([A-H])(?:[.,:;)\uff0c\u3002\uff1a\u3001]|\Z)")

_ITEM = regex(r"(?<![\w#/])#(\d{1,4})\b")

_NAMES_ITEMS = 400  # characters of a message up to which a number in it is looked up

_CODE = regex(r"(?s)```.*?(?:```|\Z)")


def is_short(message: Message) -> bool:
    """Whether a message is so short that it can only be read with what came before it."""
    text, size = message.text.strip(), units(message.text.strip())
    if message.form in _NO_ANSWER or (size > _QUESTION and text.endswith(_ASKS)):
        return False
    return size <= _SHORT or (len(text.split()) <= _SHORT_WORDS and size <= _SHORT_UNITS)


def about(message: Message, texts: Sequence[str], refused: str = "", items: Sequence[Item] = ()) -> str:
    """What a message answers, in a form in which a reader sees it is a quotation; "" for nothing.

    texts    the agent's texts since the person's message before, oldest first
    refused  the call that was refused with it, in one line
    items    the to-do list by then
    """
    if message.form == "answer" and message.about:
        return f"asked: {cut(one_line(message.about), 240)}"
    if message.form == "refused":
        return f"refusing {refused}" if refused else ""
    if message.form in _NO_ANSWER or (message.form == "plan" and message.about):  # a plan is shown as the message
        return ""
    if named := {**labels(message.text, texts), **_numbered(message.text, items)}:
        return "; ".join(f"{label} = {text}" for label, text in named.items())
    if is_short(message) and texts:
        end = cut_end(texts[-1], 90, 240, to_question=True)
        return f"{AFTER}{end}" if end else ""
    return ""


def labels(text: str, texts: Sequence[str]) -> dict[str, str]:
    """The labels that a message names, each with the text that the newest list which has all of them gives it."""
    named = list(dict.fromkeys(_named(text.strip())))
    if not named:
        return {}
    for said in reversed(texts):
        for found in reversed([*_lists(_CODE.sub("", said).replace("**", ""))]):
            if len(found) > 1 and all(label in found for label in named):
                return {label: _option(found[label]) for label in named}
    return {}


def _option(text: str) -> str:
    """The text of an option, of a row of a table its cells."""
    return trimmed(one_line("; ".join(filter(None, map(str.strip, text.split("|"))))), _LONGEST_LABEL_TEXT)


def _numbered(text: str, items: Sequence[Item]) -> dict[str, str]:
    """The items of a to-do list that a message names by their numbers: `#10`."""
    known = {item.id: item.text for item in items if item.id}
    named = _ITEM.findall(text) if len(text) <= _NAMES_ITEMS else ()
    return {f"#{one}": trimmed(one_line(known[one]), _LONGEST_LABEL_TEXT) for one in named if one in known}


def _named(text: str) -> Iterable[str]:
    if len(text) <= 24:
        return _ALONE.findall(text)
    if len(text) <= 1_500 and _AT_LINE.match(text):
        return _AT_LINE.findall(text)
    capital = _CAPITAL.match(text) if len(text) <= 400 else None
    return [capital[1]] if capital else []


def _lists(text: str) -> Iterator[dict[str, str]]:
    """The lists of a text whose labels are in sequence from A or 1, of two items or more; lists within lists, too."""
    open_: dict[int, dict[str, str]] = {}  # by how far they stand in
    for line in _LISTED.finditer(text):
        margin, label, words = (line[1], line[2], line[3]) if line[2] else (line[4], line[5], line[6])
        for deeper in sorted(one for one in open_ if one > len(margin)):
            yield open_.pop(deeper)
        current = open_.get(len(margin), {})
        if label == _next(current):
            current[label] = words
        else:
            yield current
            open_[len(margin)] = {label: words} if label in ("A", "1") else {}
    yield from open_.values()


def _next(items: dict[str, str]) -> str:
    last = next(reversed(items), "")
    return str(int(last) + 1) if last.isdecimal() else chr(ord(last) + 1) if last else ""
