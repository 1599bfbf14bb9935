"""Private keys in armour, whole, without their end or without their beginning, however their lines are written."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ralf.redact.engine import Hit, Rule, Text
from ralf.redact.values import odds
from ralf.text.patterns import regex

_KIND = r"(?:[A-Za-z0-9]{2,12} ){0,3}(?:PRIVATE KEY(?: BLOCK)?|SECRET KEY|(?:Static|STATIC) (?:key|KEY)(?: V[0-9])?)"
_PART = regex(
    rf"-{{4,5}} ?(?:(?P<begin>BEGIN)|END) (?:{_KIND}|SSH2 ENCRYPTED PRIVATE KEY) ?-{{4,5}}"
    r"|(?<![A-Za-z0-9+/=])(?P<line>[A-Za-z0-9+/=]{16,}+)(?=[\"'`,;+|\\<\s-]|\Z)"
)
_NO_WORD = regex(r"\\{1,32}+[nrt]|\\{1,32}+u000[aAdD]|<br ?/?>|[^A-Za-z\n]")
_HEADER = regex(r"[A-Za-z-]{4,24}: [^\n\\]{1,80}")
_LAST_LINE = regex(r"(?:\s|\\+[nrt]|[\"'`,+>|→:0-9]){0,40}[A-Za-z0-9+/]{1,76}={0,2}\s*\Z")
_LONGEST_GAP, _LONGEST_PREFIX = 300, 200


def _find(text: Text, _: Collection[str]) -> Iterator[Hit]:
    """The lines of private keys between a beginning and an end, one of which is there; of a cut key what is there."""
    raw = text.raw
    start = end = lines = 0
    prefix, begun = "", False
    for part in _PART.finditer(raw):
        begins, line = part["begin"] is not None, part["line"] is not None
        if line and odds(part[0]) <= 0:
            continue
        gap = raw[end : part.start()]
        words = _NO_WORD.sub("", _HEADER.sub("", gap) if begun and not lines else gap).split("\n")  # of each line
        joined = (begun or lines) and not begins and len(gap) <= _LONGEST_GAP
        if not (joined and ((lines and not line) or all(word in ("", prefix) for word in words))):
            if begun and lines:
                yield _cut(raw, start, end)
            start, lines, begun = part.start(), 0, begins
            prefix = _NO_WORD.sub("", raw[max(0, start - _LONGEST_PREFIX) : start].rpartition("\n")[2])
        end = part.end()
        lines += line
        if not (begins or line):
            if lines:
                yield Hit(start, end, "private-key")
            begun, lines = False, 0
    if begun and lines:
        yield _cut(raw, start, end)


def _cut(raw: str, start: int, end: int) -> Hit:
    """A key without its end, and the part of a line that may follow."""
    last = _LAST_LINE.match(raw, end)
    return Hit(start, last.end() if last is not None else end, "private-key")


RULE = Rule(("private key", "secret key", "static key"), _find)
