"""Free wording held against evidence: whether all that it names stands there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from ralf.text.cleaning import one_line
from ralf.text.matcher import stands_whole
from ralf.text.patterns import regex
from ralf.text.sentences import Support, claims, split

_NUMBER = regex(r"([0-9][0-9,]{0,14}(?:\.[0-9]{1,9})?)([A-Za-z]{0,3}|%)\Z")

_HASH = regex(r"[0-9a-f]{7,40}\Z")

_TIME = regex(r"\d\d:\d\d")

_WORD = regex(r"[^\W\d_]+\Z")

_SHORT = regex(r"[A-Z]{1,2}\Z")
"""PR, CI, UI: that it stands in capitals makes no name of it."""

_CUT = regex(r"…|\.{3}")

_AROUND = "#~$@<>=+%≈≤≥→/\\"
"""Signs around a name that say something of it and are no part of it."""

_WORDS = dict(enumerate("zero one two three four five six seven eight nine ten eleven twelve".split()))

_THOUSANDS = {"k": 1_000, "K": 1_000, "M": 1_000_000}


class Evidence:
    """What a route has seen and heard; free wording may name nothing else.

    How it says it is its own: only paths, numbers, ids, commands, code and names have to stand here, spelt the same.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._support = Support(texts)
        self._text = one_line("\n".join(self._support.parts))

    @cached_property
    def _folded(self) -> str:
        return self._text.casefold()

    def missing(self, text: str) -> list[str]:
        """What a text names and the evidence does not."""
        return [claim for claim in claims(text) if not (_SHORT.match(claim) or self._has(claim))]

    def borne(self, text: str, unborne: list[tuple[str, list[str]]]) -> str:
        """The sentences of a text that name only what stands here; the others go to `unborne`, each with what it
        names.
        """
        kept = []
        for sentence in split(text):
            if missing := self.missing(sentence):
                unborne.append((sentence, missing))
            else:
                kept.append(sentence)
        return " ".join(kept)

    def _has(self, claim: str) -> bool:
        if _WORD.match(claim) and claim[1:] == claim[1:].lower():
            return stands_whole(claim.casefold(), self._folded) or self._support.uses(claim)
        return any(self._stands(form) for form in _forms(claim)) or self._has_parts(claim)

    def _stands(self, form: str) -> bool:
        if stands_whole(form, self._text) or (form.isupper() and stands_whole(form.casefold(), self._folded)):
            return True
        if _HASH.match(form) and not form.isalpha():  # of a hash, its beginning will do
            at = self._text.find(form)
            while at > 0 and self._text[at - 1].isalnum():
                at = self._text.find(form, at + 1)
            return at >= 0
        if self._ends(f"T{form}" if _TIME.match(form) else f"__{form}"):
            return True
        number = _NUMBER.match(form)
        return number is not None and any(stands_whole(one, self._folded) for one in _spelt(number[1], number[2]))

    def _ends(self, form: str) -> bool:
        """Whether a longer name ends with it: a tool's with its server's before it, a time with its day before it."""
        at = self._text.find(form)
        while at >= 0 and self._text[at + len(form) : at + len(form) + 1].isalnum():
            at = self._text.find(form, at + 1)
        return at >= 0

    def _has_parts(self, claim: str) -> bool:
        """Whether it is a cut text, a place in a file, or numbers put together, of which each part stands here."""
        if _CUT.search(claim):
            pieces = [piece for part in _CUT.split(claim) if (piece := part.strip(" ,;"))]
            return bool(pieces) and all(stands_whole(piece, self._text) for piece in pieces)
        head, numbers = _place(claim)
        if numbers:
            return self._has(head) and all(map(self._has, numbers))
        parts = [part for part in claim.split("-") if part]
        joined = len(parts) > 1 and any(part[0].isdigit() for part in parts) and all(map(str.isalnum, parts))
        return joined and all(map(self._has, parts))


_NUMBERS_OF_A_PLACE = 3  # a line, a column, an end: more is no place


def _place(claim: str) -> tuple[str, list[str]]:
    """A file and the numbers of a place in it, `src/a.py:12-14:3`."""
    head, numbers = claim, list[str]()
    for _ in range(_NUMBERS_OF_A_PLACE):
        before, colon, tail = head.rpartition(":")
        if not colon or not tail.replace("-", "").isdecimal():
            return head, numbers
        head, numbers = before, [*numbers, *filter(None, tail.split("-"))]
    return (claim, []) if head.rpartition(":")[2].isdecimal() else (head, numbers)


def _forms(claim: str) -> Iterator[str]:
    """How a name may stand in the evidence."""
    yield claim
    bare = claim.strip(_AROUND).removeprefix("./")
    if bare and bare != claim:
        yield bare


def _spelt(number: str, unit: str) -> Iterator[str]:
    """How a number with its unit may be spelt."""
    plain = number.replace(",", "")
    yield from dict.fromkeys((number, plain))
    whole = plain.isdecimal() and len(plain) < 16
    if whole:
        yield f"{int(plain):,}"
        yield from filter(None, [_WORDS.get(int(plain))])
    if unit in _THOUSANDS:
        value = round(float(plain) * _THOUSANDS[unit])
        yield from (str(value), f"{value:,}")
