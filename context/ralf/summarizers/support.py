"""Whether the lines of a transcript bear out what a model says of them: every name, path and number of a text has to
stand in them, and most of its words.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal

from ralf.evidence import Line

MARGIN = 3
"""Lines before and after those that a model names: a call and its result stand between a question and its answer."""

PROSE = ("user", "assistant")
Where = Literal["prose", "said", "all"]
"""What of the lines counts: what people and the agent said, that and the agent's calls, or all."""

_QUOTED = re.compile(r"`([^`]+)`")
_EDGES = ".,;:!?…()[]{}<>\"'*_“”‘’«»|—–"  # noqa: RUF001  # typographic quotes and dashes are what is stripped
_PLAIN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]{1,2})?\Z")  # noqa: RUF001  # an apostrophe
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])")
_WORD = re.compile(r"[^\W\d_]+")
_CASELESS = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DENIAL = re.compile(r"\b(?:not|never|cannot|no longer)\b|n['’]t\b", re.I)  # noqa: RUF001  # an apostrophe
_NEGATIVE = re.compile(
    r"\b(?:not|never|no|none|nothing|cannot|without|avoid\w*|dropp?\w*|remov\w*|reject\w*|instead|rather|stop\w*|fail\w*)\b"
    r"|n['’]t\b",  # noqa: RUF001  # an apostrophe
    re.I,
)
_SENTENCE = re.compile(r"(?:^|[.!?:;]\s+|\s[—–-]\s)[\"'(*]*([^\W\d_]+)", re.M)  # noqa: RUF001
_STOP = frozenset(
    """
    about above after again against because been before being below between both could does doing down during each
    from further have having here into itself just more most once only other over same should some such than that
    their them then there these they this those through under until very were what when where which while with would
    will your also used uses using make made need needs must instead rather chose choose chosen decided decision
    agent user work next step
    """.split()
)
_OPENERS = _STOP | frozenset(
    """
    the and but for its our all any one two yes let now never always add adopt allow apply ask avoid build call change
    check choose commit copy create delete do drop fix follow go have implement keep leave let make merge move name open
    pass pin prefer put read remove rename replace return revert run say send set show skip split start stop store take
    tell test try turn update use wait wants write
    """.split()
)
"""Words that open a sentence without being a name."""

_HUMP = re.compile(r"[^\W\d_](?=[A-Z][a-z])|[a-z](?=[A-Z])")
_FORM = re.compile(r"(?:ed|ing|ly)\Z")
_CUT = re.compile(r"(?<=[.!?;])\s+|\n+")
_REACH = 4  # words that a "not" speaks of
_STEM = 5  # characters that two forms of a word share


class Lines:
    """The text of a segment's events by their lines in the transcript."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines: Sequence[Line] = sorted(lines, key=lambda line: (line.line, line.last))
        self._starts = [line.line for line in self._lines]
        longest = max((line.last - line.line for line in self._lines), default=0)
        self._longest = longest

    @property
    def first(self) -> int:
        """The first line, 0 for no text."""
        return self._lines[0].line if self._lines else 0

    @property
    def last(self) -> int:
        """The last line, 0 for no text."""
        return max((line.last for line in self._lines), default=0)

    def within(self, first: int, last: int, margin: int = MARGIN) -> list[Line]:
        """The events between two lines, a margin included; [] for lines that are not there."""
        if not self.first <= first <= last <= self.last:
            return []
        start = bisect_left(self._starts, first - margin - self._longest)
        stop = bisect_left(self._starts, last + margin + 1)
        return [line for line in self._lines[start:stop] if line.last >= first - margin]

    def support(self, first: int, last: int, where: Where = "all") -> Support:
        """What these lines say."""
        kinds = {"prose": PROSE, "said": (*PROSE, "call", "note")}.get(where, ())
        return Support(line.text for line in self.within(first, last) if not kinds or line.kind in kinds)

    @cached_property
    def whole(self) -> Support:
        """What the whole segment says."""
        return Support(line.text for line in self._lines)

    @cached_property
    def whole_said(self) -> Support:
        """The same without what tools printed."""
        return Support(line.text for line in self._lines if line.kind in (*PROSE, "call", "note"))


class Support:
    """A text that a claim is held against."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._parts = tuple(texts)
        self._text = _flat("\n".join(self._parts))

    def __bool__(self) -> bool:
        return bool(self._text)

    @cached_property
    def _folded(self) -> str:
        return self._text.casefold()

    @cached_property
    def _sentences(self) -> tuple[str, ...]:
        return tuple(sentence for part in self._parts for sentence in _CUT.split(part) if sentence.strip())

    @cached_property
    def _numbers(self) -> Mapping[str, frozenset[str]]:
        """Each number with the words that stand beside it."""
        found: dict[str, frozenset[str]] = {}
        for sentence in self._sentences:
            for number in _NUMBER.findall(sentence):
                plain = number.replace(",", "")
                found[plain] = found.get(plain, frozenset()) | _all_units(sentence)
        return found

    @cached_property
    def _units(self) -> frozenset[str]:
        return _all_units(self._text)

    def missing(self, text: str, beyond: Support | None = None) -> list[str]:
        """The names, paths and numbers of a text that do not stand here; a number has to stand with a word of it.

        beyond  where a proper noun or an abbreviation, which is no path, number or identifier, may stand as well
        """
        words = _all_units(text)
        missing = [claim for claim in claims(text) if not self._has(claim, words)]
        if beyond is None:
            return missing
        return [claim for claim in missing if not _is_word(claim) or not beyond.knows(claim)]

    def missing_of(self, wanted: Iterable[str]) -> list[str]:
        """Those of some names, paths and numbers that do not stand here."""
        return [claim for claim in wanted if not self._has(claim, frozenset())]

    def share(self, text: str) -> float:
        """The share of a text's words that stand here, in any form; 1 for a text without words of its own."""
        wanted = _all_units(text)
        return len(wanted & self._units) / len(wanted) if wanted else 1.0

    def bears_out(self, text: str, least: float, beyond: Support | None = None) -> bool:
        """Whether every name of a text and this share of its words stand here, and both say yes, or both no."""
        if not self or self.missing(text, beyond) or self.share(text) < least or self.denies(text):
            return False
        if not _DENIAL.search(text):
            return True
        denied, near = _spoken_of(_DENIAL, text), self._nearest(text)
        if not denied:  # short names only: that something is denied has to do
            return any(_NEGATIVE.search(sentence) for sentence in near)
        return any(denied & _spoken_of(_NEGATIVE, sentence) for sentence in near)

    def denies(self, text: str) -> bool:
        """Whether what comes nearest to a text here says no to a word that the text says yes to."""
        if _NEGATIVE.search(text):
            return False
        return any(_spoken_of(_DENIAL, sentence) & _all_units(text) for sentence in self._nearest(text)[:1])

    def knows(self, word: str) -> bool:
        """Whether a word stands here, in whatever letters."""
        return _bounded(word.casefold(), self._folded)

    def uses(self, word: str) -> bool:
        """Whether a word stands here in small letters, in any form: then it is no name."""
        stem = re.escape(word.lower().rstrip("s"))
        return re.search(rf"(?<!\w){stem}(?:e?s|e?d|ing|e?r|e?rs|ly|ion|ions)?(?!\w)", self._text) is not None

    def _nearest(self, text: str) -> list[str]:
        """The two sentences that have most of a text's words, best first."""
        wanted = _all_units(text)
        return sorted(self._sentences, key=lambda sentence: -len(wanted & _all_units(sentence)))[:2]

    def _has(self, claim: str, words: frozenset[str]) -> bool:
        if _NUMBER.fullmatch(claim):
            beside = self._numbers.get(claim.replace(",", ""))
            return beside is not None and (not words or not words.isdisjoint(beside))
        if _is_word(claim):
            return _bounded(claim.casefold(), self._folded)
        return _bounded(claim, self._text)


def claims(text: str) -> list[str]:
    """What of a text can be true or false by itself: quoted code, paths, names, numbers and proper nouns, each once.

    A name is any word that is not made of letters alone, or has a capital where no sentence begins.
    """
    found = [_flat(quoted).strip().removesuffix("()") for quoted in _QUOTED.findall(text)]
    rest = _QUOTED.sub(" ", text)
    openings = {match.start(1) for match in _SENTENCE.finditer(rest)}
    for match in re.finditer(r"\S+", rest):
        token = re.sub(r"(?:['’]s|\(\))\Z", "", match.group().strip(_EDGES))  # noqa: RUF001  # an apostrophe
        if not token:
            continue
        at = match.start() + match.group().index(token)
        parts = token.split("-")
        if all(_PLAIN.match(part) for part in parts):
            opens = at in openings
            found += [
                part
                for place, part in enumerate(parts)
                if len(part) > 1
                and (part[1:] != part[1:].lower() or (part[:1] != part[:1].lower() and not (opens and not place)))
            ]
        elif any(character.isalnum() for character in token):
            found.append(token)
    return [claim for claim in dict.fromkeys(found) if claim]


def _is_word(claim: str) -> bool:
    return _PLAIN.match(claim) is not None and _HUMP.search(claim) is None


def openers(text: str) -> list[str]:
    """The words with a capital that open a sentence and may be names: nobody can tell by the capital."""
    found = _SENTENCE.findall(_QUOTED.sub(" ", text))
    return [
        word
        for word in found
        if word[0] != word[0].lower() and word.casefold() not in _OPENERS and not _FORM.search(word) and len(word) > 2
    ]


def _spoken_of(word: re.Pattern[str], text: str) -> frozenset[str]:
    """The words that a "not" in a text speaks of: the few behind it."""
    behind = (" ".join(text[found.end() :].split()[:_REACH]) for found in word.finditer(text))
    return frozenset(unit for words in behind for unit in _all_units(words))


def _all_units(text: str) -> frozenset[str]:
    return frozenset(unit for word in _WORD.findall(text) for unit in _units_of(word))


def _units_of(word: str) -> Iterable[str]:
    folded = word.casefold()
    if _CASELESS.search(word):  # written without spaces: its pairs of characters
        return [folded[place : place + 2] for place in range(max(1, len(folded) - 1))]
    return [] if len(folded) < 4 or folded in _STOP else [folded[:_STEM]]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _bounded(claim: str, text: str) -> bool:
    """Whether a claim stands in a text as a whole, not as a part of a longer name or number."""
    start = text.find(claim)
    while start >= 0:
        end = start + len(claim)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (_joins(before) and _joins(claim[0])) and not (_joins(after) and _joins(claim[-1])):
            return True
        start = text.find(claim, start + 1)
    return False


def _joins(character: str) -> bool:
    return character.isalnum() or character == "_"
