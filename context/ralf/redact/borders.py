"""Where secrets stand in a run of events: whole, cut by a border between two events, or without their end."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from ralf.redact import engine, formats
from ralf.redact.engine import Hit
from ralf.redact.marks import SHORTEST_AGAIN, Known, Span, merged
from ralf.redact.values import is_gibberish, is_random, wild_characters
from ralf.text.patterns import regex
from ralf.transcripts.events import Event

# ---- tokens that a text cuts short, and the rests of secrets ----


WORD = regex(r"[^\s\"'`<>()\\,;]+")

LONGEST_WORD = 4096

_TOO_SHORT = 12  # of what stands alone, to be judged

# ---- beginnings ----

_WORDS = ("s.", "re_", "pa-", "fc-", "rnd_", "test_", "live_", "base64:", "K10", "phs_", "pha_")
"""Literals of tokens with which names of files and functions begin, too: no sign of a token that was cut short."""

_HEXADECIMAL = regex(r"[0-9a-f]+\Z")  # literals with which hashes begin, too


@cache
def _literal() -> re.Pattern[str]:
    """Matches the literals with which tokens begin."""
    own = (literal for one in formats.FORMATS for literal in one.literals if literal not in _WORDS)
    vendors = (literal for literal in engine.vendor_literals() if not _HEXADECIMAL.match(literal))
    found = sorted({*own, *vendors}, key=lambda literal: (-len(literal), literal))
    return re.compile("|".join(map(re.escape, found)))


_IN_URL = regex(r"://(?:[^\s:/@]{0,100}:(?![0-9]+\Z))?([^\s/@:.]{6,})\Z")

_CUT = (
    (":AA", regex(r"[0-9]{8,10}:AA[A-Za-z0-9_-]{6,35}\Z")),
    ("Q~", regex(r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{6,40}\Z")),
    (".atlasv1.", regex(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{0,100}\Z")),
    ("SK", regex(r"(?<![A-Za-z0-9])SK(?=[a-f]{0,30}[0-9])[0-9a-f]{8,31}\Z")),
)

_BODY = regex(r"[A-Za-z0-9_=.,~+/%$:-]+\Z")

_PARTS = regex(r"[=:/@,\"'`(\[<{]")


def cut_off(text: str) -> Iterator[Hit]:
    """A token whose beginning ends a text: a client cut it short, or the rest comes later."""
    word = "".join(text[-LONGEST_WORD:].rsplit(None, 1)[-1:]).rstrip("…")
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

_PIPED = regex(
    r"\b(?:echo|printf)\s+(?:-[a-z]\s+)?['\"]?(?:[\w.-]{1,64}:)?([^\s'\"`\\|;&<>:]{8,256})['\"]?\s*(?:\|[^\n|]{0,200})?\Z"
)

_PART = regex(r"[^A-Za-z0-9]+")

_LOOSE = regex(r"(?<![\w/\\.~+-])[A-Za-z0-9][^\s\"'`<>()\\,;=:/|&{}\[\]]{11,200}\Z")

_NO_SECRET = regex(r"[a-z]{2,12}_[A-Za-z0-9]+\Z|.*\.[a-z][a-z0-9]{0,4}\Z")  # an id: call_…; a file

_HUMP = regex(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}")

_VOWEL = regex("[aeiouy]", re.I)

_SPOKEN = 0.6  # of the letters of a name

_HASH = regex(r"[0-9a-f]+\Z|[0-9A-F]+\Z")

_ID = regex(
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

_BASE64 = regex(r"[A-Za-z0-9/]*(?:\+[A-Za-z0-9+/]*={0,2}|={1,2})\Z")  # with a sign that words do not have

_LONGEST_LINE = 80  # of a private key

_COOKIES = regex(r"[^\n\"'`\\;]{0,4096}(?:;[^\n\"'`\\]{1,4096})")


def rest_of_secret(text: str, kind: str) -> tuple[int, bool]:
    """Where the rest of a secret of this kind ends with which a text begins, 0 for none; and whether it ends there."""
    if kind == "private-key":
        end = formats.end_of_key(text, 0, within=True)
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


# ---- secrets in a run of events ----


if TYPE_CHECKING:
    from typing import Any, Protocol

    class Finder(Protocol):
        """Finds the secrets of a text, and names them: a redactor."""

        def hits(self, text: str) -> list[Hit]:
            """The secrets of a text, in order, none over another."""

        def named(self, tree: Any) -> Iterator[tuple[str, str]]:
            """The values of a tree that their keys call secrets, each with its marker."""

        def marker(self, kind: str, secret: str) -> str:
            """What stands for a secret."""


_GOES_ON = regex(
    r"\[REDACTED:([a-z0-9-]{1,40}):[0-9a-f]{8}\](?:\+([0-9]{1,6}))?\Z"
)  # how many characters of it follow, where known

OVERLAP = 8 << 10
"""Characters before a border that are looked at together with what follows it, where a private key is open."""

_STREAMS = ("result", "assistant")  # what comes in pieces

_NEAR, _BEHIND = 300, 200  # characters before and behind a border that are looked at together, and the rest of a word

_LONGEST_MARKER = 80  # with how many characters follow

_LONGEST_OPEN = 2 << 10  # of what is kept for the next segment

_CHUNK = regex(r"\S{12,}")

_SIGN = regex(r"\x1b\[[0-9;]{0,20}[A-Za-z]|\\[nrt]|[^A-Za-z0-9]")

_MOST_PLACES = 40  # between a beginning and an end of a secret at which it might end, too

_MOST_PLACES_OF_LONG = 4  # in a run that is no word, such as minified code


def candidates(text: str) -> set[str]:
    """The parts of a text that may be random secrets: of each run without blanks, what lies between two signs or
    between a sign and an end, if half of it is no word.
    """
    found = set[str]()
    wild = cache(wild_characters)
    for chunk in {chunk[0] for chunk in _CHUNK.finditer(text)}:
        found.update(_between_signs(chunk, wild))
    return found


def _between_signs(chunk: str, wild: Callable[[str], int]) -> Iterator[str]:
    places, wilds, signs = [0], [0], [0]  # where a part may begin or end, and what lies before
    for found in (*_SIGN.finditer(chunk), None):
        start, end = found.span() if found is not None else (len(chunk), len(chunk))
        if start > places[-1]:
            wilds.append(wilds[-1] + wild(chunk[places[-1] : start]))
            signs.append(signs[-1])
            places.append(start)
        if end > start:
            wilds.append(wilds[-1])
            signs.append(signs[-1] + end - start)
            places.append(end)
    if not wilds[-1]:
        return
    most = _MOST_PLACES if len(chunk) <= LONGEST_WORD else _MOST_PLACES_OF_LONG
    for first, start in enumerate(places):
        for last in range(first + 1, min(first + most, len(places))):
            size, its = places[last] - start, wilds[last] - wilds[first]
            if its and SHORTEST_AGAIN <= size <= LONGEST_WORD and (its + signs[last] - signs[first]) * 2 >= size:
                yield chunk[start : places[last]]


def spans(
    redactor: Finder,
    events: Sequence[Event],
    tails: Mapping[str, str],
    following: Sequence[Event],
    before: dict[str, str] | None = None,
) -> tuple[list[list[Span]], dict[str, int]]:
    """The parts of each event's text that are secrets, in order, none over another; and how many characters of what
    follows belong to the secret, by kind, that the last text of the kind ends with.

    tails      the redacted ends, by kind, of what came before
    following  the first events behind these, where they are known
    before     secrets that were found before, with their markers, which are looked for again; those that are found here
               and may stand elsewhere are added
    """
    found: list[list[Span]] = []
    every = [*events, *following]
    streams = {kind: _Stream(every, kind, tails.get(kind, "")) for kind in _STREAMS}
    for event in every:
        text = event.text
        hits = [*redactor.hits(text), *cut_off(text)]
        found.append([Span(*hit[:2], redactor.marker(hit.kind, text[hit.start : hit.end])) for hit in hits])
    for kind, stream in streams.items():
        unknown = not any(event.kind == kind and event.text for event in following)
        for number, span in _over_borders(redactor, every, stream, unknown=unknown):
            found[number].append(span)
    for number, event in enumerate(every):
        if event.input and (named := dict(redactor.named(event.input))):
            found[number] += Known(named).spans(event.text)
    known = {
        secret: span.marker
        for event, its in zip(every, found, strict=True)
        for span in its
        if SHORTEST_AGAIN <= len(secret := event.text[span.start : span.end]) <= LONGEST_WORD and is_random(secret)
    }
    if before is not None:
        before |= known
        known = before
    if known:
        again = Known(known)
        for number, event in enumerate(every):
            found[number] += again.spans(event.text)
    apart = list(map(merged, found))
    return apart[: len(events)], _rests(following, apart[len(events) :])


def _rests(following: Sequence[Event], found: Sequence[Sequence[Span]]) -> dict[str, int]:
    """How much of the texts of each kind is secret from their beginning."""
    rests = {}
    for kind in _STREAMS:
        size = 0
        for event, its in zip(following, found, strict=True):
            if event.kind == kind and event.text:
                first = its[0].end if its and not its[0].start else 0
                size += first
                if first < len(event.text):
                    break
        rests[kind] = size
    return rests


def open_ends(events: Sequence[Event], before: Mapping[str, str], rests: Mapping[str, int]) -> dict[str, str]:
    """The ends, by kind, of redacted events that a secret may go on from.

    before  those of what came before
    rests   how many characters of what follows belong to it, where that is known
    """
    ends = {}
    for kind in _STREAMS:
        texts = [event.text for event in events if event.kind == kind and event.text]
        end = before.get(kind, "")
        if texts:
            for text in texts:
                end = (_plain(end) + text)[-_LONGEST_OPEN:]
            end = _plain(end)  # whatever a text says of itself
            end = end[-max(_NEAR, _opened(end, manifest=_of_manifest(end))) :]
            if rests[kind] and _GOES_ON.search(end):
                end += f"+{rests[kind]}"
        if end:
            ends[kind] = end
    return ends


def _plain(end: str) -> str:
    """An end without the number of characters that follow."""
    goes_on = _GOES_ON.search(end, max(0, len(end) - _LONGEST_MARKER))
    return end[: goes_on.start(2) - 1] if goes_on is not None and goes_on[2] else end


# ---- borders ----


def _over_borders(
    redactor: Finder, events: Sequence[Event], stream: _Stream, *, unknown: bool
) -> Iterator[tuple[int, Span]]:
    """The parts of secrets that begin in one event's text and end in another's, each with its event's number.

    unknown  whether nobody knows what follows the last event
    """
    under_way, left = stream.goes_on
    since = 0  # characters since something that a manifest has
    for number, border, end in stream.texts:
        if under_way:  # its beginning was redacted: its size or else the form of what follows tells
            text = events[number].text
            rest, ends = (left, left < len(text)) if left else rest_of_secret(text, under_way)
            rest = min(rest, len(text))
            left -= min(left, rest)
            if rest:
                yield number, Span(0, rest, redactor.marker(under_way, text[:rest]))
            under_way = "" if ends else under_way
        since = 0 if stream.of_manifest(border - _NEAR, end) else since + end - border
        if border:
            start = stream.near(border, manifest=since < OVERLAP)
            stop = stream.behind(border, start, end)
            window = stream.text[start:stop]
            hits = redactor.hits(window)  # also those on one side, whose name stands on the other
            if stop == end and len(events[number].text.split(None, 1)) < 2:  # its last word may begin before the border
                hits += cut_off(window)
            yield from _in_events(redactor, stream, start, hits)
    if unknown and stream.texts:
        start = stream.near(len(stream.text), manifest=True)
        yield from _in_events(redactor, stream, start, unfinished(redactor.hits, stream.text[start:]))


def _in_events(redactor: Finder, stream: _Stream, start: int, hits: Iterable[Hit]) -> Iterator[tuple[int, Span]]:
    """The parts of each event that hits take, which were found in the stream's text from `start` on."""
    for hit in hits:
        first, last = start + hit.start, start + hit.end
        shown = redactor.marker(hit.kind, stream.text[first:last])
        for number, begin, end in stream.parts(first, last):
            yield number, Span(begin, end, shown)


class _Stream:
    """The texts of a kind as one text, behind the redacted end of what came before.

    text     all of it
    texts    each event's number, and where its text begins and ends in it
    goes_on  the kind of the secret that the end before it ends with, and how many characters of it follow, 0: unknown
    """

    def __init__(self, events: Sequence[Event], kind: str, before: str) -> None:
        goes_on = _GOES_ON.search(before)
        self.goes_on = (goes_on[1], int(goes_on[2] or 0)) if goes_on is not None else ("", 0)
        parts = [_plain(before)]
        self.texts: list[tuple[int, int, int]] = []
        end = len(parts[0])
        for number, event in enumerate(events):
            if event.kind == kind and event.text:
                parts.append(event.text)
                self.texts.append((number, end, end := end + len(event.text)))
        self.text = "".join(parts)
        self._has_key = "PRIVATE KEY" in self.text  # each border asks, and most streams have neither
        self._has_manifest = _of_manifest(self.text)

    def of_manifest(self, start: int, end: int) -> bool:
        """Whether something stands there that a manifest has."""
        return self._has_manifest and _of_manifest(self.text[max(0, start) : end])

    def near(self, border: int, *, manifest: bool) -> int:
        """Where that begins, before a border, which has to be looked at with what follows it.

        manifest  there may be the beginning of one
        """
        start = max(0, border - _NEAR)
        first = max(0, start - LONGEST_WORD)
        start = max(self.text.rfind(" ", first, start), self.text.rfind("\n", first, start), first - 1) + 1  # a word's
        if self._has_key or manifest:
            start = min(start, border - _opened(self.text[max(0, border - OVERLAP) : border], manifest=manifest))
        return start

    def behind(self, border: int, start: int, end: int) -> int:
        """Where that ends, of the text from a border to `end`, which has to be looked at with what is before it."""
        if self._has_key or self._has_manifest:
            around = self.text[start : min(border + 80, end)]
            if "PRIVATE KEY" in around:
                return min(border + 4 * OVERLAP, end)
            if "Secret" in around or (
                "ata" in around and "Secret" in self.text[border:end] and _MANIFEST.search(around)
            ):
                return min(border + OVERLAP, end)
        word = WORD.match(self.text, border + _BEHIND, min(border + _BEHIND + LONGEST_WORD, end))
        return word.end() if word is not None else min(border + _BEHIND, end)

    def parts(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The parts of the events' texts between two places, each with its event's number."""
        first = bisect_right(self.texts, start, key=lambda text: text[2])
        for place in range(first, len(self.texts)):
            number, begin, stop = self.texts[place]
            if begin >= end:
                break
            yield number, max(start, begin) - begin, min(end, stop) - begin


_MANIFEST = regex(r"kind[\"\\]*:\s*[\"\\]*Secret(?![A-Za-z])|(?:string)?[dD]ata[\"\\]*:(?=\s|\\|\{)")


def _of_manifest(text: str) -> bool:
    return "Secret" in text or "apiVersion" in text


def _opened(tail: str, *, manifest: bool) -> int:
    """How many characters before an end the private key or the manifest begins that is still open there; 0 for none."""
    begun = tail.rfind("-----BEGIN", max(0, len(tail) - OVERLAP))
    if begun >= 0 and "PRIVATE KEY" in tail[begun : begun + 80] and "-----END" not in tail[begun:]:
        return len(tail) - begun
    if manifest and any(sign in tail for sign in ("Secret", "ata:", 'ata"', "ata\\")):  # much faster than the search
        document = max(tail.rfind("\n---"), len(tail) - OVERLAP, 0)
        data = _MANIFEST.search(tail, document)
        return len(tail) - data.start() if data is not None else 0
    return 0
