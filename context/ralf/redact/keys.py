"""Key material: private keys in armour, whole or in part, in base64, as JWK, XML, text of openssl, PuTTY's."""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache

from ralf.redact.engine import Hit, Text
from ralf.text.patterns import regex

_KIND = r"(?:[A-Za-z0-9]{2,12} ){0,3}(?:PRIVATE KEY(?: BLOCK)?|SECRET KEY|(?:Static|STATIC) (?:key|KEY)(?: V[0-9])?)"

_BEGIN = regex(rf"-----BEGIN {_KIND}-----|-{{4,5}} ?BEGIN SSH2 ENCRYPTED PRIVATE KEY ?-{{4,5}}")

_END = regex(rf"-----END {_KIND}-----|-{{4,5}} ?END SSH2 ENCRYPTED PRIVATE KEY ?-{{4,5}}")

_FRAME = r"(?:\s|\\+[nrt]|\\+u000[aAdD]|<br ?/?>|[\"'`,+>|│→:]|(?:^|(?<=n))-(?!-)|(?<=[ \n])[0-9]{1,6}(?=[\t→:|]))"

_HEADER = r"[A-Za-z-]{4,24}: [^\n\\]{1,80}+"

_REST_OF_LINE = regex(rf"[A-Za-z0-9+/=]{{1,76}}+(?={_FRAME}++(?:[A-Za-z0-9+/=]{{16}}|-----END))")

_LINE = regex("[A-Za-z0-9+/=]{16,}+")

_TAIL = r"(?:=?[A-Za-z0-9+/=]{1,100}+)?"

_PARTS, _SHORT_LINE = regex(r"(?:^[+-]|\s|\\{1,8}[nrt]|<br ?/?>|[\"'`,>|│→:])+"), regex(r"=?[A-Za-z0-9+/=]{1,76}")

_SIGNS = regex(r"[0-9]+|[ \t]+")

LONGEST_KEY, _LONGEST_PREFIX = 32 << 10, 200

_MOSTLY = 0.6  # of what stands between the beginning and the end of a key is its lines

_IN_BASE64 = "LS0tLS1CRUdJTi"  # -----BEGIN

_WRAPPED = regex(
    r"[A-Za-z0-9+/]{60,}+(?:(?:\r?\n|\\+n)[ \t]*+[A-Za-z0-9+/]{16,}+)*+"
    r"(?:(?:\r?\n|\\+n)[ \t]*+[A-Za-z0-9+/]{1,76}+(?==|\s|\Z))?={0,2}"
)

# ---- in armour ----


@lru_cache(64)
def _body(prefix: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What matches the lines of a key behind a prefix of its lines, and the rest behind them."""
    frame = rf"(?:{_FRAME}|(?<=\n){prefix})" if prefix else _FRAME
    body = rf"(?:{frame}*+(?:[A-Za-z0-9+/=]{{16,}}+|{_HEADER}))*+"
    return re.compile(body, re.M), re.compile(rf"{frame}*+{_TAIL}{frame}*+", re.M)


def _prefix(text: str, place: int) -> str:
    """A regular expression for what stands before a place in its line, its numbers and blanks apart; "" for nothing."""
    first = max(0, place - _LONGEST_PREFIX)
    before = text[max(first, text.rfind("\n", first, place) + 1) : place]
    if not before.strip(" \t\"'`+>|-"):
        return ""
    parts = (re.escape(part) for part in _SIGNS.split(before))
    signs = ("[0-9]+" if sign[0].isdigit() else "[ \\t]+" for sign in _SIGNS.findall(before))
    return "".join(part + next(signs, "") for part in parts)


def _in_armour(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    begun, ended = _BEGIN.search(text), _END.search(text)
    while begun or ended:
        if begun is not None and (ended is None or begun.start() < ended.start()):
            place = max(begun.end(), _end_of(text, begun, ended))
            if _LINE.search(text, begun.end(), place):
                yield begun.start(), place
        elif ended is not None:
            start = _start_of_lines(text, place, ended.start())
            if start < ended.start():
                yield start, ended.end()
            place = ended.end()
        if begun is not None and begun.start() < place:  # each is looked for only behind what was read
            begun = _BEGIN.search(text, place)
        if ended is not None and ended.start() < place:
            ended = _END.search(text, place)


def _end_of(text: str, begun: re.Match[str], ended: re.Match[str] | None) -> int:
    """Where the key ends that begins there: at its end, where little but its lines stands before that."""
    end = end_of_key(text, begun.end(), prefix=_prefix(text, begun.start()))
    if ended is not None and end < ended.start() < begun.end() + LONGEST_KEY:
        between = text[begun.end() : ended.start()]
        if sum(map(len, _LINE.findall(between))) >= _MOSTLY * len(between) and not _BEGIN.search(between):
            return ended.end()
    return end


def end_of_key(text: str, start: int, *, within: bool = False, prefix: str = "") -> int:
    """Where the lines of a key end that begin at `start`, its last line included; `start` where there are none.

    within  the text goes on within a line of the key, of which little may be left
    prefix  a regular expression for what stands before each of its lines
    """
    body, tail = _body(prefix)
    line = _REST_OF_LINE.match(text, start) if within else None
    lines = body.match(text, line.end() if line is not None else start, start + LONGEST_KEY)
    end = lines.end() if lines is not None else start
    rest = tail.match(text, end, end + _LONGEST_PREFIX)
    closed = _END.match(text, rest.end()) if rest is not None else None
    if closed is not None:
        return closed.end()
    return len(text) if rest is not None and end > start and rest.end() == len(text) else end  # its last line, cut


def _start_of_lines(text: str, after: int, end: int) -> int:
    """Where the lines of a key begin whose end alone is there; `end` where there are none."""
    prefix = re.compile(_prefix(text, end))
    start = place = end
    last = True  # the last line of a key may be short
    while place > max(after, end - LONGEST_KEY):
        line = max(text.rfind("\n", after, place - 1) + 1, after)
        before = prefix.match(text, line, place)
        parts = [part for part in _PARTS.split(text[before.end() if before else line : place]) if not part.isdigit()]
        parts = [part for part in parts if part.strip("+")]
        long = list(filter(_LINE.fullmatch, parts))
        if parts and not (len(long) >= len(parts) - 1 and (long or (last and _SHORT_LINE.fullmatch(parts[0])))):
            break
        if parts:
            start, last = text.find((long or parts)[0], line), False
        place = line
    return start


# ---- in other forms ----

_B64URL = r"[A-Za-z0-9_+/=-]{20,}+"

_JWK = regex(rf"[\"'\\]*\b(?:d|p|q|dp|dq|qi|k)[\"'\\]*\s{{0,4}}:\s{{0,4}}[\"'\\]+({_B64URL})")

_XML = regex(r"<(?:D|P|Q|DP|DQ|InverseQ)>\s{0,8}([A-Za-z0-9+/=\s]{20,2000}+)</")

_OPENSSL = regex(
    r"(?:priv|privateExponent|prime[12]|exponent[12]|coefficient):[ \t]*\r?\n"
    r"((?:[ \t]{1,20}(?:[0-9a-fA-F]{2}:){1,20}(?:[0-9a-fA-F]{2})?[ \t\r]*\n?)+)"
)

_PUTTY = regex(r"Private-Lines: [0-9]{1,4}\s{1,4}((?:[A-Za-z0-9+/=]{4,}+\s{0,4}+){1,400}+)")

_HEX_KEY = regex(  # Ethereum's
    r"(?i:private[ _-]?keys?|accounts?|pk)\W[^\n]{0,40}?\b(0x[0-9a-f]{64})(?![0-9a-fA-F])"
    r"|\b(0x[0-9a-f]{64})(?=[^\n]{0,40}[pP]rivate.?[kK]ey)"
)


def _in_base64(text: str) -> Iterator[tuple[int, int]]:
    """The base64 of a key in armour, also over several lines."""
    place = 0
    while (place := text.find(_IN_BASE64, place)) >= 0:
        found = _WRAPPED.match(text, place)
        if found is not None and b"PRIVATE KEY" in a2b_base64(found[0][:60] + "===="[: -60 % 4]):
            yield found.span()
        place = found.end() if found is not None else place + 1


def _groups(form: re.Pattern[str]) -> Callable[[str], Iterator[tuple[int, int]]]:
    return lambda text: (found.span(found.lastindex or 0) for found in form.finditer(text))


class Key:
    """One form in which private keys are written.

    words  one of them, in lower case, is in a text that has one; each of `needs`, too
    """

    kind = "private-key"

    def __init__(self, words: str, finds: Callable[[str], Iterator[tuple[int, int]]], *needs: str) -> None:
        self.words = words.split("|")
        self._finds, self._needs = finds, needs

    def find(self, text: Text, _: Collection[str] = ()) -> Iterator[Hit]:
        """Where such keys stand in a text; one whose beginning or end was cut off, as far as it goes."""
        if all(word in text.low for word in self._needs):
            yield from (Hit(*place, self.kind) for place in self._finds(text.raw))


KEYS = (
    Key("private key|secret key|static key", _in_armour),  # -----BEGIN PRIVATE KEY-----
    Key(_IN_BASE64.lower(), _in_base64),  # LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk…
    Key("kty", _groups(_JWK)),  # {"kty": "OKP", "d": "…"}
    Key("<rsakeyvalue>|<dsakeyvalue>", _groups(_XML)),  # <RSAKeyValue>…<D>…</D>
    Key("priv:|privateexponent:|prime1:|exponent1:|coefficient:", _groups(_OPENSSL)),  # priv:\n    a1:b2:…
    Key("private-lines: ", _groups(_PUTTY)),  # Private-Lines: 14
    Key("0x", _groups(_HEX_KEY), "key"),  # accounts: ["0x…"] // private keys
)
