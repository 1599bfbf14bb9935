"""Markdown as a terminal shows it: headings, lists, quotations, tables, code and bold, wrapped to its width.

This is no CommonMark. The text holds words of transcripts, in which `__init__`, `*args`, `<promise>` and `# comment`
mean what they say. Only what nobody could mean otherwise is rendered: single asterisks and underscores, HTML, entities,
links and backslashes stay as they are, lines are never joined, and what is quoted keeps the marks of its headings and
items. `rich.markdown` would drop or join all of these.
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
_MOST_LINES, _LONGEST = 200, 10_000  # of a block of code or a table, characters of a line: longer ones stay as they are

_HEADING = regex(r"(#{1,6}) +(\S[^\n]*+)")
_ITEM = regex(r"( *+)([-*]|[0-9]{1,9}[.)]) +(?=\S)")
_LABELLED = regex(r"(?:DEC|cp)-[0-9]{1,9}(?![0-9])")
_FENCE = regex(r"( *+)(`{3,}|~{3,})([^`]*+)")
_RULE = regex(r" {0,3}(?:-{3,}|\*{3,}|_{3,}) *")
_TABLE_RULE = regex(r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?[ \t]*)?")
_BAR = regex(r"(?<!\\)\|")
_MARK = regex(r"`+|\*{2,}")

_VERBATIM_QUOTE = "**It had just seen"
"""How the line above the output of a tool begins, in which no mark is one of Markdown."""
_VERBATIM_ITEM = ("- error: ", "(from: ")
_VERBATIM_GROUP = "Commands that"

_CLOSERS = ".:!?)]>\"'`…"  # what may stand before the mark that ends bold words, beside letters and digits
_OPENERS = "(`<[_"  # what may stand behind the mark that begins them


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
    lines = clean(text).removesuffix("\n").expandtabs(8).split("\n")
    return "".join(f"{line}\n" for line in _blocks(lines, screen))


def _blocks(lines: Sequence[str], screen: _Screen) -> Iterator[str]:
    """The lines of a text as they are shown."""
    number, group, is_blank = 0, "", True
    while number < len(lines):
        line = lines[number]
        if (end := _end_of_fence(lines, number)) or (end := _end_of_table(lines, number)):
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
        elif _is_note(line):
            yield from _wrapped("", _inline(line[1:-1], screen, _NOTE), screen)
        else:
            body = line.lstrip(" ")
            indented = len(line) - len(body)
            yield from _wrapped(" " * (indented + 2 * (indented > 1)), _inline(body, screen), screen)
        is_blank = not line.strip()
        number = max(number + 1, end or 0)


def _quotation(lines: Sequence[str], screen: _Screen, *, verbatim: bool) -> Iterator[str]:
    """Quoted lines behind a bar. Only code, tables and bold words of them are rendered, of a tool's output nothing."""
    within = [line[1:].removeprefix(" ") for line in lines]
    inner = screen._replace(width=max(_NARROWEST, screen.width - 2))
    number = 0
    while number < len(within):
        end = 0 if verbatim else _end_of_fence(within, number) or _end_of_table(within, number)
        if end:
            made: Iterator[str] = _set_apart(within[number:end], inner)
        else:
            made = _quoted_line(within[number], inner, verbatim=verbatim)
        yield from (f"{screen.bar} {line}".rstrip() for line in made)
        number = max(number + 1, end)


def _quoted_line(line: str, screen: _Screen, *, verbatim: bool) -> Iterator[str]:
    body = line.lstrip(" ")
    style = "bold" if _HEADING.fullmatch(line) else ""
    text = _plain(body) if verbatim else _inline(body, screen, style)
    yield from _wrapped(" " * (len(line) - len(body)), text, screen)


# ---- code and tables ----


def _end_of_fence(lines: Sequence[str], number: int) -> int:
    """The number of the line behind a block of code that begins here; 0 for none, and for one that never ends."""
    fence = _FENCE.fullmatch(lines[number])
    if fence is None:
        return 0
    for end in range(number + 1, min(number + _MOST_LINES, len(lines))):
        line = lines[end].strip() if fence[2] in lines[end] else ""
        if len(line) >= len(fence[2]) and not line.strip(fence[2][0]):
            return end + 1
    return 0


def _end_of_table(lines: Sequence[str], number: int) -> int:
    """The number of the line behind a table that begins here; 0 for none."""
    if "|" not in lines[number] or number + 1 >= len(lines) or not _TABLE_RULE.fullmatch(lines[number + 1]):
        return 0
    if len(_cells(lines[number])) != len(_cells(lines[number + 1])):
        return 0
    return next((n for n in range(number + 2, len(lines)) if "|" not in lines[n]), len(lines))


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    parts = _BAR.split(inner)
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    return [part.strip().replace("\\|", "|") for part in parts]


def _set_apart(lines: Sequence[str], screen: _Screen) -> Iterator[str]:
    """A block of code, which is not wrapped, so that it can be copied; or a table."""
    if fence := _FENCE.fullmatch(lines[0]):
        if fence[3].strip():
            yield from _wrapped("    ", _plain(fence[3].strip(), _NOTE), screen)
        yield from (f"    {_painted(_plain(line, _CODE), screen)}" if line else "" for line in lines[1:-1])
        return
    rows = [_cells(lines[0]), *map(_cells, lines[2:])]
    columns = max(map(len, rows))
    if columns * _FEWEST > screen.width or len(rows) > _MOST_LINES:
        yield from lines
        return
    yield from _table([[*row, *[""] * (columns - len(row))] for row in rows], screen)


_FEWEST = 8  # columns of the screen that a column of a table takes at least


def _table(rows: Sequence[Sequence[str]], screen: _Screen) -> Iterator[str]:
    from rich.box import ASCII, SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD if screen.rule == "─" else ASCII, show_edge=False, pad_edge=False)
    for heading in rows[0]:
        table.add_column(_inline(heading, screen, "bold"), overflow="fold")
    for row in rows[1:]:
        table.add_row(*(_inline(cell, screen) for cell in row))
    console = _console(screen)
    with console.capture() as captured:
        console.print(table)
    yield from (line.rstrip() for line in captured.get().splitlines())


# ---- a line ----


def _is_note(line: str) -> bool:
    """Whether a line is one of ralf's own remarks, `_Revision 3, …._`."""
    begins = line.startswith("_") and (line[1:2] == "(" or line[1:2].isupper())
    return begins and " " in line and line.endswith(("._", ")_"))


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
    if len(text) > _LONGEST:
        return made
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
    before, behind = text[mark.start() - 1 : mark.start()], text[mark.end() : mark.end() + 1]
    free = not before or before.isspace() or before in "(["
    return len(mark[0]) == 2 and free and bool(behind) and (behind.isalnum() or behind in _OPENERS)


def _ends_bold(text: str, mark: re.Match[str]) -> bool:
    before, behind = text[mark.start() - 1], text[mark.end() : mark.end() + 1]
    free = not behind or not (behind.isalnum() or behind in "_/*")
    return len(mark[0]) == 2 and free and (before.isalnum() or before in _CLOSERS)


def _wrapped(prefix: str, text: Text, screen: _Screen) -> Iterator[str]:
    """A line in as many as the screen needs, broken between words; the second begins below the first word. A word that
    is longer than the screen, such as a path, is left to the terminal, which copies it whole.
    """
    from rich.cells import cell_len

    hanging = min(len(prefix), screen.width // 2)
    room, at, breaks = screen.width - hanging, 0, []
    for word in re.finditer(r"\s*\S+", text.plain):
        size = cell_len(word[0])
        if at and at + size > room:
            breaks.append(word.end() - len(word[0].lstrip()))
            size, at = cell_len(word[0].lstrip()), 0
        at += size
    start = prefix
    for part in text.divide(breaks) if breaks else [text]:
        part.rstrip()
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
