"""A JSON text with places: where each value begins and ends, so that one can be added or taken out and every other byte
stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from ralf.text.patterns import regex

_SPACE = regex(r"[ \t\n\r]*")
_BOM = "\ufeff"
_UNIT = "  "


class Insertion(NamedTuple):
    """A text that goes in before the character at `place`."""

    place: int
    text: str


class NoJson(ValueError):
    """The text is no JSON; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value and where it stands: `text[start:end]`.

    plain    as Python has it; None where it is an object or a list
    members  of an object: name, where the name begins, value; in the order of the text, names that come twice included
    items    of a list
    """

    start: int
    end: int
    kind: str
    plain: Any = None
    members: tuple[tuple[str, int, Value], ...] = ()
    items: tuple[Value, ...] = ()

    def get(self, name: str) -> Value | None:
        """A member's value; of several under one name the last, as every client reads it."""
        return next((value for known, _, value in reversed(self.members) if known == name), None)

    def tree(self) -> Any:
        """The value as Python has it, all of it."""
        if self.kind == "object":
            return {name: value.tree() for name, _, value in self.members}
        return [item.tree() for item in self.items] if self.kind == "list" else self.plain


def parsed(text: str) -> Value:
    """What a text says, with places. NoJson for anything that is not strictly JSON: comments, a comma too many, NaN."""
    reader = _Reader(text)
    try:
        value, end = reader.value(len(_BOM) if text.startswith(_BOM) else 0)
    except RecursionError:
        raise NoJson("it is nested too deeply") from None
    if end != len(text):
        reader.refuse(end, "something stands behind the end")
    return value


def inserted(text: str, insertions: Iterable[Insertion]) -> tuple[str, list[tuple[int, int]]]:
    """The text with all insertions, whose places are those of the text as it is given, in any order; and where they
    are in it: place and length of each.
    """
    parts, ranges, at, added = [], [], 0, 0
    for place, more in sorted(insertions, key=lambda one: one.place):
        parts += [text[at:place], more]
        ranges.append((place + added, len(more)))
        at, added = place, added + len(more)
    return "".join([*parts, text[at:]]), ranges


def cut(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    """The text without what was inserted: `inserted` taken back."""
    for place, length in sorted(ranges, reverse=True):
        text = text[:place] + text[place + length :]
    return text


def member(text: str, top: Value, of: Value, added: Iterable[tuple[str, Any]]) -> Insertion:
    """Members at the end of an object, laid out as the text around them. `top`: all of the text."""
    layout = _Layout(text, top, of, [start for _, start, _ in of.members])
    return layout.behind([f"{json.dumps(name, ensure_ascii=False)}: {layout.shown(value)}" for name, value in added])


def item(text: str, top: Value, of: Value, added: Iterable[Any]) -> Insertion:
    """Items at the end of a list, laid out as the text around them. `top`: all of the text."""
    layout = _Layout(text, top, of, [value.start for value in of.items])
    return layout.behind([json.dumps(value, ensure_ascii=False) for value in added])


def without(text: str, of: Value, number: int) -> str:
    """The text without one member of an object, or item of a list."""
    starts = [start for _, start, _ in of.members] or [value.start for value in of.items]
    ends = [value.end for _, _, value in of.members] or [value.end for value in of.items]
    if len(starts) == 1:
        return text[: of.start + 1] + text[of.end - 1 :]
    if number == len(starts) - 1:
        return text[: ends[number - 1]] + text[ends[number] :]
    return text[: starts[number]] + text[starts[number + 1] :]


class _Layout:
    """How the members of one object, or the items of one list, stand in the text."""

    def __init__(self, text: str, top: Value, of: Value, starts: Sequence[int]) -> None:
        self._text, self._of, self._starts = text, of, starts
        self._newline = "\r\n" if "\r\n" in text else "\n"
        first = top.members[0][1] if top.members else None
        before = self._before(first) if first is not None else self._newline + _UNIT
        self._unit = _indentation(before) or _UNIT
        if starts:
            alone = len(starts) == 1 and '": ' in text  # nothing shows what stands behind a comma
            self._separator = self._before(starts[-1]) or " " * alone
        elif "\n" not in before:  # all in one line
            self._separator = ""
        else:
            self._separator = self._newline + _indentation(self._line(of.start)) + self._unit

    def shown(self, value: Any) -> str:
        """A value: an object with a line for each member, anything else in one line, so that a change can be read."""
        if "\n" not in self._separator or not isinstance(value, dict):
            return json.dumps(value, ensure_ascii=False)
        start = self._newline + _indentation(self._separator)
        lines = (
            f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(of, ensure_ascii=False)}" for key, of in value.items()
        )
        return "{" + ",".join(f"{start}{self._unit}{line}" for line in lines) + start + "}"

    def behind(self, shown: Sequence[str]) -> Insertion:
        """What is shown, behind what stands there."""
        separator = self._separator if self._starts or "\n" in self._separator else " "
        together = f",{separator}".join(shown)
        if self._starts:
            ends = self._of.members[-1][2].end if self._of.members else self._of.items[-1].end
            return Insertion(ends, f",{separator}{together}")
        inside = self._text[self._of.start + 1 : self._of.end - 1]
        own_line = "\n" in self._separator and "\n" not in inside
        end = self._newline + _indentation(self._line(self._of.start)) if own_line else ""
        return Insertion(self._of.start + 1, f"{self._separator}{together}{end}")

    def _before(self, place: int) -> str:
        """The white space before a place."""
        stop = place
        while place and self._text[place - 1] in " \t\n\r":
            place -= 1
        return self._text[place:stop]

    def _line(self, place: int) -> str:
        """The white space at the beginning of the line in which a place lies, its newline included."""
        begin = self._text.rfind("\n", 0, place)
        found = _SPACE.match(self._text, begin + 1)
        return "\n" + (found[0] if found is not None else "")


def _indentation(space: str) -> str:
    """What stands behind the last newline of a white space."""
    return space.rpartition("\n")[2] if "\n" in space else ""


@dataclass
class _Reader:
    text: str
    _scalars: json.JSONDecoder = field(default_factory=lambda: json.JSONDecoder(parse_constant=_no_constant))

    def value(self, place: int) -> tuple[Value, int]:
        """The value at a place, and where what follows begins, behind white space."""
        start = self._space(place)
        opening = self.text[start : start + 1]
        if opening == "{":
            members = tuple(self._members(start + 1))
            end = members[-1][2].end if members else start + 1
            value = Value(start, self._space(end) + 1, "object", members=members)
        elif opening == "[":
            items = tuple(self._items(start + 1))
            end = items[-1].end if items else start + 1
            value = Value(start, self._space(end) + 1, "list", items=items)
        else:
            plain, end = self._scalar(start)
            value = Value(start, end, "text" if isinstance(plain, str) else "plain", plain)
        return value, self._space(value.end)

    def refuse(self, place: int, why: str) -> NoReturn:
        """Say where it is no JSON."""
        line = self.text.count("\n", 0, place) + 1
        column = place - self.text.rfind("\n", 0, place)
        raise NoJson(f"line {line}, column {column}: {why}")

    def _members(self, place: int) -> Iterator[tuple[str, int, Value]]:
        place = self._space(place)
        if self.text.startswith("}", place):
            return
        while True:
            start = place
            if not self.text.startswith('"', start):
                self.refuse(start, "a name in quotation marks is expected")
            name, place = self._scalar(start)
            place = self._space(place)
            if not self.text.startswith(":", place):
                self.refuse(place, "a colon is expected")
            value, place = self.value(place + 1)
            yield name, start, value
            if not self._goes_on(place, "}"):
                return
            place = self._space(place + 1)

    def _items(self, place: int) -> Iterator[Value]:
        place = self._space(place)
        if self.text.startswith("]", place):
            return
        while True:
            value, place = self.value(place)
            yield value
            if not self._goes_on(place, "]"):
                return
            place = self._space(place + 1)

    def _goes_on(self, place: int, end: str) -> bool:
        if self.text.startswith(end, place):
            return False
        if not self.text.startswith(",", place):
            self.refuse(place, f"a comma or {end} is expected")
        return True

    def _scalar(self, place: int) -> tuple[Any, int]:
        try:
            return self._scalars.raw_decode(self.text, place)
        except json.JSONDecodeError as error:
            self.refuse(error.pos, error.msg)
        except ValueError as error:  # a constant that JSON does not know, or a number without end
            self.refuse(place, str(error))

    def _space(self, place: int) -> int:
        found = _SPACE.match(self.text, place)
        return found.end() if found is not None else place


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
