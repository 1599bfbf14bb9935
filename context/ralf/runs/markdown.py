"""A Markdown document as numbered lines: which are headings, which stand in a fence; comments are taken out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

_FENCE = re.compile(r" {0,3}(?:[-*+] +)?(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t](.*)$")
_UNDERLINED = re.compile(r"^(\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?)__(?=[A-Z\d])([^_\n]{1,120})__(?!\w)")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")


class Line(NamedTuple):
    """One line; `number` counts from 1.

    text     without its line end, and without comments (outside of fences)
    fenced   whether it belongs to a fence, whose marks included
    level    of a heading, else 0; `heading`: its words
    rule     whether it is a thematic break
    """

    number: int
    text: str
    fenced: bool = False
    level: int = 0
    heading: str = ""
    rule: bool = False


class Fence(NamedTuple):
    """A fenced block: the first word after its mark, its content, and the lines of the content.

    under  the headings above it, the outermost first
    """

    info: str
    text: str
    first: int
    last: int
    under: tuple[str, ...]


class Section(NamedTuple):
    """A heading and all lines below it down to the next heading of its level or a higher one.

    own    the lines down to the next heading of any level
    under  the headings above it, the outermost first
    """

    level: int
    heading: str
    first: int
    lines: tuple[Line, ...]
    own: tuple[Line, ...]
    under: tuple[str, ...]

    @property
    def last(self) -> int:
        """The number of its last line that is neither empty nor a rule at its end."""
        return next((line.number for line in reversed(self.lines) if line.text.strip() and not line.rule), self.first)


def lines_of(text: str) -> list[Line]:
    """The lines of a document. A fence that never ends goes to the end; so does a comment. A line that begins with a
    `__Name__` begins with a `**Name**`.
    """
    made: list[Line] = []
    fence = ""
    commented = False
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip("\r")
        if fence:
            made.append(Line(number, line, fenced=True))
            mark = line.strip()
            if mark.startswith(fence) and not mark.strip(fence[0]):
                fence = ""
            continue
        line, commented = _uncommented(line, within=commented)
        if opened := _FENCE.match(line):
            fence = opened[1]
            made.append(Line(number, line, fenced=True))
        elif (found := _HEADING.match(line)) and (heading := _unclosed(found[2])):
            made.append(Line(number, line, level=len(found[1]), heading=heading))
        else:
            line = _UNDERLINED.sub(r"\1**\2**", line, count=1) if "__" in line else line
            made.append(Line(number, line, rule=bool(_RULE.match(line))))
    return made


def _unclosed(heading: str) -> str:
    """A heading's words without the marks that may stand behind them."""
    words = heading.strip()
    left = words.rstrip("#")
    return left.rstrip() if not left or left[-1] in " \t" else words


def titled(lines: Sequence[Line]) -> list[Line]:
    """The lines with their headings raised so that the title's level is 1, where a document has one: the first heading,
    which no other is as high as.
    """
    levels = [line.level for line in lines if line.level]
    raised = levels[0] - 1 if len(levels) > 1 and levels[0] < min(levels[1:]) else 0
    return (
        [line._replace(level=line.level - raised) if line.level else line for line in lines] if raised else list(lines)
    )


def _uncommented(line: str, *, within: bool) -> tuple[str, bool]:
    """A line without comments, and whether one goes on behind it."""
    left = ""
    while line:
        if within:
            _, ended, line = line.partition("-->")
            within = not ended
        else:
            before, opened, line = line.partition("<!--")
            left += before
            within = bool(opened)
    return left.rstrip() if left.strip() else "", within


def sections_of(lines: Sequence[Line]) -> list[Section]:
    """Every section of a document, in the order of their headings."""
    made = []
    under: list[tuple[int, str]] = []
    places = [place for place, line in enumerate(lines) if line.level]
    for count, place in enumerate(places):
        level, heading = lines[place].level, lines[place].heading
        while under and under[-1][0] >= level:
            under.pop()
        after = islice(places, count + 1, None)
        end = next((other for other in after if lines[other].level <= level), len(lines))
        own_end = places[count + 1] if count + 1 < len(places) else len(lines)
        above = tuple(words for _, words in under)
        below, own = tuple(lines[place + 1 : end]), tuple(lines[place + 1 : own_end])
        made.append(Section(level, heading, lines[place].number, below, own, above))
        under.append((level, heading))
    return made


def fences_of(lines: Sequence[Line]) -> list[Fence]:
    """The fenced blocks of a document, one that never ends included."""
    made = []
    under: list[tuple[int, str]] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.level:
            while under and under[-1][0] >= line.level:
                under.pop()
            under.append((line.level, line.heading))
        opened = _FENCE.match(line.text) if line.fenced else None
        place += 1
        if opened is None:
            continue
        mark, info = opened[1], opened[2].split()
        content = []
        while place < len(lines) and lines[place].fenced:
            text = lines[place].text
            place += 1
            if text.strip().startswith(mark) and not text.strip().strip(mark[0]):
                break
            content.append(text)
        first = line.number + 1
        above = tuple(words for _, words in under)
        made.append(
            Fence(info[0] if info else "", "\n".join(content), first, max(first, line.number + len(content)), above)
        )
    return made
