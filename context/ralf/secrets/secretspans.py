"""Where the secrets of a run of events stand: those of each event, those that a border between two events of a kind
cuts in two, those whose end is not there, and the same secret again elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ralf.secrets import secretformats
from ralf.secrets.secretformats import Hit
from ralf.secrets.secretvalues import is_random
from ralf.transcripts.events import Event

if TYPE_CHECKING:
    from ralf.secrets.redact import Redactor

MARKER = re.compile(r"\[REDACTED:([a-z0-9-]{1,40}):[0-9a-f]{8}\]")
_MARKER_END = re.compile(MARKER.pattern + r"\Z")
OVERLAP = 8 << 10
"""Characters before a border that are looked at together with what follows it, where a private key is open."""

_STREAMS = ("result", "assistant")  # what comes in pieces
_KEPT = 120  # characters of a segment's last text that are kept for the next one
_NEAR = 300  # such characters elsewhere, and the rest of a word that begins there
_CLOSED = frozenset("\n)]}`!?,;")  # what ends with one of these is not cut within a secret
_WORD = re.compile(r"[^\s\"'`<>()\\,;]+")
_LONGEST_WORD = 4096
_SHORTEST_AGAIN = 12


class Span(NamedTuple):
    """A part of a text, and what is to stand there."""

    start: int
    end: int
    marker: str


class _Place(NamedTuple):
    """A part of an event's text: the event's number (None: of an earlier segment), and where the part begins in it."""

    event: int | None
    start: int
    size: int


def spans(redactor: Redactor, events: Sequence[Event], tails: Mapping[str, str]) -> list[list[Span]]:
    """The parts of each event's text that are secrets, in order, none over another.

    tails  the redacted ends, by kind, of what came before
    """
    found: list[list[Span]] = []
    for event in events:
        text = event.text
        hits = [*redactor.hits(text), *_cut_off(text)]
        found.append([Span(*hit[:2], redactor.marker(hit.kind, text[hit.start : hit.end])) for hit in hits])
    for kind in _STREAMS:
        for number, span in _over_borders(redactor, events, kind, tails.get(kind, "")):
            found[number].append(span)
    for number, event in enumerate(events):
        if event.input:
            found[number] += [
                span for value, marker in redactor.named(event.input) for span in _all(event.text, value, marker)
            ]
    known = {
        secret: span.marker
        for event, its in zip(events, found, strict=True)
        for span in its
        if _SHORTEST_AGAIN <= len(secret := event.text[span.start : span.end]) <= _LONGEST_WORD and is_random(secret)
    }
    for secret, marker in known.items():
        for number, event in enumerate(events):
            if secret in event.text:
                found[number] += _all(event.text, secret, marker)
    return [_merged(its) for its in found]


def open_ends(events: Sequence[Event], before: Mapping[str, str]) -> dict[str, str]:
    """The ends, by kind, of redacted events that a secret may go on from; `before`, those of what came before."""
    ends = {}
    for kind in _STREAMS:
        end = ""
        for event in reversed(events):
            if len(end) >= _KEPT:
                break
            if event.kind == kind:
                end = event.text[-_KEPT:] + end
        end = (before.get(kind, "") + end)[-_KEPT:] if len(end) < _KEPT else end[-_KEPT:]
        if end and (end[-1] not in _CLOSED or _MARKER_END.search(end)):
            ends[kind] = end
    return ends


_LITERALS = tuple(literal for one in secretformats.FORMATS for literal in one.literals if len(literal) > len("s."))


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


def _all(text: str, secret: str, marker: str) -> Iterator[Span]:
    place = 0
    while (place := text.find(secret, place)) >= 0:
        yield Span(place, place := place + len(secret), marker)


# ---- cut off ----

_IN_URL = re.compile(r"://(?:[^\s:/@]{0,100}:(?![0-9]+\Z))?([^\s/@:.]{6,})\Z")
_CUT = (re.compile(r"[0-9]{8,10}:AA[A-Za-z0-9_-]{6,}\Z"), re.compile(r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{6,}\Z"))
_PARTS = re.compile(r"[=:/@,\"'`(\[<{]")


def _last_word(text: str) -> str:
    words = text[-_LONGEST_WORD:].rsplit(None, 1)
    return words[-1] if words else ""


def _cut_off(text: str) -> Iterator[Hit]:
    """A token whose beginning ends the text: a client cut it short, or the rest comes later."""
    word = _last_word(text).rstrip("…")
    if len(word) < len("ghp_0123") or not (word[-1].isalnum() or word[-1] in "_-"):
        return
    end = len(text.rstrip().rstrip("…"))
    for start in (0, *(found.end() for found in _PARTS.finditer(word))):
        rest = word[start:]
        literal = next((literal for literal in _LITERALS if rest.startswith(literal)), "")
        body = rest[len(literal) :]
        if literal and len(body) >= len("012345") and _is_part(body):
            yield Hit(end - len(rest), end, "cut-off")
            return
    url = _IN_URL.search(word)
    if url is not None and (word[url.start(1) - 1] == ":" or is_random(url[1])):
        yield Hit(end - len(url[1]), end, "cut-off")
    for pattern in _CUT:
        if found := pattern.search(word):
            yield Hit(end - len(found[0]), end, "cut-off")


def _is_part(body: str) -> bool:
    """Whether this can be the beginning of what stands behind a token's literal, and no word."""
    mixed = len(body) >= len("01234567") and body[1:].upper() != body[1:] != body[1:].lower()
    return "..." not in body and (mixed or any(map(str.isdigit, body)))


# ---- borders ----


def _over_borders(redactor: Redactor, events: Sequence[Event], kind: str, before: str) -> Iterator[tuple[int, Span]]:
    """The parts of secrets that begin in one event's text and end in another's, each with its event's number."""
    tail, places = before, [_Place(None, 0, len(before))]  # the places make up the tail
    begun = _MARKER_END.search(before)
    under_way = begun[1] if begun is not None else ""
    for number, event in enumerate(events):
        if event.kind != kind or not event.text:
            continue
        if under_way:  # its beginning was redacted: nothing but the form of what follows can tell
            end, ends = _rest(event.text, under_way)
            if end:
                yield number, Span(0, end, redactor.marker(under_way, event.text[:end]))
            under_way = "" if ends else under_way
        if tail and (near := _near(tail, event.text)):
            head = event.text[: _head(event.text, key="PRIVATE KEY" in tail[-near:])]
            whole = len(head) == len(event.text)
            yield from _over_one(
                redactor, tail[-near:] + head, near, [*places, _Place(number, 0, len(head))], whole=whole
            )
        tail += event.text
        places.append(_Place(number, 0, len(event.text)))
        if len(tail) > 2 * OVERLAP:
            tail, places = tail[-OVERLAP:], _last(places, OVERLAP)


def _near(tail: str, head: str) -> int:
    """How many characters before a border have to be looked at with what follows it; 0 where no secret goes over it."""
    begun = tail.rfind("-----BEGIN", max(0, len(tail) - OVERLAP))
    if begun >= 0 and "PRIVATE KEY" in tail[begun : begun + 80] and "-----END" not in tail[begun:]:
        return len(tail) - begun
    if tail[-1] in _CLOSED or (head[0].isspace() and tail[-1] not in ":="):
        return 0
    start = max(0, len(tail) - _NEAR)
    before = tail[max(0, start - _LONGEST_WORD) : start]  # from the beginning of the word that begins there
    return len(tail) - start + len(before) - 1 - max(before.rfind(" "), before.rfind("\n"))


def _head(text: str, *, key: bool) -> int:
    """How many characters behind a border have to be looked at."""
    if key or "KEY" in text[:80]:
        return 4 * OVERLAP
    word = _WORD.match(text, _NEAR, _NEAR + _LONGEST_WORD)
    return word.end() if word is not None else _NEAR


def _over_one(
    redactor: Redactor, window: str, border: int, places: Sequence[_Place], *, whole: bool
) -> Iterator[tuple[int, Span]]:
    hits = redactor.hits(window)  # also those on one side, whose name stands on the other
    hits += _cut_off(window) if whole else ()
    for hit in hits:
        shown = redactor.marker(hit.kind, window[hit.start : hit.end])
        end = len(window)
        for place in reversed(places):
            first, last = max(hit.start, end - place.size, 0), min(hit.end, end)
            if first < last and place.event is not None:
                offset = place.start - (end - place.size)
                yield place.event, Span(first + offset, last + offset, shown)
            end -= place.size
            if end <= hit.start:
                break


_COOKIES = re.compile(r"[^\n\"'`\\;]{0,4096}(?:;[^\n\"'`\\]{1,4096})")


def _rest(text: str, kind: str) -> tuple[int, bool]:
    """Where the rest of a secret of this kind ends with which a text begins, 0 for none; and whether it ends there."""
    if kind == "private-key":
        end = secretformats.end_of_key(text, 0)
        return end, end < len(text) or text.endswith("-----")
    if kind == "cookie" and (line := _COOKIES.match(text)):
        return line.end(), line.end() < len(text)
    word = _WORD.match(text)
    if word is None:
        return 0, True
    whole = word.end() == len(text)
    if whole and len(word[0]) < _SHORTEST_AGAIN:  # too little to tell
        return word.end() if any(map(str.isdigit, word[0])) else 0, False
    if len(word[0]) < len("1234") or word[0].isdigit():
        return 0, True
    return word.end() if is_random(word[0]) or any(map(str.isdigit, word[0])) else 0, not whole


def _last(places: Sequence[_Place], size: int) -> list[_Place]:
    """The places that make up the last `size` characters."""
    kept: list[_Place] = []
    for place in reversed(places):
        part = min(size, place.size)
        kept.insert(0, _Place(place.event, place.start + place.size - part, part))
        size -= part
        if not size:
            break
    return kept
