"""Secrets behind a label in any language: one grammar of what stands between a label and its value.

`Пароль: …`, `密码是…`, `Şifre "…"`, `<th>कुंजी</th>`, a comment `# clé API` above an assignment. The labels are the
table's; the value has to tell that it is one, for a label also stands in prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ralf.redact.engine import Hit, Text
from ralf.redact.names import FOREIGN, PASSWORDS, PINS
from ralf.redact.table import words
from ralf.redact.values import (
    NOTHING,
    RANDOM,
    TOLD,
    UUID,
    is_expression,
    is_identifier,
    is_mixed,
    is_random,
    is_technical,
    is_term,
    strength,
)
from ralf.text.patterns import regex

MARKS = "[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff\u0e31-\u0e4e\u200c-\u200f]"
"""Matches the marks of scripts that `\\w` leaves out, as a regular expression."""

_LOANS = frozenset(("token", "secret", "passw", "passphrase", "pin", "pass", "key"))
"""English stems with which other languages label a secret, too."""

_COPULA = "|".join(sorted(map(re.escape, words("copulas")), key=len, reverse=True))

_WORD = r"[^\s:=\uff1a\uff1d|<>\"'`(){}\[\],.;#/\\0-9-]"

_OPEN = "[\"'`*_(\\[\u00ab\u300c\u300e\u201c\u201e\uff08\u3010]"

_FORM = regex(
    rf"{_WORD}{{0,8}}?[\"'`*_\u00bb\u300d\u201d]{{0,3}}(?:[ ]?[(\uff08][^()\uff08\uff09\n]{{1,30}}[)\uff09])?"
    rf"(?:(?P<between>(?:[ ]{_WORD}{{1,20}}){{0,4}}?)"
    rf"(?:(?P<sign>[ \t]*(?:[:\uff1a=\uff1d\u2192]|->)[ \t*_\u200e\u200f]*(?:\r?\n[ \t]*){{0,2}})"
    rf"|[ ]?(?P<said>{_COPULA})(?:[ ]?[:\uff1a])?[ ]*(?=[ \"'`(\u300c\u201c\u00ab!-~]))"
    rf"|(?P<cell>[ ]{{0,40}}\|[ ]{{0,40}}|</(?:t[hd]|dt|b|strong|label|span)>\s{{0,20}}:?\s{{0,4}}<[a-z]{{1,12}}>)"
    rf"|(?P<comment>[ ]?(?:\*/|-->)?[ ]?:?\r?\n[ \t]*(?:[a-z]{{1,10}}[ ]){{0,2}}[\w.$-]{{1,40}}\s?[:=]{{1,2}}\s?)"
    rf"|(?P<below>[ \t]*\r?\n[ \t>]*(?=[^\s]{{6,200}}[ \t]*(?:\r?\n|\Z)))"
    rf"|(?P<near>[ ]?(?={_OPEN})|[ ]|(?<=[\u0e00-\u0e7f\u3040-\ud7af])(?=[!-~])))"
    rf"(?P<open>{_OPEN}{{0,3}})"
)
"""Matches what stands between a label and its value; in lower case."""

_APART = regex(r"(?:ord|word)?[*_`]{0,2}(?:[ ]?\(|[ ]?(?:\*/|-->)?[ \t]*:?[ \t]*\r?\n|</th)")

_VALUE = regex(r"[^\s\"'`<>|\u00bb\u300d\u300f\u201d\uff09\u3011\uff0c\u3002\u3001\uff1b\uff01\uff1f]{4,400}")

_WITHOUT_SPACES = regex("[\u0e00-\u0e7f\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]")
"""Matches a letter of a script that writes words without blanks."""

_PIN = regex(r"[0-9]{4,8}\Z")

_ENDS = ".,;:!?)]}*_"

_COMMENTS = regex(r"[ \t]*(?:#|//|--|;|/?\*+|<!--)[^\n]*\Z")

_BULLET = regex(r"[ \t]*(?:[-*\u2022>#]{1,4}[ ])?[\"'`*_ ]*(?:[^\W\d_]{1,12}[ ]){0,2}\Z")

_NEXT_WORDS = regex(r"(?:[ ]?[^\s]{1,200}){1,4}")

_HEADS = regex(rf"{_WORD}{{0,8}}(?:[ ]{_WORD}{{1,20}}){{0,2}}</th")

_CELLS = regex(r"<t[hd]\b[^>\n]{0,100}>([^<]{0,400})")

_LONGEST_LINE, _LONGEST_TABLE, _MOST_COLUMNS = 200, 8192, 16


def find(text: Text, stems: Sequence[re.Match[str]]) -> Iterator[Hit]:
    """The secrets of a text that a label before them tells, in no order; they may overlap."""
    raw, low = text.raw, text.low
    plain, read = raw.isascii(), 0
    for stem in stems:
        foreign = stem[0] in FOREIGN and stem[0] != "pin"
        if stem.start() < read or not (foreign or stem[0] in _LOANS):
            continue
        if not foreign and plain and stem[0] != "pin" and not _APART.match(low, stem.end()):
            continue  # English names have a grammar of their own
        if stem[0] == "pin" and raw.startswith("pin", stem.start()) and plain:  # of a chip
            continue
        kind = "pin" if stem[0] in PINS else "password" if stem[0] in PASSWORDS else "secret"
        form = _FORM.match(low, stem.end())
        if form is not None:
            hit = _behind(raw, low, stem.start(), form, kind, foreign=foreign)
            if hit is not None:
                yield hit
                read = hit.end
        if _HEADS.match(low, stem.end()):
            yield from _in_column(raw, low, stem.start(), kind)


def _behind(raw: str, low: str, start: int, form: re.Match[str], kind: str, *, foreign: bool) -> Hit | None:
    """The value behind a label, if it is a secret."""
    place = form.end()
    line = low.rfind("\n", max(0, start - _LONGEST_LINE), start) + 1
    if form["comment"] and not _COMMENTS.match(low, line, start):
        return None
    if form["below"] and not _BULLET.match(low, line, start):
        return None
    if kind == "pin" and form["near"] and not form["open"] and raw[start : form.end()].isascii():
        return None
    sure = not form["near"] or bool(form["open"])
    hit = _value(raw, place, kind, sure=sure, said=bool(form["said"] or form["between"]))
    if hit is None and foreign and not form["cell"]:  # the words between them differ by language
        following = _NEXT_WORDS.match(raw, form.start(), form.start() + _LONGEST_LINE)
        for found in re.finditer(r"[^\s]+", following[0]) if following else ():
            hit = _value(raw, form.start() + found.start(), kind, sure=False, said=True)
            if hit is not None and is_identifier(raw[hit.start : hit.end]):
                hit = None
            if hit is not None:
                break
    return hit


def _value(raw: str, place: int, kind: str, *, sure: bool, said: bool) -> Hit | None:
    while place < len(raw) and raw[place] in "\"'`*(\u300c\u201c\u00ab":
        place += 1
    found = _VALUE.match(raw, place)
    if found is None:
        return None
    value = found[0].rstrip(_ENDS)
    if said and (other := _WITHOUT_SPACES.search(value)):  # a sentence goes on
        value = value[: other.start()]
    told = is_labelled(value, kind) if sure and not said else _is_told(value, kind)
    return Hit(place, place + len(value), kind) if told else None


def is_labelled(value: str, kind: str) -> bool:
    """Whether a value is a secret that nothing but its label parts from others: in a cell, behind a colon."""
    if kind == "pin" and _PIN.match(value):
        return True
    if " " in value or ((other := _WITHOUT_SPACES.search(value)) and other.start() < len("012345")):
        return False
    if not value or value.isalpha() or value.isdigit() or strength(value) == NOTHING or is_expression(value):
        return False
    if kind in ("password", "pin"):
        if strength(value) >= TOLD:
            return True
        letters, digits = sum(map(str.isalpha, value)), sum(map(str.isdigit, value))
        if letters < 2 or not digits or len(value) < len("tiger7") or value.startswith(("/", "http")):
            return False
        return not is_technical(value) and (digits > 1 or not value.isidentifier())
    if UUID.match(value) or is_term(value):
        return False
    return strength(value) == RANDOM or (strength(value) == TOLD and len(value) > len("01234567"))


def _is_told(value: str, kind: str) -> bool:
    """Whether a value in a sentence is a secret: no word of one looks so."""
    if kind == "pin" and _PIN.match(value):
        return len(value) != len("2024")
    if not value.isascii() and not any(map(str.isdigit, value)):
        return False
    if is_expression(value):
        return False
    return is_random(value) or strength(value) == RANDOM or (kind == "password" and is_mixed(value))


def _in_column(raw: str, low: str, start: int, kind: str) -> Iterator[Hit]:
    """The cells of an HTML table below the head that a label is."""
    row = low.rfind("<tr", max(0, start - _LONGEST_TABLE // 8), start)
    if row < 0:
        return
    end = low.find("</table", start, start + _LONGEST_TABLE)
    end = end if end >= 0 else min(len(low), start + _LONGEST_TABLE)
    column = low.count("<t", row, start) - 1
    place = low.find("<tr", start, end)
    if column > _MOST_COLUMNS or place < 0 or low.find("<td", row, place) >= 0:
        return
    while place >= 0:
        following = low.find("<tr", place + 1, end)
        cells = [cell.span(1) for cell in _CELLS.finditer(raw, place, following if following >= 0 else end)]
        if column > len(cells) or low.find("<td", place, following if following >= 0 else end) < 0:
            return
        first, last = cells[column - 1]
        value = raw[first:last].strip()
        if value and is_labelled(value, kind):
            first = raw.index(value, first)
            yield Hit(first, first + len(value), kind)
        place = following
