"""Private keys: in armour, whole or the part that a text holds of one, behind whatever stands before its lines; and
as base64 of that.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator

_KIND = r"(?:[A-Za-z0-9]{2,12} ){0,3}(?:PRIVATE KEY(?: BLOCK)?|SECRET KEY|(?:Static|STATIC) (?:key|KEY)(?: V[0-9])?)"
_BEGIN = re.compile(rf"-----BEGIN {_KIND}-----|-{{4,5}} ?BEGIN SSH2 ENCRYPTED PRIVATE KEY ?-{{4,5}}")
_KEY_END = re.compile(rf"-----END {_KIND}-----|-{{4,5}} ?END SSH2 ENCRYPTED PRIVATE KEY ?-{{4,5}}")
_FRAME = r"(?:\s|\\+[nrt]|\\+u000[aAdD]|[\"'`,+>|│→:]|(?:^|(?<=n))-(?!-)|(?<=[ \n])[0-9]{1,6}(?=[\t→:|]))"
_BODY = re.compile(rf"(?:{_FRAME}*+(?:[A-Za-z0-9+/=]{{16,}}+|[A-Za-z-]{{4,24}}: [^\n\\]{{1,80}}+))*+", re.M)
_TAIL = re.compile(rf"{_FRAME}*+(?:=?[A-Za-z0-9+/=]{{1,100}}+)?{_FRAME}*+", re.M)
_REST_OF_LINE = re.compile(rf"[A-Za-z0-9+/=]{{1,76}}+(?={_FRAME}++(?:[A-Za-z0-9+/=]{{16}}|-----END))")
_SECRET_LINE = re.compile("[A-Za-z0-9+/=]{16}")
_LONGEST_KEY = 32 << 10
_LONGEST_PREFIX = 200
_MOSTLY = 0.6  # of what stands between the beginning and the end of a key is its lines
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_IN_BASE64 = "LS0tLS1CRUdJTi"  # -----BEGIN
_WRAPPED = re.compile(
    r"[A-Za-z0-9+/]{60,}+(?:(?:\r?\n|\\+n)[ \t]*+[A-Za-z0-9+/]{16,}+)*+"
    r"(?:(?:\r?\n|\\+n)[ \t]*+[A-Za-z0-9+/]{1,76}+(?==|\s|\Z))?={0,2}"
)
_TRAILER = re.compile(r"(?:(?<=\\)[nr]|[ \t\r\"',+\\]){1,40}\Z")
_DIGITS, _SPACES = re.compile("[0-9]+"), re.compile(r"[ \t]+")

WORDS = ("private key", "secret key", "static key", "private-lines: ", _IN_BASE64.lower())
"""The words, in lower case, without one of which a text holds no private key."""


def find(text: str) -> Iterator[tuple[int, int]]:
    """Where the private keys of a text begin and end; one whose beginning or end was cut off, as far as it goes."""
    if "KEY" in text or "Static key" in text:
        yield from _in_armour(text)
    if _IN_BASE64 in text:
        yield from _in_base64(text)
    if "Private-Lines: " in text:
        yield from _putty(text)


def _in_armour(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    begun, ended = _BEGIN.search(text), _KEY_END.search(text)
    while True:
        if begun is not None and begun.start() < place:  # each is looked for only behind what was read
            begun = _BEGIN.search(text, place)
        if ended is not None and ended.start() < place:
            ended = _KEY_END.search(text, place)
        if ended is not None and (begun is None or ended.start() < begun.start()):
            start = _start_of_key(text, place, ended.start())
            if start is not None:
                yield start, ended.end()
            place = ended.end()
        elif begun is not None:
            place = max(begun.start() + 1, _end_of(text, begun, ended))
            if _SECRET_LINE.search(text, begun.end(), place):
                yield begun.start(), place
        else:
            return


def _end_of(text: str, begun: re.Match[str], ended: re.Match[str] | None) -> int:
    """Where the key ends that begins there: at its end, where little but its lines stands before that."""
    end = end_of_key(text, begun.end())
    if ended is not None and end < ended.start() < begun.end() + _LONGEST_KEY:
        between = text[begun.end() : ended.start()]
        lines = sum(map(len, _LINES.findall(between)))
        if lines >= _MOSTLY * (len(between) - _prefixes(text, begun.start(), between)) and not _BEGIN.search(between):
            return ended.end()
    return max(end, _end_behind_prefixes(text, begun))


_LINES = re.compile("[A-Za-z0-9+/=]{16,}+")


def _prefix(text: str, place: int) -> str:
    """What stands before a place in its line."""
    first = max(0, place - _LONGEST_PREFIX)
    return text[max(first, text.rfind("\n", first, place) + 1) : place]


def _prefixes(text: str, start: int, between: str) -> int:
    return len(_prefix(text, start)) * between.count("\n")


def _of_line(line: str) -> tuple[str, str]:
    """A line's prefix, its numbers apart, and the base64 that it ends with."""
    plain = _TRAILER.sub("", line)
    prefix = plain.rstrip(_BASE64)
    return _shape(prefix), plain[len(prefix) :]


def _shape(prefix: str) -> str:
    """A prefix, its numbers and spaces apart, which differ from line to line."""
    return _SPACES.sub(" ", _DIGITS.sub("0", prefix))


def _end_behind_prefixes(text: str, begun: re.Match[str]) -> int:
    """Where the lines end that begin as the line of the armour does: a log's, a search's, a container's."""
    prefix = _shape(_prefix(text, begun.start()))
    place = text.find("\n", begun.end(), begun.end() + 8)
    if not prefix.strip() or place < 0:
        return begun.start()
    end = begun.start()
    while place < begun.end() + _LONGEST_KEY:
        stop = text.find("\n", place + 1)
        stop = stop if stop >= 0 else len(text)
        before, line = _of_line(text[place + 1 : min(stop, place + 1 + 2 * _LONGEST_PREFIX)])
        if not line or before != prefix:
            break
        end = place = stop
        if stop == len(text):
            break
    return end


def _in_base64(text: str) -> Iterator[tuple[int, int]]:
    """The base64 of a key in armour, also over several lines."""
    place = 0
    while (place := text.find(_IN_BASE64, place)) >= 0:
        found = _WRAPPED.match(text, place)
        if found is None:
            place += 1
            continue
        if b"PRIVATE KEY" in b64decode(found[0][:60] + "===="[: -60 % 4], validate=False):
            yield found.span()
        place = found.end()


def end_of_key(text: str, start: int, *, within: bool = False) -> int:
    """Where the lines of a key end that begin at `start`, its last line included; `start` where there are none.

    within  the text goes on within a line of the key, of which little may be left
    """
    line = _REST_OF_LINE.match(text, start) if within else None
    body = _BODY.match(text, line.end() if line is not None else start, start + _LONGEST_KEY)
    end = body.end() if body is not None else start
    rest = _TAIL.match(text, end, end + 200)
    closed = _KEY_END.match(text, rest.end()) if rest is not None else None
    if closed is not None:
        return closed.end()
    return len(text) if rest is not None and end > start and rest.end() == len(text) else end  # its last line, cut


def _start_of_key(text: str, after: int, end: int) -> int | None:
    """Where the lines of a key begin whose end alone is there."""
    starts = [_start_behind_prefixes(text, after, end), _start_of_lines(text, after, end)]
    return min((start for start in starts if start is not None), default=None)


def _start_of_lines(text: str, after: int, end: int) -> int | None:
    start = place = end
    while place > max(after, end - _LONGEST_KEY):
        line = text.rfind("\n", after, place)
        words = text[max(line + 1, after) : place].replace("\\n", " ").split()
        parts = [part for word in words if (part := word.strip("\"'`,+"))]
        if not all(map(_LINE_OF_KEY.fullmatch, parts[-2:])):
            break
        start = max(line + 1, after) if parts else start
        place = line
    return start if start < end else None


def _start_behind_prefixes(text: str, after: int, end: int) -> int | None:
    """Where the lines begin that begin as the line of the end does."""
    before = _prefix(text, end)
    prefix = _shape(before)
    if not prefix.strip():
        return None
    start = end
    place = end - len(before)  # where a line begins
    while place > max(after, end - _LONGEST_KEY):
        first = text.rfind("\n", after, place - 1) + 1 or after
        shape, line = _of_line(text[max(first, place - 2 * _LONGEST_PREFIX) : place - 1])
        if shape != prefix or not line:
            break
        start = place = first
    return start if start < end else None


_LINE_OF_KEY = re.compile(r"[A-Za-z0-9+/=]{16,}|=?[A-Za-z0-9+/=]{1,76}|[0-9]{1,6}[→|:]?")


def _putty(text: str) -> Iterator[tuple[int, int]]:
    for found in re.finditer(r"Private-Lines: [0-9]{1,4}\s{1,4}((?:[A-Za-z0-9+/=]{4,}+\s{0,4}+){1,400}+)", text):
        yield found.span(1)
