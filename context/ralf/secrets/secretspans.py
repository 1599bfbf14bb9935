"""Where the secrets of a run of events stand: those of each event, those that a border between two events of a kind
cuts in two, those whose end is not there, and the same secret again elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ralf.secrets import secretends
from ralf.secrets.secretformats import Hit
from ralf.secrets.secretvalues import is_random
from ralf.transcripts.events import Event

if TYPE_CHECKING:
    from ralf.secrets.redact import Redactor

MARKER = re.compile(r"\[REDACTED:([a-z0-9-]{1,40}):[0-9a-f]{8}\]")


def untagged(text: str) -> str:
    """A redacted text, its markers without their tags: the same under any key."""
    return MARKER.sub(r"[REDACTED:\1]", text)


_GOES_ON = re.compile(rf"{MARKER.pattern}(?:\+([0-9]{{1,6}}))?\Z")  # how many characters of it follow, where known
OVERLAP = 8 << 10
"""Characters before a border that are looked at together with what follows it, where a private key is open."""

_STREAMS = ("result", "assistant")  # what comes in pieces
_NEAR, _BEHIND = 300, 200  # characters before and behind a border that are looked at together, and the rest of a word
_LONGEST_MARKER = 80  # with how many characters follow
_LONGEST_OPEN = 2 << 10  # of what is kept for the next segment
_SHORTEST_AGAIN = 12
_MANY = 100  # secrets, from which on a text is gone through once, not once for each


class Span(NamedTuple):
    """A part of a text, and what is to stand there."""

    start: int
    end: int
    marker: str


def spans(
    redactor: Redactor, events: Sequence[Event], tails: Mapping[str, str], following: Sequence[Event]
) -> tuple[list[list[Span]], dict[str, int]]:
    """The parts of each event's text that are secrets, in order, none over another; and how many characters of what
    follows belong to the secret, by kind, that the last text of the kind ends with.

    tails      the redacted ends, by kind, of what came before
    following  the first events behind these, where they are known
    """
    found: list[list[Span]] = []
    every = [*events, *following]
    streams = {kind: _Stream(every, kind, tails.get(kind, "")) for kind in _STREAMS}
    for event in every:
        text = event.text
        hits = [*redactor.hits(text), *secretends.cut_off(text)]
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
        if _SHORTEST_AGAIN <= len(secret := event.text[span.start : span.end]) <= secretends.LONGEST_WORD
        and is_random(secret)
    }
    if known:
        again = Known(known)
        for number, event in enumerate(every):
            found[number] += again.spans(event.text)
    merged = [_merged(its) for its in found]
    return merged[: len(events)], _rests(following, merged[len(events) :])


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


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


class Known:
    """Secrets with their markers, found wherever they stand, in time that does not grow with their square."""

    def __init__(self, markers: Mapping[str, str]) -> None:
        self._markers = markers
        self._heads: dict[int, dict[str, list[str]]] = {}  # by how long they are, how the secrets begin
        for secret in markers if len(markers) > _MANY else ():
            head = secret[:_SHORTEST_AGAIN]
            self._heads.setdefault(len(head), {}).setdefault(head, []).append(secret)

    def spans(self, text: str) -> Iterator[Span]:
        """Where they stand in a text; in no order, and they may overlap."""
        if not self._heads:
            for secret, marker in self._markers.items():
                place = 0
                while (place := text.find(secret, place)) >= 0:
                    yield Span(place, place := place + len(secret), marker)
        for size, heads in self._heads.items():
            for place in range(len(text) - size + 1):
                for secret in heads.get(text[place : place + size], ()):
                    if text.startswith(secret, place):
                        yield Span(place, place + len(secret), self._markers[secret])

    def replaced(self, text: str) -> str:
        """A text with the markers in their places."""
        return marked(text, _merged(self.spans(text)))


def marked(text: str, spans: Iterable[Span]) -> str:
    """A text with what is to stand in the spans, which are in order."""
    parts, place = [], 0
    for span in spans:
        parts += [text[place : span.start], span.marker]
        place = span.end
    return "".join([*parts, text[place:]])


# ---- borders ----


def _over_borders(
    redactor: Redactor, events: Sequence[Event], stream: _Stream, *, unknown: bool
) -> Iterator[tuple[int, Span]]:
    """The parts of secrets that begin in one event's text and end in another's, each with its event's number.

    unknown  whether nobody knows what follows the last event
    """
    under_way, left = stream.goes_on
    since = 0  # characters since something that a manifest has
    for number, border, end in stream.texts:
        if under_way:  # its beginning was redacted: its size or else the form of what follows tells
            text = events[number].text
            rest, ends = (left, left < len(text)) if left else secretends.rest(text, under_way)
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
                hits += secretends.cut_off(window)
            yield from _in_events(redactor, stream, start, hits)
    if unknown and stream.texts:
        start = stream.near(len(stream.text), manifest=True)
        yield from _in_events(redactor, stream, start, secretends.unfinished(redactor.hits, stream.text[start:]))


def _in_events(redactor: Redactor, stream: _Stream, start: int, hits: Iterable[Hit]) -> Iterator[tuple[int, Span]]:
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
        first = max(0, start - secretends.LONGEST_WORD)
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
        word = secretends.WORD.match(self.text, border + _BEHIND, min(border + _BEHIND + secretends.LONGEST_WORD, end))
        return word.end() if word is not None else min(border + _BEHIND, end)

    def parts(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The parts of the events' texts between two places, each with its event's number."""
        first = bisect_right(self.texts, start, key=lambda text: text[2])
        for place in range(first, len(self.texts)):
            number, begin, stop = self.texts[place]
            if begin >= end:
                break
            yield number, max(start, begin) - begin, min(end, stop) - begin


_MANIFEST = re.compile(r"kind[\"\\]*:\s*[\"\\]*Secret(?![A-Za-z])|(?:string)?[dD]ata[\"\\]*:(?=\s|\\|\{)")


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
