"""Where the secrets of a run of events stand: those of each event, those that a border between two events of a kind
cuts in two, those whose end is not there, and the same secret again elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ralf import secretformats
from ralf.secretformats import Hit
from ralf.secretvalues import is_random
from ralf.transcripts.events import Event

if TYPE_CHECKING:
    from ralf.redact import Redactor

MARKER = re.compile(r"\[REDACTED:([a-z0-9-]{1,40}):[0-9a-f]{8}\]")
_MARKER_END = re.compile(MARKER.pattern + r"\Z")
_LONGEST_MARKER = 64
OVERLAP = 8 << 10
"""Characters before a border that are looked at together with what follows it, where a private key is open."""

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
    for kind in {event.kind for event in events}:
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


def open_end(text: str) -> str:
    """The end of a redacted text that a secret may go on from; "" where none can."""
    end = text[-_NEAR:]
    word = _last_word(end)
    if _MARKER_END.search(end) or _ASSIGNED.search(end):
        return end
    return (
        end
        if len(word) > 1 and any(literal.startswith(word[-20:]) or word.startswith(literal) for literal in _LITERALS)
        else ""
    )


_ASSIGNED = re.compile(r"(?:[:=][ \t]?[\"']?[^\s\"']{0,24}|\s--?[a-z-]{1,30}[ =]?|PRIVATE KEY-----\s*)\Z")
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

_URL = re.compile(r"://[^\s:/@]{0,100}:([^\s/@:]{6,})\Z")
_PARTS = re.compile(r"[=:/@,\"']")


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
        if literal and len(body) >= len("012345") and any(map(str.isdigit, body)) and "..." not in body:
            yield Hit(end - len(rest), end, "cut-off")
            return
    url = _URL.search(word)
    if url is not None and not url[1].isdigit():
        yield Hit(end - len(url[1]), end, "cut-off")


# ---- borders ----


def _over_borders(redactor: Redactor, events: Sequence[Event], kind: str, before: str) -> Iterator[tuple[int, Span]]:
    """The parts of secrets that begin in one event's text and end in another's, each with its event's number."""
    tail, places = before, [_Place(None, 0, len(before))]  # the places make up the tail
    for number, event in enumerate(events):
        if event.kind != kind or not event.text:
            continue
        if tail and (near := _near(tail, event.text)):
            head = event.text[: _head(event.text, key=near > _LONGEST_WORD)]
            yield from _over_one(redactor, tail[-near:] + head, near, [*places, _Place(number, 0, len(head))])
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
    return min(len(tail), max(_NEAR, len(_last_word(tail))))


def _head(text: str, *, key: bool) -> int:
    """How many characters behind a border have to be looked at."""
    if key or "KEY" in text[:80]:
        return 4 * OVERLAP
    word = _WORD.match(text, 0, _LONGEST_WORD)
    return max(_NEAR, word.end() if word is not None else 0)


def _over_one(redactor: Redactor, window: str, border: int, places: Sequence[_Place]) -> Iterator[tuple[int, Span]]:
    hits = [hit for hit in redactor.hits(window) if hit.start < border < hit.end]
    marker = _MARKER_END.search(window, max(0, border - _LONGEST_MARKER), border)
    if marker is not None and (rest := _WORD.match(window, border)) and _goes_on(rest[0]):
        hits = [Hit(border, rest.end(), marker[1])]
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


def _goes_on(word: str) -> bool:
    return len(word) > len("123") and not word.isdigit() and (is_random(word) or any(map(str.isdigit, word)))


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
