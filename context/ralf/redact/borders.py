"""Where secrets stand in a run of events: whole, printed by a call, cut by a border between two, or without their end.

The texts of a kind are one stream, which is looked through around its borders as any text is. Of a secret that spans a
border each event gives the piece that stands in it, if that looks as if it was made at random: a short message stays.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

from ralf.redact import commands
from ralf.redact.chance import odds
from ralf.redact.engine import Hit
from ralf.redact.marks import MARKER, Known, Span, merged
from ralf.redact.table import words
from ralf.redact.values import NOTHING, RANDOM, TOLD, strength
from ralf.text.patterns import regex
from ralf.transcripts.events import Event

if TYPE_CHECKING:
    from ralf.redact.redactor import Redactor

_STREAMS = ("result", "assistant")  # what comes in pieces

_LONGEST = 4096  # characters of a secret that is looked for again, or of a word

_NEAR = 300  # characters before and behind a border that are looked at together

_LONG = regex(r"-----(?:BEGIN|END) [^-\n]{0,40}PRIVATE KEY|kind[\"\\]*:\s*[\"\\]*Secret(?![A-Za-z])")

_BEFORE, _BEHIND = 8 << 10, 32 << 10  # so much around a key's or a manifest's sign is looked at together

_REST = regex(r"\S{0,4096}")  # of a word

# ---- pieces ----

_SHORT = 8

_LEAST, _LEAST_NEEDED, _LEAST_SHORT, _LEAST_ALONE = 12, 8, 12, 20  # bits; of the first two each character takes one


def _size(piece: str, *, needed: bool) -> int:
    """How much of a piece behind a border is a part of a secret: up to the last word that looks like one.

    needed  what stands before it is a secret only together with it
    """
    place = len(piece.rstrip())
    while place:
        word = piece[:place].rsplit(None, 1)[-1]
        plain = word.strip("\"'`;,")
        short = len(plain) < _SHORT or plain.isdigit()
        least = _LEAST_SHORT if short else (_LEAST_NEEDED if needed else _LEAST) - len(plain)
        if word.endswith("-----") or (odds(plain) > least and not _stands_for(plain)):
            break
        place = len(piece[: place - len(word)].rstrip())
    return place if piece[place:].strip() else len(piece)


def _stands_for(word: str) -> bool:
    """Whether a word only stands for a secret, as a date or `xxxx`; a reference, too, begins with a sign."""
    return strength(word.lstrip("$-.+/=@:^%{<[(!")) == NOTHING


# ---- ends ----

_MORE = "q7Rt2bVx9MpL4sKd8WzY3nCf"

_MAY_FOLLOW = (_MORE, f"{_MORE}@h", "h", "@h", "\nkind: Secret\n", '"},"kind":"Secret"}', "in -p x")
"""What may make a secret of what stands before it."""

_PARTS = regex(r"[=:/@,\"'`(\[<{]|\A")

_ENDS = regex(r"[A-Za-z0-9_=-]\Z")

_RANDOM = regex(r"(?<![\w/\\.~+-])(?![a-z0-9]{2,12}[_-])(?=[0-9a-fA-F-]*[g-zG-Z])[A-Za-z0-9_-]{12,200}(?![\w/.+=-])")

_ID = regex(
    r"(?:id|h1|base64|hash|commit|digest|sha[0-9]*|integrity|version|etag|fingerprint|recipient|peer|nonce|cursor|(?:page|sync|"
    r"pagination|continuation)[_ -]?token|(?:cache|public|publishable|restore)[_ -]?key)s?[\"']?\s*[:=#,]?\s*[\"']?\Z",
    re.I,
)


@cache
def _literal() -> re.Pattern[str]:
    """Matches the literals with which tokens begin, but for those with which hashes and words begin, too."""
    from ralf.redact.redactor import RULES

    words_too = frozenset(words("syllables"))
    found = {literal for rule in RULES for literal in getattr(rule, "literals", ()) if literal not in words_too}
    found = {literal for literal in found if literal.strip("0123456789abcdef")}
    return re.compile("|".join(map(re.escape, sorted(found, key=lambda word: (-len(word), word)))))


def cut_off(text: str) -> Iterator[Hit]:
    """A token whose beginning ends a text: a client cut it short, or the rest comes later."""
    shown = text.rstrip().rstrip("…")
    word = "".join(shown[-_LONGEST:].rsplit(None, 1)[-1:])
    if len(word) < len("ghp_0123") or not _ENDS.search(word):
        return
    for part in _PARTS.finditer(word):
        literal = _literal().match(word, part.end())
        body = word[literal.end() :] if literal is not None else ""
        if literal is not None and len(body) > 5 and odds(body) > -len(body) and not _stands_for(body):
            yield Hit(len(shown) - len(word) + literal.start(), len(shown), "cut-off")
            return


def unfinished(hits: Callable[[str], list[Hit]], end: str) -> Iterator[Hit]:
    """The secrets of an end of which nobody knows yet what follows: what would be one with this or that behind it, and
    a last word that looks random.

    hits  finds the secrets of a text
    """
    size, known = len(end), {hit.start for hit in hits(end)}
    for more in _MAY_FOLLOW:
        for hit in hits(end + more):
            stop = min(hit.end, size)
            new = hit.start < stop and hit.start not in known and hit.kind != "vendor-token"  # as which an id may begin
            if new and _size(end[hit.start : stop], needed=True):
                yield Hit(hit.start, stop, "cut-off")
    line = end.rfind("\n") + 1
    for word in _RANDOM.finditer(end, line):
        alone = not end[: word.start()].strip()  # a whole output: an id, most often, and nothing says more
        last = not end[word.end() :].strip("\"'") or "echo " in end[line : word.start()]
        named = _ID.search(end, max(0, word.start() - 40), word.start())
        if last and not alone and not named and odds(word[0]) > _LEAST_ALONE:
            yield Hit(*word.span(), "cut-off")


# ---- secrets in a run of events ----


def spans(
    redactor: Redactor,
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
        hits = redactor.hits(event.text)
        if event.kind == "call" and event.call_id:
            calls[event.call_id] = event.text
        elif event.kind == "result" and event.text:
            hits += commands.printed(calls.get(event.call_id, ""), event.text)
        if event.kind not in _STREAMS:
            hits += cut_off(event.text)
        found.append([Span(*hit[:2], redactor.marker(hit.kind, event.text[hit.start : hit.end])) for hit in hits])
        if event.input and (named := dict(redactor.named(event.input))):
            found[-1] += Known(named).spans(event.text)
    for kind in _STREAMS:
        unknown = not any(event.kind == kind and event.text for event in following)
        stream = _Stream(redactor, every, kind, tails.get(kind, ""))
        for number, span in reversed([*stream.secrets(found, unknown=unknown)]):
            found[number].insert(0, span)  # the first names what several find
    known = before if before is not None else {}
    for event, its in zip(every, found, strict=True):
        for span in its:
            secret = event.text[span.start : span.end]
            if _SHORT <= len(secret) <= _LONGEST and _may_stand_again(secret):
                known[secret] = span.marker
    again = Known(known)
    for event, its in zip(every, found, strict=True):
        its += again.spans(event.text)
    apart = list(map(merged, found))
    return apart[: len(events)], {kind: _following(kind, following, apart[len(events) :]) for kind in _STREAMS}


def _may_stand_again(secret: str) -> bool:
    told = strength(secret)
    return told == RANDOM or (told >= TOLD and any(map(str.isdigit, secret)))


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


# ---- the ends of what came before ----

_GOES_ON = regex(
    r"\[REDACTED:([a-z0-9-]{1,40}):[0-9a-f]{8}\](?:\+([0-9]{1,6})|[^\s\"'`<>()]{0,11}[; ]{0,2})\Z"
)  # how many characters of it follow, where known, or a piece that is too short to tell

_MANIFEST = "kind: Secret\ndata:"


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
            whole = _plain(_plain(end) + "".join(texts)[-_BEFORE:])  # whatever a text says of itself
            end = whole[-_NEAR:]
            signs = [sign for sign in _LONG.finditer(whole) if "Secret" in sign[0]]
            if signs and "\n---" not in whole[signs[-1].end() :]:
                end = f"{_MANIFEST}{end[end.find(chr(10)) :]}"
            if rests[kind] and _GOES_ON.search(end):
                end += f"+{rests[kind]}"
        if end:
            ends[kind] = end
    return ends


def _plain(end: str) -> str:
    """An end without the number of characters that follow."""
    goes_on = _GOES_ON.search(end, max(0, len(end) - 80))
    return end[: goes_on.start(2) - 1] if goes_on is not None and goes_on[2] else end


_KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7q7Rt2bVx9MpL"


class _Stream:
    """The texts of a kind as one text, behind the end of what came before."""

    def __init__(self, redactor: Redactor, events: Sequence[Event], kind: str, before: str) -> None:
        self._redactor = redactor
        goes_on = _GOES_ON.search(before)
        self._kind, self._left = (goes_on[1], int(goes_on[2] or 0)) if goes_on is not None else ("", 0)
        if goes_on is not None and not self._left:  # a secret stands for it, so that what goes on from it is found
            secret = _KEY if self._kind == "private-key" else f"password={_MORE}"
            before = before[: goes_on.start()] + secret + MARKER.sub("", goes_on[0])
        parts = [_plain(before)]
        self._texts: list[tuple[int, int, int]] = []  # each event's number, and where its text begins and ends
        end = len(parts[0])
        for number, event in enumerate(events):
            if event.kind == kind and event.text:
                parts.append(event.text)
                self._texts.append((number, end, end := end + len(event.text)))
        self._text = "".join(parts)

    def secrets(self, found: Sequence[Sequence[Span]], *, unknown: bool) -> Iterator[tuple[int, Span]]:
        """The secrets that span borders, and those without their end, each piece with its event's number.

        found    what was found in each event's text
        unknown  whether nobody knows what follows
        """
        left = self._left
        for number, begin, end in self._texts if left else ():
            size, left = min(left, end - begin), max(0, left - end + begin)
            if size:
                yield number, Span(0, size, self._redactor.marker(self._kind, self._text[begin : begin + size]))
        whole = {end for number, begin, end in self._texts if any(span.end == end - begin for span in found[number])}
        if self._texts and self._texts[0][1] and self._kind != "cut-off":
            whole.add(self._texts[0][1])
        for start, stop, _ in self._windows():
            yield from self._pieces(start, self._redactor.hits(self._text[start:stop]), whole)
        for _, _, end in self._texts:
            start = self._edge(end - _NEAR)
            yield from self._pieces(start, cut_off(self._text[start:end]), whole)
        if unknown and self._texts:
            start = self._edge(len(self._text) - _NEAR)
            yield from self._pieces(start, unfinished(self._redactor.hits, self._text[start:]), whole)

    def _edge(self, place: int) -> int:
        """Where the word begins in which a place lies."""
        first = max(0, place - _LONGEST)
        return max(self._text.rfind(" ", first, place), self._text.rfind("\n", first, place), first - 1) + 1

    def _windows(self) -> list[Span]:
        """The places around borders, and around the signs of what is long, that are looked at together."""
        borders = [begin for _, begin, _ in self._texts if begin]
        places = [
            Span(self._edge(max(0, border - _NEAR)), found.end(), "")
            for border in borders
            if (found := _REST.match(self._text, border + _NEAR))
        ]
        signs = _LONG.finditer(self._text) if borders else ()
        return merged([*places, *(Span(max(0, sign.start() - _BEFORE), sign.end() + _BEHIND, "") for sign in signs)])

    def _pieces(self, start: int, hits: Iterable[Hit], whole: Collection[int]) -> Iterator[tuple[int, Span]]:
        """The pieces of hits, which were found from `start` on: of those behind a border only what looks random, but
        for a token that ends where its form ends.

        whole  the borders before which a secret stands that is one without what follows
        """
        for hit in hits:
            first, last = start + hit.start, start + hit.end
            pieces = []  # each event's number, where a piece begins and ends, and how much of it is taken
            for number, begin, end in islice(self._texts, bisect_right(self._texts, first, key=itemgetter(2)), None):
                if begin >= last:
                    break
                at, stop = max(first, begin), min(last, end)
                judged = begin and (first < begin or hit.kind != "cut-off")
                judged = judged and not self._text[begin:at].strip(" \"'`\n")
                needed = first < begin and begin not in whole
                judged = judged and not (stop < last and "\n" in self._text[at:stop])
                size = _size(self._text[at:stop], needed=needed) if judged else stop - at
                if needed and size < stop - at and hit.kind != "cut-off" and self._is_exact(first, at, stop, last):
                    size = stop - at
                pieces.append((number, begin, at, at + size))
            if len(pieces) > 1 and all(at == stop for _, _, at, stop in pieces[1:]):
                number, begin, at, stop = pieces[0]
                pieces = [(number, begin, at, at + _size(self._text[at:stop], needed=True))]
            text = "".join(self._text[at:stop] for _, _, at, stop in pieces)
            shown = self._redactor.marker(hit.kind, text)
            for number, begin, at, stop in pieces:
                if at < stop:
                    yield number, Span(at - begin, stop - begin, shown)

    def _is_exact(self, first: int, at: int, stop: int, last: int) -> bool:
        """Whether a secret is none without a piece within it, or a token without its last character: no message fits
        in by chance.
        """
        if stop == last:
            if not _literal().match(self._text, first):
                return False
            at = last - 1
        start = self._edge(max(0, first - _NEAR))
        text = self._text[start:at] + self._text[stop:last]
        return not any(hit.end == len(text) for hit in self._redactor.hits(text))
