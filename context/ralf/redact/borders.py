"""Where secrets stand in a run of events: whole, printed by a call, cut by a border between two, or without their end.

A secret that two results share is looked for in the joined text. What stands behind the border is taken only where it
looks like a part of a secret itself: a short message that happens to follow stays.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from ralf.redact import commands, keys, rules, vendors
from ralf.redact.engine import Hit
from ralf.redact.marks import SHORTEST_AGAIN, Known, Span, merged
from ralf.redact.table import words
from ralf.redact.values import (
    HUMP,
    VOWEL,
    is_expression,
    is_gibberish,
    is_identifier,
    is_mixed,
    is_placeholder,
    is_random,
    wild_characters,
)
from ralf.text.patterns import regex
from ralf.transcripts.events import Event

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


LONGEST_WORD = 4096

OVERLAP = 8 << 10
"""Characters before a border that are looked at together with what follows it, where a private key is open."""

_STREAMS = ("result", "assistant")  # what comes in pieces

_NEAR, _BEHIND = 300, 200  # characters before and behind a border that are looked at together, and the rest of a word

_LONGEST_MARKER = 80  # with how many characters follow

_TOO_SHORT = 12  # of what stands alone, to be judged

_WORD = regex(r"[^\s\"'`<>()\\,;]+")

# ---- parts of secrets ----

_SYLLABLES = frozenset(words("syllables"))
"""Literals of tokens with which names of files and functions begin, too: no sign of a token that was cut short."""

_HEXADECIMAL = regex(r"[0-9a-f]+\Z")  # literals with which hashes begin, too

_IN_URL = regex(r"://(?:[^\s:/@]{0,100}:(?![0-9]+\Z))?([^\s/@:.]{6,})\Z")

_CUT = regex(
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{6,35}\Z|[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{6,40}\Z"
    r"|(?<![A-Za-z0-9])(?:[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{0,100}|SK(?=[a-f]{0,30}[0-9])[0-9a-f]{8,31})\Z"
)

_BODY = regex(r"[A-Za-z0-9_=.,~+/%$:-]+\Z")

_PARTS = regex(r"[=:/@,\"'`(\[<{]")

_BASE64 = regex(r"[A-Za-z0-9/]*(?:\+[A-Za-z0-9+/]*={0,2}|={1,2})\Z|(?=[0-9-]*[a-f])[0-9a-f-]*\Z")  # as no word is

_SPOKEN = 0.6  # of the letters of a name

_KEY_LINE = regex(r"[A-Za-z0-9+/=]{16,}")


@cache
def _literal() -> re.Pattern[str]:
    """Matches the literals with which tokens begin."""
    own = (literal for one in rules.formats() for literal in one.literals if literal not in _SYLLABLES)
    theirs = (literal for literal in vendors.literals() if not _HEXADECIMAL.match(literal))
    return re.compile("|".join(map(re.escape, sorted({*own, *theirs}, key=lambda word: (-len(word), word)))))


def cut_off(text: str) -> Iterator[Hit]:
    """A token whose beginning ends a text: a client cut it short, or the rest comes later."""
    word = "".join(text[-LONGEST_WORD:].rsplit(None, 1)[-1:]).rstrip("…")
    if len(word) < len("ghp_0123") or not (word[-1].isalnum() or word[-1] in "_-"):
        return
    end = len(text.rstrip().rstrip("…"))
    for start in (0, *(found.end() for found in _PARTS.finditer(word))):
        literal = _literal().match(word, start)
        if literal is not None and not is_placeholder(word[start:]) and _is_body(literal[0], word[literal.end() :]):
            yield Hit(end - len(word) + start, end, "cut-off")
            return
    url = _IN_URL.search(word)
    if url is not None and (word[url.start(1) - 1] == ":" or is_rest(url[1])):
        yield Hit(end - len(url[1]), end, "cut-off")
    if found := _CUT.search(word):
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


def is_rest(part: str, *, needed: bool = False) -> bool:
    """Whether a part of a text can only be one of a secret: it is long enough to tell something, and looks random.

    needed  what stands before it is a secret only together with it: then it must only be no word and no number
    """
    if needed and len(part) >= len("01234567"):
        return _is_part(part)
    if len(part) < _TOO_SHORT:
        return is_mixed(part) and part.upper() != part != part.lower() and not _is_spoken(part)
    if is_random(part) or part.isdigit():
        return True
    return is_gibberish(part) or bool(_BASE64.match(part)) or (part.isalnum() and len(re.findall("[0-9]+", part)) > 1)


def _is_spoken(word: str) -> bool:
    """Whether most of a word is syllables, as most of a name is."""
    humps = [hump for hump in HUMP.findall(word) if len(hump) > 1 and VOWEL.search(hump)]
    return sum(map(len, humps)) >= _SPOKEN * len(word)


def _rest(text: str, kind: str, *, needed: bool = False) -> int:
    """How much of a text is the rest of a secret of a kind that another text began; 0 for nothing."""
    if kind == "private-key":
        if text.rstrip().endswith("-----"):
            return len(text)
        whole = max((found.end() for found in _KEY_LINE.finditer(text)), default=0)
        whole = min(whole, keys.end_of_key(text, 0, within=True) or whole)
        rest = text[whole:].strip()  # a line that was cut
        return len(text) if " " not in rest and "\n" not in rest and is_rest(rest, needed=True) else whole
    return len(text) if is_rest(text.strip(), needed=needed) or text.count("\n") > 1 else 0


# ---- ends after which anything may come ----

_MAY_FOLLOW = (
    ("", "q7Rt2bVx9MpL4sKd8WzY3nCf"),
    ("@", "h"),
    ("ata", "\nkind: Secret\n"),
    ("ata", '"},"kind":"Secret"}'),
)
"""What makes a secret of what stands before it, and the word without which it makes none."""

_LOOSE = regex(r"(?<![\w/\\.~+-])[A-Za-z0-9][^\s\"'`<>()\\,;=:/|&{}\[\]]{11,200}\Z")

_PIPED = regex(
    r"\b(?:echo|printf)\s+(?:-[a-z]\s+)?['\"]?(?:[\w.-]{1,64}:)?([^\s'\"`\\|;&<>:]{8,256})['\"]?\s*(?:\|[^\n|]{0,200})?\Z"
)

_NO_SECRET = regex(
    r"[a-z]{2,12}_[A-Za-z0-9]+\Z|[a-z]{1,12}-[0-9a-f]+\Z|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z|.*\.[a-z][a-z0-9]{0,4}\Z|[0-9a-f]+\Z|[0-9A-F]+\Z"
)  # call_…; a file; a hash

_PART = regex(r"[^A-Za-z0-9]+")

_ID = regex(
    r"\b(?:\w{0,40}id|hash|commit|digest|sha\w{0,20}|integrity|version|etag|fingerprint|recipient|peer|nonce|cursor"
    r"|(?:cursor|page|pagination|sync|continuation)[_ -]?token"
    r"|(?:\w{0,20}(?:cache|public|publishable|restore|idempotency)|from|with|hit)[_ -]?keys?)s?"
    r"[\"']?\s{0,8}[:=#]?\s{0,8}[\"']?\Z",
    re.I,
)


def unfinished(hits: Callable[[str], list[Hit]], end: str) -> Iterator[Hit]:
    """The secrets of an end of which nobody knows yet what follows: what would be one with this or that behind it, and
    a last word that looks random.

    hits  finds the secrets of a text
    """
    for needed, more in _MAY_FOLLOW:
        for hit in hits(end + more) if needed in end else ():
            if hit.kind == "vendor-token":  # an id's beginning looks like it
                continue
            stop = min(hit.end, len(end))
            part = (
                re.split(r"-----|\s|\\n", end[hit.start : stop])[-1]
                if hit.kind == "private-key"
                else end[hit.start : stop]
            )
            name = part.rstrip(",;.:)?!")
            if name.isalpha() or is_placeholder(name) or is_expression(name) or is_identifier(name):
                continue
            if hit.start < stop and (_is_part(part) if hit.end > stop else is_random(part)):
                yield hit._replace(end=stop)
    for form in (_PIPED, _LOOSE):
        word = form.search(end, max(0, len(end) - LONGEST_WORD))
        if word is not None:
            start, stop = word.span(word.lastindex or 0)
            if form is _LOOSE and not end[:start].strip():  # a whole output: an id, most often, and nothing says more
                continue
            parts = (part for part in _PART.split(end[start:stop]) if is_random(part))
            parts = (part for part in parts if form is _PIPED or not _is_spoken(part))
            tells = any(any(map(str.isdigit, part)) or is_gibberish(part) for part in parts)
            if tells and not _NO_SECRET.match(end, start, stop) and not _ID.search(end, max(0, start - 40), start):
                yield Hit(start, stop, "cut-off")


# ---- secrets in a run of events ----

_GOES_ON = regex(
    r"\[REDACTED:([a-z0-9-]{1,40}):[0-9a-f]{8}\](?:\+([0-9]{1,6})|[^\s\"'`<>()]{0,11}[; ]{0,2})\Z"
)  # how many characters of it follow, where known, or a piece that is too short to tell


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
    calls: dict[str, str] = {}  # by their ids
    for event in every:
        hits = [*redactor.hits(event.text), *cut_off(event.text)]
        if event.kind == "call" and event.call_id:
            calls[event.call_id] = event.text
        elif event.kind == "result" and event.text:
            hits += commands.printed(calls.get(event.call_id, ""), event.text)
        found.append([Span(*hit[:2], redactor.marker(hit.kind, event.text[hit.start : hit.end])) for hit in hits])
        if event.input and (named := dict(redactor.named(event.input))):
            found[-1] += Known(named).spans(event.text)
    for kind in _STREAMS:
        stream = _Stream(every, kind, tails.get(kind, ""))
        unknown = not any(event.kind == kind and event.text for event in following)
        for number, span in _over_borders(redactor, every, stream, unknown=unknown):
            found[number].append(span)
    known = {
        secret: span.marker
        for event, its in zip(every, found, strict=True)
        for span in its
        if len(secret := event.text[span.start : span.end]) <= LONGEST_WORD
        and (
            (len(secret) >= SHORTEST_AGAIN and is_random(secret)) or (len(secret) > len("hunter2") and is_mixed(secret))
        )
    }
    if before is not None:
        before |= known
        known = before
    if known:
        again = Known(known)
        for number, event in enumerate(every):
            found[number] += again.spans(event.text)
    apart = list(map(merged, found))
    return apart[: len(events)], {kind: _following(kind, following, apart[len(events) :]) for kind in _STREAMS}


def _following(kind: str, following: Sequence[Event], found: Sequence[Sequence[Span]]) -> int:
    """How much of the texts of a kind is secret from their beginning."""
    size = 0
    for event, its in zip(following, found, strict=True):
        if event.kind == kind and event.text:
            first = its[0].end if its and not its[0].start else 0
            size += first
            if first < len(event.text):
                break
    return size


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
            whole = _plain(end) + "".join(texts)[-OVERLAP:]
            end = _plain(whole)[-_NEAR:]  # whatever a text says of itself
            if (opened := _opened(whole)) > len(end):
                end = (
                    f"{_MANIFEST_BEGINS}{end[end.find(chr(10)) :]}"
                    if "Secret" in whole[-opened:]
                    else whole[-opened:][-_NEAR * 6 :]
                )
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
    kind, left = stream.goes_on  # its beginning was redacted: its size or else the form of what follows tells the rest
    if kind and not left and stream.texts:
        _, border, end = stream.texts[0]
        word = _WORD.match(stream.text, border)
        whole = word.end() if word is not None and kind != "private-key" else max(end, border + keys.LONGEST_KEY)
        left = _rest(stream.text[border:whole], kind, needed=whole <= end and (kind == "cut-off" or "webhook" in kind))
    for number, border, end in stream.texts:
        text = events[number].text
        if left:
            rest = min(left, len(text))
            left -= rest
            yield number, Span(0, rest, redactor.marker(kind, text[:rest]))
        if border:
            start = stream.near(border)
            stop = stream.behind(border, start, end)
            window = stream.text[start:stop]
            hits = redactor.hits(window)  # also those on one side, whose name stands on the other
            if stop == end and len(text.split(None, 1)) < 2:  # its last word may begin before the border
                hits += cut_off(window)
            yield from _in_events(redactor, stream, start, hits)
    if unknown and stream.texts:
        start = stream.near(len(stream.text))
        yield from _in_events(redactor, stream, start, unfinished(redactor.hits, stream.text[start:]))


def _in_events(redactor: Finder, stream: _Stream, start: int, hits: Iterable[Hit]) -> Iterator[tuple[int, Span]]:
    """The parts of each event that hits take, which were found in the stream's text from `start` on; right behind a
    border only what looks like a part of a secret.
    """
    for hit in hits:
        first, last = start + hit.start, start + hit.end
        parts, sizes = list(stream.parts(first, last)), [0]  # and how much of each is taken
        for number, begin, end in parts:
            border = stream.begins[number]
            text = stream.text[border + begin : border + end]
            if not stream.text[border : border + begin].strip(" \"'`\n"):
                left = redactor.hits(stream.text[start:border]) if first < border else ()
                needed = first < border and not any(start + one.end == border for one in left)
                sizes.append(_rest(text, hit.kind, needed=needed))
            else:
                sizes.append(end - begin)
        many = max(number for number, size in enumerate(sizes) if size or not number)
        taken = parts[:many]
        if many == 1 < len(parts) and not is_rest(
            stream.text[first : stream.begins[taken[0][0]] + taken[0][2]], needed=True
        ):
            continue  # what stands before the border is a secret only together with what is none
        if taken:
            number, begin, _ = taken[-1]
            taken[-1] = (number, begin, begin + sizes[many])
            shown = redactor.marker(hit.kind, stream.text[first : stream.begins[number] + begin + sizes[many]])
            yield from ((number, Span(begin, end, shown)) for number, begin, end in taken)


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
        self.begins = {number: begin for number, begin, _ in self.texts}
        self._has_long = "PRIVATE KEY" in self.text or "Secret" in self.text  # each border asks, and most have neither

    def near(self, border: int) -> int:
        """Where that begins, before a border, which has to be looked at with what follows it."""
        start = max(0, border - _NEAR)
        first = max(0, start - LONGEST_WORD)
        start = max(self.text.rfind(" ", first, start), self.text.rfind("\n", first, start), first - 1) + 1  # a word's
        return min(start, border - _opened(self.text[max(0, border - OVERLAP) : border])) if self._has_long else start

    def behind(self, border: int, start: int, end: int) -> int:
        """Where that ends, of the text from a border to `end`, which has to be looked at with what is before it."""
        if self._has_long:
            around = self.text[start : min(border + 80, end)]
            if "PRIVATE KEY" in around:
                return min(border + 4 * OVERLAP, end)
            if "Secret" in around or "ata" in around:
                return min(border + OVERLAP, end)
        word = _WORD.match(self.text, border + _BEHIND, min(border + _BEHIND + LONGEST_WORD, end))
        return word.end() if word is not None else min(border + _BEHIND, end)

    def parts(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The parts of the events' texts between two places, each with its event's number."""
        first = bisect_right(self.texts, start, key=lambda text: text[2])
        for place in range(first, len(self.texts)):
            number, begin, stop = self.texts[place]
            if begin >= end:
                break
            yield number, max(start, begin) - begin, min(end, stop) - begin


_MANIFEST = regex(r"kind[\"\\]*:\s*[\"\\]*Secret(?![A-Za-z])|(?:(?<![A-Za-z])|string)[dD]ata[\"\\]*:(?=\s|\\|\{)")

_MANIFEST_BEGINS = "kind: Secret\ndata:"


def _opened(tail: str) -> int:
    """How many characters before an end the private key or the manifest begins that is still open there; 0 for none."""
    begun = tail.rfind("-----BEGIN")
    if begun >= 0 and "PRIVATE KEY" in tail[begun : begun + 80] and "-----END" not in tail[begun:]:
        return len(tail) - begun
    if any(sign in tail for sign in ("Secret", "ata:", 'ata"', "ata\\")):  # much faster than the search
        data = _MANIFEST.search(tail, max(tail.rfind("\n---"), 0))
        return len(tail) - data.start() if data is not None else 0
    return 0


# ---- secrets of which only the tag is known ----

_CHUNK = regex(r"\S{12,4096}")

_SIGN = regex(r"\x1b\[[0-9;]{0,20}[A-Za-z]|\\[nrt]|[^A-Za-z0-9]")

_MOST_PLACES = 40  # between a beginning and an end of a secret at which it might end, too


def candidates(text: str) -> Iterator[str]:
    """The parts of a text that may be random secrets: of each run without blanks, what lies between two signs or
    between a sign and an end.
    """
    for chunk in {chunk[0] for chunk in _CHUNK.finditer(text)}:
        if wild_characters(chunk):
            signs = [found.span() for found in _SIGN.finditer(chunk)]
            places = sorted({0, len(chunk), *chain(*signs)})
            for number, start in enumerate(places):
                ends = places[number + 1 : number + _MOST_PLACES]
                yield from (chunk[start:end] for end in ends if end - start >= SHORTEST_AGAIN)
