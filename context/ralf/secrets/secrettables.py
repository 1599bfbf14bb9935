"""Secrets in tables: the head of a column calls what stands below it one. Markdown, `psql`, CSV and tabs."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import NamedTuple

from ralf.secrets.secretformats import Hit

_NAME = re.compile(r"[^\W\d][\w .-]{0,40}\Z")
_HEAD = re.compile(r"[\w .|,\t\"'`*\r-]*")  # names and what parts them: most lines have something else
_RULE = re.compile(r"[-+=|: \t]+\Z")
_LONGEST_LINE = 4096
_MOST_CELLS = 64
_WRAPS = " \t\"'`*\r"
_SEPARATORS = ("|", "\t", ",")


class _Cell(NamedTuple):
    start: int
    end: int


def find(
    text: str, named: Iterable[int], kind_of: Callable[[str], str], is_secret: Callable[[str, str], bool]
) -> Iterator[Hit]:
    """The secrets that stand in the columns of tables.

    named      where something stands, in order, that the name of a secret has
    kind_of    what a name calls its value, "" where that is no secret
    is_secret  whether a value is one under a name of a kind
    """
    read = 0
    for place in named:
        if place < read:
            continue
        start, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
        if end < 0:
            return
        read = end + 1
        if end - start > _LONGEST_LINE or not _HEAD.fullmatch(text, start, end):
            continue
        for separator in _SEPARATORS:
            if text.find(separator, start, end) < 0:
                continue
            head = _cells(text, start, end, separator)
            kinds = _kinds(text, head, separator, kind_of)
            if kinds:
                read = yield from _below(text, end + 1, separator, len(head), kinds, is_secret)
                break


def _cells(text: str, start: int, end: int, separator: str) -> list[_Cell]:
    """The cells of a line, without what wraps their text."""
    cells = []
    for part in text[start:end].split(separator, _MOST_CELLS):
        left = len(part) - len(part.lstrip(_WRAPS))
        size = len(part.strip(_WRAPS))
        cells.append(_Cell(start + left, start + left + size) if size else _Cell(start, start))
        start += len(part) + 1
    return cells


def _kinds(text: str, head: list[_Cell], separator: str, kind_of: Callable[[str], str]) -> dict[int, str]:
    """The columns that a head calls secrets, with their kinds; none where the line is no head."""
    names = [text[cell.start : cell.end] for cell in head]
    told = [name for name in names if name]
    if len(told) < (3 if separator == "," else 2) or not all(map(_NAME.match, told)):
        return {}
    kinds = {number: kind_of(name) for number, name in enumerate(names) if name}
    return {number: kind for number, kind in kinds.items() if kind and (kind != "weak" or separator != ",")}


def _below(
    text: str, start: int, separator: str, columns: int, kinds: dict[int, str], is_secret: Callable[[str, str], bool]
) -> Generator[Hit, None, int]:
    """The secrets in the rows below a head; where the table ends."""
    while start < len(text):
        end = text.find("\n", start)
        end = end if end >= 0 else len(text)
        if end - start > _LONGEST_LINE:
            break
        if not _RULE.match(text, start, end):
            cells = _cells(text, start, end, separator)
            if len(cells) != columns:
                break
            for column, kind in kinds.items():
                cell = cells[column]
                if cell.start < cell.end and is_secret(text[cell.start : cell.end], kind):
                    yield Hit(cell.start, cell.end, "key" if kind == "weak" else kind)
        start = end + 1
    return start
