"""Markdown as a terminal shows it: headings, lists, quotations, code and bold, wrapped to its width.

This is no CommonMark. The text holds words of transcripts, in which `__init__`, `*args`, `<promise>` and `# comment`
mean what they say. Only what nobody could mean otherwise is rendered: single asterisks and underscores, HTML, entities,
links, tables and backslashes stay as they are, lines are never joined, and what is quoted keeps the marks of its
headings and items. `rich.markdown` would drop or join all of these.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ralf import environment
from ralf.text.cleaning import clean
from ralf.text.patterns import regex

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_LABEL, _CODE, _NOTE = "bold magenta", "magenta", "dim"  # readable on a light and on a dark background

_NARROWEST = 20  # columns
# What is longer or larger than this stays as it is:
_LONGEST = 10_000  # characters of a line
_LARGEST = 65_536  # characters of a block of code

_HEADING = regex(r"(#{1,6}) ++(\S[^\n]*+)")
_ITEM = regex(r"( *+)([-*]|[0-9]{1,9}[.)]) ++(?=\S)")
_LABELLED = regex(r"(?:DEC|cp)-[0-9]{1,9}(?![0-9])")
_FENCE = regex(r"( *+)(`{3,}+)([^`]*+)|( {0,3})(~{3,}+) *+([\w.+#-]*+)")  # a traceback has `    ~~~~~~^^^`
_RULE = regex(r" {0,3}(?:-{3,}+|\*{3,}+|_{3,}+)")
_MARK = regex(r"`++|\*{2,}+")
_WORD = regex(r"\S++")
_NOTE_OF_OURS = regex(
    r"_(?:Revision [0-9]++, |Left out(?: of this text| here)?+: |Moved out of the file: |Last compacted: |\(cut: `)"
    r"[^\n]*(?<=[^ ])_"
)
"""A closed list: `_Foo calls self._` may be code."""

_VERBATIM_QUOTE = "**It had just seen"
"""How the line above the output of a tool begins, in which no mark is one of Markdown."""
_VERBATIM_ITEM = ("- error: ", "(from: ")
_VERBATIM_GROUP = "Commands that"

_CLOSERS = ".:!?)]>\"'`…"  # what may stand before the mark that ends bold words, beside letters and digits
_OPENERS = "(`<[_"  # what may stand behind the mark that begins them
_BEHIND = ".,:;!?)]…"  # what may stand behind the mark that ends them, beside blanks


def show(text: str, *, plain: bool = False) -> None:
    """Print Markdown: rendered on a terminal, its source in a pipe or if `plain` says so."""
    click.echo(text if plain or not sys.stdout.isatty() else rendered(text), nl=False)


class _Screen(NamedTuple):
    """What the terminal can show: its columns, whether it has colours, and the signs of items, quotations and rules."""

    width: int
    coloured: bool
    item: str
    bar: str
    rule: str


def rendered(text: str, *, width: int | None = None, coloured: bool | None = None) -> str:
    """Return Markdown as it is shown at a terminal; every word of it stays.

    width     columns; None: those of the terminal
    coloured  None: unless the user wants no colours. Without them code keeps its backticks
    """
    if not text:
        return ""
    columns = width or shutil.get_terminal_size().columns or 80
    wants = not environment.is_without_colour() if coloured is None else coloured
    encoding = (sys.__stdout__.encoding if sys.__stdout__ else None) or "utf-8"
    signs = ("•", "│", "─") if encoding.lower().startswith("utf") else ("-", "|", "-")
    screen = _Screen(max(_NARROWEST, columns), wants, *signs)
    lines = [line.rstrip() for line in clean(text).removesuffix("\n").expandtabs(8).split("\n")]
    return "".join(f"{line}\n" for line in _blocks(lines, screen))


def _blocks(lines: Sequence[str], screen: _Screen) -> Iterator[str]:
    """The lines of a text as they are shown."""
    number, group, is_blank = 0, "", True
    while number < len(lines):
        line = lines[number]
        end = 0
        if len(line) > _LONGEST:
            yield line
        elif end := _end_of_fence(lines, number):
            yield from _set_apart(lines[number:end], screen)
        elif line.startswith(">"):
            end = next((n for n in range(number, len(lines)) if not lines[n].startswith(">")), len(lines))
            is_output = number > 0 and lines[number - 1].startswith(_VERBATIM_QUOTE)
            yield from _quotation(lines[number:end], screen, verbatim=is_output)
        elif heading := _HEADING.fullmatch(line):
            group = heading[2]
            if not is_blank:
                yield ""
            style = "bold underline" if len(heading[1]) == 1 else "bold"
            yield from _wrapped("", _inline(heading[2], screen, style), screen)
        elif _RULE.fullmatch(line):
            yield screen.rule * screen.width
        elif item := _ITEM.match(line):
            sign = screen.item if item[2] in "-*" else item[2]
            body = line[item.end() :]
            is_verbatim = group.startswith(_VERBATIM_GROUP) or any(mark in line for mark in _VERBATIM_ITEM)
            yield from _wrapped(f"  {item[1]}{sign} ", _labelled(body, screen, verbatim=is_verbatim), screen)
        elif _NOTE_OF_OURS.fullmatch(line):
            yield from _wrapped("", _inline(line[1:-1], screen, _NOTE), screen)
        else:
            body = line.lstrip(" ")
            indented = len(line) - len(body)
            yield from _wrapped(" " * (indented + 2 * (indented > 1)), _inline(body, screen), screen)
        is_blank = not line
        number = max(number + 1, end)


def _quotation(lines: Sequence[str], screen: _Screen, *, verbatim: bool) -> Iterator[str]:
    """Quoted lines behind a bar. Only code and bold words of them are rendered, of a tool's output nothing."""
    within = [line[1:].removeprefix(" ") for line in lines]
    inner = screen._replace(width=max(_NARROWEST, screen.width - 2))
    number = 0
    while number < len(within):
        end = 0 if verbatim else _end_of_fence(within, number)
        if end:
            made: Iterator[str] = _set_apart(within[number:end], inner)
        else:
            made = _quoted_line(within[number], inner, verbatim=verbatim)
        yield from (f"{screen.bar} {line}".rstrip() for line in made)
        number = max(number + 1, end)


def _quoted_line(line: str, screen: _Screen, *, verbatim: bool) -> Iterator[str]:
    if len(line) > _LONGEST:
        yield line
        return
    body = line.lstrip(" ")
    style = "bold" if _HEADING.fullmatch(line) else ""
    text = _plain(body) if verbatim else _inline(body, screen, style)
    yield from _wrapped(" " * (len(line) - len(body)), text, screen)


# ---- code ----


def _fence(line: str) -> tuple[int, str, str]:
    """The blanks before a line that can begin a block of code, its mark and what follows it; no mark for none."""
    found = _FENCE.fullmatch(line) if len(line) <= _LONGEST else None
    if found is None:
        return 0, "", ""
    indented, mark, info = found.group(1, 2, 3) if found[2] else found.group(4, 5, 6)
    return len(indented), mark, info.strip()


def _end_of_fence(lines: Sequence[str], number: int) -> int:
    """The number of the line behind a block of code that begins here, that of the last one if it never ends; 0 for
    none.
    """
    indented, mark, _ = _fence(lines[number])
    if not mark:
        return 0
    return next((n + 1 for n in range(number + 1, len(lines)) if _closes(lines[n], indented, mark)), len(lines))


def _closes(line: str, indented: int, mark: str) -> bool:
    """Whether a line ends the block of code that a mark behind so many blanks has begun."""
    if mark not in line:
        return False
    found = line.lstrip(" ")
    return len(line) - len(found) <= indented + 3 and not found.strip(mark[0])


def _set_apart(lines: Sequence[str], screen: _Screen) -> Iterator[str]:
    """A block of code, which is not wrapped, so that it can be copied. Its source if it is too large or never ends."""
    indented, mark, info = _fence(lines[0])
    if sum(map(len, lines)) > _LARGEST or len(lines) < 2 or not _closes(lines[-1], indented, mark):
        yield from lines
        return
    if info:
        yield from _wrapped("    ", _plain(info, _NOTE), screen)
    yield from (f"    {_painted(_plain(line, _CODE), screen)}" if line else "" for line in lines[1:-1])


# ---- a line ----


def _plain(text: str, style: str = "") -> Text:
    from rich.text import Text

    made = Text(text)
    if style:
        made.stylize(style)  # the style of a text without spans is not rendered
    return made


def _labelled(body: str, screen: _Screen, *, verbatim: bool) -> Text:
    """The words of an item; the label that it begins with stands out."""
    text = _plain(body) if verbatim else _inline(body, screen)
    if label := _LABELLED.match(body):
        text.stylize(_LABEL, 0, label.end())
    return text


def _inline(text: str, screen: _Screen, style: str = "") -> Text:
    """A line with its code and its bold words in a style, and without the marks that said so."""
    made = _plain(text, style)
    cuts: list[tuple[int, int]] = []
    opened = -1  # the end of the mark that begins bold words
    marks = list(_MARK.finditer(text))
    following = _same_behind(marks)
    number = 0
    while number < len(marks):
        mark = marks[number]
        if mark[0][0] == "`":
            if end := following.get(number):
                made.stylize(_CODE, mark.end(), marks[end].start())
                cuts += [mark.span(), marks[end].span()] if screen.coloured else []
                number = end
        elif opened >= 0 and _ends_bold(text, mark):
            if _is_balanced(text[opened : mark.start()]):  # or it is code: `**kwargs in f(x**, y)`
                made.stylize("bold", opened, mark.start())
                cuts += [(opened - 2, opened), mark.span()]
            opened = -1
        elif _begins_bold(text, mark):
            opened = mark.end()
        number += 1
    if not cuts:
        return made
    parts = made.divide(sorted({place for cut in cuts for place in cut} - {0, len(text)}))
    starts, place = {start for start, _ in cuts}, 0
    kept = _plain("")
    for part in parts:
        if place not in starts:
            kept.append_text(part)
        place += len(part)
    return kept


def _same_behind(marks: Sequence[re.Match[str]]) -> dict[int, int]:
    """By the number of each run of backticks, that of the next one of the same length."""
    found: dict[int, int] = {}
    last: dict[int, int] = {}
    for number in range(len(marks) - 1, -1, -1):
        if (run := marks[number][0])[0] == "`":
            if len(run) in last:
                found[number] = last[len(run)]
            last[len(run)] = number
    return found


def _begins_bold(text: str, mark: re.Match[str]) -> bool:
    before, behind = text[: mark.start()][-2:], text[mark.end() : mark.end() + 1]
    is_free = not before or before[-1].isspace() or (before[-1] in "([" and before[:1] in "([ ")  # no call, no index
    return len(mark[0]) == 2 and is_free and bool(behind) and (behind.isalnum() or behind in _OPENERS)


def _ends_bold(text: str, mark: re.Match[str]) -> bool:
    before, behind = text[mark.start() - 1], text[mark.end() : mark.end() + 1]
    is_free = not behind or behind.isspace() or behind in _BEHIND
    return len(mark[0]) == 2 and is_free and (before.isalnum() or before in _CLOSERS)


def _is_balanced(text: str) -> bool:
    return all(text.count(opening) == text.count(closing) for opening, closing in ("()", "[]", "{}"))


def _wrapped(prefix: str, text: Text, screen: _Screen) -> Iterator[str]:
    """A line in as many as the screen needs, broken between words; the second begins below the first word. A word that
    is longer than the screen, such as a path, is left to the terminal, which copies it whole.
    """
    from rich.cells import cell_len

    plain = text.plain
    hanging = min(len(prefix), screen.width // 2)
    room, at, behind = screen.width - hanging, 0, 0
    cuts: list[int] = []  # the end of each line, and the beginning of the next
    for word in _WORD.finditer(plain):
        gap, size = cell_len(plain[behind : word.start()]), cell_len(word[0])
        if at and at + gap + size > room:
            cuts += [behind, word.start()]
            gap, at = 0, 0
        at += gap + size
        behind = word.end()
    start = prefix
    for part in (text.divide(cuts) if cuts else [text])[::2]:
        yield f"{start}{_painted(part, screen)}".rstrip()
        start = " " * hanging


@cache
def _console(screen: _Screen) -> Console:
    from rich.console import Console

    colours: Any = "standard" if screen.coloured else None
    return Console(file=StringIO(), width=screen.width, force_terminal=True, color_system=colours, highlight=False)


def _painted(text: Text, screen: _Screen) -> str:
    """A text with the escape sequences of its styles."""
    from rich.color import ColorSystem

    system = ColorSystem.STANDARD if screen.coloured else None
    segments = text.render(_console(screen), end="")
    return "".join(
        segment.style.render(segment.text, color_system=system) if segment.style else segment.text
        for segment in segments
    )
