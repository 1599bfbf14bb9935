"""Secrets in the columns of tables (Markdown, `psql`, CSV, tabs, aligned, HTML, SQL) and in Kubernetes' manifests."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, pairwise

from ralf.redact.engine import Hit, Place, Rule, Text
from ralf.redact.grammar import is_secret
from ralf.redact.names import kind_of_title
from ralf.redact.table import expression
from ralf.redact.values import is_placeholder
from ralf.text.patterns import regex

_NAME = regex(expression(r"(?=[^\n]{1,40}\Z)[^\W\d](?:[\w.:'\u2019-]|%n)*(?: (?:[\w.:'\u2019-]|%n)+){0,3}\Z"))
_HEAD = regex(
    expression(r"(?:[\w .|\u2500-\u257f,;\t\"'`*\r-]|%n)*+")
)  # names and what parts them: most lines have something else
_RULE = regex(r"[-+=|: \t\u2500-\u257f]+\Z")
_COMMA, _TAB = regex(","), regex(r"\t")
_SEPARATORS = (regex(r"\|"), regex("\u2502"), _TAB, regex(";"), _COMMA, regex(" {2,}+"))
_ROW = regex(r"<tr\b(?:(?!<tr\b)[^\0]){0,4000}+")
_CELL = regex(r"<t[hd]\b[^>\n]{0,100}>([^<]{0,400})")
_STATEMENT = regex(r"\(([^()\n]{1,500}+)\)\s{0,20}(?:values\s{0,20}(?=\()|(from stdin;\r?\n))", re.I)
_TUPLE = regex(r"[,\s]{0,20}\(((?:'[^'\n]{0,400}'|[^()'\n]{1,400}){1,64}+)\)")
_LONGEST_LINE, _LONGEST_HEAD, _MOST_CELLS = 4096, 1000, 64
_WRAPS = " \t\"'`*\r"

Rows = Iterator[list[Place]]


def find(text: Text, named: Iterable[int]) -> Iterator[Hit]:
    """The secrets that stand in the columns of tables.

    named  where something stands, in order, that the name of a secret has
    """
    raw, read = text.raw, 0
    marked = "<th" in text.low or "values" in text.low or "from stdin" in text.low
    for place in named:
        if place < read:
            continue
        end = raw.find("\n", place)
        read = end = end if end >= 0 else len(raw)
        for rows in chain(_marked(text, place, end) if marked else (), _of_a_line(raw, place, end)):
            head = next(rows, [])
            kinds = _kinds([raw[slice(*cell)] for cell in head])
            if not kinds:
                continue
            for row in rows:
                if len(row) != len(head):
                    break
                read = max(read, row[-1][1])
                for column, kind in kinds.items():
                    if is_secret(raw[slice(*row[column])], kind, "cell"):
                        yield Hit(*row[column], "key" if kind == "weak" else kind)
            break


def _kinds(head: list[str]) -> dict[int, str]:
    """The columns that a head calls secrets, with their kinds; none where the line is no head."""
    told = [name for name in head if name]
    kinds = {number: kind_of_title(name) for number, name in enumerate(head) if name}
    return {number: kind for number, kind in kinds.items() if kind and len(told) > 1 and all(map(_NAME.match, told))}


def _marked(text: Text, place: int, end: int) -> Iterator[Rows]:
    """The rows of a page's table or of a statement, in whose head a place stands, in a line that ends there."""
    raw, low = text.raw, text.low
    first = max(0, place - _LONGEST_HEAD)
    if "<th" in low[max(0, place - 40) : place] and (start := low.rfind("<tr", first, place)) >= 0:
        rows = _spans(raw, start, _ROW)
        yield ([_stripped(raw, *cell.span(1)) for cell in _CELL.finditer(raw, *row)] for row in rows)
    starts = (raw.rfind("(", first, place), raw.find("(", place, end))
    head = next((found for start in starts if start >= 0 and (found := _STATEMENT.match(raw, start))), None)
    if head is not None:
        yield _of_statement(raw, head)


def _of_a_line(raw: str, place: int, end: int) -> Iterator[Rows]:
    start = raw.rfind("\n", 0, place) + 1
    if end - start <= _LONGEST_LINE and _HEAD.fullmatch(raw, start, end):
        yield from (_of_lines(raw, start, each) for each in _SEPARATORS if each.search(raw, start, end))


def _spans(raw: str, place: int, row: re.Pattern[str], group: int = 0) -> Iterator[Place]:
    """Where the matches of an expression stand that follow directly on one another."""
    while (found := row.match(raw, place)) is not None:
        yield found.span(group)
        place = found.end()


def _of_statement(raw: str, head: re.Match[str]) -> Rows:
    yield _cells(raw, *head.span(1), _COMMA)
    if head[2]:
        yield from _of_lines(raw, head.end(), _TAB)
    for each in _spans(raw, head.end(), _TUPLE, 1):
        yield _cells(raw, *each, _COMMA)


def _of_lines(raw: str, start: int, separator: re.Pattern[str]) -> Rows:
    while start < len(raw):
        end = raw.find("\n", start, start + _LONGEST_LINE)
        end = end if end >= 0 else len(raw)
        if end - start > _LONGEST_LINE:
            return
        if not _RULE.match(raw, start, end):
            yield _cells(raw, start, end, separator)
        start = end + 1


def _cells(text: str, start: int, end: int, separator: re.Pattern[str]) -> list[Place]:
    """The cells of a line, without what wraps their text."""
    parted = [found.span() for found in separator.finditer(text, start, end)][:_MOST_CELLS]
    edges = [start, *(edge for span in parted for edge in span), end]
    return [_stripped(text, *cell) for cell in zip(edges[::2], edges[1::2], strict=True)]


def _stripped(text: str, start: int, end: int) -> Place:
    part = text[start:end]
    start += len(part) - len(part.lstrip(_WRAPS))
    return start, start + len(part.strip(_WRAPS))


# ---- manifests of Kubernetes of kind Secret, as YAML or JSON ----

_SECRET = regex(r"kind[\"\\]*:\s*[\"\\]*Secret(?![A-Za-z])")
_DOCUMENT = regex(r"(?m:^---[ \t]*$)|(?<!\\)\\++n---\\++n")
_DATA = regex(r"(?:(?<![A-Za-z])|(?<=\\n)|string)[dD]ata[\"\\]*:(?=\s|\\|\{)")
_ENTRY = regex(  # of YAML or JSON: how far it is indented, and its value
    r"(?:[ \t]|\{|,)*+(?:\r?\n|\\+n|(?<=[{,\s]))(?:[ \t]*[0-9]{1,6}[→\t|:])?([+-]?[ \t]*+)"
    r"[\"'\\]*+[\w.-]{1,100}+[\"'\\]*+[ ]?:[ ]*+[\"'\\]*+([^\s\"'\\|>{},]{4,}+)?(?:\\*+[\"'])?"
)


def _manifest(text: Text, _: Collection[str]) -> Iterator[Hit]:
    """What stands under `data:` and `stringData:` of a manifest of kind Secret, as YAML or JSON."""
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
                    yield Hit(*entry.span(2), "kubernetes-secret")
                place = entry.end()
            read = max(read, place)


MANIFEST = Rule(("secret",), _manifest)
