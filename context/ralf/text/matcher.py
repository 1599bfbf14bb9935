"""What words of a question are worth, and how like a text is to another."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, pairwise
from typing import NamedTuple

from ralf.text.patterns import regex

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
