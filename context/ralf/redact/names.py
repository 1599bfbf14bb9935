"""What a name calls its value: the kind of a secret, or nothing.

A name tells the kind by its stem (`DB_PASSWORD`, `githubToken`, `contraseña`) and by what stands around that: a
`token_count` is no token, and a `primary_key` opens nothing. The stems are the table's: English ones with what the
rest of the name must and must not have, and the labels of forty languages.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache, lru_cache

from ralf.redact.table import expression, rows
from ralf.text.patterns import regex

LONGEST_NAME = 60
_LATIN = "\u0250"  # the letters before it are Latin ones
_INFLECTED = 6  # letters of a label behind which the ending of a case stands, too: `salasanasi`
_COMPOUND = 7  # letters of a label that may end a longer word: `Zugangsschlüssel`
_LABELS = {"pin": "pin"} | {
    word.replace(" ", sign): kind
    for column, kind in ((2, "secret"), (1, "password"), (3, "pin"))
    for row in rows("languages")
    for word in (*row, "")[column].split(", ")
    for sign in ("", " ", "_", "-")[word.isascii() ^ 1 :]
    if word
}
"""What secrets are called in the languages that most people write, and their kinds."""

_ENGLISH = {mark.strip("="): mark.startswith("=") for row in rows("names") for mark in row[0].split()}
"""The English stems, and whether no letter stands beside them."""

WORDS = (*_ENGLISH, *_LABELS)
"""The words, in lower case, without one of which no name of a secret stands in a text."""

_ALL = frozenset(WORDS)
_ANYWHERE = frozenset(stem for stem, alone in _ENGLISH.items() if stem not in _LABELS and not alone and stem != "pw")
"""The stems that are parts of words, too."""

_BREAKS = ("\\n", "\\r", "\\t")  # as they are written


def any_of(words: Iterable[str]) -> str:
    """A regular expression that matches the first of some words, as `a|b|c` does, but looks at each beginning once."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(its)})" for first, its in rests.items())


@lru_cache(1024)
def finds(words: frozenset[str]) -> re.Pattern[str]:
    """Finds where words stand, of two that begin alike the longer."""
    return re.compile(any_of(sorted(words, key=lambda word: (-len(word), word))))


def stems_of(low: str, there: Collection[str] = _ALL) -> Iterator[re.Match[str]]:
    """Where the names of secrets have their stems in a text in lower case, in which these words stand."""
    words = _ALL if there is _ALL else _ALL.intersection(there)
    stems, place = finds(words), 0
    while words and (found := stems.search(low, place)) is not None:
        start, place = found.span()
        stem = found[0]
        stands = stem in _ANYWHERE or _stands(stem, _before(low, start), low[place : place + 1])
        place = place if stands else start + 1  # in `rootpw`, `otp` hides what stands there
        if stands:
            yield found


def _before(low: str, start: int) -> str:
    """The character before a place, "" behind a break that is written as it is escaped."""
    return "" if low[start - 2 : start] in _BREAKS else low[start - 1 : start]


def _stands(stem: str, before: str, behind: str) -> bool:
    """Whether a stem that is a word of its own stands between two characters."""
    joined = stem == "pw" or (stem in _LABELS and len(stem) >= _COMPOUND)
    inflected = _LABELS.get(stem) == "password" and len(stem) >= _INFLECTED
    return (joined or not before.isalpha() or before >= _LATIN) and (
        inflected or not behind.isalpha() or behind >= _LATIN
    )


@lru_cache(4096)
def is_name(text: str) -> bool:
    """Whether a text, which may be a name, has the stem of one; not one that is a word of its own, too: salt."""
    return any(not _ENGLISH.get(stem[0]) for stem in stems_of(text.lower()))


@cache
def _rules(stem: str) -> list[tuple[re.Pattern[str], re.Pattern[str], str]]:
    """What a name with a stem must have and must not have, to be of a kind."""
    mine = [row for row in rows("names") if stem in (mark.strip("=") for mark in row[0].split())]
    return [(regex(expression(has)), regex(expression(lacks or "(?!)")), kind) for _, has, lacks, kind in mine]


@lru_cache(4096)
def kind_of(name: str, stem: str) -> str:
    """What a name with a stem, in lower case, calls its value: the kind of a secret, "" where that is none.

    "weak" is the kind of names that say little: what they name is a secret only where it looks random.
    """
    if stem in _LABELS:
        return _LABELS[stem]
    plain = name.strip("-._")
    return next((kind for has, lacks, kind in _rules(stem) if has.search(plain) and not lacks.search(plain)), "")


def kind_of_title(title: str) -> str:
    """What a title, or a name as it is written, calls its value: the kind of a secret, "" where that is none."""
    low = "_".join(title.strip(" `*\"'").lower().split())
    stems = list(stems_of(low)) if len(low) <= LONGEST_NAME else []
    return kind_of(low, stems[-1][0]) if stems else ""
