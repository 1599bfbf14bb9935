"""Secrets of which only the beginning or only the rest is there: a client cut a text short, or a border lies within."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from ralf.secrets import privatekeys, secretformats, vendorrules
from ralf.secrets.secretformats import Hit
from ralf.secrets.secretvalues import is_gibberish, is_random

WORD = re.compile(r"[^\s\"'`<>()\\,;]+")
LONGEST_WORD = 4096
_TOO_SHORT = 12  # of what stands alone, to be judged


# ---- beginnings ----

_WORDS = ("s.", "re_", "pa-", "fc-", "rnd_", "test_", "live_", "base64:", "K10", "phs_", "pha_")
"""Literals of tokens with which names of files and functions begin, too: no sign of a token that was cut short."""

_HEXADECIMAL = re.compile(r"[0-9a-f]+\Z")  # literals with which hashes begin, too


@cache
def _literal() -> re.Pattern[str]:
    """Matches the literals with which tokens begin."""
    own = (literal for one in secretformats.FORMATS for literal in one.literals if literal not in _WORDS)
    vendors = (literal for literal in vendorrules.literals() if not _HEXADECIMAL.match(literal))
    found = sorted({*own, *vendors}, key=lambda literal: (-len(literal), literal))
    return re.compile("|".join(map(re.escape, found)))


_IN_URL = re.compile(r"://(?:[^\s:/@]{0,100}:(?![0-9]+\Z))?([^\s/@:.]{6,})\Z")
_CUT = (
    (":AA", re.compile(r"[0-9]{8,10}:AA[A-Za-z0-9_-]{6,35}\Z")),
    ("Q~", re.compile(r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{6,40}\Z")),
    (".atlasv1.", re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{0,100}\Z")),
    ("SK", re.compile(r"(?<![A-Za-z0-9])SK(?=[a-f]{0,30}[0-9])[0-9a-f]{8,31}\Z")),
)
_BODY = re.compile(r"[A-Za-z0-9_=.,~+/%$:-]+\Z")
_PARTS = re.compile(r"[=:/@,\"'`(\[<{]")


def cut_off(text: str) -> Iterator[Hit]:
    """A token whose beginning ends a text: a client cut it short, or the rest comes later."""
    word = _last_word(text).rstrip("…")
    if len(word) < len("ghp_0123") or not (word[-1].isalnum() or word[-1] in "_-"):
        return
    end = len(text.rstrip().rstrip("…"))
    for start in (0, *(found.end() for found in _PARTS.finditer(word))):
        literal = _literal().match(word, start)
        if literal is not None and _is_body(literal[0], word[literal.end() :]):
            yield Hit(end - len(word) + start, end, "cut-off")
            return
    url = _IN_URL.search(word)
    if url is not None and (
        word[url.start(1) - 1] == ":" or is_random(url[1]) or (len(url[1]) >= _TOO_SHORT and is_gibberish(url[1]))
    ):
        yield Hit(end - len(url[1]), end, "cut-off")
    for sign, pattern in _CUT:
        if sign in word and (found := pattern.search(word)):
            yield Hit(end - len(found[0]), end, "cut-off")


def _last_word(text: str) -> str:
    words = text[-LONGEST_WORD:].rsplit(None, 1)
    return words[-1] if words else ""


def _is_body(literal: str, body: str) -> bool:
    """Whether this can be the beginning of what stands behind a token's literal; of one that is a syllable, too."""
    if body.isupper() and body.isalpha() and len(body) >= _TOO_SHORT:
        return True
    if not _BODY.match(body) or not _is_part(body):
        return False
    return not (literal.isalpha() and literal.islower()) or (body.isalnum() and any(map(str.isdigit, body)))


def _is_part(body: str) -> bool:
    """Whether this can be the beginning of what was made at random, and no word."""
    if len(body) < (_TOO_SHORT if body.isdigit() else len("012345")) or "..." in body:
        return False
    mixed = len(body) >= len("01234567") and body[1:].upper() != body[1:] != body[1:].lower()
    return mixed or any(map(str.isdigit, body)) or is_gibberish(body)


# ---- ends after which anything may come ----

_MAY_FOLLOW = (
    ("", "q7Rt2bVx9MpL4sKd8WzY3nCf"),
    ("@", "h"),
    ("ata", "\nkind: Secret\n"),
    ("ata", '"},"kind":"Secret"}'),
)
"""What makes a secret of what stands before it, and the word without which it makes none."""

_PIPED = re.compile(
    r"\b(?:echo|printf)\s+(?:-[a-z]\s+)?['\"]?(?:[\w.-]{1,64}:)?([^\s'\"`\\|;&<>:]{8,256})['\"]?\s*(?:\|[^\n|]{0,200})?\Z"
)
_PART = re.compile(r"[^A-Za-z0-9]+")
_LOOSE = re.compile(r"(?<![\w/\\.~+-])[A-Za-z0-9][^\s\"'`<>()\\,;=:/|&{}\[\]]{11,200}\Z")
_NO_SECRET = re.compile(r"[a-z]{2,12}_[A-Za-z0-9]+\Z|.*\.[a-z][a-z0-9]{0,4}\Z")  # an id: call_…; a file
_HUMP = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}")
_VOWEL = re.compile("[aeiouy]", re.I)
_SPOKEN = 0.6  # of the letters of a name
_HASH = re.compile(r"[0-9a-f]+\Z|[0-9A-F]+\Z")
_ID = re.compile(
    r"\b(?:\w{0,40}[iI][dD]|ID|hash|commit|digest|sha\w{0,20}|integrity|version|etag)s?[\"']?\s{0,8}[:=#]?\s{0,8}[\"']?\Z"
)


def unfinished(hits: Callable[[str], list[Hit]], end: str) -> Iterator[Hit]:
    """The secrets of an end of which nobody knows yet what follows: what would be one with this or that behind it, and
    a last word that looks random.

    hits  finds the secrets of a text
    """
    known = hits(end)

    def is_new(start: int, stop: int) -> bool:
        return not any(hit.start <= start and stop <= hit.end for hit in known)

    for needed, more in _MAY_FOLLOW:
        for hit in hits(end + more) if needed in end else ():
            stop = min(hit.end, len(end))
            if hit.start < stop and is_new(hit.start, stop):
                part = end[hit.start : stop]
                if _is_beginning(part, hit.kind) if hit.end > stop else is_random(part):
                    yield hit._replace(end=stop)
    piped = _PIPED.search(end, max(0, len(end) - LONGEST_WORD))
    if piped is not None and is_random(piped[1]) and not _HASH.match(piped[1]) and is_new(*piped.span(1)):
        yield Hit(*piped.span(1), "password")
    word = _LOOSE.search(end, max(0, len(end) - LONGEST_WORD))
    if word is None or not _is_loose(word[0]) or not is_new(*word.span()):
        return
    if not _ID.search(end, max(0, word.start() - 40), word.start()):
        yield Hit(*word.span(), "cut-off")


def _is_loose(word: str) -> bool:
    """Whether a word that nothing calls a secret looks random, and is no hash, id, file or name."""
    return not _NO_SECRET.match(word) and any(map(_is_wild, _PART.split(word)))


def _is_wild(part: str) -> bool:
    telling = any(map(str.isdigit, part)) or is_gibberish(part)
    return telling and is_random(part) and not _HASH.match(part) and not _is_spoken(part)


def _is_spoken(word: str) -> bool:
    """Whether most of a word is syllables, as most of a name is."""
    humps = [hump for hump in _HUMP.findall(word) if _VOWEL.search(hump)]
    return sum(map(len, humps)) >= _SPOKEN * len(word)


def _is_beginning(part: str, kind: str) -> bool:
    """Whether so much of a secret tells something of it: of a private key, not its armour and headers alone."""
    if kind == "private-key":
        part = re.split(r"-----|\s|\\n", part)[-1]
    return _is_part(part)


# ---- rests ----

_BASE64 = re.compile(r"[A-Za-z0-9/]*(?:\+[A-Za-z0-9+/]*={0,2}|={1,2})\Z")  # with a sign that words do not have
_LONGEST_LINE = 80  # of a private key
_COOKIES = re.compile(r"[^\n\"'`\\;]{0,4096}(?:;[^\n\"'`\\]{1,4096})")


def rest(text: str, kind: str) -> tuple[int, bool]:
    """Where the rest of a secret of this kind ends with which a text begins, 0 for none; and whether it ends there."""
    if kind == "private-key":
        end = privatekeys.end_of_key(text, 0, within=True)
        only = text.strip()
        if not end and len(only) < _LONGEST_LINE and " " not in only:  # a part of one line
            return len(text) if _is_part(only) else 0, False
        if end:
            return end, end < len(text) or text.endswith("-----")
    if kind == "cookie" and (line := _COOKIES.match(text)):
        return line.end(), line.end() < len(text)
    word = WORD.match(text)
    if word is None:
        return 0, True
    whole = word.end() == len(text)
    if whole and len(word[0]) < _TOO_SHORT:
        return word.end() if any(map(str.isdigit, word[0])) else 0, False
    if len(word[0]) < (_TOO_SHORT if word[0].isdigit() else len("1234")):
        return 0, True
    if any(map(str.isdigit, word[0])):
        return word.end(), not whole
    is_word = _is_spoken(word[0]) and not _is_part(word[0]) and not _BASE64.match(word[0])
    return 0 if is_word or len(word[0]) < _TOO_SHORT else word.end(), not whole
