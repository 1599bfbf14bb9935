"""Matches texts: caseless patterns, and what words of a question are worth."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from ralf.text.patterns import regex

# ---- caseless patterns ----

_ESCAPE = regex(r"\\.", re.S)

_ODD = ("\u017f", "\u0131")  # a long s and an i without a dot are an s and an i to who is blind to case


class AnyOf:
    """A case-blind pattern that finds any of the alternatives, match by match as `re.IGNORECASE` does.

    It compiles at first need. A text in lower case lets the engine see at once which of many alternatives begin
    otherwise: where nothing is found, that is three times as fast. The alternatives have no groups that capture.

    remembers  how many answers are kept: a sentence is asked about alone, beside its neighbours, and with its message
    """

    def __init__(self, *alternatives: str, remembers: int = 0) -> None:
        self._alternatives = alternatives
        self._answer = lru_cache(maxsize=remembers)(self._finds) if remembers else self._finds

    @cached_property
    def _branches(self) -> list[str]:
        return [branch for alternative in self._alternatives for branch in _split(alternative)]

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile(_joined(self._branches), re.IGNORECASE)

    @cached_property
    def _parts(self) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
        """The branches for texts in lower case, and those that speak of capitals."""
        capitals = [branch for branch in self._branches if (plain := _ESCAPE.sub("", branch)) != plain.lower()]
        lower = [branch for branch in self._branches if branch not in capitals]
        return (
            re.compile(_joined(lower)) if lower else None,
            re.compile(_joined(capitals), re.IGNORECASE) if capitals else None,
        )

    @property
    def expressions(self) -> tuple[re.Pattern[str], ...]:
        """All that it may run."""
        return tuple(filter(None, (self._any, *self._parts)))

    def search(self, text: str) -> re.Match[str] | None:
        """See `re.Pattern.search`."""
        start = self._place(text)
        return None if start < 0 else self._any.search(text, start)

    def __call__(self, text: str) -> bool:
        """Whether `search` finds anything."""
        return self._answer(text)

    def _finds(self, text: str) -> bool:
        return self._place(text) >= 0

    def match(self, text: str) -> re.Match[str] | None:
        """See `re.Pattern.match`."""
        return self._any.match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """See `re.Pattern.fullmatch`."""
        return self._any.fullmatch(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """See `re.Pattern.finditer`."""
        start = self._place(text)
        return iter(()) if start < 0 else self._any.finditer(text, start)

    def findall(self, text: str) -> list[str]:
        """See `re.Pattern.findall`."""
        return [found[0] for found in self.finditer(text)]

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str) -> str:
        """See `re.Pattern.sub`."""
        return self._any.sub(by, text) if self._place(text) >= 0 else text

    def _place(self, text: str) -> int:
        """Where the first match begins, -1 for none."""
        low = text.lower()
        if not text.isascii() and (len(text) != len(low) or any(odd in text for odd in _ODD)):
            found = self._any.search(text)
            return -1 if found is None else found.start()
        lower, capitals = self._parts
        place = -1
        if lower is not None and (found := lower.search(low)):
            place = found.start()
        if capitals is not None and (found := capitals.search(text)) and not 0 <= place <= found.start():
            place = found.start()
        return place


def _joined(branches: Iterable[str]) -> str:
    """The branches as one pattern. Neighbours that begin at a border of a word, or of the text, share it: else each is
    tried at every character.
    """
    parts = []
    for anchor, run in groupby(branches, lambda branch: next((a for a in (r"\b", "^") if branch.startswith(a)), "")):
        parts.append(f"{anchor}(?:{'|'.join(branch.removeprefix(anchor) for branch in run)})")
    return "|".join(parts)


_PIECE = regex(r"\\.|\[\^?\]?(?:\\.|[^\\\]])*\]|.", re.S)  # of a pattern: an escape, a set, or a character


def _split(pattern: str) -> list[str]:
    """The parts of a pattern between the bars that stand in no group."""
    branches, depth = [""], 0
    for piece in _PIECE.findall(pattern):
        if piece == "|" and not depth:
            branches.append("")
        else:
            depth += (piece == "(") - (piece == ")")
            branches[-1] += piece
    return branches


# ---- words of a question ----

COMMON_WEIGHT = 0.7
"""What a common English word counts against any other that is as rare here. A few hundred documents cannot tell
`often` from `coercion` by how rare they are; English can."""

_LONGEST = 4_000  # characters of a question that are looked at

_PREFIX = 5  # characters that forms of a word share which the stemmer does not join: stable, stabilise

_QUESTION_WORD = regex(r"\w+")

_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])")

STOP = frozenset(
    "a about all also an and any are as at be because been but by can could decide decided decision decisions did do"
    " does for from had has have how i if in into is it its me my no not of on or our should so some than that the"
    " their them then there these they this to us use used using was we were what when where which who why will with"
    " would you your".split()
)

_COMMON = frozenset(
    """
    able above across actual actually add added adding after again against ago allow allowed allows almost along
    already although always among another answer anyone anything appear around ask asked away back bad based basic be
    became become becomes before began behind being believe below best better between beyond big bit both bring call
    called came cannot care case cases cause caused causes certain change changed changes changing choose clear clearly
    close come comes coming common complete completely consider considered contain contains correct correctly couple
    create created creates current currently day deal depend depends describe described despite different difficult
    directly doing done down due during each earlier early easier easily easy effect either else end enough entire
    especially essentially etc even ever every everyone everything exact exactly example examples except exist existing
    exists expect expected explain fact far few finally find finding first fix follow following follows form found four
    full fully further gave general generally get gets getting give given gives giving go goes going gone good got great
    group half happen happened happens hard having he held help helpful helps hence her here high him his hold however
    idea important improve include included includes including indeed instead intend intended issue itself just keep
    keeps kept kind knew know known knows large last later lead least leave left less let level like likely little long
    longer look looking looks lot low made main mainly make makes making many matter may maybe mean means meant might
    mind moment more moreover most mostly move moved much must name near nearly necessary need needed needs neither
    never new next nice none normal normally note nothing now number obvious obviously off often old once one ones
    only open option order original other others otherwise out over own part particular particularly parts past people
    per perhaps place point points possible possibly potentially practice prefer present pretty previous previously
    probably problem problems proper properly propose proposed proposes provide provided provides purpose put question
    quite quickly rather reach read real really reason reasons recent recently regard related relatively remain
    remains require required requires rest result results right run said same saw say says second see seem seems
    seen sense separate set several shall she show shown shows side similar similarly simple simpler simply since single
    situation small someone something sometimes soon sort specific specifically start started state stated step
    still stop such suggest support supported supports sure take taken takes taking talk tell tend tends term terms
    thank thanks things think those though thought three through throughout thus time times today together too took top
    toward towards tried true truly try trying turn two type types typical typically under understand unless
    until unlike up upon useful user users usual usually value values variety various version very via want wanted
    wants way ways well went whatever whenever whereas whether while whole whose wish within without wonder words
    work worked working works worse worst worth write written wrong yes yet
    """.split()
)


class Word(NamedTuple):
    """A word of a question.

    text    as it is looked up
    start   what its other forms begin with, "" where it is too short to tell
    weight  what it counts
    whole   an identifier whose parts are words of the question, too
    """

    text: str
    start: str
    weight: float
    whole: bool = False


def words(query: str) -> list[Word]:
    """The words of a query that mean something, each once: identifiers whole and in their parts, no stop words."""
    names = _QUESTION_WORD.findall(query[:_LONGEST])
    parts = {name.lower(): [part for part in re.split(r"_+", _HUMP.sub("_", name)) if part != name] for name in names}
    found = dict.fromkeys(word.lower() for word in chain(names, *parts.values()) if len(word) > 1 or word.isdigit())
    return [_word(word, bool(parts.get(word))) for word in found if word not in STOP]


def pairs(query: str) -> list[tuple[str, str]]:
    """Each two words of a query that stand side by side and mean something."""
    names = [name.lower() for name in _QUESTION_WORD.findall(query[:_LONGEST])]
    return [(a, b) for a, b in pairwise(names) if not {a, b} & STOP]


def likeness(valued: Iterable[tuple[Word, float]], text: str) -> float:
    """How much a text holds of words, each with what it is worth; another form of a word is worth half of it."""
    lowered = text.lower()
    return sum(
        value if word.text in lowered else value / 2 if word.start and word.start in lowered else 0.0
        for word, value in valued
    )


def _word(word: str, whole: bool) -> Word:
    start = word[:_PREFIX] if len(word) >= _PREFIX - 1 and word.isalpha() else ""
    return Word(word, start, COMMON_WEIGHT if word in _COMMON else 1.0, whole)
