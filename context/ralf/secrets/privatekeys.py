"""Private keys in armour: whole, or the part that a text holds of one."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BEGIN = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|-----BEGIN SSH2 ENCRYPTED PRIVATE KEY-----"
)
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_FRAME = r"(?:\s|\\+[nrt]|\\+u000[aAdD]|[\"'`,+>|│→:]|(?:^|(?<=n))-(?!-)|(?<=[ \n])[0-9]{1,6}(?=[\t→:|]))"
_BODY = re.compile(rf"(?:{_FRAME}*+(?:[A-Za-z0-9+/=]{{16,}}+|[A-Za-z-]{{4,24}}: [^\n\\]{{1,80}}+))*+", re.M)
_TAIL = re.compile(rf"{_FRAME}*+(?:=?[A-Za-z0-9+/=]{{1,100}}+)?{_FRAME}*+", re.M)
_REST_OF_LINE = re.compile(rf"[A-Za-z0-9+/=]{{1,76}}+(?={_FRAME}++(?:[A-Za-z0-9+/=]{{16}}|-----END))")
_SECRET_LINE = re.compile("[A-Za-z0-9+/=]{16}")
_LONGEST_KEY = 32 << 10


def find(text: str) -> Iterator[tuple[int, int]]:
    """Where the private keys of a text begin and end; one whose beginning or end was cut off, as far as it goes."""
    if "-----" in text:
        yield from _in_armour(text)
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
            place = max(begun.start() + 1, end_of_key(text, begun.end()))
            if _SECRET_LINE.search(text, begun.end(), place):
                yield begun.start(), place
        else:
            return


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
    start = place = end
    while place > max(after, end - _LONGEST_KEY):
        line = text.rfind("\n", after, place)
        words = text[max(line + 1, after) : place].replace("\\n", " ").split()
        if not all(_LINE_OF_KEY.fullmatch(word.strip("\"'`,+")) for word in words[-2:]):
            break
        start = max(line + 1, after) if words else start
        place = line
    return start if start < end else None


_LINE_OF_KEY = re.compile(r"[A-Za-z0-9+/=]{16,}|=?[A-Za-z0-9+/=]{1,76}|[0-9]{1,6}[→|:]?")


def _putty(text: str) -> Iterator[tuple[int, int]]:
    for found in re.finditer(r"Private-Lines: [0-9]{1,4}\s{1,4}((?:[A-Za-z0-9+/=]{4,}+\s{0,4}+){1,400}+)", text):
        yield found.span(1)
