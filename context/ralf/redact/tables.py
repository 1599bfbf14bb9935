"""Secrets in the columns of tables (Markdown, `psql`, CSV, tabs, aligned) and in Kubernetes' manifests."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator
from itertools import pairwise

from ralf.redact.assignments import is_in_cell
from ralf.redact.engine import Hit, Place, Text
from ralf.redact.labels import MARKS, is_labelled
from ralf.redact.names import kind_of_title
from ralf.redact.values import is_placeholder
from ralf.text.patterns import regex

_NAME = regex(rf"(?=[^\n]{{1,40}}\Z)[^\W\d](?:[\w.:'\u2019-]|{MARKS})*(?: (?:[\w.:'\u2019-]|{MARKS})+){{0,3}}\Z")

_HEAD = regex(rf"(?:[\w .|,;\t\"'`*\r-]|{MARKS})*")  # names and what parts them: most lines have something else

_RULE = regex(r"[-+=|: \t]+\Z")

_SEPARATORS = tuple(map(regex, (r"\|", r"\t", ";", ",", " {2,}+")))

_LONGEST_LINE, _MOST_CELLS = 4096, 64

_WRAPS = " \t\"'`*\r"


def find_in_tables(text: str, named: Iterable[int]) -> Iterator[Hit]:
    """The secrets that stand in the columns of tables.

    named  where something stands, in order, that the name of a secret has
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
        for number, separator in enumerate(_SEPARATORS):
            head = _cells(text, start, end, number)
            kinds = _kinds(text, head) if separator.search(text, start, end) else {}
            if kinds:
                read = yield from _below(text, end + 1, number, len(head), kinds)
                break


def _cells(text: str, start: int, end: int, separator: int) -> list[Place]:
    """The cells of a line, without what wraps their text."""
    cells, place = [], start
    parted = [found.span() for found in _SEPARATORS[separator].finditer(text, start, end)][:_MOST_CELLS]
    for stop, following in (*parted, (end, end)):
        part = text[place:stop]
        left, size = len(part) - len(part.lstrip(_WRAPS)), len(part.strip(_WRAPS))
        cells.append((place + left, place + left + size) if size else (place, place))
        place = following
    return cells


def _kinds(text: str, head: list[Place]) -> dict[int, str]:
    """The columns that a head calls secrets, with their kinds; none where the line is no head."""
    names = [text[start:end] for start, end in head]
    told = [name for name in names if name]
    if len(told) < 2 or not all(map(_NAME.match, told)):
        return {}
    kinds = {number: kind_of_title(name) for number, name in enumerate(names) if name}
    return {number: kind for number, kind in kinds.items() if kind}


def _below(text: str, start: int, separator: int, columns: int, kinds: dict[int, str]) -> Generator[Hit, None, int]:
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
                first, last = cells[column]
                value = text[first:last]
                if first < last and (is_in_cell(value, kind) or is_labelled(value, kind)):
                    yield Hit(first, last, "key" if kind == "weak" else kind)
        start = end + 1
    return start


# ---- manifests of Kubernetes of kind Secret, as YAML or JSON ----


_SECRET = regex(r"kind[\"\\]*:\s*[\"\\]*Secret(?![A-Za-z])")

_DOCUMENT = regex(r"(?m:^---[ \t]*$)|(?<!\\)\\++n---\\++n")

_DATA = regex(r"(?:(?<![A-Za-z])|(?<=\\n)|string)[dD]ata[\"\\]*:(?=\s|\\|\{)")

_ENTRY = regex(  # of YAML or JSON: how far it is indented, and its value
    r"(?:[ \t]|\{|,)*+(?:\r?\n|\\+n|(?<=[{,\s]))(?:[ \t]*[0-9]{1,6}[→\t|:])?([+-]?[ \t]*)"
    r"[\"'\\]*[\w.-]{1,100}[\"'\\]*[ ]?:[ ]*[\"'\\]*([^\s\"'\\|>{},]{4,}+)?(?:\\*+[\"'])?"
)


class Manifest:
    """What stands under `data:` and `stringData:` of a manifest of kind Secret, as YAML or JSON."""

    kind = "kubernetes-secret"
    words = ("secret",)

    def find(self, text: Text, _: Collection[str] = ()) -> Iterator[Hit]:
        """Where it stands in a text."""
        raw = text.raw
        if "kind" not in raw or "Secret" not in raw:
            return
        borders = [0, *(found.end() for found in _DOCUMENT.finditer(raw)), len(raw)]
        for start, end in pairwise(borders):
            read = start  # an entry may be called `data`, too
            for data in _DATA.finditer(raw, start, end) if _SECRET.search(raw, start, end) else ():
                place, indent = max(read, data.end()), None
                while data.start() >= read and (entry := _ENTRY.match(raw, place, end)):
                    indent = entry[1] if indent is None else indent
                    if entry[1] != indent:
                        break
                    if entry[2] is not None and not is_placeholder(entry[2]):
                        yield Hit(*entry.span(2), self.kind)
                    place = entry.end()
                read = max(read, place)
