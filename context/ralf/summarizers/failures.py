"""The English of failures: what was tried and did not work, and what is done again another way."""

from __future__ import annotations

import re

from ralf.summarizers.grammar import any_of, guesses, is_question, looks_around

_I = re.IGNORECASE

_FAILED = any_of(
    r"\b(?:tried|attempted|trying)\b[^.]{3,140}\b(?:but|failed|didn't|does(?:n't| not)|without success"
    r"|to no avail|broke|which (?:lost|broke|left|made|gave))\b",
    r"\b(?:does(?:n't| not)|did(?:n't| not)|won't|will not|can(?:'t|not)) work\b[^.]{0,60}\b(?:because|since|as"
    r"|here|when|with|for|due)\b",
    r"\b(?:doesn't|didn't|does not|did not) help\b",
    r"\b(?:dead end|not viable|led nowhere|(?<!there )was a mistake|turned out (?:to be )?(?:wrong|not)|backfired)\b",
    r"\bthat (?:approach|attempt|theory|fix|idea|way) (?:failed|fails|didn't|doesn't|was wrong|is wrong|is closed)\b",
    r"\b(?:broke|breaks) because\b",
    r"^(?!look|check|run|test)\w+ing\b(?: [^\s,.:;]+){2,12} (?:fails|failed)[,:]? (?:because|since|it|as)\b",
)
_REDOES = re.compile(
    r"^(?:so |then |ok(?:ay)?,? )*(?:let me|i'll|i will|i need to|need to) (?:redo|re-do|undo|revert|roll back|back out"
    r"|start over|go back|try (?:a )?(?:different"
    r"|another))\b",
    _I,
)


_WENT_WRONG = re.compile(
    r"n't\b|\b(?:not|never|no|lost|loses?|broken?|fail\w*|wrong|over(?:wrote|writ\w+)|unstaged|missing|unnecessary"
    r"|useless|only|conflict\w*|corrupt\w*)\b",
    _I,
)
_EXCLAIMS = re.compile(r"(?:sorry|wait|oops|ugh|damn)\b", _I)


def failed(text: str) -> bool:
    """Whether a sentence says that something was tried and why it did not work."""
    words = len(text.split())
    if words < 6 or words > 80 or _EXCLAIMS.match(text) or is_question(text) or looks_around(text):
        return False
    return _FAILED.found(text) and not re.search(r"\b(?:if|would|could|might|may)\b", text, _I)


def went_wrong(text: str) -> bool:
    """Whether a sentence tells what went wrong with what was done, and is no exclamation or guess."""
    return bool(_WENT_WRONG.search(text)) and not _EXCLAIMS.match(text) and not guesses(text, len(text))


def redoes(text: str) -> bool:
    """Whether a sentence announces that what the agent did just before is done another way."""
    return bool(_REDOES.match(text))
