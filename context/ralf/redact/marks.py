"""What stands for secrets in a text: markers, and the places that they take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from ralf.redact.engine import Hit
from ralf.text.frozen import NamedTuple
from ralf.text.patterns import regex

MARKER = regex(r"\[REDACTED:([a-z0-9-]{1,40}):([0-9a-f]{8})\]")


def markers(text: str) -> dict[str, str]:
    """The markers of a redacted text, by their tags."""
    return {found[2]: found[0] for found in MARKER.finditer(text)}


def untagged(text: str) -> str:
    """A redacted text, its markers without their tags: the same under any key."""
    return MARKER.sub(r"[REDACTED:\1]", text)


_MANY, _HEAD = 100, 12  # secrets, from which on a text is gone through once; characters by which each is looked for


class Span(NamedTuple):
    """A part of a text, and what is to stand there."""

    start: int
    end: int
    marker: str


Found = TypeVar("Found", Hit, Span)


def merged(found: Iterable[Found]) -> list[Found]:
    """The places in order, those that overlap as one, which has the marker or the kind of the first."""
    apart: list[Found] = []
    for place in sorted(found, key=lambda place: (place.start, -place.end)):
        if apart and place.start < apart[-1].end:
            apart[-1] = apart[-1]._replace(end=max(place.end, apart[-1].end))
        else:
            apart.append(place)
    return apart


class Known:
    """Secrets with their markers, found wherever they stand, in time that does not grow with their square."""

    def __init__(self, markers: Mapping[str, str]) -> None:
        self._markers = markers
        self._heads: dict[str, list[str]] = {}  # of many, by how they begin
        for secret in markers if len(markers) > _MANY else ():
            self._heads.setdefault(secret[:_HEAD], []).append(secret)
        self._sizes = set(map(len, self._heads))

    def spans(self, text: str) -> Iterator[Span]:
        """Where they stand in a text; in no order, and they may overlap."""
        if not self._heads:
            for secret, marker in self._markers.items():
                place = 0
                while (place := text.find(secret, place)) >= 0:
                    yield Span(place, place := place + len(secret), marker)
        for size in self._sizes:
            for place in range(len(text) - size + 1):
                for secret in self._heads.get(text[place : place + size], ()):
                    if len(secret) == size or text.startswith(secret, place):
                        yield Span(place, place + len(secret), self._markers[secret])

    def replaced(self, text: str) -> str:
        """A text with the markers in their places."""
        return marked(text, merged(self.spans(text)))


def marked(text: str, spans: Iterable[Span]) -> str:
    """A text with what is to stand in the spans, which are in order."""
    parts, place = [], 0
    for span in spans:
        parts += [text[place : span.start], span.marker]
        place = span.end
    return "".join([*parts, text[place:]])
