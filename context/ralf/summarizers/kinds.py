"""Which words answer the same question, speak of one thing, or measure something: what `ralf/data/choices.txt` holds.

Two members of one kind are two answers to the same question: two databases, two licences, left and right. The file is
read when it is first needed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

_FILE = Path(__file__).parents[1] / "data" / "choices.txt"
_SHORTENED = re.compile(r"['\u2019](?:s|re|ll|ve|d)$")
_ENDING = re.compile(
    r"(?:ings?(?<=\w{6})|ed(?<=\w{5})|en(?<=\w{6})|ies(?<=\w{5})|e?s(?<=\w{4})|er(?<=\w{6})|e(?<=\w{5})|y(?<=\w{5}))$"
)
_STEM = 7  # letters; what comes behind them is mostly an ending: "migration", "migrates"
_MARKS = "!*~"


@dataclass(frozen=True, slots=True, eq=False)  # there is one of each
class Kind:
    """A kind of choice.

    mark  "!" where a project mostly has one member, "*" where a member says only where something runs, "~" where it
          says little alone, else ""
    """

    name: str
    is_name: bool
    mark: str


@dataclass(slots=True)
class _Tables:
    """What the file holds, ready to be looked up."""

    members: dict[str, dict[Kind, str]]
    capital: frozenset[str]
    same: dict[str, str]
    attributes: frozenset[str]
    general: frozenset[str]
    parts: dict[str, tuple[str, str, bool]]
    units: dict[str, tuple[str, float]]
    numbers: dict[str, float]
    empty: frozenset[str]
    verbs: frozenset[str]


def flat(word: str) -> str:
    """A word in lower case, without accents and without what follows an apostrophe."""
    word = _SHORTENED.sub("", word.lower().rstrip("-'\u2019")).replace("ß", "ss")
    if word.isascii():
        return word
    return "".join(sign for sign in unicodedata.normalize("NFKD", word) if not unicodedata.combining(sign))


@lru_cache(maxsize=8192)
def concept(word: str) -> str:
    """What a flat word speaks of: the same for all its forms, and for other words for it."""
    same, stem = _tables().same, _stem(word)
    return same.get(word) or same.get(stem, stem)


def phrase(words: str) -> str:
    """What two flat words, with a hyphen, speak of together; "" where they are no name of one thing."""
    return _tables().same.get(words, "")


def members(word: str, *, written_as_name: bool = True) -> dict[Kind, str]:
    """The member that a flat word is, by kind. Names that are words as well count only where they are written so."""
    tables = _tables()
    found = tables.members.get(word, {})
    if written_as_name or word not in tables.capital:
        return found
    return {kind: member for kind, member in found.items() if not kind.is_name}


def is_attribute(subject: str) -> bool:
    """Whether a concept is something that many things have: a port, a limit, a name."""
    return subject in _tables().attributes


def is_general(subject: str) -> bool:
    """Whether any project has such things: files, tests, users."""
    return subject in _tables().general


def is_empty(word: str) -> bool:
    """Whether a flat word says nothing about the subject."""
    return word in _tables().empty


def is_verb(word: str) -> bool:
    """Whether a flat word is the verb of a main clause."""
    verbs = _tables().verbs
    return word in verbs or (word.endswith("s") and word[:-1] in verbs)


def part(word: str) -> tuple[str, str, bool] | None:
    """(kind, part, whether no other part of the kind stands for it) of a flat word that names a part of something."""
    return _tables().parts.get(word)


def unit(word: str) -> tuple[str, float] | None:
    """(what is measured, factor to its smallest common unit) of a flat word."""
    return _tables().units.get(word)


def number(word: str) -> float | None:
    """The number that a flat word is."""
    return _tables().numbers.get(word)


# ---- the file ----


@cache
def _tables() -> _Tables:
    sections = _sections()
    same = _same(sections["same"])

    def concepts(section: str) -> frozenset[str]:
        return frozenset(same.get(word) or same.get(_stem(word), _stem(word)) for word in _words(sections[section]))

    return _Tables(
        members=_members(sections),
        capital=frozenset(_words(sections["capital"])),
        same=same,
        attributes=concepts("attributes"),
        general=concepts("general"),
        parts={
            spelling: (name, spellings[0], mark == "!")
            for mark, name, groups in _kinds(sections["parts"])
            for spellings in groups
            for spelling in spellings
        },
        units=_units(sections["units"]),
        numbers={word: float(line.split()[0]) for line in sections["numbers"] for word in line.split()[1:]},
        empty=frozenset(_words(sections["empty"])),
        verbs=frozenset(_words(sections["verbs"])),
    )


def _sections() -> dict[str, list[str]]:
    """The lines of each section; one that goes on in the next stands in one."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line.strip("[]"), [])
        elif line.startswith(" "):
            lines[-1] += line
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections


def _words(lines: list[str]) -> Iterator[str]:
    return (word for line in lines for word in line.split())


def _kinds(lines: list[str]) -> Iterator[tuple[str, str, list[list[str]]]]:
    """(mark, name, spellings of each member) of each line."""
    for line in lines:
        name, _, rest = line.lstrip(_MARKS + " ").partition(":")
        yield line[0] if line[0] in _MARKS else "", name, [group.split("=") for group in rest.split()]


def _members(sections: dict[str, list[str]]) -> dict[str, dict[Kind, str]]:
    found: dict[str, dict[Kind, str]] = {}
    for section in ("names", "words"):
        for mark, name, groups in _kinds(sections[section]):
            kind = Kind(name, section == "names", mark)
            for spellings in groups:
                for spelling in spellings:
                    found.setdefault(spelling, {}).setdefault(kind, spellings[0])
    return found


def _same(lines: list[str]) -> dict[str, str]:
    """The name of its line for each word, and for its stem; lines that share a word have one name."""
    names: dict[str, str] = {}

    def name_of(word: str) -> str:
        while names.setdefault(word, word) != word:
            word = names[word]
        return word

    for line in lines:
        first, *others = line.split()
        for word in others:
            names[name_of(word)] = name_of(first)
    found = {word: f"={name_of(word)}" for word in list(names)}
    for word in list(found):
        found.setdefault(_stem(word), found[word])
    return found


def _units(lines: list[str]) -> dict[str, tuple[str, float]]:
    found = {}
    for line in lines:
        measured, _, rest = line.partition(":")
        for group in rest.split("|"):
            factor, *spellings = group.split()
            found.update(dict.fromkeys(spellings, (measured, float(factor))))
    return found


def _stem(word: str) -> str:
    return _ENDING.sub("", word)[:_STEM]
