"""Checks what a hand-over says against the record: names must stand in what was shown, words in a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ralf.model.entries import Entry, Mark, Message, Said, Step
from ralf.model.handover import HandOver, Kept
from ralf.text.cleaning import trimmed
from ralf.text.patterns import regex

_WIDE = "\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uff60"

_LETTER = rf"(?![{_WIDE}])\w"  # with which a word goes on; scripts with wide characters put no space between words

_WORD = regex(rf"(?:{_LETTER})+")

_RUN = regex(rf"(?:(?![{_WIDE}])[\w~@$#./\\:+=-])+(?:\(\))?")

_CODE = regex(r"(?<!`)`+([^`\n]+)`+")

_SENTENCE = regex(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")

_NUMBER = regex(r"(\d[\d,._]*\d)[A-Za-z%]{0,3}")

_LONG_NUMBER = regex(r"(?<![A-Za-z0-9_.,:/-])\d[\d,._]*\d(?![A-Za-z0-9_:/-])")

_NUMBERS = regex(r"\d[\d,._]*\d|\d")

_HASH = regex(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}")

_IDENTIFIER = regex(
    r"_*+[^\W_]++_\w++|_++[A-Za-z]\w*+"  # snake_case, _private
    r"|(?:(?![a-z][A-Z])\w)*+[a-z][A-Z]\w*+"  # camelCase
    r"|(?:\w{2,}+\.)++[A-Za-z_]\w*+|\w++(?:::\w++)++"  # a.b, file.py, a::b
    r"|(?=[\d_.]*+[A-Za-z])[\w.]++\(\)|--[A-Za-z][\w-]*+(?:=\S+)?"  # call(), --flag
    r"|(?!(?:UTF|ISO|SHA|RFC|MD|CP)-)[A-Z][A-Z0-9]+-\d+"  # TASK-001; not UTF-8
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)

_PLACE = regex(r"(.*[^\d:]):(\d+)(?:[-:](\d+))?(?::(\d+))?")

_FROM_TO = regex(r"\w\.\.\w")  # A..B

_PARTS = regex(r"[\s,;|&=()<>\[\]{}\"'`+\u2026]+|\.{3}")

_LEFT_OUT = regex(r"[\s\"'`\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb\u300c\u300d]+")

_SPACED = regex(r"[^\w./-]")  # what may have white space or quotes beside it

_MOST_NAMES = 400  # of one text

_FEWEST_DIGITS = 5

_ABBREVIATION = 3  # characters up to which a word that slashes join to others is not looked for


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return [part for part in _SENTENCE.split(text) if part.strip()]


def names_in(text: str) -> list[str]:
    """Paths, code in backticks, identifiers, ids, hashes and numbers of five digits and more."""
    found = [one.strip() for one in _CODE.findall(text)]
    text = _CODE.sub(" ", text)
    found += _LONG_NUMBER.findall(text)
    for run in _RUN.findall(text):
        word = run.strip(".:=-/+\\") if not run.startswith(("--", "/", "./", "../")) else run.rstrip(".:=-/+\\")
        if _is_name(word):
            found.append(word)
    return list(dict.fromkeys(one for one in found if _can_be_checked(one)))[:_MOST_NAMES]


def _is_name(word: str) -> bool:
    slashes = word.count("/")
    if slashes and any(char.isalpha() for char in word):  # one slash between plain words only joins them
        return slashes > 1 or not word.replace("/", "").isalpha() or word.startswith("/")
    place = _PLACE.fullmatch(word)
    word = place[1] if place else word
    number = _NUMBER.fullmatch(word)
    return bool(number or _HASH.fullmatch(word) or (word.isascii() and _IDENTIFIER.fullmatch(word)))


def _can_be_checked(name: str) -> bool:
    """Whether it has a letter, or digits enough that it is not found by chance; a pattern names nothing by itself."""
    if "*" in name or _FROM_TO.search(name):
        return False
    return (len(name) > 1 and any(char.isalpha() for char in name)) or len(_digits(name)) >= _FEWEST_DIGITS


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdecimal())


class Shown:
    """What a writer can have its names from: the prompt without its line numbers, the text of the route's entries."""

    def __init__(self, texts: Iterable[str]) -> None:
        text = "\n".join(texts)
        self._text = text.casefold()
        self._compact = _LEFT_OUT.sub("", text)
        self._words = set(_WORD.findall(text))
        self._folded = {word.casefold() for word in self._words}
        self._numbers = {_digits(number) for number in _NUMBERS.findall(text)}

    def missing(self, *texts: str) -> tuple[str, ...]:
        """Names in some texts that stand nowhere in it."""
        names = dict.fromkeys(name for text in texts for name in names_in(text))
        return tuple(name for name in names if not self._has(name))

    def _has(self, name: str) -> bool:
        name = name.removesuffix("()").removeprefix("./").strip(" .,:;") or name
        if self._has_whole(name) or self._is_part(name):
            return True
        place = _PLACE.fullmatch(name)
        if place:
            return self._has(place[1]) and all(number in self._numbers for number in place.groups()[1:] if number)
        parts = [part.strip(".:") for part in _PARTS.split(name)]
        parts = [part for part in parts if part != name and _can_be_checked(part)]
        return bool(parts) and all(map(self._has, parts))

    def _is_part(self, name: str) -> bool:
        """Whether it joins names by slashes, as a path that code puts together, or is a part of one by its capitals."""
        if "/" in name:
            return all(self._has_whole(part) for part in name.split("/") if len(part) > _ABBREVIATION)
        if not name.isalnum() or not name[:1].isupper():
            return False
        bordered = re.compile(rf"(?:\A|[a-z0-9_]){name}(?:\Z|[A-Z0-9_])")
        return any(name in word and bordered.search(word) for word in self._words)

    def _has_whole(self, name: str) -> bool:
        if _WORD.fullmatch(name) and (name in self._words or name.casefold() in self._folded):
            return True
        if _HASH.fullmatch(name):  # of a hash its beginning is enough
            return any(word.startswith(name) for word in self._words)
        if number := _NUMBER.fullmatch(name):
            return _digits(number[1]) in self._numbers
        if any(word.casefold() not in self._folded for word in _WORD.findall(name)):
            return False
        return self._stands(name.casefold()) or bool(_SPACED.search(name) and _LEFT_OUT.sub("", name) in self._compact)

    def _stands(self, name: str) -> bool:
        """Whether it stands there as a whole, in any case: what borders on it goes on with none of its words."""
        begins = rf"(?<!{_LETTER})" if _WORD.match(name[0]) else ""
        ends = rf"(?!{_LETTER})" if _WORD.match(name[-1]) else ""
        return name in self._text and re.search(begins + re.escape(name) + ends, self._text) is not None


_TEXTS = {
    Message: ("text", "about", "output"),
    Said: ("text",),
    Step: ("tool", "object", "folder", "added", "output"),
    Mark: ("value", "text"),
}


def texts_of(entries: Iterable[Entry]) -> Iterator[str]:
    """All text of some entries."""
    for entry in entries:
        yield from (getattr(entry, name) for name in _TEXTS[type(entry)])
        if isinstance(entry, Step):
            yield from (*entry.comments, *entry.lines, *(path for path, _ in entry.files))
            yield from (part for fact in entry.git for part in (fact.value, fact.subject))
        elif isinstance(entry, Mark):
            yield from (part for item in entry.items for part in (item.id, item.text))


def marked(handover: HandOver, kept: Iterable[Kept], shown: Shown) -> tuple[HandOver, tuple[Kept, ...]]:
    """A hand-over and entries, each with the names in it that were not found; the next steps of who did the work may
    name what is yet to be made.
    """
    parts = (text for part in handover.parts if part.kind != "next" for text in part.items)
    said = (handover.now, handover.why, *(handover.next if handover.author == "model" else ()), *parts)
    entries = (replace(entry, marks=shown.missing(entry.text, entry.reason, *entry.rejected)) for entry in kept)
    return replace(handover, marks=shown.missing(*said)), tuple(entries)


# ---- words ----

_MOST_WORDS, _LONGEST_WORDS, _LONGEST_BESIDE = 15, 240, 120  # words, characters; characters of a message shown instead


_BEGINS = rf"(?:(?<!{_LETTER})|(?<=_)|(?=[{_WIDE}]))"

_ENDS = rf"(?:(?!{_LETTER})|(?=_)|(?<=[{_WIDE}]))"


class Quotes:
    """The messages of a segment, in which quoted words are looked for: letters and digits are compared."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._messages = [one for one in entries if isinstance(one, Message | Said)]

    def find(self, words: str, line: int, *, persons: bool = False) -> tuple[str, Message | Said] | None:
        """The words as they stand in the message nearest to a line, and that message, `persons`: one of the person."""
        letters = [re.escape(char) for char in words if char.isalnum()]
        if not letters:
            return None
        same = re.compile(_BEGINS + r"[\W_]*+".join(letters) + _ENDS, re.I)
        whose = Message if persons else Message | Said
        near = [message for message in self._messages if isinstance(message, whose)]
        for message in sorted(near, key=lambda one: (abs(one.line - line), not isinstance(one, Message))):
            if found := same.search(message.text):
                return trimmed(" ".join(found[0].split()[:_MOST_WORDS]), _LONGEST_WORDS), message
        return None

    def beside(self, line: int) -> str:
        """The person's message at a line, shortened; "" for none."""
        at_line = (one.text for one in self._messages if isinstance(one, Message) and one.line == line)
        return trimmed(" ".join(next(at_line, "").split()), _LONGEST_BESIDE)


def plain(text: str) -> str:
    """The letters and digits of a text, without case."""
    return "".join(filter(str.isalnum, text.casefold()))
